/**
 * What every node does with a leader's messages of its own term: entries, heartbeats, snapshots,
 * orders.
 *
 * Invariants:
 * 1. The commit index never moves beyond what the message at hand has verified.
 * 2. An append below the commit index is answered with the commit index and changes nothing.
 * 3. A refusal names the largest position that may match, by whole terms.
 * 4. A snapshot replaces the log only if it is ahead of the commit index, names this node, and is
 *    not in the log already.
 * 5. Who awaits a snapshot takes nothing else: what a message says of the log is about a log that
 *    this replica never had.
 */
import { isMember } from "../state/membership.js";
import { switchMembership } from "./change.js";
import { campaignNow } from "./election.js";
import { takeAnswer } from "./reads.js";
import { becomeFollower } from "./roles.js";
import type { RaftState } from "../state/state.js";
import { needsSnapshot, noNode, type Message, type SnapshotMeta } from "../state/types.js";

/** Takes in entries, or says from where they would fit. */
function handleAppend(raft: RaftState, message: Message): void {
  const { log } = raft;
  if (raft.awaitsSnapshot) {
    const draft = raft.post("appendAnswer", message.from);
    draft.index = message.index;
    draft.reject = true;
    draft.context = needsSnapshot;
    return;
  }
  if (message.index < log.committed) {
    raft.post("appendAnswer", message.from).index = log.committed;
    return;
  }
  if (!log.matches(message.index, message.logTerm)) {
    const draft = raft.post("appendAnswer", message.from);
    const known = Math.min(message.index, log.lastIndex);
    draft.index = message.index;
    draft.reject = true;
    draft.rejectHint = log.terms.lastNotAbove(known, message.logTerm);
    draft.logTerm = log.terms.termOf(draft.rejectHint) ?? 0;
    return;
  }
  let verified = message.index;
  if (message.entries !== null) {
    log.appendFrom(message.entries);
    verified = message.entries.last;
  }
  log.commitTo(Math.min(message.commit, verified));
  raft.post("appendAnswer", message.from).index = verified;
}

function handleHeartbeat(raft: RaftState, message: Message): void {
  if (!raft.awaitsSnapshot) raft.log.commitTo(message.commit);
  raft.post("heartbeatAnswer", message.from).context = message.context;
}

/** Whether the snapshot replaced the log. */
function restore(raft: RaftState, snapshot: SnapshotMeta): boolean {
  const { log } = raft;
  if (snapshot.index <= log.committed || !isMember(snapshot.membership, raft.id)) return false;
  if (log.matches(snapshot.index, snapshot.term)) {
    log.commitTo(snapshot.index);
    return false;
  }
  log.restore(snapshot);
  raft.awaitsSnapshot = false;
  raft.membershipIndex = snapshot.index;
  raft.restoredIndex = snapshot.index;
  switchMembership(raft, snapshot.membership, new Set(raft.tracker.peers.map((peer) => peer.id)));
  return true;
}

function handleSnapshot(raft: RaftState, message: Message): void {
  const { log } = raft;
  const replaced = message.snapshot !== null && restore(raft, message.snapshot);
  raft.post("appendAnswer", message.from).index = replaced ? log.lastIndex : log.committed;
}

/** A message from the leader of this term. The caller has made this node its follower. */
function handleFromLeader(raft: RaftState, message: Message): void {
  switch (message.kind) {
    case "append":
      handleAppend(raft, message);
      return;
    case "heartbeat":
      handleHeartbeat(raft, message);
      return;
    default:
      handleSnapshot(raft, message);
  }
}

/**
 * A follower forgets who leads, so that it may vote and be elected; lease-based reads rest on its
 * loyalty and forbid it.
 */
export function forgetLeader(raft: RaftState): void {
  if (raft.role !== "follower" || raft.config.readMode === "leaseBased") return;
  raft.leader = noNode;
}

/** The leader wants this node to lead: it campaigns at once, if it may. */
function takeOrder(raft: RaftState, message: Message): void {
  campaignNow(raft, true);
  if (raft.role !== "candidate") return;
  raft.ordered = { term: raft.term, index: message.index, token: message.context };
}

/**
 * A message of this node's term (or of none), on a follower. Votes and proposals are dealt with
 * before.
 */
export function stepFollower(raft: RaftState, message: Message): void {
  switch (message.kind) {
    case "append":
    case "heartbeat":
    case "snapshot":
      raft.electionElapsed = 0;
      raft.leader = message.from;
      handleFromLeader(raft, message);
      return;
    case "transferLeader":
      if (raft.leader !== noNode) raft.forward(message, raft.term);
      return;
    case "timeoutNow":
      takeOrder(raft, message);
      return;
    case "readIndex":
      if (raft.leader !== noNode) raft.forward(message, 0);
      return;
    case "readIndexAnswer":
      takeAnswer(raft, message);
      return;
    default:
      return;
  }
}

/**
 * A message of this node's term, on a candidate or pre-candidate: a leader's message ends the
 * candidacy.
 */
export function stepCandidate(raft: RaftState, message: Message): void {
  switch (message.kind) {
    case "append":
    case "heartbeat":
    case "snapshot":
      becomeFollower(raft, message.term, message.from);
      handleFromLeader(raft, message);
      return;
    default:
      return;
  }
}
