/**
 * What a leader does with answers, reports and orders of its own term, and with the passing of
 * time.
 *
 * Invariants:
 * 1. Answers count only from members; match rises only by accepted appends of this term.
 * 2. When the commit index moves, everybody whose flow allows hears of it: at once where
 *    `announceCommits` or a membership change wants it, and the first time in a leadership (the
 *    leader before has callers who wait for it), else with the next entries or heartbeat, or when
 *    the host asks for it (`announceCommit`).
 * 3. While leadership is being handed over nothing is proposed; that ends after one election
 *    timeout at the latest.
 * 4. With check-quorum, a leader that no majority answered for an election timeout steps down.
 * 5. A peer that has nothing which entries could follow gets a snapshot, one at a time; it is not
 *    probed down to the beginning of the log.
 */
import { isVoter } from "../state/membership.js";
import type { Progress } from "../state/progress.js";
import { leaveJointIfDue } from "./proposals.js";
import { answerConfirmed, regularHeartbeat, readAtLeader, releaseWaiting } from "./reads.js";
import {
  broadcastAppend,
  maybeCommit,
  sendAppend,
  sendSnapshot,
  sendTimeoutNow,
} from "./replication.js";
import { becomeFollower } from "./roles.js";
import type { RaftState } from "../state/state.js";
import { needsSnapshot, noNode, type Message, type NodeId } from "../state/types.js";

/**
 * Without anything to make a snapshot of, the next try waits for the answer to a heartbeat. A match
 * says that the refusal was sent before a snapshot arrived.
 */
function handleNeed(raft: RaftState, peer: Progress): void {
  if (peer.state === "snapshot" || peer.match > 0) return;
  peer.becomeProbe();
  if (!sendSnapshot(raft, peer)) peer.flowPaused = true;
}

function handleRefusal(raft: RaftState, peer: Progress, message: Message): void {
  if (message.context === needsSnapshot) {
    handleNeed(raft, peer);
    return;
  }
  const { terms } = raft.log;
  const hint =
    message.logTerm > 0
      ? terms.lastNotAbove(message.rejectHint, message.logTerm)
      : message.rejectHint;
  if (!peer.refuse(message.index, hint)) return;
  if (peer.state === "replicate") peer.becomeProbe();
  sendAppend(raft, peer, true);
}

/** Moves the peer on to the next state of its flow after an acknowledgement. */
function advanceFlow(raft: RaftState, peer: Progress, index: number): void {
  if (peer.state === "probe") {
    peer.becomeReplicate();
  } else if (peer.state === "replicate") {
    peer.inflight.freeUpTo(index);
  } else if (peer.match >= raft.log.floorIndex) {
    // Whatever snapshot was sent, the peer has come to where the log can continue.
    peer.becomeProbe();
    peer.becomeReplicate();
  }
}

/** Whether everybody hears at once of a commit index that moved. */
function announces(raft: RaftState): boolean {
  return raft.config.announceCommits || raft.pendingChangeIndex > raft.log.applied;
}

function handleAcknowledgement(raft: RaftState, peer: Progress, message: Message): void {
  const news = peer.acknowledge(message.index);
  if (!news && !(peer.state === "probe" && peer.match === message.index)) return;
  advanceFlow(raft, peer, message.index);
  const isFirst = !raft.hasCommittedInTerm;
  if (maybeCommit(raft)) {
    releaseWaiting(raft);
    if (isFirst || announces(raft)) broadcastAppend(raft);
  } else if (peer.id !== raft.id && announces(raft) && peer.canUseCommit(raft.log.committed)) {
    sendAppend(raft, peer, true);
  }
  if (peer.id === raft.id) return;
  while (sendAppend(raft, peer, false)) {
    // The acknowledgement made room; messages limited in size follow each other until it is used
    // up.
  }
  if (peer.id === raft.transferTo && peer.match === raft.log.lastIndex) {
    sendTimeoutNow(raft, peer.id);
  }
}

