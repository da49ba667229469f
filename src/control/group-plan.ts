/**
 * The next safe step from a group's membership towards what the member list wishes: facts in, one
 * step out. Run by the leader of the group.
 *
 * Wished voters: the member list's voters, then its learners in the order in which they joined, up
 * to VOTERS_MAX in all. A learner of the member list therefore becomes a voter of each group first,
 * on what that group's leader has measured; its role in the member list follows when it votes
 * everywhere (membership.ts): each step rests on replicated facts alone. Leaving members become
 * learners of every group before they are removed, so that no majority counts on a process that may
 * end.
 *
 * Pure. Invariants: 1. One operation per
 * step, add before remove (P-092). 2. No step leaves a configuration whose majority is not live.
 * 3. Only a member whose removal this member list knows is removed: one that is merely absent may
 * be news that has not arrived (P-097). 4. A leader leaves last, after it handed over. 5. Why
 * nothing is done is told (P-093).
 */
import { MEMBERS_MAX, VOTERS_MAX } from "../base/limits.js";
import type { Member } from "../machine/commands/command.js";
import { changeMembership, isJoint } from "../raft/state/membership.js";
import type { ConfigChange, ConfigOperation, Membership } from "../raft/state/types.js";

export interface GroupPlanFacts {
  /** This node, which leads the group. */
  readonly self: number;
  readonly membership: Membership;
  readonly members: readonly Member[];
  /** Ids of members that were removed from the member list and are not in it again. */
  readonly removed: ReadonlySet<number>;
  /** Answers now, as far as can be told; this node always does. */
  isLive(node: number): boolean;
  /** Has been as good as caught up for some time, as this leader measured it (P-091). */
  isCaughtUp(node: number): boolean;
}

export type GroupStep =
  | { readonly kind: "change"; readonly change: ConfigChange; readonly why: string }
  | { readonly kind: "transfer"; readonly to: number; readonly why: string }
  /** Something is to be done, and cannot be now. */
  | { readonly kind: "wait"; readonly why: string }
  | { readonly kind: "settled" };

function inOrderOfJoining(members: readonly Member[]): readonly Member[] {
  return [...members].sort((a, b) => a.joinedVersion - b.joinedVersion || a.nodeId - b.nodeId);
}

/** Who is to vote in every group. */
export function wishedVoters(members: readonly Member[]): readonly number[] {
  const ordered = inOrderOfJoining(members);
  const voters = ordered.filter((member) => member.role === "voter");
  const learners = ordered.filter((member) => member.role === "learner");
  return [...voters, ...learners].slice(0, VOTERS_MAX).map((member) => member.nodeId);
}

function operation(kind: ConfigOperation["kind"], node: number, why: string): GroupStep {
  return {
    kind: "change",
    change: { version: 2, transition: "auto", operations: [{ kind, node }] },
    why,
  };
}

/** `step`, unless the configuration behind it would have no live majority. */
function guarded(
  facts: Pick<GroupPlanFacts, "self" | "membership" | "isLive">,
  step: GroupStep,
): GroupStep {
  if (step.kind !== "change") return step;
  const result = changeMembership(facts.membership, step.change);
  if (!result.ok) return { kind: "wait", why: result.reason };
  const { voters, learners } = result.membership;
  // Who was removed from the member list goes from the group before somebody else comes.
  if (voters.length + learners.length > MEMBERS_MAX) {
    return { kind: "wait", why: `${step.why}: the group has as many members as it may have` };
  }
  const live = voters.filter((node) => node === facts.self || facts.isLive(node)).length;
  if (live * 2 > voters.length) return step;
  return { kind: "wait", why: `${step.why}: no majority of the rest is live` };
}

