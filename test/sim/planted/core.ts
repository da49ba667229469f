/**
 * Planted bugs of the consensus core. `test/planted/` has more of them, and finds them by searches
 * in the core alone; these show that the world finds them too.
 */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const bug = plantedIn("core");

export const coreBugs: readonly Mutation[] = [
  bug(
    "P-003",
    "a vote is no part of what is written",
    "five",
    [
      edit(
        "src/raft/effects.ts",
        "raft.term !== handed.term || raft.vote !== handed.vote ||",
        "raft.term !== handed.term ||",
      ),
    ],
    {
      operations: { set: 10 },
      thinkMs: 200,
      faults: ["kill-leader", "power-loss-all", "crash-inside", "strand-leader"],
    },
  ),
  bug("P-003", "a voter votes again for whoever asks", "three", [
    edit(
      "src/raft/roles/election.ts",
      "const free = raft.vote === noNode && raft.leader === noNode;",
      "const free = raft.leader === noNode;",
    ),
  ]),
  bug("P-004", "a log is fresh if it is long", "stranded", [
    edit(
      "src/raft/state/log.ts",
      "return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);",
      "return lastIndex >= this.lastIndex;",
    ),
  ]),
  bug("P-004", "a log is fresh if its last term is not older", "stranded", [
    edit(
      "src/raft/state/log.ts",
      "return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);",
      "return lastTerm >= this.lastTerm;",
    ),
  ]),
  bug("P-018", "an entry of an older term is committed by counting", "stranded", [
    edit(
      "src/raft/roles/replication.ts",
      "if (index <= log.committed || !log.matches(index, raft.term)) return false;",
      "if (index <= log.committed) return false;",
    ),
  ]),
  bug("P-022", "a follower acknowledges before its write", "three", [
    edit(
      "src/raft/state/state.ts",
      "if (this.isDeferred(message.kind)) {",
      'if (this.isDeferred(message.kind) && (message.to === this.id || message.kind !== "appendAnswer")) {',
    ),
  ]),
  bug("P-022", "the leader counts itself before its write", "stranded", [
    edit(
      "src/raft/roles/replication.ts",
      '  raft.post("appendAnswer", raft.id).index = raft.log.lastIndex;\n',
      '  raft.post("appendAnswer", raft.id).index = raft.log.lastIndex;\n  raft.tracker.find(raft.id)?.acknowledge(raft.log.lastIndex);\n',
    ),
  ]),
  bug("P-024", "entries are applied before they are written here", "three", [
    edit(
      "src/raft/state/log.ts",
      "    if (this.config.applyBeforeWritten) return this.committed;\n    return Math.min(this.committed, this.written);\n",
      "    return this.committed;\n",
    ),
  ]),
  bug("P-002", "acknowledgements of an older term are counted", "stranded", [
    edit(
      "src/raft/roles/step.ts",
      "} else if (term < raft.term && term !== 0) {",
      '} else if (term < raft.term && term !== 0 && kind !== "appendAnswer") {',
    ),
  ]),
  bug("P-026", "what was sent is taken for what was received", "stranded", [
    edit(
      "src/raft/roles/leader.ts",
      '  if (peer.state === "replicate") peer.becomeProbe();\n  sendAppend(raft, peer, true);\n',
      '  if (peer.state === "replicate") peer.becomeProbe();\n  else peer.match = Math.max(peer.match, message.rejectHint);\n  sendAppend(raft, peer, true);\n',
    ),
  ]),
  bug("P-045", "any answer to a heartbeat confirms the latest round of reads", "stranded", [
    edit(
      "src/raft/roles/leader.ts",
      "  if (message.context > peer.readRound) {\n    peer.readRound = message.context;\n",
      "  if (raft.reads.latestRound > peer.readRound) {\n    peer.readRound = raft.reads.latestRound;\n",
    ),
  ]),
  bug(
    "P-020",
    "a heartbeat carries the commit index uncapped",
    "stranded",
    [
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
    { operations: { set: 8 }, thinkMs: 20, faults: ["strand-leader", "isolate", "kill-leader"] },
  ),
];
