/**
 * Linearizable reads without a log entry: the leader names an index that is fresh enough once it
 * has proved that it leads.
 *
 * Algorithm: read index, Raft dissertation section 6.4.
 * Invariants:
 * 1. No index is named before an entry of the leader's own term is committed, in a group of one
 *    voter too.
 * 2. A round counts only confirmations by voters that echo its id or a later one; the leader itself
 *    only if it votes.
 * 3. A lease begins when the round that confirms it began, ends before the shortest election
 *    timeout, and is given up as soon as leadership is being handed over.
 * 4. What waits is bounded by maxPendingReads.
 */
import type { ReadRequest } from "../state/readqueue.js";
import { broadcastHeartbeat } from "./replication.js";
import type { RaftState } from "../state/state.js";
import { noNode, type LogIndex, type Message, type ReadRequestResult } from "../state/types.js";

function answer(raft: RaftState, request: ReadRequest, index: LogIndex): void {
  if (request.from === raft.id) {
    raft.readStates.push({ context: request.context, index });
    return;
  }
  const draft = raft.post("readIndexAnswer", request.from);
  draft.index = index;
  draft.context = request.context;
}

/**
 * Whether this leader's lease certainly has not run out anywhere. Rounding costs one tick, the
 * begun one another.
 */
function hasLease(raft: RaftState): boolean {
  if (raft.config.readMode !== "leaseBased" || raft.transferTo !== noNode) return false;
  return raft.ticksPassed - raft.leaseStartedTick < raft.config.electionTicks - 1;
}

/** Starts a round for `requests`; with none, it only renews the lease. */
function beginRound(raft: RaftState, requests: readonly ReadRequest[]): void {
  const round = raft.reads.begin(raft.log.committed, raft.ticksPassed, requests);
  const own = raft.tracker.find(raft.id);
  if (own !== undefined) own.readRound = round.id;
  broadcastHeartbeat(raft, round.id);
}

function lead(raft: RaftState, request: ReadRequest): void {
  if (raft.tracker.isOnlyVoter(raft.id) || hasLease(raft)) {
    answer(raft, request, raft.log.committed);
    return;
  }
  raft.reads.count++;
  beginRound(raft, [request]);
}

/** A read arrives at the leader. */
export function readAtLeader(raft: RaftState, request: ReadRequest): ReadRequestResult {
  if (raft.reads.count >= raft.config.maxPendingReads) return "too-many";
  if (raft.hasCommittedInTerm) {
    lead(raft, request);
  } else {
    raft.reads.count++;
    raft.reads.waiting.push(request);
  }
  return "accepted";
}

/** A read is asked for on this node itself. */
export function requestRead(raft: RaftState, context: number): ReadRequestResult {
  if (raft.role === "leader") return readAtLeader(raft, { from: raft.id, context });
  if (raft.leader === noNode) return "no-leader";
  raft.post("readIndex", raft.leader, 0).context = context;
  return "forwarded";
}

/** The first entry of the term is committed: whoever waited for that shares one round. */
export function releaseWaiting(raft: RaftState): void {
  if (raft.reads.waiting.length === 0 || !raft.hasCommittedInTerm) return;
  const waiting = raft.reads.takeWaiting();
  if (raft.tracker.isOnlyVoter(raft.id) || hasLease(raft)) {
    raft.reads.count -= waiting.length;
    for (const request of waiting) answer(raft, request, raft.log.committed);
    return;
  }
  beginRound(raft, waiting);
}

/**
 * The regular heartbeat: it repeats the latest round, so that one lost echo does not hold the reads
 * up.
 */
export function regularHeartbeat(raft: RaftState): void {
  const leases = raft.config.readMode === "leaseBased" && !raft.tracker.isOnlyVoter(raft.id);
  if (leases) beginRound(raft, []);
  else broadcastHeartbeat(raft, raft.reads.latestRound);
}

/** Answers every round that enough voters have confirmed by now. */
export function answerConfirmed(raft: RaftState): void {
  const { reads, tracker } = raft;
  if (reads.rounds.length === 0) return;
  for (const round of reads.takeConfirmed(tracker.confirmedRound())) {
    raft.leaseStartedTick = Math.max(raft.leaseStartedTick, round.startedTick);
    for (const request of round.requests) answer(raft, request, round.index);
  }
}

/** The leader's answer to a read that was asked for here. */
export function takeAnswer(raft: RaftState, message: Message): void {
  raft.readStates.push({ context: message.context, index: message.index });
}
