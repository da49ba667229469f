/** Planted bugs of snapshots, reads and membership. */
import {
  byExplorer,
  byGolden,
  byWalk,
  edit,
  leases,
  membership,
  snapshots,
  type Mutation,
} from "./mutation.js";

export const snapshotsAndReads: readonly Mutation[] = [
  {
    name: "an older snapshot rewinds a follower",
    pitfall: "P-038",
    edits: [
      edit(
        "src/raft/roles/follower.ts",
        "if (snapshot.index <= log.committed || !isMember",
        "if (!isMember",
      ),
      edit(
        "src/raft/roles/follower.ts",
        "  if (log.matches(snapshot.index, snapshot.term)) {\n",
        "  if (log.matches(snapshot.index, snapshot.term) && snapshot.index > log.committed) {\n",
      ),
      edit(
        "src/raft/state/log.ts",
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
        "src/raft/roles/follower.ts",
        "  if (log.matches(snapshot.index, snapshot.term)) {\n    log.commitTo(snapshot.index);\n    return false;\n  }\n",
        "",
      ),
    ],
    catcher: byGolden("logs/snapshot_cases.txt"),
  },
  {
    name: "a snapshot is restored without its membership",
    pitfall: "P-039",
    edits: [
      edit(
        "src/raft/roles/follower.ts",
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
        "src/raft/roles/leader.ts",
        "  if (message.context > peer.readRound) {\n    peer.readRound = message.context;",
        "  if (raft.reads.latestRound > peer.readRound) {\n    peer.readRound = raft.reads.latestRound;",
      ),
    ],
    catcher: byExplorer("3 nodes, reads while deposed"),
  },
  {
    name: "a lease is used while leadership is being handed over",
    pitfall: "P-046",
    edits: [
      edit(
        "src/raft/roles/reads.ts",
        "|| raft.transferTo !== noNode) return false;",
        ") return false;",
      ),
    ],
    catcher: byWalk(leases),
  },
  {
    name: "a new leader answers reads before its own entry is committed",
    pitfall: "P-047",
    edits: [
      edit(
        "src/raft/roles/reads.ts",
        "  if (raft.hasCommittedInTerm) {\n    lead(raft, request);",
        '  if (raft.role === "leader") {\n    lead(raft, request);',
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0, leases: false }),
  },
];

export const changes: readonly Mutation[] = [
  {
    name: "a new leader forgets that its log may hold an unapplied membership change",
    pitfall: "P-083",
    edits: [
      edit("src/raft/roles/roles.ts", "  raft.pendingChangeIndex = raft.log.lastIndex;\n", ""),
    ],
    catcher: byWalk(membership),
  },
  {
    name: "two membership changes are on their way at once",
    pitfall: "P-083",
    edits: [
      edit(
        "src/raft/roles/proposals.ts",
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
        "src/raft/roles/proposals.ts",
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
        "src/raft/core.ts",
        "    raft.log.appliedTo(index);\n    leaveJointIfDue(raft);\n",
        "    raft.log.appliedTo(index);\n",
      ),
    ],
    catcher: byGolden("leaders/joint_leave_next_leader.txt"),
  },
  {
    name: "learners are counted for commits",
    pitfall: "P-087",
    edits: [
      edit(
        "src/raft/state/tracker.ts",
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
        "src/raft/state/tracker.ts",
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
        "src/raft/roles/change.ts",
        "    if (raft.config.stepDownOnRemoval) becomeFollower(raft, raft.term, noNode);\n    return;\n",
        "    raft.tracker.leads = raft.id;\n    return;\n",
      ),
      edit(
        "src/raft/state/tracker.ts",
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
      edit(
        "src/raft/roles/leader.ts",
        "  if (!raft.tracker.membership.voters.includes(peer.id)) return;\n",
        "",
      ),
    ],
    catcher: byGolden("leaders/transfer.txt"),
  },
  {
    name: "a replica without a snapshot votes",
    pitfall: "P-003",
    edits: [
      edit(
        "src/raft/roles/election.ts",
        "const grant = may && !raft.awaitsSnapshot && raft",
        "const grant = may && raft",
      ),
    ],
    catcher: byExplorer("3 nodes, a replica that comes again"),
  },
  {
    name: "a replica that awaits a snapshot takes entries",
    pitfall: "P-039",
    edits: [
      edit(
        "src/raft/roles/follower.ts",
        "if (raft.awaitsSnapshot) {\n    const",
        "if (false) {\n    const",
      ),
      edit(
        "src/raft/invariants.ts",
        '  assert(!raft.awaitsSnapshot || begins, "who awaits a snapshot follows, and has no log");\n',
        "  assert(begins || !begins);\n",
      ),
    ],
    catcher: byGolden("members/replica_comes_again.txt"),
  },
  {
    name: "a refusal that asks for a snapshot is probed down",
    pitfall: "P-036",
    edits: [
      edit("src/raft/roles/leader.ts", "message.context === needsSnapshot", "message.context < 0"),
    ],
    catcher: { by: "check", check: "sendsTheSnapshotAskedFor" },
  },
];
