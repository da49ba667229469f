/**
 * The planner of key ranges: which moves are to begin and which to be given up, decided by the
 * leader of meta from committed records and what the leaders of groups report. One pass is one
 * call; the leaders of source and target carry a move out.
 *
 * In this order: moves are aborted whose time is over or whose target has no leader; key spaces
 * that leave go home, one range after the other; large ranges are split; small neighbours are
 * merged. Pure. Invariants: 1. One move for each key space, RANGE_MOVES_MAX in all, on one node
 * RANGE_MOVES_PER_NODE, in the records and the steps together. 2. What is not known is no reason
 * for anything: no count, no leader, no move (P-106). 3. Neighbours merge below a quarter of the
 * size at which a range is split, whatever the settings are, and nothing changes soon after it
 * changed: with the counts as they are the changes come to an end (P-106). 4. Nothing begins while
 * a backup holds the ranges; an abort waits for nobody, as what is frozen stays closed until then.
 */
import { PARTITIONS_MAX, RANGE_MOVES_MAX, RANGE_MOVES_PER_NODE } from "../base/limits.js";
import { hashPartition, keySpaceHashText } from "../base/routing.js";
import type {
  AbortMoveCommand,
  BeginMoveCommand,
  PartitionRecord,
  RangeDescriptor,
  RangeMove,
  UnregisterRangeCommand,
} from "../machine/commands/command.js";
import type { RangeRow } from "../machine/meta/meta-rows.js";
import { type RangeSizes, foldablePairs, hasSettled } from "./ranges.js";

export interface RangeSettings {
  /** --range-split-threshold: live keys; 0 = never by itself. */
  readonly splitThreshold: number;
  /** --range-split-min-range-size */
  readonly splitMinSize: number;
  /** --range-merge-min-size: live keys of two neighbours together; 0 = never. */
  readonly mergeMinSize: number;
}

/** What the leader of a range said of where to split it. */
export type SplitAnswer = { readonly splitKey: string } | "indivisible";

export interface RangePlanView extends RangeSizes {
  /** Data partitions that the cluster was founded with. */
  readonly dataPartitions: number;
  readonly partitions: readonly PartitionRecord[];
  /** Of all key spaces; those of one together and by start key. */
  readonly ranges: readonly RangeRow[];
  readonly leavingKeySpaces: readonly string[];
  readonly moves: readonly RangeMove[];
  readonly settings: RangeSettings;
  /** A backup is being made. */
  readonly isHeld: boolean;
  /** The node that leads the partition and serves; 0 = unknown. */
  leader(partitionId: number): number;
  /** The target of the move has had no leader that serves for too long. */
  isTargetLost(move: RangeMove): boolean;
  /** Null = not asked, or no answer yet. What is indivisible is remembered for a while. */
  splitAnswer(keySpace: string, range: RangeDescriptor): SplitAnswer | null;
}

export type RangeStep =
  | {
      readonly kind: "propose";
      readonly command: AbortMoveCommand | BeginMoveCommand | UnregisterRangeCommand;
    }
  /** The leader of its partition is to say where the range is to be split. */
  | { readonly kind: "ask-split-key"; readonly keySpace: string; readonly range: RangeDescriptor };

export interface RangePlan {
  readonly steps: readonly RangeStep[];
  /** Ranges that are due to be split while there is no room for another partition. */
  readonly refusedSplits: number;
}

/** Below which two neighbours together are merged without being told to. */
function mergeSize({ mergeMinSize, splitThreshold }: RangeSettings): number {
  return splitThreshold > 0 ? Math.min(mergeMinSize, splitThreshold / 4) : mergeMinSize;
}

interface DueSplit {
  readonly row: RangeRow;
  readonly keys: number;
}

class Pass {
  private readonly steps: RangeStep[] = [];
  private refusedSplits = 0;
  private readonly records: ReadonlyMap<number, PartitionRecord>;
  private readonly spaces = new Map<string, RangeRow[]>();
  /** Key spaces with a move, or a step of this pass. */
  private readonly taken: Set<string>;
  /** Partitions that a step of this pass names. */
  private readonly claimed = new Set<number>();
  /** Moves by the nodes that lead their source or target. */
  private readonly load = new Map<number, number>();
  private movesLeft: number;
  private partitionsLeft: number;

  constructor(private readonly view: RangePlanView) {
    const { partitions, moves, ranges } = view;
    this.records = new Map(partitions.map((record) => [record.partitionId, record]));
    this.taken = new Set(moves.map(({ keySpace }) => keySpace));
    this.movesLeft = RANGE_MOVES_MAX - moves.length;
    const living = partitions.filter(({ state }) => state !== "Removed").length;
    this.partitionsLeft = PARTITIONS_MAX - living;
    for (const { source, target } of moves) this.count(this.leaders(source, target));
    for (const row of ranges) {
      const rows = this.spaces.get(row.keySpace);
      if (rows === undefined) this.spaces.set(row.keySpace, [row]);
      else rows.push(row);
    }
  }

