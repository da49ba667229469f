/**
 * The next safe step of a placed group towards its record: facts in, one step out. Run by the
 * leader of the group; group-plan.ts is its sister for partitions in full mode, whose members
 * follow the member list.
 *
 * One law ties record and group: the members of the configuration are in the record. A node enters
 * the record before the configuration, and leaves the configuration before the record. So that it
 * holds whoever leads, configuration entries carry the generation that they rest on, and a leader
 * whose applied record is older than the highest of these neither plans nor reports.
 *
 * How a partition comes from full mode to a list (`nextListingStep`): a leader that has not applied
 * the new record could still add a member that the record does not list, and that node would drop
 * a replica that counts. Therefore the leader first commits an entry that changes nothing and
 * carries generation g + 1, g being that of the record it knows. From then on no leader changes the
 * configuration before it has applied a record of generation g + 1; and the list is taken only on
 * generation g. What that entry fenced off is thus exactly what is listed. When another change of
 * the record comes between, the order is stale and the fence is spent: the member list rules again,
 * until the next try.
 *
 * Pure. Invariants: 1. A step rests on one record, and never on an older one than an earlier step
 * did. 2. Only a replica whose role is "removing" is removed; one that is absent from the record
 * known here is left alone; a voter of it that the group is without is taken in again. 3. A removal
 * is an entry of the log also where the node never got in. 4. Majorities are counted in the
 * configuration, never in the record. 5. The leader does not remove itself: it hands over, with one
 * voter to the one that has come. 6. Why nothing is done is told (P-093).
 */
import { next, type ConfigIndex, type PlacementGeneration } from "../base/ids.js";
import { MEMBERS_MAX, VOTERS_MAX } from "../base/limits.js";
import type {
  PartitionRecord,
  PlacementOrder,
  ReplicaRecord,
  ReplicaReport,
} from "../machine/commands/command.js";
import { allMembers, changeMembership, isJoint, isVoter } from "../raft/state/membership.js";
import type { ConfigChange, ConfigOperation } from "../raft/state/types.js";
import type { GroupPlanFacts, GroupStep } from "./group-plan.js";
import { GROUP_WAITS, type GroupWait } from "./placement-reasons.js";

export interface PlacedPlanFacts extends Pick<
  GroupPlanFacts,
  "self" | "membership" | "isLive" | "isCaughtUp"
> {
  /** As applied here. */
  readonly record: PartitionRecord;
  /** Index of the applied configuration. */
  readonly configIndex: ConfigIndex;
  /** The highest generation that a configuration entry applied here rests on. */
  readonly placedGeneration: PlacementGeneration;
  /** A range is frozen or a backup holds the group. */
  readonly isPaused: boolean;
  /** The node answers, whether or not it has a replica yet. */
  isLinked(node: number): boolean;
}

export type PlacedStep =
  | Exclude<GroupStep, { readonly kind: "wait" }>
  /** Something is to be done, and cannot be now. */
  | { readonly kind: "wait"; readonly reason: GroupWait; readonly why: string };

/** A step on the way to a list. */
export type ListingStep =
  /** An entry that changes nothing and carries `generation`. */
  | {
      readonly kind: "fence";
      readonly change: ConfigChange;
      readonly generation: PlacementGeneration;
    }
  /** To meta, again until the record is placed here. */
  | { readonly kind: "place"; readonly item: PlacementOrder }
  | Extract<PlacedStep, { readonly kind: "wait" }>;

function wait(reason: GroupWait, node = 0): Extract<PlacedStep, { readonly kind: "wait" }> {
  const about = node === 0 ? "" : `, node ${node}`;
  return { kind: "wait", reason, why: `${GROUP_WAITS[reason]}${about}` };
}

function changeOf(...operations: ConfigOperation[]): ConfigChange {
  return { version: 2, transition: "auto", operations };
}

/** What keeps a leader from any step at all; null = nothing. */
function hold(facts: PlacedPlanFacts): Extract<PlacedStep, { readonly kind: "wait" }> | null {
  if (isJoint(facts.membership)) return wait("joint");
  return facts.isPaused ? wait("paused") : null;
}

/**
 * The way of a partition from full mode to a list, which begins when it has a factor (`isWished`).
 * Null: the member list rules, as in full mode always.
 */
export function nextListingStep(facts: PlacedPlanFacts, isWished: boolean): ListingStep | null {
  const { self, record, membership, configIndex, placedGeneration } = facts;
  const { partitionId, generation } = record;
  const fence = next(generation);
  if (placedGeneration > fence) return wait("older-record");
  if (placedGeneration < fence) {
    if (!isWished) return null;
    const change = changeOf({ kind: "update", node: self });
    return hold(facts) ?? { kind: "fence", change, generation: fence };
  }
  const { voters, learners } = membership;
  if (isJoint(membership)) return wait("joint");
  return { kind: "place", item: { partitionId, generation, configIndex, voters, learners } };
}

/** The next step of a group that is placed. */
export function nextPlacedChange(facts: PlacedPlanFacts): PlacedStep {
  const { record, placedGeneration } = facts;
  if (record.generation < placedGeneration) {
    return wait("older-record");
  }
  const held = hold(facts);
  if (held !== null) return held;
  if (dueReport(facts) !== null) return wait("not-told");
  let waiting: PlacedStep | null = null;
  // Who is missing weakens the group; who goes makes room for who comes.
  const leaving = record.replicas.filter(({ role }) => role === "removing");
  const coming = record.replicas.filter(({ role }) => role === "learner");
  for (const replica of [...missingVoters(facts), ...leaving, ...coming]) {
    const step = replica.role === "removing" ? departure(facts, replica) : arrival(facts, replica);
    if (step.kind !== "wait") return step;
    waiting ??= step;
  }
  return waiting ?? { kind: "settled" };
}

