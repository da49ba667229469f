/**
 * Commands of the meta partition about key ranges: which key spaces are routed by ranges, and the
 * moves of ranges between partitions, of which this partition is the only judge.
 *
 * A move is copying until its cut, which gives the keys to the target, or until it is aborted;
 * whichever of the two is applied first holds. Each side then says that it is done, and the move is
 * over. Pure decisions over the rows of the context. Invariants: 1. Descriptors tile their key
 * space after every change (P-104). 2. One move for each key space, RANGE_MOVES_MAX in all. 3. A
 * cut is for the attempt that counts; an attempt ends by a command alone, never by a clock (P-100).
 * 4. An id of a partition is used once, whatever became of the move (P-103). 5. A partition is
 * Splitting or Draining exactly while a move takes keys from it, and Splitting while a split makes
 * it. 6. Descriptors go only when all of them are at the hash partition of their key space. 7. Each
 * change raises mapVersion; begin, cut, abort and end raise topologyVersion. A repeat changes
 * nothing.
 */
import { assert } from "../../base/assert.js";
import { next, rangeGeneration } from "../../base/ids.js";
import { RANGE_ATTEMPTS_MAX, REMOVED_PARTITIONS_KEPT } from "../../base/limits.js";
import { hashPartition, keySpaceHashText } from "../../base/routing.js";
import type {
  AbortMoveCommand,
  ClusterRecord,
  CutRangeCommand,
  FinishMoveCommand,
  MetaOutcome,
  RangeMove,
  RangeMoveCommand,
  RegisterRangeCommand,
  RetryMoveCommand,
  UnregisterRangeCommand,
} from "../commands/command.js";
import type { Rules } from "../decision/context.js";
import { RowKind, nameKey, uint32Key, type ByteKey } from "../store/keys.js";
import { isPartitionId, outcome } from "./meta-members.js";
import type { MetaContext } from "./meta-context.js";
import type { MetaReads } from "./meta-reads.js";
import { encodePartition } from "./meta-rows.js";
import { beginMove } from "./range-begin.js";
import { attemptEnd, raiseMap, storeMove, storeRanges } from "./range-changes.js";
import { isRangeKeySpace, rangesAfterCut, tilingFault } from "./range-map.js";
import { encodeLeaving } from "./range-rows.js";

/** From this level of its group on a key space may leave while ranges of it are away. */
const MOVES_FROM_LEVEL = 2;

/** What a command about a key space finds. */
interface Found {
  readonly name: ByteKey;
  readonly reads: MetaReads;
  readonly cluster: ClusterRecord;
}

function find(context: MetaContext, keySpace: string): Found | MetaOutcome {
  const name = nameKey(keySpace);
  if (name === null || !isRangeKeySpace(keySpace)) return outcome("invalid");
  const reads = context.meta;
  const cluster = reads.cluster();
  return cluster === null ? outcome("not-founded") : { name, reads, cluster };
}

function registerRange(context: MetaContext, command: RegisterRangeCommand): MetaOutcome {
  const { keySpace, partitionId } = command;
  const found = find(context, keySpace);
  if ("kind" in found) return found;
  const { name, reads, cluster } = found;
  const [first] = reads.ranges(keySpace);
  if (first !== undefined) {
    if (reads.isLeaving(keySpace)) {
      context.rows.delete(RowKind.leavingKeySpace, name);
      raiseMap(context, cluster, "map");
    }
    return outcome("unchanged", first.generation);
  }
  // Above the pool a partition owns what was moved to it and nothing else.
  const isInPool = isPartitionId(partitionId) && partitionId <= cluster.dataPartitions;
  if (!isInPool || reads.partition(partitionId) === null) return outcome("unknown-partition");
  const generation = rangeGeneration(1);
  const descriptor = { startKey: null, endKey: null, partitionId, generation };
  assert(tilingFault([descriptor]) === null, "descriptors tile their key space");
  storeRanges(context, keySpace, [], [descriptor]);
  raiseMap(context, cluster, "map");
  return outcome("done", 1);
}

function unregisterRange(context: MetaContext, command: UnregisterRangeCommand): MetaOutcome {
  const { keySpace } = command;
  const found = find(context, keySpace);
  if ("kind" in found) return found;
  const { name, reads, cluster } = found;
  const existing = reads.ranges(keySpace);
  if (existing.length === 0) return outcome("unchanged");
  const isLeaving = reads.isLeaving(keySpace);
  const move = reads.move(keySpace);
  if (move !== null && move.kind !== "home" && !isLeaving) return outcome("busy");
  // Its keys are placed by hash again: none may lie anywhere else.
  const home = hashPartition(keySpaceHashText(keySpace), cluster.dataPartitions);
  const isHome = existing.every(({ partitionId }) => partitionId === home);
  if (move === null && isHome) {
    storeRanges(context, keySpace, existing, []);
    if (isLeaving) context.rows.delete(RowKind.leavingKeySpace, name);
    raiseMap(context, cluster, "map");
    return outcome("done");
  }
  if (context.level < MOVES_FROM_LEVEL) return outcome("range-elsewhere");
  if (!isLeaving) {
    context.rows.insert(RowKind.leavingKeySpace, name, encodeLeaving());
    raiseMap(context, cluster, "map");
  }
  return outcome("pending");
}

