/**
 * Membership arithmetic: what a change makes of a membership. Pure functions over plain data.
 *
 * Algorithm: joint consensus with learners; a voter that is to
 * become a learner while the old half still needs its vote waits in learnersNext.
 * Invariants:
 * 1. A node is in at most one of voters and learners; learnersNext is part of votersOutgoing and
 *    apart from learners.
 * 2. A direct change moves at most one voter; anything larger is joint.
 * 3. There is always a voter, except in the empty membership of a node that waits for its first
 *    snapshot.
 * 4. All lists ascend numerically and are never changed in place.
 */
import type { ConfigChange, ConfigOperation, Membership, NodeId } from "./types.js";

export const emptyMembership: Membership = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
};

export type ChangeResult =
  | {
      readonly ok: true;
      readonly membership: Membership;
      /**
       * Nodes that were removed on the way, so that nothing known about them holds even if they are
       * in again.
       */
      readonly removed: ReadonlySet<NodeId>;
    }
  | { readonly ok: false; readonly reason: string };

export function isJoint(membership: Membership): boolean {
  return membership.votersOutgoing.length > 0;
}

/** Whether `id` votes, in either half. */
export function isVoter(membership: Membership, id: NodeId): boolean {
  return membership.voters.includes(id) || membership.votersOutgoing.includes(id);
}

export function isLearner(membership: Membership, id: NodeId): boolean {
  return membership.learners.includes(id);
}

/** Whether `id` has any part in the membership. */
export function isMember(membership: Membership, id: NodeId): boolean {
  return isVoter(membership, id) || isLearner(membership, id);
}

function ascending(ids: Iterable<NodeId>): NodeId[] {
  return [...ids].sort((left, right) => left - right);
}

/** Everybody who votes in either half, ascending. */
export function allVoters(membership: Membership): readonly NodeId[] {
  if (!isJoint(membership)) return membership.voters;
  return ascending(new Set([...membership.voters, ...membership.votersOutgoing]));
}

/** Everybody, ascending. */
export function allMembers(membership: Membership): readonly NodeId[] {
  return ascending(new Set([...allVoters(membership), ...membership.learners]));
}

/** Whether the change asks to leave a joint configuration. */
function isLeave(change: ConfigChange): boolean {
  return change.operations.length === 0 && change.transition === "auto";
}

/** Whether the change goes through a joint configuration. */
function entersJoint(change: ConfigChange): boolean {
  return change.transition !== "auto" || change.operations.length > 1;
}

class Draft {
  readonly voters: Set<NodeId>;
  readonly outgoing: Set<NodeId>;
  readonly learners: Set<NodeId>;
  readonly learnersNext: Set<NodeId>;
  readonly removed = new Set<NodeId>();
  autoLeave: boolean;

  constructor(base: Membership) {
    this.voters = new Set(base.voters);
    this.outgoing = new Set(base.votersOutgoing);
    this.learners = new Set(base.learners);
    this.learnersNext = new Set(base.learnersNext);
    this.autoLeave = base.autoLeave;
  }

  apply(operation: ConfigOperation): void {
    const id = operation.node;
    switch (operation.kind) {
      case "addVoter":
        this.learners.delete(id);
        this.learnersNext.delete(id);
        this.voters.add(id);
        return;
      case "addLearner":
        if (this.learners.has(id)) return;
        this.voters.delete(id);
        this.learnersNext.delete(id);
        if (this.outgoing.has(id)) this.learnersNext.add(id);
        else this.learners.add(id);
        return;
      case "remove":
        this.voters.delete(id);
        this.learners.delete(id);
        this.learnersNext.delete(id);
        if (!this.outgoing.has(id)) this.removed.add(id);
        return;
      case "update":
        return;
    }
  }

  result(): ChangeResult {
    const membership: Membership = {
      voters: ascending(this.voters),
      votersOutgoing: ascending(this.outgoing),
      learners: ascending(this.learners),
      learnersNext: ascending(this.learnersNext),
      autoLeave: this.autoLeave,
    };
    return { ok: true, membership, removed: this.removed };
  }
}

function refuse(reason: string): ChangeResult {
  return { ok: false, reason };
}

function leaveJoint(base: Membership): ChangeResult {
  if (!isJoint(base)) return refuse("the configuration is not joint");
  const draft = new Draft(base);
  for (const id of draft.learnersNext) draft.learners.add(id);
  draft.learnersNext.clear();
  draft.outgoing.clear();
  draft.autoLeave = false;
  return draft.result();
}

function enterJoint(base: Membership, change: ConfigChange): ChangeResult {
  if (isJoint(base)) return refuse("the configuration is joint already");
  if (base.voters.length === 0) return refuse("a configuration without voters cannot be joint");
  const draft = new Draft(base);
  for (const id of base.voters) draft.outgoing.add(id);
  for (const operation of change.operations) draft.apply(operation);
  if (draft.voters.size === 0) return refuse("no voter would be left");
  draft.autoLeave = change.transition !== "explicit";
  return draft.result();
}

function changeDirectly(base: Membership, change: ConfigChange): ChangeResult {
  if (isJoint(base)) return refuse("the configuration is joint");
  const draft = new Draft(base);
  for (const operation of change.operations) draft.apply(operation);
  if (draft.voters.size === 0) return refuse("no voter would be left");
  return draft.result();
}

/** The membership after `change`, or why there can be none. */
export function changeMembership(base: Membership, change: ConfigChange): ChangeResult {
  for (const operation of change.operations) {
    if (!Number.isSafeInteger(operation.node) || operation.node <= 0) {
      return refuse(`${operation.node} is not a node id`);
    }
  }
  if (isLeave(change)) return leaveJoint(base);
  if (entersJoint(change)) return enterJoint(base, change);
  return changeDirectly(base, change);
}

function ascends(ids: readonly NodeId[]): boolean {
  return ids.every((id, at) => id > 0 && (at === 0 || id > (ids[at - 1] ?? 0)));
}

/** The first broken invariant of a membership, or null. */
export function membershipFault(membership: Membership): string | null {
  const { voters, votersOutgoing, learners, learnersNext } = membership;
  if (![voters, votersOutgoing, learners, learnersNext].every(ascends))
    return "a list does not ascend";
  if (learners.some((id) => voters.includes(id) || votersOutgoing.includes(id))) {
    return "a learner votes";
  }
  if (learnersNext.some((id) => !votersOutgoing.includes(id) || voters.includes(id))) {
    return "a future learner is not a voter of the old half alone";
  }
  if (voters.length === 0 && (votersOutgoing.length > 0 || learners.length > 0)) {
    return "members without a voter";
  }
  if (membership.autoLeave && votersOutgoing.length === 0) return "automatic leave of nothing";
  return null;
}
