/**
 * What this node has to tell of itself, read from its parts when a report is due; and whether
 * something big changed since the last one.
 *
 * Invariants: 1. A look at a tick costs a comparison for each group that was run; all groups are
 * looked at for a report only. 2. Whoever asks for a report between two looks takes no news away.
 */
import { META_PARTITION, type PartitionId } from "../../base/ids.js";
import type { CoreStatus, Membership } from "../../raft/state/types.js";
import type { TransferFacts } from "../snapshots/snapshots.js";
import {
  ARRIVALS_MAX,
  type NodeReport,
  type PartitionWait,
  type ReplicaArrival,
  type UnlinkedNode,
  WAITS_MAX,
} from "./node-report.js";

/** One group, as a report sees it; a replica is one. */
export interface ReportedGroup {
  readonly partition: PartitionId;
  readonly leadership: { readonly isServing: boolean };
  readonly members: { readonly membership: Membership };
  readonly machine: { readonly dataBytes: number };
  readonly core: { status(): CoreStatus };
}

/** Whether the node is ready, as it says itself. */
export interface OwnHealth {
  readonly isReady: boolean;
  readonly reason: string;
  readonly uptimeMs: number;
}

/** Bytes on disk, what they may grow to, and what was let in. */
export interface NodeLoad {
  readonly logBytes: number;
  readonly storeBytes: number;
  readonly storeMaxBytes: number;
  readonly loopLagP99Ms: number;
  readonly logSyncP99Ms: number;
  readonly requestsPerSecond: number;
  readonly failedPerSecond: number;
  /** Commands taken in since the start. */
  readonly commands: number;
}

export interface OwnReportDeps {
  readonly nodeId: number;
  /** It moves replicas where it leads the meta partition. */
  rebalances(): boolean;
  bootNumber(): number;
  /** Applied index of the meta partition. */
  metaIndex(): number;
  /** Unix time as its clock has it. */
  wallMs(): number;
  /** By partition, ascending. */
  groups(): readonly ReportedGroup[];
  /** Those that were run since the last tick. */
  activeGroups(): Iterable<ReportedGroup>;
  /** The members of the cluster by id, ascending. */
  members(): readonly number[];
  isLinked(node: number): boolean;
  /** How long a node has not been linked (ms). */
  unlinkedMs(node: number, nowMs: number): number;
  transfers(): readonly TransferFacts[];
  /** How many there are. */
  transferCount(): number;
  /** Steps of partitions that this node is to take, and what they wait for. */
  waits(): readonly PartitionWait[];
  isFull(): boolean;
  health(): OwnHealth;
  load(): NodeLoad;
}

const SECOND_MS = 1000;

export class OwnReport {
  /** What is led here, as the looks at ticks saw it: making a report is no look. */
  private readonly led = new Set<number>();
  private wasFull = false;
  private transfers = 0;
  private commands = 0;
  private countedMs = -Infinity;
  private writesPerSecond = 0;

  constructor(private readonly deps: OwnReportDeps) {}

  /** Whether something changed that others choose by; once per tick. */
  hasNews(): boolean {
    const isFull = this.deps.isFull();
    const transfers = this.deps.transferCount();
    // Who has taken its snapshots gets the next ones.
    let hasNews = isFull !== this.wasFull || transfers < this.transfers;
    this.wasFull = isFull;
    this.transfers = transfers;
    for (const { partition, leadership } of this.deps.activeGroups()) {
      if (leadership.isServing === this.led.has(partition)) continue;
      hasNews = true;
      if (leadership.isServing) this.led.add(partition);
      else this.led.delete(partition);
    }
    return hasNews;
  }

  make(nowMs: number): NodeReport {
    const { deps } = this;
    const load = deps.load();
    const transfers = deps.transfers();
    const all = deps.groups();
    const groups = all.filter(({ partition }) => partition !== META_PARTITION);
    const serving = all.filter(({ leadership }) => leadership.isServing);
    const isLearner = ({ members }: ReportedGroup): boolean =>
      members.membership.learners.includes(deps.nodeId);
    const snapshotsIn = transfers.filter(({ direction }) => direction === "in").length;
    this.count(load.commands, nowMs);
    return {
      bootNumber: deps.bootNumber(),
      ...deps.health(),
      requestsPerSecond: load.requestsPerSecond,
      failedPerSecond: load.failedPerSecond,
      metaIndex: deps.metaIndex(),
      wallMs: Math.max(0, Math.floor(deps.wallMs())),
      replicas: groups.length,
      learners: groups.filter(isLearner).length,
      leading: serving.map(({ partition }) => partition),
      arrivals: arrivalsOf(serving, transfers),
      waits: deps.waits().slice(0, WAITS_MAX),
      snapshotsIn,
      snapshotsOut: transfers.length - snapshotsIn,
      logBytes: load.logBytes,
      storeBytes: load.storeBytes,
      storeMaxBytes: load.storeMaxBytes,
      isFull: deps.isFull(),
      writesPerSecond: this.writesPerSecond,
      loopLagP99Ms: load.loopLagP99Ms,
      logSyncP99Ms: load.logSyncP99Ms,
      unlinked: this.unlinked(nowMs),
      placement: {
        rebalances: deps.rebalances(),
        leadingBytes: serving.map(({ machine }) => machine.dataBytes),
      },
    };
  }

  /** Reports that are made in one second share its figure. */
  private count(commands: number, nowMs: number): void {
    const tookMs = nowMs - this.countedMs;
    if (tookMs < SECOND_MS) return;
    this.writesPerSecond =
      tookMs === Infinity ? 0 : ((commands - this.commands) * SECOND_MS) / tookMs;
    this.commands = commands;
    this.countedMs = nowMs;
  }

  private unlinked(nowMs: number): readonly UnlinkedNode[] {
    const { deps } = this;
    const unlinked: UnlinkedNode[] = [];
    for (const nodeId of deps.members()) {
      if (nodeId === deps.nodeId || deps.isLinked(nodeId)) continue;
      unlinked.push({ nodeId, forMs: deps.unlinkedMs(nodeId, nowMs) });
    }
    return unlinked;
  }
}

/** Groups in which somebody arrives are few but while a node joins all of them. */
function arrivalsOf(
  serving: readonly ReportedGroup[],
  transfers: readonly TransferFacts[],
): readonly ReplicaArrival[] {
  const arrivals: ReplicaArrival[] = [];
  for (const { partition, members, core } of serving) {
    if (members.membership.learners.length === 0) continue;
    if (arrivals.length >= ARRIVALS_MAX) break;
    for (const { id: nodeId, learner, match: matchIndex, state } of core.status().progress) {
      if (!learner || arrivals.length >= ARRIVALS_MAX) continue;
      const sent = transfers.find((each) => {
        return each.partition === partition && each.peer === nodeId && each.direction === "out";
      });
      const snapshotChunks = sent?.chunks ?? 0;
      const hasSnapshot = state === "replicate";
      arrivals.push({ partition, nodeId, matchIndex, snapshotChunks, hasSnapshot });
    }
  }
  return arrivals;
}
