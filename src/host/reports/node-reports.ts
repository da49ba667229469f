/**
 * The reports that the nodes of a cluster give each other: this node's own, told to everybody every
 * few seconds and soon after something big changed, and the latest of each other node.
 *
 * Invariants: 1. A report counts for NODE_REPORT_VALID_MS, and never after one of a later start of
 * its node. 2. However much changes, a node tells at most one report per REPORT_GAP_MS. 3. What is
 * kept is bounded by the members there can be. 4. Whoever has no link to anybody makes no report.
 * 5. What the clocks of the nodes show together is the median of reports that count (P-063).
 */
import { MEMBERS_MAX, NODE_REPORT_EVERY_MS, NODE_REPORT_VALID_MS } from "../../base/limits.js";
import {
  type NodeReport,
  type PartitionWait,
  decodeNodeReport,
  encodeNodeReport,
  isNodeReport,
  spokenReport,
} from "./node-report.js";

/** Pause between two reports of a node when something big changed (ms). */
const REPORT_GAP_MS = 1000;

export interface NodeReportsDeps {
  readonly nodeId: number;
  nowMs(): number;
  /** The linked nodes. */
  linked(): Iterable<number>;
  /** What is spoken with a linked node. */
  protocolWith(node: number): number;
  /** This node is the only member of its cluster. */
  isSole(): boolean;
  /** What this node has to tell now. */
  own(nowMs: number): NodeReport;
  /** What partitions wait for, as this node knows. */
  ownWaits(): readonly PartitionWait[];
  /** Sends a frame on the lane "control"; it may be dropped. */
  send(to: number, bytes: Uint8Array): void;
}

/** A report of another node, and how old it is. */
export interface HeardReport {
  readonly report: NodeReport;
  readonly ageMs: number;
}

/** Who leads a partition, by its own word, and how large it says that the partition is. */
export interface Lead {
  readonly node: number;
  readonly sizeBytes: number;
}

interface Kept {
  readonly report: NodeReport;
  readonly atMs: number;
}

export class NodeReports {
  private readonly kept = new Map<number, Kept>();
  /** Who said last that it leads a partition; null when it is to be made anew. */
  private leaders: Map<number, Lead> | null = null;
  /** The other nodes' wall clocks against this one's monotonic clock, ascending (ms). */
  private wallOffsetsMs: readonly number[] = [];
  /** When the first report that they are of counts no more. */
  private wallOffsetsEndMs = Infinity;
  private toldMs = -Infinity;
  private hasNews = false;
  /** Frames that could not be read. */
  badFrames = 0;
  /** Reports of others that were taken in. */
  taken = 0;

  constructor(private readonly deps: NodeReportsDeps) {}

  /** Something changed that others choose by: they hear of it soon. */
  changed(): void {
    this.hasNews = true;
  }

  /** Tells this node's report if it is time; once per tick. */
  tick(nowMs: number): void {
    if (nowMs - this.toldMs < (this.hasNews ? REPORT_GAP_MS : NODE_REPORT_EVERY_MS)) return;
    const linked = [...this.deps.linked()];
    if (linked.length === 0) return;
    this.toldMs = nowMs;
    this.hasNews = false;
    const report = this.deps.own(nowMs);
    const frames = new Map<number, Uint8Array>();
    for (const node of linked) {
      const protocol = this.deps.protocolWith(node);
      const frame = frames.get(protocol) ?? encodeNodeReport(spokenReport(report, protocol));
      frames.set(protocol, frame);
      this.deps.send(node, frame);
    }
  }

  /** Takes a frame of the lane "control" if it is a report; false: it is not. */
  frame(from: number, bytes: Uint8Array): boolean {
    if (!isNodeReport(bytes)) return false;
    const report = decodeNodeReport(bytes);
    const nowMs = this.deps.nowMs();
    if (report === null) this.badFrames++;
    else if (report.bootNumber >= (this.fresh(from, nowMs)?.report.bootNumber ?? 0)) {
      this.keep(from, { report, atMs: nowMs });
    }
    return true;
  }

