/**
 * The planted bugs: each is a bug that some Raft has had, as exact replacements in the compiled core,
 * with what must catch it. The table in README.md is made from this list.
 *
 * Invariants: 1. Every `find` stands exactly once in its file. 2. A mutation is one idea; where an
 * assertion of the core would stop it at once, that is part of what is taken out, so that the outside
 * judge is put to the test.
 */
import type { Bias } from "../raft/explorer/swarm.js";
import type { checks } from "./checks.js";

export interface Edit {
  /** A file of dist/src/raft, without its ending. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export type Catcher =
  | { readonly by: "walk"; readonly bias: Bias; readonly maxSteps: number }
  | { readonly by: "explorer"; readonly plan: string; readonly maxStates: number }
  | { readonly by: "golden"; readonly scenario: string }
  | { readonly by: "check"; readonly check: keyof typeof checks };

export interface Mutation {
  readonly name: string;
  readonly pitfall: string;
  readonly edits: readonly Edit[];
  readonly catcher: Catcher;
}

function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}

function byWalk(bias: Bias = {}, maxSteps = 600_000): Catcher {
  return { by: "walk", bias, maxSteps };
}

function byExplorer(plan: string, maxStates = 60_000): Catcher {
  return { by: "explorer", plan, maxStates };
}

function byGolden(scenario: string): Catcher {
  return { by: "golden", scenario };
}

const membership: Bias = { founders: 3, spares: 2, only: ["change", "crash", "cut", "drop"] };
const snapshots: Bias = { founders: 3, spares: 1, only: ["compact", "cut", "expire", "duplicate"] };
const leases: Bias = {
  founders: 3,
  spares: 0,
  leases: true,
  writesAtOnce: true,
  only: ["transfer"],
  more: [
    ["read", 100],
    ["transfer", 10],
  ],
};

const elections: readonly Mutation[] = [
  {
    name: "a vote is answered before it is written",
    pitfall: "P-003",
    edits: [
      edit(
        "state",
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
        "effects",
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
        "roles",
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
        "step",
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
        "step",
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
        "step",
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
        "log",
        "return lastTerm > this.lastTerm || lastTerm === this.lastTerm && lastIndex >= this.lastIndex;",
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
        "step",
        'if (kind === "preVote" || kind === "preVoteAnswer"',
        'if (kind === "preVoteAnswer"',
      ),
    ],
    catcher: byExplorer("3 nodes, pre-vote and check-quorum"),
  },
  {
    name: "a voter that hears its leader votes for others",
    pitfall: "P-005",
    edits: [edit("step", "return checkQuorum && raft.leader", "return false && raft.leader")],
    catcher: byGolden("removed_nodes.txt"),
  },
  {
    name: "campaign while a committed membership change is unapplied",
    pitfall: "P-084",
    edits: [
      edit(
        "election",
        "  if (raft.log.changes.hasWithin(raft.log.applied, raft.log.committed)) return;\n",
        "",
      ),
    ],
    catcher: byGolden("change_in_tail_across_restart.txt"),
  },
];

const logs: readonly Mutation[] = [
  {
    name: "an entry of an older term is committed by counting",
    pitfall: "P-018",
    edits: [
      edit(
        "replication",
        "if (index <= log.committed || !log.matches(index, raft.term)) return false;",
        "if (index <= log.committed) return false;",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0 }),
  },
  {
    name: "the commit index follows the majority backwards",
    pitfall: "P-019",
    edits: [
      edit(
        "replication",
        "if (index <= log.committed || !log.matches(index, raft.term)) return false;",
        "if (!log.matches(index, raft.term)) return false;",
      ),
      edit(
        "log",
        "  commitTo(index) {\n    if (index <= this.committed) return;",
        "  commitTo(index) {",
      ),
    ],
    catcher: byWalk({ founders: 3 }),
  },
  {
    name: "one half of a joint configuration commits",
    pitfall: "P-019",
    edits: [
      edit(
        "quorum",
        "return Math.min(incoming, majorityIndex(membership.votersOutgoing, reached));",
        "return incoming;",
      ),
    ],
    catcher: byWalk(membership),
  },
  {
    name: "half of an even number is a majority",
    pitfall: "P-019",
    edits: [edit("quorum", "return Math.floor(count / 2) + 1;", "return Math.ceil(count / 2);")],
    catcher: byExplorer("4 nodes, elections"),
  },
  {
    name: "a follower commits its own tail up to the leader's commit index",
    pitfall: "P-020",
    edits: [
      edit(
        "follower",
        "log.commitTo(Math.min(message.commit, verified));",
        "log.commitTo(Math.min(message.commit, log.lastIndex));",
      ),
    ],
    catcher: { by: "check", check: "commitsOnlyWhatWasVerified" },
  },
  {
    name: "a heartbeat carries the commit index uncapped",
    pitfall: "P-020",
    edits: [
      edit(
        "replication",
        "draft.commit = Math.min(peer.match, raft.log.committed);",
        "draft.commit = raft.log.committed;",
      ),
      edit(
        "follower",
        "raft.log.commitTo(message.commit);",
        "raft.log.commitTo(Math.min(message.commit, raft.log.lastIndex));",
      ),
    ],
    catcher: byWalk({ founders: 3 }),
  },
  {
    name: "a stale append cuts a tail that matches",
    pitfall: "P-021",
    edits: [
      edit(
        "log",
        "    const conflict = this.terms.firstConflict(span.termRuns, span.last);\n    if (conflict === 0) return;",
        "    const conflict = Math.max(span.first, this.committed + 1);\n    if (conflict > span.last) return;",
      ),
    ],
    catcher: byWalk({ founders: 3 }),
  },
  {
    name: "a stale append cuts committed entries",
    pitfall: "P-021",
    edits: [
      edit(
        "follower",
        "if (message.index < log.committed) {",
        "if (message.index < log.floorIndex) {",
      ),
      edit(
        "log",
        '    const conflict = this.terms.firstConflict(span.termRuns, span.last);\n    if (conflict === 0) return;\n    assert(conflict > this.committed, "a leader never contradicts a committed entry");',
        "    const conflict = span.first;",
      ),
      edit("log", '    assert(last >= this.committed, "committed entries are never cut");\n', ""),
    ],
    catcher: byWalk({ founders: 3 }),
  },
  {
    name: "the leader counts itself before its write",
    pitfall: "P-022",
    edits: [
      edit(
        "replication",
        '  raft.post("appendAnswer", raft.id).index = raft.log.lastIndex;\n',
        '  raft.post("appendAnswer", raft.id).index = raft.log.lastIndex;\n  raft.tracker.find(raft.id)?.acknowledge(raft.log.lastIndex);\n',
      ),
    ],
    catcher: byExplorer("3 nodes, slow disks, crashes"),
  },
  {
    name: "a follower acknowledges before its write",
    pitfall: "P-022",
    edits: [
      edit(
        "state",
        "if (this.isDeferred(message.kind)) {",
        'if (this.isDeferred(message.kind) && (message.to === this.id || message.kind !== "appendAnswer")) {',
      ),
    ],
    catcher: byExplorer("3 nodes, slow disks, crashes"),
  },
  {
    name: "a finished write of an older term is accepted where (index, term) came back",
    pitfall: "P-023",
    edits: [
      edit(
        "core",
        "if (receipt.index > 0 && receipt.term === raft.term) {",
        "if (receipt.index > 0) {",
      ),
    ],
    catcher: byGolden("aba_write_race.txt"),
  },
  {
    name: "a finished write vouches for whatever stands at its index now",
    pitfall: "P-023",
    edits: [
      edit(
        "core",
        "if (receipt.index > 0 && receipt.term === raft.term) {",
        "if (receipt.index > 0) {",
      ),
      edit("log", "    if (!this.matches(index, term)) return;\n", ""),
    ],
    catcher: byExplorer("3 nodes, an entry rewritten on a slow disk"),
  },
  {
    name: "entries are applied before they are written here",
    pitfall: "P-024",
    edits: [
      edit("log", "return Math.min(this.committed, this.written);", "return this.committed;"),
    ],
    catcher: byWalk({ founders: 3, writesAtOnce: false }),
  },
  {
    name: "an answer to a heartbeat does not reopen a paused probe",
    pitfall: "P-025",
    edits: [
      edit(
        "leader",
        "  peer.active = true;\n  peer.flowPaused = false;\n",
        "  peer.active = true;\n",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0 }),
  },
  {
    name: "a full window is never reopened",
    pitfall: "P-025",
    edits: [edit("leader", "    peer.inflight.freeUpTo(index);\n", "    // The window leaks.\n")],
    catcher: byWalk({ founders: 3, spares: 0 }),
  },
  {
    name: "match is taken from a refusal",
    pitfall: "P-026",
    edits: [
      edit(
        "leader",
        "  if (!peer.refuse(message.index, hint)) return;\n",
        "  peer.acknowledge(Math.min(hint, raft.log.lastIndex));\n  if (!peer.refuse(message.index, hint)) return;\n",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0, only: ["cut", "crash"] }),
  },
  {
    name: "the term at the floor goes with the entries",
    pitfall: "P-027",
    edits: [
      edit(
        "termlog",
        "    this.floorAt = floor;\n    this.floorTermValue = term;",
        "    this.floorAt = floor;\n    this.floorTermValue = term * 0;",
      ),
    ],
    catcher: byWalk(snapshots),
  },
  {
    name: "after a restart applying begins at the floor again",
    pitfall: "P-028",
    edits: [
      edit("log", "    this.applying = appliedIndex;\n", "    this.applying = floorIndex;\n"),
      edit(
        "log",
        '    assert(this.applied <= this.applying && this.applied <= this.committed, "applied is committed");\n',
        "",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0, only: ["crash", "flush"] }),
  },
];

const snapshotsAndReads: readonly Mutation[] = [
  {
    name: "an older snapshot rewinds a follower",
    pitfall: "P-038",
    edits: [
      edit("follower", "if (snapshot.index <= log.committed || !isMember", "if (!isMember"),
      edit(
        "follower",
        "  if (log.matches(snapshot.index, snapshot.term)) {\n",
        "  if (log.matches(snapshot.index, snapshot.term) && snapshot.index > log.committed) {\n",
      ),
      edit(
        "log",
        '    assert(snapshot.index > this.committed, "a snapshot never takes committed entries back");\n',
        "",
      ),
    ],
    catcher: byWalk({
      founders: 3,
      spares: 0,
      only: ["compact", "cut", "expire", "duplicate", "flush"],
      more: [
        ["compact", 30],
        ["duplicate", 60],
      ],
    }),
  },
  {
    name: "a snapshot throws away the entries behind it",
    pitfall: "P-038",
    edits: [
      edit(
        "follower",
        "  if (log.matches(snapshot.index, snapshot.term)) {\n    log.commitTo(snapshot.index);\n    return false;\n  }\n",
        "",
      ),
    ],
    catcher: byGolden("snapshot_cases.txt"),
  },
  {
    name: "a snapshot is restored without its membership",
    pitfall: "P-039",
    edits: [
      edit(
        "follower",
        "  switchMembership(raft, snapshot.membership, new Set(raft.tracker.peers.map((peer) => peer.id)));\n",
        "",
      ),
    ],
    catcher: byWalk({ ...snapshots, only: ["change", "compact", "flush", "cut", "drop"] }),
  },
  {
    name: "any answer to a heartbeat confirms the latest read round",
    pitfall: "P-045",
    edits: [
      edit(
        "leader",
        "  if (message.context > peer.readRound) {\n    peer.readRound = message.context;",
        "  if (raft.reads.latestRound > peer.readRound) {\n    peer.readRound = raft.reads.latestRound;",
      ),
    ],
    catcher: byExplorer("3 nodes, reads while deposed"),
  },
  {
    name: "a lease is used while leadership is being handed over",
    pitfall: "P-046",
    edits: [edit("reads", "|| raft.transferTo !== noNode) return false;", ") return false;")],
    catcher: byWalk(leases),
  },
  {
    name: "a new leader answers reads before its own entry is committed",
    pitfall: "P-047",
    edits: [
      edit(
        "reads",
        "  if (raft.hasCommittedInTerm) {\n    lead(raft, request);",
        '  if (raft.role === "leader") {\n    lead(raft, request);',
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0, leases: false }),
  },
];

const changes: readonly Mutation[] = [
  {
    name: "a new leader forgets that its log may hold an unapplied membership change",
    pitfall: "P-083",
    edits: [edit("roles", "  raft.pendingChangeIndex = raft.log.lastIndex;\n", "")],
    catcher: byWalk(membership),
  },
  {
    name: "two membership changes are on their way at once",
    pitfall: "P-083",
    edits: [
      edit(
        "proposals",
        "return raft.pendingChangeIndex > raft.log.applied || joint !== leaving;",
        "return joint !== leaving;",
      ),
    ],
    catcher: byExplorer("3 nodes and one more, membership"),
  },
  {
    name: "a membership change holds when appended and is applied again later",
    pitfall: "P-084",
    edits: [
      edit(
        "proposals",
        "  if (counts) raft.pendingChangeIndex = firstIndex;\n",
        "  if (counts) {\n    raft.pendingChangeIndex = firstIndex;\n    const early = changeMembership(raft.tracker.membership, change);\n    if (early.ok) raft.tracker.change(early.membership, raft.log.lastIndex, early.removed);\n  }\n",
      ),
    ],
    catcher: byExplorer("3 nodes and one more, membership"),
  },
  {
    name: "nobody leaves a joint configuration after its change is applied",
    pitfall: "P-085",
    edits: [
      edit(
        "core",
        "    raft.log.appliedTo(index);\n    leaveJointIfDue(raft);\n",
        "    raft.log.appliedTo(index);\n",
      ),
    ],
    catcher: byGolden("joint_leave_next_leader.txt"),
  },
  {
    name: "learners are counted for commits",
    pitfall: "P-087",
    edits: [
      edit(
        "tracker",
        "return jointIndex(this.membership, this.matchOf);",
        "const { voters, learners } = this.membership;\n    return jointIndex({ ...this.membership, voters: [...voters, ...learners] }, this.matchOf);",
      ),
    ],
    catcher: byWalk(membership),
  },
  {
    name: "learners are counted for read rounds",
    pitfall: "P-087",
    edits: [
      edit(
        "tracker",
        "return jointIndex(this.membership, this.roundOf);",
        "const { voters, learners } = this.membership;\n    return jointIndex({ ...this.membership, voters: [...voters, ...learners] }, this.roundOf);",
      ),
    ],
    catcher: byExplorer("3 nodes and two learners, reads while deposed"),
  },
  {
    name: "a removed leader leads on and counts itself",
    pitfall: "P-088",
    edits: [
      edit(
        "change",
        "    if (raft.config.stepDownOnRemoval) becomeFollower(raft, raft.term, noNode);\n    return;\n",
        "    raft.tracker.leads = raft.id;\n    return;\n",
      ),
      edit(
        "tracker",
        "return jointIndex(this.membership, this.matchOf);",
        "const voters = [...new Set([...this.membership.voters, ...(this.leads ? [this.leads] : [])])];\n    const own = voters.includes(this.leads) ? (id) => id === this.leads ? Infinity : this.matchOf(id) : this.matchOf;\n    return jointIndex({ ...this.membership, voters }, own);",
      ),
    ],
    catcher: byWalk(membership),
  },
  {
    name: "leadership is handed to a learner",
    pitfall: "P-016",
    edits: [
      edit("leader", "  if (!raft.tracker.membership.voters.includes(peer.id)) return;\n", ""),
    ],
    catcher: byGolden("transfer.txt"),
  },
];

/** All of them. */
export const mutations: readonly Mutation[] = [
  ...elections,
  ...logs,
  ...snapshotsAndReads,
  ...changes,
];
