/**
 * A change of membership takes effect: applied from the log, or with a snapshot.
 *
 * Invariants:
 * 1. Each committed change is applied once, in log order: its index is above all applied before.
 *    One that a snapshot has overtaken changes nothing.
 * 2. After a change the commit index is looked at again, since the new voters may have what the old
 *    ones lacked.
 * 3. A leader that is no voter any more leaves, if so configured, at once.
 * 4. A transfer of leadership to somebody who votes no more is given up.
 */
import { assert } from "../../base/assert.js";
import { changeMembership, isLearner, isMember, isVoter } from "../state/membership.js";
import { broadcastAppend, broadcastEntries, maybeCommit } from "./replication.js";
import { answerConfirmed, releaseWaiting } from "./reads.js";
import { becomeFollower } from "./roles.js";
import type { RaftState } from "../state/state.js";
import {
  noNode,
  type ConfigChange,
  type LogIndex,
  type Membership,
  type NodeId,
} from "../state/types.js";

/** Takes over a membership, with all that follows from it for a leader. */
export function switchMembership(
  raft: RaftState,
  membership: Membership,
  removed?: ReadonlySet<NodeId>,
): void {
  raft.tracker.change(membership, raft.log.lastIndex, removed);
  if (raft.role !== "leader") return;
  if (!isMember(membership, raft.id) || isLearner(membership, raft.id)) {
    if (raft.config.stepDownOnRemoval) becomeFollower(raft, raft.term, noNode);
    return;
  }
  if (membership.voters.length === 0) return;
  if (maybeCommit(raft)) {
    releaseWaiting(raft);
    broadcastAppend(raft);
  } else {
    broadcastEntries(raft);
  }
  answerConfirmed(raft);
  if (raft.transferTo !== noNode && !isVoter(membership, raft.transferTo)) {
    raft.transferTo = noNode;
  }
}

/** Applies the committed membership change at `index` and returns the new membership. */
export function applyChange(raft: RaftState, index: LogIndex, change: ConfigChange): Membership {
  // A snapshot has arrived since this change was handed out: it contains the change.
  if (index <= raft.restoredIndex) return raft.tracker.membership;
  assert(index > raft.membershipIndex, "a membership change is applied once, in order");
  assert(index <= raft.log.committed, "only a committed membership change is applied");
  assert(raft.log.changes.kindAt(index) !== "normal", "there is a membership change at this index");
  const result = changeMembership(raft.tracker.membership, change);
  assert(
    result.ok,
    `a committed membership change can be applied: ${result.ok ? "" : result.reason}`,
  );
  raft.membershipIndex = index;
  switchMembership(raft, result.membership, result.removed);
  return result.membership;
}
