/**
 * Runs the planner of key ranges where the meta partition is led: moves that do not get on are
 * given up, key spaces that leave go home, large ranges are split and small neighbours merged.
 *
 * Invariants: 1. Only the serving leader of meta plans, and nothing of an earlier leadership counts
 * (P-094). 2. Sizes are asked for at each collection, some at a time, and are forgotten with the
 * range that they were of. 3. One command at a time; the next pass waits until it is decided. 4.
 * Without registered key spaces a tick costs a comparison. 5. What nobody asks for again is looked
 * at until it is done: moves, and key spaces that leave, whatever stood in their way.
 */
import { type MapVersion, type MoveId, type PartitionId, partitionId } from "../../base/ids.js";
import { RANGE_TARGET_LOST_MS } from "../../base/limits.js";
import { findRange } from "../../control/ranges.js";
import { type RangePlanView, type RangeStep, planRanges } from "../../control/range-plan.js";
import type { RangeDescriptor, RangeMove } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { RangeRow } from "../../machine/meta/meta-rows.js";
import type { ProposeOnMeta } from "../cluster/meta-proposer.js";
import type { RangeSettings } from "../settings.js";
import type { RangeSize, SizeDone, SizedRange } from "./range-sizes.js";
import type { RangeTally } from "../requests/range-tally.js";

/** Pause between two passes that changes ask for (ms). */
const COALESCE_MS = 50;
/** Pause between two passes while something is under way (ms). */
const LOOK_MS = 500;
/** A command is waited for so long (ms). */
const PATIENCE_MS = 5000;
/** Ranges whose sizes are asked for at the same time. */
const ASKED_MAX = 16;
/** What could not be split is left alone for so long (ms). */
const INDIVISIBLE_MS = 3_600_000;

export interface RangePlannerDeps {
  readonly settings: RangeSettings;
  nowMs(): number;
  readonly tally: RangeTally;
  metaReads(): MetaReads | null;
  /** Of the partition map that is followed here; null before there is one. */
  mapVersion(): MapVersion | null;
  /** The meta partition of this node; null before there is one. */
  meta(): { isServing(): boolean; term(): number; leaseNowMs(): number } | null;
  leader(partition: PartitionId): number;
  sizeOf(range: SizedRange, done: SizeDone): void;
  readonly proposeOnMeta: ProposeOnMeta;
}

interface Sized extends RangeSize {
  readonly generation: number;
}

/** What is known in one leadership. */
class Reign {
  mapSeen: MapVersion | null = null;
  isDirty = true;
  isPending = false;
  /** A backup is taken: nothing is moved by itself. */
  isHeld = false;
  lastPassMs = -Infinity;
  nextCollectionMs: number;
  toAsk: RangeRow[] = [];
  asked = 0;
  sizes = new Map<string, Sized>();
  readonly indivisible = new Map<string, number>();
  /** Since when the target of a move has had no leader. */
  readonly lostSinceMs = new Map<MoveId, number>();
  moves: readonly RangeMove[] = [];
  /** Key spaces that leave. */
  leaving = 0;

  constructor(
    readonly term: number,
    nowMs: number,
    everyMs: number,
  ) {
    this.nextCollectionMs = nowMs + everyMs;
  }
}

function nameOf(keySpace: string, { startKey, endKey }: RangeDescriptor): string {
  return JSON.stringify([keySpace, startKey, endKey]);
}

/** The keys of a move that is over are the target's; its last phases may not have been seen. */
function wasCut(reads: MetaReads, { phase, keySpace, startKey, target }: RangeMove): boolean {
  if (phase !== "copying") return phase === "cut";
  const ranges = reads.ranges(keySpace);
  const [first] = ranges;
  const range = startKey === null ? (first ?? null) : findRange(ranges, startKey);
  return range === null || range.partitionId === target;
}

/** Something goes on that may wait for what no change of the map tells of: a leader, an answer. */
function isOpen({ moves, leaving }: Reign): boolean {
  return moves.length + leaving > 0;
}

export class RangePlanner {
  private reign: Reign | null = null;
  /** Of the map, when moves were looked at last. */
  private seen: MapVersion | null = null;

