/** Planted bugs of the log: committing, cutting, writing, sending. */
import { byExplorer, byGolden, byWalk, edit, membership, type Mutation } from "./mutation.js";

export const logs: readonly Mutation[] = [
  {
    name: "an entry of an older term is committed by counting",
    pitfall: "P-018",
    edits: [
      edit(
        "src/raft/roles/replication.ts",
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
        "src/raft/roles/replication.ts",
        "if (index <= log.committed || !log.matches(index, raft.term)) return false;",
        "if (!log.matches(index, raft.term)) return false;",
      ),
      edit(
        "src/raft/state/log.ts",
        "  commitTo(index: LogIndex): void {\n    if (index <= this.committed) return;",
        "  commitTo(index: LogIndex): void {",
      ),
    ],
    catcher: byWalk({ founders: 3 }),
  },
  {
    name: "one half of a joint configuration commits",
    pitfall: "P-019",
    edits: [
      edit(
        "src/raft/state/quorum.ts",
        "return Math.min(incoming, majorityIndex(membership.votersOutgoing, reached));",
        "return incoming;",
      ),
    ],
    catcher: byWalk(membership),
  },
  {
    name: "half of an even number is a majority",
    pitfall: "P-019",
    edits: [
      edit(
        "src/raft/state/quorum.ts",
        "return Math.floor(count / 2) + 1;",
        "return Math.ceil(count / 2);",
      ),
    ],
    catcher: byExplorer("4 nodes, elections"),
  },
  {
    name: "a follower commits its own tail up to the leader's commit index",
    pitfall: "P-020",
    edits: [
      edit(
        "src/raft/roles/follower.ts",
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
        "src/raft/roles/replication.ts",
        "draft.commit = Math.min(peer.match, raft.log.committed);",
        "draft.commit = raft.log.committed;",
      ),
      edit(
        "src/raft/roles/follower.ts",
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
        "src/raft/state/log.ts",
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
        "src/raft/roles/follower.ts",
        "if (message.index < log.committed) {",
        "if (message.index < log.floorIndex) {",
      ),
      edit(
        "src/raft/state/log.ts",
        '    const conflict = this.terms.firstConflict(span.termRuns, span.last);\n    if (conflict === 0) return;\n    assert(conflict > this.committed, "a leader never contradicts a committed entry");',
        "    const conflict = span.first;",
      ),
      edit(
        "src/raft/state/log.ts",
        '    assert(last >= this.committed, "committed entries are never cut");\n',
        "",
      ),
    ],
    catcher: byWalk({ founders: 3 }),
  },
  {
    name: "the leader counts itself before its write",
    pitfall: "P-022",
    edits: [
      edit(
        "src/raft/roles/replication.ts",
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
        "src/raft/state/state.ts",
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
        "src/raft/core.ts",
        "if (receipt.index > 0 && receipt.term === raft.term) {",
        "if (receipt.index > 0) {",
      ),
    ],
    catcher: byGolden("logs/aba_write_race.txt"),
  },
  {
    name: "a finished write vouches for whatever stands at its index now",
    pitfall: "P-023",
    edits: [
      edit(
        "src/raft/core.ts",
        "if (receipt.index > 0 && receipt.term === raft.term) {",
        "if (receipt.index > 0) {",
      ),
      edit("src/raft/state/log.ts", "    if (!this.matches(index, term)) return;\n", ""),
    ],
    catcher: byExplorer("3 nodes, an entry rewritten on a slow disk"),
  },
  {
    name: "entries are applied before they are written here",
    pitfall: "P-024",
    edits: [
      edit(
        "src/raft/state/log.ts",
        "return Math.min(this.committed, this.written);",
        "return this.committed;",
      ),
    ],
    catcher: byWalk({ founders: 3, writesAtOnce: false }),
  },
  {
    name: "an answer to a heartbeat does not reopen a paused probe",
    pitfall: "P-025",
    edits: [
      edit(
        "src/raft/roles/leader.ts",
        "  peer.active = true;\n  peer.flowPaused = false;\n",
        "  peer.active = true;\n",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0 }),
  },
  {
    name: "a full window is never reopened",
    pitfall: "P-025",
    edits: [
      edit(
        "src/raft/roles/leader.ts",
        "    peer.inflight.freeUpTo(index);\n",
        "    // The window leaks.\n",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0 }),
  },
  {
    name: "match is taken from a refusal",
    pitfall: "P-026",
    edits: [
      edit(
        "src/raft/roles/leader.ts",
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
        "src/raft/state/termlog.ts",
        "    this.floorAt = floor;\n    this.floorTermValue = term;",
        "    this.floorAt = floor;\n    this.floorTermValue = term * 0;",
      ),
    ],
    catcher: { by: "check", check: "keepsTheTermAtTheFloor" },
  },
  {
    name: "after a restart applying begins at the floor again",
    pitfall: "P-028",
    edits: [
      edit(
        "src/raft/state/log.ts",
        "    this.applying = appliedIndex;\n",
        "    this.applying = floorIndex;\n",
      ),
      edit(
        "src/raft/state/log.ts",
        '    assert(this.applied <= this.applying && this.applied <= this.committed, "applied is committed");\n',
        "",
      ),
    ],
    catcher: byWalk({ founders: 3, spares: 0, only: ["crash", "flush"] }),
  },
];