  run(): RangePlan {
    for (const move of this.view.moves) this.giveUp(move);
    const leaving = new Set(this.view.leavingKeySpaces);
    for (const keySpace of leaving) {
      if (!this.taken.has(keySpace)) this.goHome(keySpace, this.spaces.get(keySpace) ?? []);
    }
    if (!this.view.isHeld) {
      const staying = [...this.spaces].filter(([keySpace]) => !leaving.has(keySpace));
      this.split(staying.map(([, rows]) => rows));
      for (const [keySpace, rows] of staying) {
        if (!this.taken.has(keySpace)) this.merge(rows);
      }
    }
    return { steps: this.steps, refusedSplits: this.refusedSplits };
  }

  private giveUp(move: RangeMove): void {
    if (move.phase !== "copying") return;
    const { nowLeaseMs } = this.view;
    const { keySpace, moveId } = move;
    const isLate = nowLeaseMs >= move.deadlineLeaseMs;
    if (!isLate && !this.view.isTargetLost(move)) return;
    const reason = isLate ? "deadline" : "no-target";
    const command = { kind: "abort-move", keySpace, moveId, reason } as const;
    this.steps.push({ kind: "propose", command });
  }

  private goHome(keySpace: string, rows: readonly RangeRow[]): void {
    const target = hashPartition(keySpaceHashText(keySpace), this.view.dataPartitions);
    const away = rows.filter(({ descriptor }) => descriptor.partitionId !== target);
    if (away.length === 0) {
      this.steps.push({ kind: "propose", command: { kind: "unregister-range", keySpace } });
      return;
    }
    if (this.view.isHeld) return;
    for (const { descriptor } of away) {
      const { startKey, endKey, partitionId: source, generation } = descriptor;
      const interval = { startKey, endKey };
      const of = { keySpace, ...interval, source, target, generation };
      if (this.begin({ kind: "begin-move", move: "home", ...of })) return;
    }
  }

  /** The largest first, one of each key space. */
  private split(spaces: readonly (readonly RangeRow[])[]): void {
    const due = spaces.flatMap((rows) => this.dueSplits(rows)).sort((a, b) => b.keys - a.keys);
    for (const { row } of due) {
      if (this.taken.has(row.keySpace)) continue;
      if (this.partitionsLeft <= 0) this.refusedSplits++;
      else this.splitOne(row);
    }
  }

  private dueSplits(rows: readonly RangeRow[]): readonly DueSplit[] {
    const { splitThreshold, splitMinSize } = this.view.settings;
    if (splitThreshold <= 0) return [];
    return rows.flatMap((row) => {
      const keys = this.view.liveKeys(row.keySpace, row.descriptor);
      const isDue = keys !== null && keys >= Math.max(splitThreshold, splitMinSize);
      return isDue && hasSettled(this.view, row) ? [{ row, keys }] : [];
    });
  }

  private splitOne({ keySpace, descriptor: range }: RangeRow): void {
    const answer = this.view.splitAnswer(keySpace, range);
    if (answer === "indivisible") return;
    const { partitionId: source, endKey, generation } = range;
    if (answer === null) {
      if (!this.mayMove(source, null)) return;
      this.take(keySpace, source, source);
      this.steps.push({ kind: "ask-split-key", keySpace, range });
      return;
    }
    const of = { keySpace, startKey: answer.splitKey, endKey, source, target: 0, generation };
    if (this.begin({ kind: "begin-move", move: "split", ...of })) this.partitionsLeft--;
  }

  private merge(rows: readonly RangeRow[]): void {
    const pairs = foldablePairs(this.view, rows, mergeSize(this.view.settings));
    for (const command of pairs) if (this.begin(command)) return;
  }

  private begin(command: BeginMoveCommand): boolean {
    const { keySpace, source, move } = command;
    const target = move === "split" ? null : command.target;
    if (!this.mayMove(source, target)) return false;
    this.take(keySpace, source, target ?? source);
    this.steps.push({ kind: "propose", command });
    return true;
  }

  /** Whoever leads the source of a split leads the partition that it makes, at first. */
  private leaders(source: number, target: number | null): ReadonlySet<number> {
    const first = this.view.leader(source);
    return new Set([first, target === null ? first : this.view.leader(target)]);
  }

  private count(nodes: ReadonlySet<number>): void {
    for (const node of nodes) this.load.set(node, (this.load.get(node) ?? 0) + 1);
  }

  /** As apply would have it; and each side has a leader with room for a move. */
  private mayMove(source: number, target: number | null): boolean {
    if (this.movesLeft <= 0 || !this.isFree(source)) return false;
    if (target !== null && !this.isFree(target)) return false;
    const replicas = this.records.get(source)?.replicas ?? [];
    if (!replicas.every(({ role }) => role === "voter")) return false;
    return [...this.leaders(source, target)].every((node) => {
      return node !== 0 && (this.load.get(node) ?? 0) < RANGE_MOVES_PER_NODE;
    });
  }

  private isFree(partitionId: number): boolean {
    return this.records.get(partitionId)?.state === "Active" && !this.claimed.has(partitionId);
  }

  private take(keySpace: string, source: number, target: number): void {
    this.taken.add(keySpace);
    this.claimed.add(source).add(target);
    this.count(this.leaders(source, target));
    this.movesLeft--;
  }
}

/** What is to be done now. */
export function planRanges(view: RangePlanView): RangePlan {
  return new Pass(view).run();
}
