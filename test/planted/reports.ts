/**
 * Planted bugs of what nodes and leaders report, and of who is asked by it, each caught by a test
 * of `test/unit/` that is run on a copy of the tree with the bug, as those of the records are.
 */
import { edit } from "./edits.js";
import type { RecordBug } from "./records.js";

const REPORTS = "host/reports.test";
const FORWARD = "operations/forward.test";
const FACTS = "control/placement-facts.test";

function told(
  pitfall: string,
  name: string,
  file: string,
  test: string,
  ...[path, from, to]: readonly [path: string, from: string, to: string]
): RecordBug {
  return { name, pitfall, edits: [edit(`src/${path}.ts`, from, to)], file, test };
}

export const reportBugs: readonly RecordBug[] = [
  told(
    "P-094",
    "what was applied is reported at every tick",
    REPORTS,
    "P-094 the leader of a placed group",
    "host/reports/replica-reports",
    "      this.due.set(partition, nowMs + AGAIN_MS);\n",
    "      this.due.delete(partition);\n",
  ),
  told(
    "P-093",
    "a command of reports is larger than what is taken",
    REPORTS,
    "P-093 groups of many members",
    "host/reports/replica-reports",
    "const isFull = filledBytes + sizeBytes > this.deps.maxBytes;",
    "const isFull = filledBytes + sizeBytes < 0;",
  ),
  told(
    "P-097",
    "what a node said before its last start counts",
    REPORTS,
    "a report counts for a while",
    "host/reports/node-reports",
    "report.bootNumber >= (this.fresh(from, nowMs)?.report.bootNumber ?? 0)",
    "report.bootNumber >= 0",
  ),
  told(
    "P-095",
    "what a node said counts for ever",
    REPORTS,
    "a report counts for a while",
    "host/reports/node-reports",
    "nowMs - kept.atMs > NODE_REPORT_VALID_MS",
    "nowMs < kept.atMs",
  ),
  told(
    "P-063",
    "what one node alone says of the time is the common clock",
    REPORTS,
    "P-063 the common wall clock",
    "host/reports/node-reports",
    "const middle = others.length >> 1;",
    "const middle = 0;",
  ),
  told(
    "P-063",
    "stamps are bounded by how long a group was idle",
    "base/base.test",
    "P-063 stamps of a group that was idle",
    "base/hlc",
    "const knownMs = commonMs ?? this.seenMs + monotonicMs - this.seenAtMs;",
    "const knownMs = this.seenMs + monotonicMs - this.seenAtMs;",
  ),
  told(
    "P-106",
    "a node counts the leaders of its own groups alone",
    REPORTS,
    "P-106 leaderships of placed groups",
    "host/leaders/balancer",
    "reported?.leads ?? this.countLed(replicas)",
    "this.countLed(replicas)",
  ),
  told(
    "P-109",
    "a voter believes others above its own group",
    FORWARD,
    "P-109 a replica that comes only now",
    "operations/forwarding/leaders",
    "if (leader === 0 && this.arrives(partition)) {",
    "if (leader === 0) {",
  ),
  told(
    "P-150",
    "a leader that is out of reach is waited for",
    FORWARD,
    "who hosts nothing of a placed partition",
    "operations/forwarding/leaders",
    "if (leader !== 0 && isReachable(leader)) return leader;",
    "if (leader !== 0) return leader;",
  ),
  told(
    "P-109",
    "who does not lead is asked again as long as it is reported",
    FORWARD,
    "who reports that it leads",
    "operations/forwarding/leaders",
    " || node === this.disproved.get(partition)",
    "",
  ),
  told(
    "P-033",
    "who may have lost an answer says farewell",
    FORWARD,
    "P-033 C12: who may have lost",
    "operations/forwarding/heard-calls",
    "return this.lost.has(this.epoch) ? null : farewell(",
    "return this.epoch < 0 ? null : farewell(",
  ),
  told(
    "P-033",
    "a farewell is of calls whose answers could not be read",
    FORWARD,
    "P-033 C12: no farewell is of calls",
    "operations/forwarding/calls",
    "this.peer(node).formerId = this.lastId;",
    "this.peer(node).formerId = Math.min(this.lastId, 0);",
  ),
  told(
    "P-033",
    "answers of a peer whose start is not durable are dropped",
    "host/cluster.test",
    "P-033 answers of a peer",
    "host/cluster/peer-admission",
    "    if (this.banned.has(from)) return;\n    // Requests",
    "    if (this.banned.has(from) || !this.known.isDurable(from)) return;\n    // Requests",
  ),
  told(
    "P-110",
    "a vote for itself that is durable late ends the process",
    "host/parts.test",
    "a vote for itself may be durable",
    "host/group/effects",
    "    this.core.step(message);\n  }\n}",
    '    assert(this.core.step(message).ok, "this node is its own member");\n  }\n}',
  ),
  told(
    "P-093",
    "voters that are dead count as replicas",
    FACTS,
    "which partitions are not in order",
    "control/placement",
    "if (live(staying) < wished)",
    "if (staying.length < wished)",
  ),
];