/**
 * Voters of the record that the group is without: an order took back what this group had carried
 * out already. They come as new ones do; what they had is with them.
 */
function missingVoters({ record, membership }: PlacedPlanFacts): readonly ReplicaRecord[] {
  return record.replicas.filter(({ role, nodeId }) => {
    return role === "voter" && !membership.voters.includes(nodeId);
  });
}

/** A replica is to come: as a learner, and as a voter when it has caught up. */
function arrival(facts: PlacedPlanFacts, replica: ReplicaRecord): PlacedStep {
  const { self, membership } = facts;
  const { nodeId, replaces } = replica;
  // To add it once more would take its vote.
  if (isVoter(membership, nodeId)) return wait("older-record", nodeId);
  if (!membership.learners.includes(nodeId)) {
    if (!facts.isLinked(nodeId)) return wait("replica-silent", nodeId);
    const change = changeOf({ kind: "addLearner", node: nodeId });
    return guarded(facts, change, nodeId, `a replica comes to node ${nodeId}`);
  }
  if (!facts.isLive(nodeId)) return wait("replica-silent", nodeId);
  if (!facts.isCaughtUp(nodeId)) return wait("replica-behind", nodeId);
  const why = `the replica on node ${nodeId} has caught up`;
  const promotion = { kind: "addVoter", node: nodeId } as const;
  if (membership.voters.length < VOTERS_MAX) {
    return guarded(facts, changeOf(promotion), nodeId, why);
  }
  // No half of a configuration has more voters than there may be: both steps are one.
  if (!membership.voters.includes(replaces)) return wait("voters-full", nodeId);
  if (replaces === self) return handOver(facts, self);
  return guarded(facts, changeOf(promotion, { kind: "remove", node: replaces }), nodeId, why);
}

/** A configuration that is not told yet, and knew that the replica is to go, is without it. */
function isGone(facts: ReportFacts, { nodeId, since }: ReplicaRecord): boolean {
  const { record, membership, configIndex, placedGeneration } = facts;
  if (allMembers(membership).includes(nodeId)) return false;
  return placedGeneration >= since && configIndex > record.configIndex;
}

/** What a report is made of. */
export type ReportFacts = Pick<
  PlacedPlanFacts,
  "record" | "membership" | "configIndex" | "placedGeneration"
>;

/**
 * What is to be told to meta, again until a newer record is applied; null = nothing, or not by this
 * leader. Only what changes the role of a replica counts, not each entry.
 */
export function dueReport(facts: ReportFacts): ReplicaReport | null {
  const { record, membership, configIndex, placedGeneration } = facts;
  if (record.mode === "full" || record.state === "Removed") return null;
  if (configIndex <= record.configIndex || record.generation < placedGeneration) return null;
  if (isJoint(membership)) return null;
  const listed = new Set(record.replicas.map(({ nodeId }) => nodeId));
  const hasStranger = allMembers(membership).some((node) => !listed.has(node));
  const hasNews = record.replicas.some((replica) => {
    if (replica.role === "learner") {
      return membership.voters.includes(replica.nodeId) && placedGeneration >= replica.since;
    }
    return replica.role === "removing" && isGone(facts, replica);
  });
  if (!hasStranger && !hasNews) return null;
  const { voters, learners } = membership;
  const { partitionId } = record;
  return { partitionId, configIndex, voters, learners, restsOn: placedGeneration };
}

function liveOf(facts: PlacedPlanFacts, voters: readonly number[]): number {
  return voters.filter((node) => node === facts.self || facts.isLive(node)).length;
}

function hasMajority(facts: PlacedPlanFacts, voters: readonly number[]): boolean {
  return liveOf(facts, voters) * 2 > voters.length;
}

/** The change, if a live majority decides it and each configuration on its way has one. */
function guarded(
  facts: PlacedPlanFacts,
  change: ConfigChange,
  node: number,
  why: string,
): PlacedStep {
  const { membership } = facts;
  const result = changeMembership(membership, change);
  if (!result.ok) return wait("joint", node);
  const { voters, votersOutgoing } = result.membership;
  if (allMembers(result.membership).length > MEMBERS_MAX) return wait("members-full", node);
  if (!hasMajority(facts, membership.voters)) return wait("no-majority", node);
  const isSafe =
    hasMajority(facts, voters) &&
    (votersOutgoing.length === 0 || hasMajority(facts, votersOutgoing));
  if (!isSafe) return wait("majority-at-risk", node);
  return { kind: "change", change, why };
}

/** A replica is to go. */
function departure(facts: PlacedPlanFacts, { nodeId }: ReplicaRecord): PlacedStep {
  const { self, membership } = facts;
  if (membership.voters.length === 1 && isVoter(membership, nodeId)) {
    return wait("majority-at-risk", nodeId);
  }
  if (nodeId === self) return handOver(facts, nodeId);
  const change = changeOf({ kind: "remove", node: nodeId });
  return guarded(facts, change, nodeId, `the replica on node ${nodeId} goes`);
}

/** To a live voter that stays; which one differs from partition to partition. */
function handOver(facts: PlacedPlanFacts, leaves: number): PlacedStep {
  const { record, membership } = facts;
  const heirs = record.replicas.filter(({ nodeId, role }) => {
    const stays = role === "voter" && nodeId !== leaves && membership.voters.includes(nodeId);
    return stays && facts.isLive(nodeId) && facts.isCaughtUp(nodeId);
  });
  const heir = heirs[record.partitionId % Math.max(1, heirs.length)];
  if (heir === undefined) return wait("no-heir", leaves);
  return { kind: "transfer", to: heir.nodeId, why: "the replica of the leader goes" };
}
