/**
 * One message changes one core: the term rule first, for every kind alike, then the role decides.
 *
 * Invariants:
 * 1. A message of a higher term makes this node a follower of that term before anything else is
 *    looked at; pre-vote requests and granted pre-votes, which speak of a term that may never be,
 *    are the exception.
 * 2. A message of a lower term has no effect on this core; where silence would leave its sender
 *    stuck it is answered.
 * 3. With check-quorum, a node that hears its leader does not even listen to (pre-)candidates,
 *    unless the leader itself ordered the campaign.
 * 4. Answers from nodes outside the configuration are refused.
 */
import { unlimited } from "../state/config.js";
import { answerVote, campaignNow, countVote, transferContext } from "./election.js";
import { stepCandidate, stepFollower } from "./follower.js";
import { stepLeader, tickLeader } from "./leader.js";
import { propose } from "./proposals.js";
import { becomeFollower } from "./roles.js";
import type { RaftState } from "../state/state.js";
import { noNode, type Message, type MessageKind, type StepResult } from "../state/types.js";

const done: StepResult = { ok: true, proposed: null };
const peerNotFound: StepResult = { ok: false, reason: "peer-not-found" };
const proposalDropped: StepResult = { ok: false, reason: "proposal-dropped" };

function isAnswer(kind: MessageKind): boolean {
  switch (kind) {
    case "appendAnswer":
    case "voteAnswer":
    case "preVoteAnswer":
    case "heartbeatAnswer":
    case "readIndexAnswer":
      return true;
    default:
      return false;
  }
}

/** Whether this node stands by a leader that it heard from within the shortest election timeout. */
function isLoyal(raft: RaftState): boolean {
  const { checkQuorum, electionTicks } = raft.config;
  return checkQuorum && raft.leader !== noNode && raft.electionElapsed < electionTicks;
}

/** A message of a higher term. Returns whether to go on with it. */
function meetHigherTerm(raft: RaftState, message: Message): boolean {
  const { kind } = message;
  if (kind === "vote" || kind === "preVote") {
    if (message.context !== transferContext && isLoyal(raft)) return false;
  }
  if (kind === "preVote" || (kind === "preVoteAnswer" && !message.reject)) return true;
  const leads = kind === "append" || kind === "heartbeat" || kind === "snapshot";
  becomeFollower(raft, message.term, leads ? message.from : noNode);
  return true;
}

/**
 * A message of a lower term. An old leader is told the term, with pre-vote or check-quorum, since
 * nothing else would make it step down; a pre-candidate is told that its log is old news.
 */
function meetLowerTerm(raft: RaftState, message: Message): void {
  const { kind } = message;
  if (kind === "heartbeat" || kind === "append") {
    if (raft.config.checkQuorum || raft.config.preVote) raft.post("appendAnswer", message.from);
  } else if (kind === "preVote") {
    raft.post("preVoteAnswer", message.from).reject = true;
  }
}

/** Takes in one message. */
export function step(raft: RaftState, message: Message): StepResult {
  const { kind, term } = message;
  if (isAnswer(kind) && raft.tracker.find(message.from) === undefined) return peerNotFound;
  if (term > raft.term) {
    if (!meetHigherTerm(raft, message)) return done;
  } else if (term < raft.term && term !== 0) {
    meetLowerTerm(raft, message);
    return done;
  }
  switch (kind) {
    case "vote":
    case "preVote":
      answerVote(raft, message);
      return done;
    case "propose":
      return stepProposal(raft, message);
    default:
      stepByRole(raft, message);
      return done;
  }
}

function stepProposal(raft: RaftState, message: Message): StepResult {
  if (message.proposal === null) return done;
  const result = propose(raft, message.proposal, message.from);
  return result.ok ? { ok: true, proposed: result } : proposalDropped;
}

function stepByRole(raft: RaftState, message: Message): void {
  switch (raft.role) {
    case "leader":
      stepLeader(raft, message);
      return;
    case "follower":
      stepFollower(raft, message);
      return;
    case "preCandidate":
    case "candidate": {
      const own = raft.role === "candidate" ? "voteAnswer" : "preVoteAnswer";
      if (message.kind === own) countVote(raft, message);
      else stepCandidate(raft, message);
      return;
    }
  }
}

/** Lets one tick pass. */
function tick(raft: RaftState): void {
  raft.ticksPassed++;
  if (raft.role === "leader") {
    tickLeader(raft);
    return;
  }
  raft.electionElapsed++;
  if (raft.electionElapsed >= raft.electionTimeout && raft.promotable) {
    raft.electionElapsed = 0;
    campaignNow(raft, false);
  }
}

/** How many ticks must pass until one does anything but count. At least 1. */
export function ticksUntilDue(raft: RaftState): number {
  const { electionTicks, heartbeatTicks } = raft.config;
  if (raft.role === "leader") {
    const heartbeat = heartbeatTicks - raft.heartbeatElapsed;
    return Math.max(1, Math.min(heartbeat, electionTicks - raft.electionElapsed));
  }
  if (!raft.promotable) return unlimited;
  return Math.max(1, raft.electionTimeout - raft.electionElapsed);
}

/** Lets `count` ticks pass; those that only count are added up at once. */
export function passTicks(raft: RaftState, count: number): void {
  const elapsed = raft.electionElapsed + count;
  if (raft.role !== "leader" && elapsed < raft.electionTimeout) {
    raft.ticksPassed += count;
    raft.electionElapsed = elapsed;
    return;
  }
  let left = count;
  while (left > 0) {
    const idle = Math.min(left, ticksUntilDue(raft) - 1);
    raft.ticksPassed += idle;
    raft.electionElapsed += idle;
    if (raft.role === "leader") raft.heartbeatElapsed += idle;
    left -= idle;
    if (left > 0) {
      tick(raft);
      left--;
    }
  }
}