type OfMove = Exclude<RangeMoveCommand, { readonly kind: "begin-move" }>;

/** What a command about a move finds, if the move that it names is under way. */
function findMove(
  context: MetaContext,
  { keySpace, moveId }: OfMove,
): (Found & { readonly move: RangeMove }) | MetaOutcome {
  const found = find(context, keySpace);
  if ("kind" in found) return found;
  const move = found.reads.move(keySpace);
  return move?.moveId === moveId ? { ...found, move } : outcome("stale");
}

function retryMove(context: MetaContext, command: RetryMoveCommand): MetaOutcome {
  const found = findMove(context, command);
  if ("kind" in found) return found;
  const { cluster, move } = found;
  const isNow = move.phase === "copying" && move.attempt === command.attempt;
  if (!isNow) return outcome("stale", move.attempt);
  if (move.attempt >= RANGE_ATTEMPTS_MAX) return outcome("too-many-attempts", move.attempt);
  const attempt = next(move.attempt);
  storeMove(context, { ...move, attempt, deadlineLeaseMs: attemptEnd(context) });
  raiseMap(context, cluster, "map");
  return outcome("done", attempt);
}

/** A range of any key space lies there. */
function isNamed({ meta }: MetaContext, partitionId: number): boolean {
  return meta.allRanges().some(({ descriptor }) => descriptor.partitionId === partitionId);
}

/** Above the pool, without a range: it goes, with all that it holds. */
function isSpent(context: MetaContext, cluster: ClusterRecord, partitionId: number): boolean {
  return partitionId > cluster.dataPartitions && !isNamed(context, partitionId);
}

function cutRange(context: MetaContext, command: CutRangeCommand): MetaOutcome {
  const found = findMove(context, command);
  if ("kind" in found) return found;
  const { reads, cluster, move } = found;
  if (move.attempt !== command.attempt || move.phase === "aborting") {
    return outcome("stale", move.attempt);
  }
  if (move.phase === "cut") return outcome("unchanged", cluster.mapVersion);
  const before = reads.ranges(move.keySpace);
  const after = rangesAfterCut(before, move);
  if (after === null) return outcome("stale", move.attempt);
  if (tilingFault(after) !== null) return outcome("invalid");
  storeRanges(context, move.keySpace, before, after);
  const sourceDone = move.kind !== "split" && isSpent(context, cluster, move.source);
  storeMove(context, { ...move, phase: "cut", sourceDone });
  return outcome("done", raiseMap(context, cluster, "topology"));
}

function abortMove(context: MetaContext, command: AbortMoveCommand): MetaOutcome {
  const { reason } = command;
  if (reason === "none") return outcome("invalid");
  const found = findMove(context, command);
  if ("kind" in found) return found;
  const { cluster, move } = found;
  if (move.phase === "cut") return outcome("stale");
  if (move.phase === "aborting") return outcome("unchanged");
  // The target of a split goes with whatever it holds.
  storeMove(context, { ...move, phase: "aborting", reason, targetDone: move.kind === "split" });
  return outcome("done", raiseMap(context, cluster, "topology"));
}

/** The records of removed partitions beyond those that are kept go, those of low ids first. */
function forgetRemoved(context: MetaContext): void {
  const removed = context.meta.partitions().filter(({ state }) => state === "Removed");
  for (const { partitionId } of removed.slice(0, -REMOVED_PARTITIONS_KEPT)) {
    context.rows.delete(RowKind.partition, uint32Key(partitionId));
  }
}

/** The move took keys from the partition, or made it: it is as any other now, or gone. */
function settle(context: MetaContext, { reads, cluster }: Found, partitionId: number): void {
  const record = reads.partition(partitionId);
  if (record === null) return;
  const isOver = isSpent(context, cluster, partitionId);
  const state = isOver ? "Removed" : "Active";
  const settled = { ...record, state, generation: next(record.generation) } as const;
  context.rows.put(RowKind.partition, uint32Key(partitionId), encodePartition(settled));
  if (isOver) forgetRemoved(context);
}

function finishMove(context: MetaContext, command: FinishMoveCommand): MetaOutcome {
  const found = findMove(context, command);
  if ("kind" in found) return found;
  const { name, cluster, move } = found;
  if (move.phase === "copying") return outcome("stale");
  const isSource = command.side === "source";
  if (isSource ? move.sourceDone : move.targetDone) return outcome("unchanged");
  const sourceDone = move.sourceDone || isSource;
  const targetDone = move.targetDone || !isSource;
  if (!sourceDone || !targetDone) {
    storeMove(context, { ...move, sourceDone, targetDone });
    return outcome("done", raiseMap(context, cluster, "map"));
  }
  context.rows.delete(RowKind.rangeMove, name);
  settle(context, found, move.source);
  if (move.kind === "split") settle(context, found, move.target);
  return outcome("done", raiseMap(context, cluster, "topology"));
}

export const RANGE_RULES: Rules<
  RegisterRangeCommand | UnregisterRangeCommand | RangeMoveCommand,
  MetaOutcome,
  MetaContext
> = {
  "register-range": registerRange,
  "unregister-range": unregisterRange,
  "begin-move": beginMove,
  "retry-move": retryMove,
  "cut-range": cutRange,
  "abort-move": abortMove,
  "finish-move": finishMove,
};