/** The next step for one group. */
export function nextGroupChange(facts: GroupPlanFacts): GroupStep {
  const { membership, members } = facts;
  if (members.length === 0) return { kind: "wait", why: "no member list is known" };
  if (isJoint(membership)) return { kind: "wait", why: "a change is under way" };
  const wished = wishedVoters(members);
  const steps = [
    missing(facts),
    surplusLearner(facts),
    promotion(facts, wished),
    surplusVoter(facts, wished),
    ownLeave(facts, wished),
  ];
  let waiting: GroupStep | null = null;
  for (const step of steps) {
    const safe = step === null ? null : guarded(facts, step);
    if (safe === null) continue;
    if (safe.kind !== "wait") return safe;
    waiting ??= safe;
  }
  return waiting ?? { kind: "settled" };
}

/** A member of the member list that is no part of the group yet. */
function missing({ membership, members }: GroupPlanFacts): GroupStep | null {
  const absent = inOrderOfJoining(members).find(({ nodeId }) => {
    return !membership.voters.includes(nodeId) && !membership.learners.includes(nodeId);
  });
  if (absent === undefined) return null;
  return operation("addLearner", absent.nodeId, `node ${absent.nodeId} joins`);
}

function surplusLearner({ membership, removed }: GroupPlanFacts): GroupStep | null {
  const gone = membership.learners.find((node) => removed.has(node));
  return gone === undefined ? null : operation("remove", gone, `learner ${gone} was removed`);
}

function promotion(facts: GroupPlanFacts, wished: readonly number[]): GroupStep | null {
  const { membership } = facts;
  const learners = wished.filter((node) => membership.learners.includes(node));
  const first = learners[0];
  if (first === undefined) return null;
  if (membership.voters.length >= VOTERS_MAX) {
    return { kind: "wait", why: `learner ${first} waits for the place of a voter` };
  }
  const caughtUp = learners.find((node) => facts.isLive(node) && facts.isCaughtUp(node));
  if (caughtUp === undefined) return { kind: "wait", why: `learner ${first} has not caught up` };
  return operation("addVoter", caughtUp, `learner ${caughtUp} has caught up`);
}

function surplusVoter(facts: GroupPlanFacts, wished: readonly number[]): GroupStep | null {
  const { membership, self, members, removed } = facts;
  const isListed = (node: number): boolean => members.some((member) => member.nodeId === node);
  const surplus = membership.voters.filter((node) => node !== self && !wished.includes(node));
  const known = surplus.filter((node) => isListed(node) || removed.has(node));
  // The dead first: they only cost, and without them the rest can spare more.
  const node = known.find((candidate) => !facts.isLive(candidate)) ?? known[0];
  if (node === undefined) {
    const strange = surplus[0];
    return strange === undefined
      ? null
      : { kind: "wait", why: `the member list known here says nothing of voter ${strange}` };
  }
  const isLive = facts.isLive(node);
  const coming = members.find((member) => {
    const counts = member.role === "voter" && wished.includes(member.nodeId);
    return counts && !membership.voters.includes(member.nodeId) && facts.isLive(member.nodeId);
  });
  if (isLive && coming !== undefined && membership.voters.length < VOTERS_MAX) {
    return { kind: "wait", why: `voter ${node} stays until node ${coming.nodeId} votes` };
  }
  return isListed(node)
    ? operation("addLearner", node, `voter ${node} votes no more`)
    : operation("remove", node, `voter ${node} was removed`);
}

/** This node leads and is not to vote: once everything else is done, somebody else leads. */
function ownLeave(facts: GroupPlanFacts, wished: readonly number[]): GroupStep | null {
  const { membership, self, members, removed } = facts;
  if (wished.includes(self)) return null;
  if (!members.some((member) => member.nodeId === self) && !removed.has(self)) return null;
  const heirs = wished.filter((node) => node !== self && membership.voters.includes(node));
  const heir = heirs.find((node) => facts.isLive(node) && facts.isCaughtUp(node));
  if (heir !== undefined) return { kind: "transfer", to: heir, why: "the leader leaves" };
  return { kind: "wait", why: "nobody can take over from the leader, which leaves" };
}
