/**
 * The begin of a move of a key range: what has to hold for it, and the partition of a split.
 *
 * Pure decision over the rows of the context. Invariants: 1. A partition takes part as a source in
 * one move, and only while it is Active and no replica of it is on its way (P-103). 2. The id of a
 * new partition is the next of the counter, which rises with it.
 */
import { FIRST_ATTEMPT, moveId, next } from "../../base/ids.js";
import {
  PARTITIONS_MAX,
  PARTITION_ID_MAX,
  RANGE_MOVES_MAX,
  VOTERS_MAX,
} from "../../base/limits.js";
import { hashPartition, keySpaceHashText, keySpaceOf } from "../../base/routing.js";
import type {
  BeginMoveCommand,
  ClusterRecord,
  MetaOutcome,
  MetaStatus,
  PartitionRecord,
  RangeMove,
} from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { RowKind, nameKey, uint32Key } from "../store/keys.js";
import { isPartitionId, outcome } from "./meta-members.js";
import { bornPartition } from "./meta-placement.js";
import type { MetaContext } from "./meta-context.js";
import type { MetaReads } from "./meta-reads.js";
import { encodePartition } from "./meta-rows.js";
import { attemptEnd, raiseMap, storeMove } from "./range-changes.js";
import { isRangeKeySpace, movedRange } from "./range-map.js";

function isBound(key: string | null): boolean {
  return key === null || nameKey(key) !== null;
}

function isWhole(command: BeginMoveCommand): boolean {
  const { keySpace, move, startKey, endKey, source, target } = command;
  if (!isRangeKeySpace(keySpace) || !isBound(startKey) || !isBound(endKey)) return false;
  if (!isPartitionId(source)) return false;
  if (move !== "split") return isPartitionId(target) && target !== source;
  return target === 0 && startKey !== null && keySpaceOf(startKey) === keySpace;
}

/** The command that began the move, once more. */
function isRepeat(running: RangeMove, command: BeginMoveCommand): boolean {
  const isSame = running.kind === command.move && running.generation === command.generation;
  const isFrom = running.source === command.source && running.startKey === command.startKey;
  const isTo = running.kind === "split" || running.target === command.target;
  const isInterval = running.endKey === command.endKey;
  return running.phase === "copying" && isSame && isFrom && isTo && isInterval;
}

/** The key space is not what the command was decided on. */
function isStale(reads: MetaReads, cluster: ClusterRecord, command: BeginMoveCommand): boolean {
  const { keySpace, move, target } = command;
  const ranges = reads.ranges(keySpace);
  const at = movedRange(ranges, { ...command, kind: move });
  if (at < 0) return true;
  switch (move) {
    case "split":
      return reads.isLeaving(keySpace);
    case "merge":
      return ![ranges[at - 1], ranges[at + 1]].some((range) => range?.partitionId === target);
    case "home":
      return target !== hashPartition(keySpaceHashText(keySpace), cluster.dataPartitions);
  }
}

/** What stands against a move from the source, and to the target where there is one already. */
function refusal(
  reads: MetaReads,
  cluster: ClusterRecord,
  source: PartitionRecord,
  target: PartitionRecord | null,
): MetaStatus | null {
  const { state, replicas } = source;
  if (state !== "Active" || !replicas.every(({ role }) => role === "voter")) return "busy";
  if (target !== null) return target.state === "Active" ? null : "busy";
  if (replicas.length > VOTERS_MAX) return "busy";
  const hasRoom = reads.livingPartitions() < PARTITIONS_MAX;
  return hasRoom && cluster.nextPartitionId <= PARTITION_ID_MAX ? null : "too-many-partitions";
}

function storePartition(context: DecisionContext, record: PartitionRecord): void {
  context.rows.put(RowKind.partition, uint32Key(record.partitionId), encodePartition(record));
}

export function beginMove(context: MetaContext, command: BeginMoveCommand): MetaOutcome {
  if (!isWhole(command)) return outcome("invalid");
  const { meta: reads } = context;
  const cluster = reads.cluster();
  if (cluster === null) return outcome("not-founded");
  const { keySpace, move: kind, startKey, endKey, generation } = command;
  const running = reads.move(keySpace);
  if (running !== null) {
    return isRepeat(running, command) ? outcome("unchanged", running.moveId) : outcome("busy");
  }
  if (reads.moves().length >= RANGE_MOVES_MAX) return outcome("busy");
  if (isStale(reads, cluster, command)) return outcome("stale");
  const source = reads.partition(command.source);
  const existing = kind === "split" ? null : reads.partition(command.target);
  if (source === null || (existing === null && kind !== "split")) return outcome("stale");
  const refused = refusal(reads, cluster, source, existing);
  if (refused !== null) return outcome(refused);

  const id = moveId(next(cluster.mapVersion));
  const target = existing?.partitionId ?? cluster.nextPartitionId;
  const state = kind === "split" ? "Splitting" : "Draining";
  storePartition(context, { ...source, state, generation: next(source.generation) });
  let raised = cluster;
  if (existing === null) {
    const { membershipVersion } = cluster;
    storePartition(context, bornPartition(target, source, reads.members(), membershipVersion));
    raised = { ...cluster, nextPartitionId: target + 1 };
  }
  storeMove(context, {
    ...{ moveId: id, kind, keySpace, startKey, endKey, source: source.partitionId, target },
    ...{ generation, attempt: FIRST_ATTEMPT, phase: "copying", reason: "none" },
    ...{ sourceDone: false, targetDone: false, deadlineLeaseMs: attemptEnd(context) },
  });
  raiseMap(context, raised, "topology");
  return outcome("done", id);
}