  /**
   * The median wall clock of the nodes that told theirs, this one's included: of two the earlier
   * one. Infinity: this node is alone. null: nobody told.
   */
  commonWallMs(ownWallMs: number, nowMs: number): number | null {
    if (nowMs > this.wallOffsetsEndMs) this.gatherWallOffsets(nowMs);
    const others = this.wallOffsetsMs;
    if (others.length === 0) return this.deps.isSole() ? Infinity : null;
    // With its own clock among them, the middle one is at or next to where the others' middle is.
    const middle = others.length >> 1;
    const below = others[middle - 1] ?? -Infinity;
    const above = others[middle] ?? Infinity;
    return Math.max(below + nowMs, Math.min(ownWallMs, above + nowMs));
  }

  private gatherWallOffsets(nowMs: number): void {
    const offsetsMs: number[] = [];
    let endMs = Infinity;
    for (const { report, atMs } of this.kept.values()) {
      if (report.wallMs === null || nowMs - atMs > NODE_REPORT_VALID_MS) continue;
      offsetsMs.push(report.wallMs - atMs);
      endMs = Math.min(endMs, atMs + NODE_REPORT_VALID_MS);
    }
    this.wallOffsetsMs = offsetsMs.sort((one, other) => one - other);
    this.wallOffsetsEndMs = endMs;
  }

  /** The latest report of `node`, this one included; null when none counts. */
  of(node: number): HeardReport | null {
    const nowMs = this.deps.nowMs();
    if (node === this.deps.nodeId) return { report: this.deps.own(nowMs), ageMs: 0 };
    const kept = this.fresh(node, nowMs);
    return kept === null ? null : { report: kept.report, ageMs: nowMs - kept.atMs };
  }

  /** The latest report of another node in this life, however old; null: there was none. */
  latest(node: number): HeardReport | null {
    const nowMs = this.deps.nowMs();
    const kept = this.kept.get(node);
    if (node === this.deps.nodeId || kept === undefined) return this.of(node);
    return { report: kept.report, ageMs: nowMs - kept.atMs };
  }

  /** What partitions wait for, by partition: as this node knows and the others told. */
  waits(): readonly PartitionWait[] {
    const nowMs = this.deps.nowMs();
    const waits = [...this.deps.ownWaits()];
    for (const [node, { report }] of this.kept) {
      if (this.fresh(node, nowMs) !== null) waits.push(...report.waits);
    }
    return waits.sort((one, other) => one.partition - other.partition);
  }

  /** The other node that says it leads `partition`; 0 when none does. */
  leaderOf(partition: number): number {
    return this.leadOf(partition)?.node ?? 0;
  }

  /** As the other node that leads `partition` says; null when none does. */
  leadOf(partition: number): Lead | null {
    const lead = (this.leaders ?? this.gatherLeaders()).get(partition);
    return lead === undefined || this.fresh(lead.node, this.deps.nowMs()) === null ? null : lead;
  }

  /** The latest word counts: reports are kept in the order in which they came. */
  private gatherLeaders(): ReadonlyMap<number, Lead> {
    const leaders = new Map<number, Lead>();
    for (const [node, { report }] of this.kept) {
      for (const [at, partition] of report.leading.entries()) {
        leaders.set(partition, { node, sizeBytes: report.placement?.leadingBytes[at] ?? 0 });
      }
    }
    this.leaders = leaders;
    return leaders;
  }

  private fresh(node: number, nowMs: number): Kept | null {
    const kept = this.kept.get(node);
    return kept === undefined || nowMs - kept.atMs > NODE_REPORT_VALID_MS ? null : kept;
  }

  private keep(node: number, kept: Kept): void {
    this.taken++;
    this.kept.delete(node);
    this.kept.set(node, kept);
    this.leaders = null;
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MEMBERS_MAX) break;
      this.kept.delete(oldest);
    }
    this.gatherWallOffsets(kept.atMs);
  }
}