function handleHeartbeatAnswer(raft: RaftState, peer: Progress, message: Message): void {
  peer.active = true;
  peer.flowPaused = false;
  if (peer.match < raft.log.lastIndex || peer.state === "probe") sendAppend(raft, peer, true);
  if (message.context > peer.readRound) {
    peer.readRound = message.context;
    answerConfirmed(raft);
  }
}

/** A transfer is over without a new leader; it may have kept the group in a joint configuration. */
function giveUpTransfer(raft: RaftState): void {
  raft.transferTo = noNode;
  raft.transferToken = 0;
  if (raft.config.cautiousTransfer) leaveJointIfDue(raft);
}

function handOver(raft: RaftState, peer: Progress, token: number): void {
  if (raft.transferTo === peer.id) return;
  if (peer.id === raft.id) {
    giveUpTransfer(raft);
    return;
  }
  raft.electionElapsed = 0;
  raft.transferTo = peer.id;
  raft.transferToken = token;
  if (peer.match === raft.log.lastIndex) sendTimeoutNow(raft, peer.id);
  else sendAppend(raft, peer, true);
}

function handleTransfer(raft: RaftState, peer: Progress, token: number): void {
  if (!raft.config.cautiousTransfer && isVoter(raft.tracker.membership, peer.id)) {
    handOver(raft, peer, token);
    return;
  }
  // Learners and voters of the old half alone are no heirs: the one may not lead, the other is
  // about to leave.
  if (!raft.tracker.membership.voters.includes(peer.id)) return;
  handOver(raft, peer, token);
}

/** A message of the leader's own term (or of none). Votes and proposals are dealt with before. */
export function stepLeader(raft: RaftState, message: Message): void {
  if (message.kind === "readIndex") {
    readAtLeader(raft, { from: message.from, context: message.context });
    return;
  }
  const peer = raft.tracker.find(message.from);
  if (peer === undefined) return;
  switch (message.kind) {
    case "appendAnswer":
      peer.active = true;
      if (message.reject) handleRefusal(raft, peer, message);
      else handleAcknowledgement(raft, peer, message);
      return;
    case "heartbeatAnswer":
      handleHeartbeatAnswer(raft, peer, message);
      return;
    case "transferLeader":
      handleTransfer(raft, peer, message.context);
      return;
    default:
      return;
  }
}

/** The last message to `id` may be lost: what was sent ahead is sent again, carefully. */
export function reportUnreachable(raft: RaftState, id: NodeId): void {
  const peer = raft.role === "leader" ? raft.tracker.find(id) : undefined;
  if (peer !== undefined && peer.state === "replicate") peer.becomeProbe();
}

/**
 * How sending a snapshot ended. Either way the next append waits for an answer or a heartbeat's
 * answer.
 */
export function reportSnapshot(raft: RaftState, id: NodeId, ok: boolean): void {
  const peer = raft.role === "leader" ? raft.tracker.find(id) : undefined;
  if (peer === undefined || peer.state !== "snapshot") return;
  if (!ok) peer.pendingSnapshot = 0;
  peer.becomeProbe();
  peer.flowPaused = true;
}

/** Once per election timeout: does a majority still answer? */
function checkQuorum(raft: RaftState): void {
  if (!raft.tracker.quorumActive()) becomeFollower(raft, raft.term, noNode);
  for (const peer of raft.tracker.peers) {
    if (peer.id !== raft.id) peer.active = false;
  }
}

/** One tick on a leader. */
export function tickLeader(raft: RaftState): void {
  raft.heartbeatElapsed++;
  raft.electionElapsed++;
  if (raft.electionElapsed >= raft.config.electionTicks) {
    raft.electionElapsed = 0;
    if (raft.config.checkQuorum) checkQuorum(raft);
    if (raft.role === "leader" && raft.transferTo !== noNode) {
      giveUpTransfer(raft);
    }
  }
  if (raft.role !== "leader" || raft.heartbeatElapsed < raft.config.heartbeatTicks) return;
  raft.heartbeatElapsed = 0;
  regularHeartbeat(raft);
}
