/** Planted bugs of elections: votes, terms, loyalty. */
import { byExplorer, byGolden, byWalk, edit, type Mutation } from "./mutation.js";

export const elections: readonly Mutation[] = [
  {
    name: "a vote is answered before it is written",
    pitfall: "P-003",
    edits: [
      edit(
        "src/raft/state/state.ts",
        ' || kind === "voteAnswer" ||',
        ' || kind === "voteAnswer" && this.vote === this.id ||',
      ),
    ],
    catcher: byExplorer("3 nodes, slow disks, crashes"),
  },
  {
    name: "a vote alone is no reason to write the hard state",
    pitfall: "P-003",
    edits: [
      edit(
        "src/raft/effects.ts",
        "raft.term !== handed.term || raft.vote !== handed.vote ||",
        "raft.term !== handed.term ||",
      ),
    ],
    catcher: byWalk({ founders: 3 }),
  },
  {
    name: "the vote is forgotten whenever a leader is followed or a candidacy lost",
    pitfall: "P-003",
    edits: [
      edit(
        "src/raft/roles/roles.ts",
        "    raft.term = term;\n    raft.vote = noNode;\n  }",
        "    raft.term = term;\n  }\n  raft.vote = noNode;",
      ),
    ],
    catcher: byWalk({ founders: 5, spares: 0 }),
  },
  {
    name: "the term of a denied vote is not taken over",
    pitfall: "P-001",
    edits: [
      edit(
        "src/raft/roles/step.ts",
        "  const leads = kind",
        '  if (kind === "vote" && !raft.log.isUpToDate(message.logTerm, message.index)) {\n    raft.post("voteAnswer", message.from, message.term).reject = true;\n    return false;\n  }\n  const leads = kind',
      ),
    ],
    catcher: byExplorer("3 nodes, elections"),
  },
  {
    name: "acknowledgements of an older term are counted",
    pitfall: "P-002",
    edits: [
      edit(
        "src/raft/roles/step.ts",
        "} else if (term < raft.term && term !== 0) {",
        '} else if (term < raft.term && term !== 0 && kind !== "appendAnswer") {',
      ),
    ],
    catcher: byExplorer("3 nodes, a late answer"),
  },
  {
    name: "votes of an older term are counted",
    pitfall: "P-002",
    edits: [
      edit(
        "src/raft/roles/step.ts",
        "} else if (term < raft.term && term !== 0) {",
        '} else if (term < raft.term && term !== 0 && kind !== "voteAnswer") {',
      ),
    ],
    catcher: byExplorer("3 nodes, elections"),
  },
  {
    name: "a log is fresh if it is long",
    pitfall: "P-004",
    edits: [
      edit(
        "src/raft/state/log.ts",
        "return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);",
        "return lastIndex >= this.lastIndex;",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0 }),
  },
  {
    name: "a pre-vote moves the voter to its term",
    pitfall: "P-005",
    edits: [
      edit(
        "src/raft/roles/step.ts",
        'kind === "preVote" || (kind === "preVoteAnswer" && !message.reject)',
        'kind === "preVoteAnswer" && !message.reject',
      ),
    ],
    catcher: byExplorer("3 nodes, pre-vote and check-quorum"),
  },
  {
    name: "a voter that hears its leader votes for others",
    pitfall: "P-005",
    edits: [
      edit(
        "src/raft/roles/step.ts",
        "return checkQuorum && raft.leader",
        "return false && raft.leader",
      ),
    ],
    catcher: byGolden("members/removed_nodes.txt"),
  },
  {
    name: "campaign while a committed membership change is unapplied",
    pitfall: "P-084",
    edits: [
      edit(
        "src/raft/roles/election.ts",
        "  if (raft.log.changes.hasWithin(raft.log.applied, raft.log.committed)) return;\n",
        "",
      ),
    ],
    catcher: byGolden("members/change_in_tail_across_restart.txt"),
  },
  {
    name: "the campaign goes on over a change that a voter knew to be committed",
    pitfall: "P-084",
    edits: [
      edit(
        "src/raft/roles/election.ts",
        "  return log.changes.hasWithin(log.applied, log.committed);\n}",
        "  return false;\n}",
      ),
    ],
    catcher: { by: "check", check: "learnsOfAChangeByVotes" },
  },
  {
    name: "what a voter with another log has committed counts here",
    pitfall: "P-084",
    edits: [
      edit(
        "src/raft/roles/election.ts",
        "  if (!log.matches(commit, logTerm)) return false;\n",
        "",
      ),
    ],
    catcher: byWalk({ founders: 3 }),
  },
];
