/**
 * Proposals: checked and appended by a leader, passed on by a follower, refused by everybody else.
 *
 * Invariants:
 * 1. At most one membership change is on its way: proposed by this leader or inherited, and not yet
 *    applied.
 * 2. A refused membership change leaves an empty normal entry at its place, and the proposer is
 *    told.
 * 3. A leader of an automatic joint configuration proposes to leave it until that is applied.
 */
import { assert } from "../../base/assert.js";
import { changeMembership, isJoint } from "../state/membership.js";
import { appendEntries, broadcastAppend } from "./replication.js";
import type { RaftState } from "../state/state.js";
import {
  noNode,
  type Appended,
  type ConfigChange,
  type NodeId,
  type Proposal,
  type ProposalRefusal,
  type ProposeResult,
  type Refused,
} from "../state/types.js";

function refuse(reason: ProposalRefusal): Refused {
  return { ok: false, reason };
}

/**
 * Whether `change` may not be appended now: one is pending, or it does not fit a joint or non-joint
 * configuration.
 */
function isUntimely(raft: RaftState, change: ConfigChange): boolean {
  const joint = isJoint(raft.tracker.membership);
  const leaving = change.operations.length === 0;
  return raft.pendingChangeIndex > raft.log.applied || joint !== leaving;
}

/** Appends a proposal on the leader and sends it to everybody. */
function proposeAtLeader(raft: RaftState, proposal: Proposal): Appended | Refused {
  if (raft.tracker.find(raft.id) === undefined) return refuse("not-member");
  if (raft.transferTo !== noNode) return refuse("transferring");
  const firstIndex = raft.log.lastIndex + 1;
  const { change } = proposal;
  let replacedByEmpty = false;
  if (change !== null) {
    const checked = !raft.config.disableConfigChangeValidation;
    replacedByEmpty = checked && isUntimely(raft, change);
    if (checked && !replacedByEmpty && !changeMembership(raft.tracker.membership, change).ok) {
      return refuse("invalid-change");
    }
  }
  const counts = change !== null && !replacedByEmpty;
  const kind = counts ? (change.version === 1 ? "configChangeV1" : "configChangeV2") : null;
  const sizes = replacedByEmpty ? [0] : proposal.sizesBytes;
  if (!appendEntries(raft, sizes, kind)) return refuse("uncommitted-limit");
  if (counts) raft.pendingChangeIndex = firstIndex;
  broadcastAppend(raft);
  const lastIndex = raft.log.lastIndex;
  return { ok: true, kind: "appended", term: raft.term, firstIndex, lastIndex, replacedByEmpty };
}

/** Takes in a proposal that `from` made. */
export function propose(raft: RaftState, proposal: Proposal, from: NodeId): ProposeResult {
  assert(
    proposal.count >= 1 && proposal.count === proposal.sizesBytes.length,
    "one size per entry",
  );
  assert(proposal.change === null || proposal.count === 1, "a membership change comes alone");
  if (raft.role === "leader") return proposeAtLeader(raft, proposal);
  if (raft.leader === noNode) return refuse("no-leader");
  if (raft.config.disableProposalForwarding) return refuse("not-leader");
  const draft = raft.post("propose", raft.leader, 0);
  draft.from = from;
  draft.proposal = proposal;
  return { ok: true, kind: "forwarded", to: raft.leader };
}

const leave: Proposal = {
  count: 1,
  sizesBytes: [0],
  change: { version: 2, transition: "auto", operations: [] },
  token: 0,
};

/**
 * Leaves a joint configuration that says so, once the change that entered it is applied. Free of
 * the uncommitted limit.
 */
export function leaveJointIfDue(raft: RaftState): void {
  if (raft.role !== "leader" || !raft.tracker.membership.autoLeave) return;
  if (raft.log.applied < raft.pendingChangeIndex) return;
  proposeAtLeader(raft, leave);
}
