/**
 * Majorities, plain and joint: the only place that decides whether enough voters agree.
 *
 * Algorithm: joint consensus of the Raft dissertation, section 4.3;
 * both halves must agree.
 * Invariants:
 * 1. Only voter sets are visible here, so that a learner or a removed member can never decide
 * anything. 2. An empty set agrees with everything: its index is Infinity, its vote is won. It
 * matters only as a missing half. 3. Nothing is allocated.
 */
import type { Membership, NodeId } from "./types.js";

export type VoteResult = "won" | "lost" | "pending";

/** True for a vote given, false for one refused, undefined for one not heard of. */
export type BallotOf = (id: NodeId) => boolean | undefined;

/** How many of `count` voters are a majority. */
export function majority(count: number): number {
  return Math.floor(count / 2) + 1;
}

/** The largest value that a majority of `voters` has reached. Infinity for no voters. */
export function majorityIndex(voters: readonly NodeId[], reached: (id: NodeId) => number): number {
  const needed = majority(voters.length);
  let best = voters.length === 0 ? Infinity : 0;
  for (const candidate of voters) {
    const value = reached(candidate);
    if (value <= best) continue;
    let count = 0;
    for (const voter of voters) {
      if (reached(voter) >= value) count++;
    }
    if (count >= needed) best = value;
  }
  return best;
}

/** The largest value that a majority of each half has reached; `reached` is at least 0. */
export function jointIndex(membership: Membership, reached: (id: NodeId) => number): number {
  const incoming = majorityIndex(membership.voters, reached);
  if (membership.votersOutgoing.length === 0) return incoming;
  return Math.min(incoming, majorityIndex(membership.votersOutgoing, reached));
}

/** The state of a vote among `voters`: lost as soon as no majority is possible any more. */
export function majorityVote(voters: readonly NodeId[], ballotOf: BallotOf): VoteResult {
  if (voters.length === 0) return "won";
  let granted = 0;
  let missing = 0;
  for (const voter of voters) {
    const ballot = ballotOf(voter);
    if (ballot === true) granted++;
    else if (ballot === undefined) missing++;
  }
  const needed = majority(voters.length);
  if (granted >= needed) return "won";
  return granted + missing >= needed ? "pending" : "lost";
}

/** Won if both halves are won, lost if either is lost. */
export function jointVote(membership: Membership, ballotOf: BallotOf): VoteResult {
  const incoming = majorityVote(membership.voters, ballotOf);
  if (membership.votersOutgoing.length === 0) return incoming;
  const outgoing = majorityVote(membership.votersOutgoing, ballotOf);
  if (incoming === outgoing) return incoming;
  return incoming === "lost" || outgoing === "lost" ? "lost" : "pending";
}
