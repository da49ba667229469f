/**
 * The invariants that must hold after every event, in one place, for tests and for a watchful host.
 *
 * Invariants: 1. Checking changes nothing. 2. A broken invariant throws AssertionError.
 */
import { assert } from "../base/assert.js";
import { membershipFault } from "./state/membership.js";
import type { RaftState } from "./state/state.js";
import { noNode } from "./state/types.js";

function assertRole(raft: RaftState): void {
  const { role, leader, id, vote } = raft;
  assert(role !== "leader" || leader === id, "a leader knows that it leads");
  assert(role === "leader" || leader !== id, "nobody else believes that of itself");
  assert(
    role !== "candidate" || (vote === id && leader === noNode),
    "a candidate votes for itself",
  );
  assert(role !== "preCandidate" || leader === noNode, "a pre-candidate has no leader");
  assert(role === "leader" || raft.transferTo === noNode, "only a leader hands over leadership");
  assert(role === "leader" || raft.reads.count === 0, "only a leader has reads waiting");
  const begins = role === "follower" && raft.log.lastIndex === 0;
  assert(!raft.awaitsSnapshot || begins, "who awaits a snapshot follows, and has no log");
}

function assertProgress(raft: RaftState): void {
  const { log, tracker } = raft;
  assert(membershipFault(tracker.membership) === null, "the membership is well-formed");
  for (let at = 0; at < tracker.peers.length; at++) {
    const peer = tracker.peers[at];
    if (peer === undefined) continue;
    assert(at === 0 || peer.id > (tracker.peers[at - 1]?.id ?? 0), "peers ascend");
    if (raft.role !== "leader") continue;
    assert(peer.match < peer.next, "next is beyond match");
    assert(peer.match <= log.lastIndex, "nobody matches beyond the leader's log");
    assert(
      peer.state === "snapshot" || peer.pendingSnapshot === 0,
      "a snapshot is pending in its state",
    );
  }
}

/** Throws AssertionError if a numbered invariant of this folder is broken. */
export function assertState(raft: RaftState): void {
  raft.log.assertLog();
  assertRole(raft);
  assertProgress(raft);
  const handed = raft.handedHardState;
  assert(raft.term >= handed.term, "the term never falls");
  assert(
    raft.term > handed.term || handed.vote === noNode || raft.vote === handed.vote,
    "there is one vote per term",
  );
  assert(raft.log.committed >= handed.commit, "the commit index never falls");
  // The floor may be of a later term: a group can be founded on a snapshot that has one.
  const { lastIndex, floorIndex, lastTerm } = raft.log;
  assert(lastIndex === floorIndex || lastTerm <= raft.term, "no entry is of a later term");
}
