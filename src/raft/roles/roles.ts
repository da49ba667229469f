/**
 * Changes of role: follower, pre-candidate, candidate, leader.
 *
 * Invariants:
 * 1. Whatever belongs to a leadership (progress, reads, transfer) ends with `restart`.
 * 2. A pre-candidate keeps its term and its vote.
 * 3. A new leader assumes that its whole log may hold an unapplied membership change, and appends
 *    an empty entry at once.
 * 4. It inherits by an order of its predecessor only if its log ends where that one's did: then
 *    nobody committed anything after the order was given.
 */
import { assert, present } from "../../base/assert.js";
import { appendEmpty } from "./replication.js";
import type { RaftState } from "../state/state.js";
import { noNode, type NodeId, type Term } from "../state/types.js";

/** Begins `term`, or begins anew in the same one. */
function restart(raft: RaftState, term: Term): void {
  assert(term >= raft.term, "the term never falls");
  if (raft.term !== term) {
    raft.term = term;
    raft.vote = noNode;
  }
  raft.leader = noNode;
  raft.electionElapsed = 0;
  raft.heartbeatElapsed = 0;
  raft.drawElectionTimeout();
  raft.transferTo = noNode;
  raft.transferToken = 0;
  raft.tracker.clearVotes();
  for (const peer of raft.tracker.peers) {
    // The end of the own log, written or not: what is older than this term is never committed by
    // counting, and what is of this term comes behind it and counts once it is written.
    peer.restart(raft.log.lastIndex + 1, peer.id === raft.id ? raft.log.lastIndex : 0);
  }
  raft.pendingChangeIndex = 0;
  raft.leaseStartedTick = -Infinity;
  if (raft.reads.count > 0) raft.droppedReads.push(...raft.reads.clear(raft.id));
  else raft.reads.rounds.length = 0;
}

export function becomeFollower(raft: RaftState, term: Term, leader: NodeId): void {
  restart(raft, term);
  raft.role = "follower";
  raft.leader = leader;
}

export function becomePreCandidate(raft: RaftState): void {
  assert(raft.role !== "leader", "a leader does not campaign");
  raft.tracker.clearVotes();
  raft.leader = noNode;
  raft.role = "preCandidate";
}

export function becomeCandidate(raft: RaftState): void {
  assert(raft.role !== "leader", "a leader does not campaign");
  restart(raft, raft.term + 1);
  raft.vote = raft.id;
  raft.role = "candidate";
}

export function becomeLeader(raft: RaftState): void {
  assert(raft.role === "candidate", "only a candidate becomes leader");
  restart(raft, raft.term);
  raft.role = "leader";
  raft.leader = raft.id;
  const own = present(raft.tracker.find(raft.id), "a new leader is a member");
  own.becomeReplicate();
  own.active = true;
  raft.pendingChangeIndex = raft.log.lastIndex;
  raft.inheritedTerm = raft.log.lastTerm;
  const { ordered } = raft;
  const isHeir = ordered?.term === raft.term && ordered.index === raft.log.lastIndex;
  raft.inheritedToken = isHeir ? ordered.token : 0;
  appendEmpty(raft);
}
