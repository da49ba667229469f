/**
 * Elections: campaigning, voting, counting votes.
 *
 * Algorithm: Raft, section 5.2 and 5.4.1; pre-vote,
 * dissertation section 9.6.
 * Invariants:
 * 1. One vote per term; it is in the hard state before the answer may leave (the answer is
 *    deferred).
 * 2. A vote goes to a log that is at least as good: last term first, then last index.
 * 3. Granting a pre-vote changes nothing at all.
 * 4. Nobody campaigns who does not vote, waits for a snapshot, or has a committed membership change
 *    unapplied.
 * 5. The candidate's own vote counts only when it comes back as a message, hence once it is
 *    written.
 * 6. Who awaits its first snapshot grants nothing: its log says nothing of what the group
 *    committed.
 * 7. What a voter knows to be committed is committed here too where the logs agree at that
 *    position; with a membership change among it the campaign ends, until that is applied.
 */
import { allVoters } from "../state/membership.js";
import { broadcastAppend } from "./replication.js";
import { becomeCandidate, becomeFollower, becomeLeader, becomePreCandidate } from "./roles.js";
import type { RaftState } from "../state/state.js";
import { noNode, type Message } from "../state/types.js";

/** A campaign ordered by the old leader, which breaks through the voters' loyalty to it. */
export const transferContext = 1;

type Campaign = "preVote" | "vote" | "transfer";

/** Starts an election now if this node may; a pre-vote round first if the group uses them. */
export function campaignNow(raft: RaftState, transfer: boolean): void {
  if (raft.role === "leader" || !raft.promotable) return;
  if (raft.log.changes.hasWithin(raft.log.applied, raft.log.committed)) return;
  if (transfer) campaign(raft, "transfer");
  else campaign(raft, raft.config.preVote ? "preVote" : "vote");
}

function campaign(raft: RaftState, kind: Campaign): void {
  const asking = kind === "preVote";
  if (asking) becomePreCandidate(raft);
  else becomeCandidate(raft);
  const term = asking ? raft.term + 1 : raft.term;
  for (const voter of allVoters(raft.tracker.membership)) {
    if (voter === raft.id) {
      raft.post(asking ? "preVoteAnswer" : "voteAnswer", raft.id, term);
      continue;
    }
    const draft = raft.post(asking ? "preVote" : "vote", voter, term);
    draft.index = raft.log.lastIndex;
    draft.logTerm = raft.log.lastTerm;
    draft.context = kind === "transfer" ? transferContext : 0;
  }
}

/** Answers a (pre-)vote request of this term, or a pre-vote request of a later one. */
export function answerVote(raft: RaftState, message: Message): void {
  const asking = message.kind === "preVote";
  const free = raft.vote === noNode && raft.leader === noNode;
  const may = raft.vote === message.from || free || (asking && message.term > raft.term);
  const grant = may && !raft.awaitsSnapshot && raft.log.isUpToDate(message.logTerm, message.index);
  const kind = asking ? "preVoteAnswer" : "voteAnswer";
  const draft = raft.post(kind, message.from, grant ? message.term : raft.term);
  draft.reject = !grant;
  if (raft.config.votesTellCommit) {
    draft.commit = raft.log.committed;
    draft.logTerm = raft.log.terms.termOf(draft.commit) ?? 0;
  }
  if (grant && !asking) {
    raft.electionElapsed = 0;
    raft.vote = message.from;
  }
}

/** Whether the voter knew of a committed membership change that is not applied here. */
function learnCommit({ config, log }: RaftState, { commit, logTerm }: Message): boolean {
  if (!config.votesTellCommit || commit <= log.committed) return false;
  if (!log.matches(commit, logTerm)) return false;
  log.commitTo(commit);
  return log.changes.hasWithin(log.applied, log.committed);
}

/** Counts an answer to this node's own (pre-)election. */
export function countVote(raft: RaftState, message: Message): void {
  if (learnCommit(raft, message)) {
    becomeFollower(raft, raft.term, noNode);
    return;
  }
  raft.tracker.recordVote(message.from, !message.reject);
  switch (raft.tracker.voteResult()) {
    case "won":
      if (raft.role === "preCandidate") {
        campaign(raft, "vote");
      } else {
        becomeLeader(raft);
        broadcastAppend(raft);
      }
      return;
    case "lost":
      becomeFollower(raft, raft.term, noNode);
      return;
    case "pending":
      return;
  }
}