  constructor(private readonly deps: RangePlannerDeps) {}

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    const { reign } = this;
    if (reign === null || !this.hasRanges()) return false;
    const isUnderWay = isOpen(reign) || reign.toAsk.length + reign.asked > 0;
    return reign.isPending || reign.isDirty || isUnderWay;
  }

  /** When ticks are wanted although nothing happens: the next look at all sizes. */
  get wakeAtMs(): number {
    const { splitThreshold, mergeMinSize } = this.deps.settings;
    const isAutomatic = splitThreshold > 0 || mergeMinSize > 0;
    if (this.reign === null || !isAutomatic || this.hasWork || !this.hasRanges()) return Infinity;
    return this.reign.nextCollectionMs;
  }

  private hasRanges(): boolean {
    return (this.deps.metaReads()?.allRanges().length ?? 0) > 0;
  }

  /** In each turn: sees every move come and go. */
  look(nowMs: number): void {
    const version = this.deps.mapVersion();
    if (version === this.seen) return;
    this.seen = version;
    const reads = this.deps.metaReads();
    const reign = this.reignNow(nowMs);
    if (reign !== null && reads !== null && version !== null) this.learn(reign, reads, version);
  }

  /** Once per tick, inside a turn. */
  tick(nowMs: number): void {
    const reads = this.deps.metaReads();
    const reign = this.reignNow(nowMs);
    const cluster = reads?.cluster() ?? null;
    if (reign === null || reads === null || cluster === null) return;
    if (cluster.mapVersion !== reign.mapSeen) this.learn(reign, reads, cluster.mapVersion);
    if (!this.hasRanges()) return;
    this.collect(reign, reads, nowMs);
    const isHeld = reads.isPlannerHeld(this.deps.meta()?.leaseNowMs() ?? 0);
    if (isHeld !== reign.isHeld) reign.isDirty = true;
    reign.isHeld = isHeld;
    if (reign.isPending) return;
    const isLooking = isOpen(reign) && nowMs - reign.lastPassMs >= LOOK_MS;
    const isDue = reign.isDirty && nowMs - reign.lastPassMs >= COALESCE_MS;
    if (isLooking || isDue) this.pass(reign, reads, nowMs);
  }

  private reignNow(nowMs: number): Reign | null {
    const meta = this.deps.meta();
    if (meta?.isServing() !== true) this.reign = null;
    else if (this.reign?.term !== meta.term()) {
      this.reign = new Reign(meta.term(), nowMs, this.deps.settings.collectionEveryMs);
    }
    return this.reign;
  }

  private learn(reign: Reign, reads: MetaReads, version: MapVersion): void {
    const isFirst = reign.mapSeen === null;
    reign.mapSeen = version;
    reign.isDirty = true;
    const moves = reads.moves();
    const known = new Set(moves.map(({ moveId }) => moveId));
    for (const move of reign.moves) {
      if (known.has(move.moveId)) continue;
      reign.lostSinceMs.delete(move.moveId);
      if (!isFirst) this.deps.tally.moveEnded(move.kind, wasCut(reads, move) ? "cut" : "aborted");
    }
    reign.moves = moves;
    reign.leaving = reads.leavingKeySpaces().length;
  }

  /** Asks for the sizes of all ranges, some at a time. */
  private collect(reign: Reign, reads: MetaReads, nowMs: number): void {
    if (nowMs >= reign.nextCollectionMs && reign.toAsk.length + reign.asked === 0) {
      reign.nextCollectionMs = nowMs + this.deps.settings.collectionEveryMs;
      reign.sizes = new Map();
      reign.toAsk = [...reads.allRanges()];
      for (const [name, untilMs] of reign.indivisible) {
        if (untilMs <= nowMs) reign.indivisible.delete(name);
      }
    }
    while (reign.asked < ASKED_MAX) {
      const row = reign.toAsk.pop();
      if (row === undefined) return;
      reign.asked++;
      const { keySpace, descriptor } = row;
      this.deps.sizeOf({ keySpace, ...descriptor }, (size) => {
        reign.asked--;
        reign.sizes.set(nameOf(keySpace, descriptor), {
          ...size,
          generation: descriptor.generation,
        });
        if (reign.toAsk.length + reign.asked === 0) reign.isDirty = true;
      });
    }
  }

  private pass(reign: Reign, reads: MetaReads, nowMs: number): void {
    reign.isDirty = false;
    reign.lastPassMs = nowMs;
    const { steps, refusedSplits } = planRanges(this.view(reign, reads, nowMs));
    this.deps.tally.refusedSplits += refusedSplits;
    const [first] = steps;
    if (first !== undefined) this.take(reign, first, nowMs);
  }

  private take(reign: Reign, step: RangeStep, nowMs: number): void {
    if (step.kind === "ask-split-key") {
      reign.indivisible.set(nameOf(step.keySpace, step.range), nowMs + INDIVISIBLE_MS);
      reign.isDirty = true;
      return;
    }
    reign.isPending = true;
    this.deps.proposeOnMeta(step.command, nowMs + PATIENCE_MS, (result) => {
      reign.isPending = false;
      // What it was planned on may be over; a refusal is no reason to try at once.
      if (result.status === "applied" && result.outcome === "done") reign.isDirty = true;
    });
  }

  private view(reign: Reign, reads: MetaReads, nowMs: number): RangePlanView {
    const { deps } = this;
    const { splitThreshold, splitMinSize, mergeMinSize } = deps.settings;
    const sized = (keySpace: string, range: RangeDescriptor): Sized | null => {
      const size = reign.sizes.get(nameOf(keySpace, range));
      return size?.generation === range.generation ? size : null;
    };
    return {
      nowLeaseMs: deps.meta()?.leaseNowMs() ?? 0,
      dataPartitions: reads.cluster()?.dataPartitions ?? 0,
      partitions: reads.partitions(),
      ranges: reads.allRanges(),
      leavingKeySpaces: reads.leavingKeySpaces(),
      moves: reign.moves,
      settings: { splitThreshold, splitMinSize, mergeMinSize },
      isHeld: reign.isHeld,
      leader: (partition) => deps.leader(partitionId(partition)),
      isTargetLost: (move) => this.isTargetLost(reign, move, nowMs),
      liveKeys: (keySpace, range) => sized(keySpace, range)?.keys ?? null,
      splitAnswer: (keySpace, range) => {
        if (reign.indivisible.has(nameOf(keySpace, range))) return "indivisible";
        const middle = sized(keySpace, range)?.middle ?? null;
        return middle === null || middle === range.startKey ? null : { splitKey: middle };
      },
    };
  }

  private isTargetLost(reign: Reign, { moveId, target }: RangeMove, nowMs: number): boolean {
    if (this.deps.leader(partitionId(target)) !== 0) {
      reign.lostSinceMs.delete(moveId);
      return false;
    }
    const sinceMs = reign.lostSinceMs.get(moveId) ?? nowMs;
    reign.lostSinceMs.set(moveId, sinceMs);
    return nowMs - sinceMs >= RANGE_TARGET_LOST_MS;
  }
}
