/**
 * The next safe step from the configuration of a placed group towards its record in the partition
 * map: facts in, one step out. Run by the leader of the group.
 *
 * A learner of the record comes, votes when it has caught up; a replica that is to be removed goes.
 * What a record says is ordered by the leader of meta one replica at a time, and what was done here
 * it learns by reports: the two meet in the record alone.
 *
 * Pure. Invariants: 1. Nobody comes whom the record does not list, and nobody goes for being absent
 * from it: it may be old (P-097). 2. A leader whose record is older than the newest one that a
 * configuration of the group rests on plans nothing. 3. A removal is an entry of the group's log,
 * also when the replica never got into the configuration: what was ordered before cannot come after
 * it. 4. No step leaves a configuration whose majority is not live. 5. A leader goes last, after it
 * handed over; why nothing is done is told (P-093).
 */
import type { PlacementGeneration } from "../base/ids.js";
import type { PartitionRecord, ReplicaRecord } from "../machine/commands/command.js";
import { isJoint } from "../raft/state/membership.js";
import { type GroupPlanFacts, type GroupStep, guarded, operation } from "./group-plan.js";

export interface PlacedPlanFacts extends Pick<
  GroupPlanFacts,
  "self" | "membership" | "isLive" | "isCaughtUp"
> {
  readonly record: PartitionRecord;
  /** Highest generation of the record that an applied configuration rests on. */
  readonly placedGeneration: PlacementGeneration;
}

function wait(why: string): GroupStep {
  return { kind: "wait", why };
}

/** The next step for one placed group. */
export function nextPlacedChange(facts: PlacedPlanFacts): GroupStep {
  const { membership, record, placedGeneration } = facts;
  if (isJoint(membership)) return wait("a change is under way");
  if (record.generation < placedGeneration) {
    return wait("the partition map known here is older than the configuration");
  }
  for (const replica of record.replicas) {
    const step = replica.role === "removing" ? removal(facts, replica) : arrival(facts, replica);
    if (step !== null) return guarded(facts, step);
  }
  return { kind: "settled" };
}

function arrival(facts: PlacedPlanFacts, { nodeId, role }: ReplicaRecord): GroupStep | null {
  const { voters, learners } = facts.membership;
  if (role !== "learner" || voters.includes(nodeId)) return null;
  if (!learners.includes(nodeId)) return operation("addLearner", nodeId, `node ${nodeId} comes`);
  const isReady = facts.isLive(nodeId) && facts.isCaughtUp(nodeId);
  if (!isReady) return wait(`learner ${nodeId} has not caught up`);
  return operation("addVoter", nodeId, `learner ${nodeId} has caught up`);
}

function removal(facts: PlacedPlanFacts, replica: ReplicaRecord): GroupStep | null {
  const { nodeId, incarnation } = replica;
  const { voters, learners } = facts.membership;
  const isMember = voters.includes(nodeId) || learners.includes(nodeId);
  if (!isMember && facts.placedGeneration >= incarnation) return null;
  if (nodeId !== facts.self || !isMember) {
    return operation("remove", nodeId, `replica ${nodeId} goes`);
  }
  const heirs = facts.record.replicas.filter(({ role }) => role === "voter");
  const heir = heirs.find((each) => {
    const isFit = voters.includes(each.nodeId) && facts.isLive(each.nodeId);
    return isFit && facts.isCaughtUp(each.nodeId);
  });
  if (heir !== undefined) return { kind: "transfer", to: heir.nodeId, why: "the leader goes" };
  return wait("nobody can take over from the leader, which goes");
}
