/**
 * Who may leave the cluster, and which change of the member list is due, as pure functions of
 * committed facts (contract 5.2, 5.3).
 *
 * Invariants: 1. Facts in, decision out; nothing is read or changed here. 2. The last voter that
 * any hosted partition needs never leaves. 3. One drain at a time. 4. A member is removed only when
 * no group counts on its vote and no record of a placed partition names it, and becomes a voter
 * only when it votes in every group that follows the member list (P-091).
 */
import { VOTERS_MAX } from "../base/limits.js";
import type { MemberRole, Member } from "../machine/commands/command.js";
import { isVoter } from "../raft/state/membership.js";
import type { Membership } from "../raft/state/types.js";

export { nextGroupChange, wishedVoters } from "./group-plan.js";
export type { GroupPlanFacts, GroupStep } from "./group-plan.js";

export interface LeaveFacts {
  /** The committed member list; null = not known yet. */
  readonly members: readonly Member[] | null;
  readonly nodeId: number;
  /** The meta partition has a leader that was proved. */
  readonly metaLed: boolean;
  /** Voters other than this node, per partition in full mode that this node hosts, and meta. */
  readonly otherVoters: readonly number[];
  /** How many of them answer; all of them when it is not told. */
  readonly liveOtherVoters?: readonly number[];
}

export type LeaveDecision =
  | "NotInitialized"
  | "NotAMember"
  | "NoLeader"
  | "RefusedDrainInProgress"
  | "RefusedInsufficientVoters"
  /** Nothing speaks against the removal. */
  | "remove";

/** What speaks first against a node leaving; `remove` when nothing does. */
export function decideLeave(facts: LeaveFacts): LeaveDecision {
  const { members, nodeId, otherVoters } = facts;
  if (members === null) return "NotInitialized";
  if (!members.some((member) => member.nodeId === nodeId)) return "NotAMember";
  if (!facts.metaLed) return "NoLeader";
  const others = members.filter((member) => member.nodeId !== nodeId);
  if (others.some((member) => member.role === "leaving")) return "RefusedDrainInProgress";
  const voters = others.filter((member) => member.role === "voter").length;
  const live = facts.liveOtherVoters ?? otherVoters;
  const stands = otherVoters.every((count, at) => count > 0 && (live[at] ?? 0) * 2 > count);
  return voters === 0 || !stands ? "RefusedInsufficientVoters" : "remove";
}

/** What a replica of a group knows of it. */
export interface ReplicaFacts {
  /** Who leads, as far as is known here; 0 = unknown. */
  readonly leader: number;
  readonly term: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  /** Term of the entry that was applied last. */
  readonly appliedTerm: number;
}

/**
 * Whether a replica may speak for its group: it has applied all that it knows to be committed, an
 * entry of its leader's term among it. Before that it does not know all that earlier leaders
 * committed, though it may lead the group itself.
 */
export function isFreshReplica(facts: ReplicaFacts): boolean {
  const { leader, term, commitIndex, appliedIndex, appliedTerm } = facts;
  return leader !== 0 && appliedTerm === term && appliedIndex >= commitIndex;
}

/** One group as the leader of the meta partition sees it in its own replica. */
export interface GroupView {
  readonly membership: Membership;
  /** See `isFreshReplica`. */
  readonly isFresh: boolean;
}

export type MemberStep =
  | { readonly kind: "set-member-role"; readonly nodeId: number; readonly role: MemberRole }
  | { readonly kind: "remove-member"; readonly nodeId: number };

/** Who counts on whom in the whole cluster, as the leader of the meta partition sees it. */
export interface ClusterView {
  /** The groups that are on every node, the meta partition among them. */
  readonly groups: readonly GroupView[];
  /**
   * The nodes that records of placed partitions name: a node that no record names is in no
   * configuration of a placed group.
   */
  readonly placedOn: ReadonlySet<number>;
}

/**
 * The change of the member list that is due; null when there is none, or when not every group can
 * be seen.
 */
export function nextMemberChange(
  members: readonly Member[],
  { groups, placedOn }: ClusterView,
): MemberStep | null {
  if (groups.length === 0 || groups.some((group) => !group.isFresh)) return null;
  const votes = (nodeId: number, group: GroupView): boolean => isVoter(group.membership, nodeId);
  const gone = members.find(({ nodeId, role }) => {
    const isNamed = placedOn.has(nodeId);
    return role === "leaving" && !isNamed && !groups.some((group) => votes(nodeId, group));
  });
  if (gone !== undefined) return { kind: "remove-member", nodeId: gone.nodeId };
  const counted = members.filter((member) => member.role !== "learner").length;
  if (counted >= VOTERS_MAX) return null;
  const risen = members.find(({ nodeId, role }) => {
    return role === "learner" && groups.every((group) => votes(nodeId, group));
  });
  if (risen === undefined) return null;
  return { kind: "set-member-role", nodeId: risen.nodeId, role: "voter" };
}
