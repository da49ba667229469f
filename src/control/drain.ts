/**
 * Leaving the cluster where partitions are placed: whether a member can go, what is left of its
 * replicas and why, and what is taken back when the time is over (contract 5.3).
 *
 * The moves themselves are the planner's (placement-plan.ts): a leaving member is enough for it.
 * Pure. Invariants: 1. Nobody begins to leave who would cost a partition its majority, or whose
 * last replica nobody can take. 2. A drain is told as one only when replicas were there and all
 * have gone to others. 3. What is left of a drain has its reason (P-093).
 */
import type { PlacementGeneration } from "../base/ids.js";
import type { PartitionRecord, ReplicaOrder, ReplicaRecord } from "../machine/commands/command.js";
import { isListed } from "../machine/meta/replica-list.js";
import { decideLeave, type LeaveDecision, type LeaveFacts } from "./membership.js";
import { PlacementLedger } from "./placement-ledger.js";
import type { PlacementReason } from "./placement-reasons.js";
import type { PlacementPlan, PlacementView } from "./placement-view.js";

function namedIn(partitions: readonly PartitionRecord[], nodeId: number): PartitionRecord[] {
  return partitions.filter((record) => isListed(record, nodeId));
}

/** Partitions that can neither do without the replica of `nodeId` nor have it somewhere else. */
function stuckPartitions(view: PlacementView, nodeId: number): readonly number[] {
  const ledger = new PlacementLedger(view, view.rests);
  const isLive = (node: number): boolean => node === nodeId || ledger.isLive(node);
  const isStuck = (record: PartitionRecord): boolean => {
    const voters = record.replicas.filter(({ role }) => role !== "learner");
    const live = voters.filter((replica) => isLive(replica.nodeId));
    if (live.length * 2 <= voters.length) return true;
    const rest = voters.filter((replica) => replica.nodeId !== nodeId);
    const liveRest = rest.filter((replica) => isLive(replica.nodeId));
    if (liveRest.length * 2 > rest.length) return false;
    const isComing = record.replicas.some(({ replaces }) => replaces === nodeId);
    return !view.isEnabled || !(isComing || ledger.hasTarget(record));
  };
  return namedIn(view.partitions, nodeId)
    .filter(isStuck)
    .map(({ partitionId }) => partitionId);
}

/** As `decideLeave`, with the placed partitions too; those facts are about the others. */
export function decideDrain(facts: LeaveFacts, view: PlacementView): LeaveDecision {
  const decision = decideLeave(facts);
  if (decision !== "remove") return decision;
  const stuck = stuckPartitions(view, facts.nodeId);
  return stuck.length > 0 ? "RefusedInsufficientVoters" : "remove";
}

/**
 * What the answer to a leave that was committed says of a drain. `wasListed`: a record named the
 * node when the call looked first. None does at the end: else the removal is not due.
 */
export function isDrained(wasListed: boolean, isEnabled: boolean): boolean {
  return wasListed && isEnabled;
}

export interface DrainLeft {
  readonly partitionId: number;
  /** Null: its next step has just been ordered. */
  readonly reason: PlacementReason | null;
}

/** The replicas that a leaving node still has, each with the reason of the last pass. */
export function drainLeft(
  partitions: readonly PartitionRecord[],
  nodeId: number,
  plan: PlacementPlan,
): readonly DrainLeft[] {
  const reasons = new Map(plan.waits.map(({ partitionId, reason }) => [partitionId, reason]));
  return namedIn(partitions, nodeId).map(({ partitionId }) => {
    return { partitionId, reason: reasons.get(partitionId) ?? null };
  });
}

/** A replica on its way. */
export interface Arrival extends Pick<ReplicaRecord, "nodeId" | "incarnation"> {
  readonly partitionId: number;
  readonly generation: PlacementGeneration;
}

/** The replicas on their way in place of the node's. */
export function arrivalsFor(
  partitions: readonly PartitionRecord[],
  nodeId: number,
): readonly Arrival[] {
  return namedIn(partitions, nodeId).flatMap(({ partitionId, generation, replicas }) => {
    const coming = replicas.find(({ role, replaces }) => role === "learner" && replaces === nodeId);
    if (coming === undefined) return [];
    return [{ partitionId, generation, nodeId: coming.nodeId, incarnation: coming.incarnation }];
  });
}

export function cancelOf({ partitionId, generation, nodeId }: Arrival): ReplicaOrder {
  return { partitionId, generation, change: { kind: "cancel", nodeId } };
}
