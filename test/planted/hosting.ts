/**
 * Planted bugs of replicas that come, go and come again, each caught by a test of `test/unit/` that
 * is run on a copy of the tree with the bug, as those of the records are.
 */
import { edit } from "./edits.js";
import type { RecordBug } from "./records.js";

const COME_AND_GO = "host/hosting/come-and-go.test";
const LIVES = "host/hosting/lives.test";
const HOSTING = "control/hosting.test";

function hosting(
  pitfall: string,
  name: string,
  file: string,
  test: string,
  ...edits: RecordBug["edits"]
): RecordBug {
  return { name, pitfall, edits, file, test };
}

export const hostingBugs: readonly RecordBug[] = [
  hosting(
    "P-089",
    "what a former life acknowledges counts for the next one",
    LIVES,
    "P-089 what a former life",
    edit(
      "src/host/replication/peer-lives.ts",
      'return fromLife < this.of(node) ? "sender-life" : null;',
      "return null;",
    ),
  ),
  hosting(
    "P-089",
    "what was asked of a former life is answered by the next one",
    LIVES,
    "P-089 what a former life",
    edit(
      "src/host/replication/peer-lives.ts",
      '    if (toLife !== this.own) return "receiver-life";\n',
      "",
    ),
  ),
  hosting(
    "P-003",
    "term and vote go with the replica",
    COME_AND_GO,
    "P-097 a replica comes",
    edit(
      "src/host/group/replica.ts",
      "return { incarnation: this.lives.own, term, vote, lastGeneration };",
      "return { incarnation: this.lives.own, term: term * 0, vote: vote * 0, lastGeneration };",
    ),
  ),
  hosting(
    "P-088",
    "a founder that comes again has the founders for members",
    COME_AND_GO,
    "a founder of a one-voter group",
    edit(
      "src/host/cluster/map-follower.ts",
      "return { founders: [], incarnation,",
      "return { founders: [this.deps.nodeId], incarnation,",
    ),
    edit(
      "src/host/storage/recovery.ts",
      "beginning.isAdded && machine.installed.index === 0;",
      "beginning.incarnation < 0;",
    ),
  ),
  hosting(
    "P-097",
    "a message makes a replica",
    COME_AND_GO,
    "P-097 a message makes no replica",
    edit(
      "src/host/wiring.ts",
      "replica: (partition) => this.registry.find(partition)?.replica ?? null,",
      "replica: (partition) => {\n" +
        "        const begun = { founders: [], incarnation: 0, term: 0, vote: 0, firstGeneration: 0 };\n" +
        '        if (this.registry.find(partition) === null) this.registry["add"](partition, begun, null);\n' +
        "        return this.registry.find(partition)?.replica ?? null;\n" +
        "      },",
    ),
  ),
  hosting(
    "P-084",
    "a removal is reported that its leader alone knows to be committed",
    COME_AND_GO,
    "P-084 a replica goes",
    edit(
      "src/host/reports/replica-reports.ts",
      "      if (!group.members.isEstablished) {\n",
      "      if (!group.members.isEstablished && atMs < 0) {\n",
    ),
  ),
  hosting(
    "P-084",
    "that a change is committed goes into the log late",
    COME_AND_GO,
    "P-084 who is left of two voters",
    edit(
      "src/host/group/effects.ts",
      "const mayBeLate = isBound && written.commit >= this.changeIndex;",
      "const mayBeLate = isBound;",
    ),
  ),
  hosting(
    "P-084",
    "the entry of a change is enough to establish it",
    COME_AND_GO,
    "P-084 a replica goes",
    edit(
      "src/host/group/group-members.ts",
      "this.core.commitIndex > lastIndex",
      "this.core.commitIndex >= lastIndex",
    ),
  ),
  hosting(
    "P-097",
    "a replica goes by a map that is older than itself",
    HOSTING,
    "P-097 a replica goes",
    edit(
      "src/control/hosting.ts",
      "return isIts || record.generation <= known.incarnation ? STAY",
      "return isIts ? STAY",
    ),
  ),
  hosting(
    "P-097",
    "a map that does not know a partition removes it",
    HOSTING,
    "P-097 a replica goes",
    edit(
      "src/control/hosting.ts",
      "  if (record === null) return STAY;\n",
      '  if (record === null) return known?.isLive === true ? { kind: "drop" } : STAY;\n',
    ),
  ),
  hosting(
    "P-042",
    "rows of a new life have the generation of those that are being swept",
    COME_AND_GO,
    "P-097 a replica comes",
    edit(
      "src/host/cluster/replica-lives.ts",
      'this.put(partition, { ...last, state: "dropping" });',
      'this.put(partition, { ...last, state: "dropping", lastGeneration: 0 });',
    ),
  ),
  hosting(
    "P-097",
    "rows and log go before that is durable",
    COME_AND_GO,
    "P-097 a node that dies",
    edit(
      "src/host/cluster/replica-lives.ts",
      "    this.deps.flushSoon(() => this.forget(partition));\n",
      "    this.forget(partition);\n",
    ),
  ),
  hosting(
    "P-097",
    "a member goes because it is absent from the record",
    HOSTING,
    "P-097 nobody goes",
    edit(
      "src/control/placed-plan.ts",
      "  if (dueReport(facts) !== null) return",
      "  const listed = record.replicas.map(({ nodeId }) => nodeId);\n" +
        "  const absent = membership.voters.find((node) => !listed.includes(node));\n" +
        "  if (absent !== undefined) {\n" +
        '    const change = changeOf({ kind: "remove", node: absent });\n' +
        '    return guarded(facts, change, absent, "absent");\n' +
        "  }\n" +
        "  if (dueReport(facts) !== null) return",
    ),
  ),
  hosting(
    "P-205",
    "a leader whose record is older than its configuration plans on",
    HOSTING,
    "P-092 the leader of a placed group",
    edit(
      "src/control/placed-plan.ts",
      "if (record.generation < placedGeneration) {",
      "if (record.generation < placedGeneration - 1e9) {",
    ),
  ),
  hosting(
    "P-148",
    "a node is ready before its replicas have come",
    COME_AND_GO,
    "P-148 5.1 a node is not ready",
    edit(
      "src/host/health.ts",
      "isCaughtUp(group)).length + comingGroups;",
      "isCaughtUp(group)).length + comingGroups * 0;",
    ),
  ),
  hosting(
    "P-042",
    "a part of the node keeps a replica that left",
    COME_AND_GO,
    "callers of a group that leaves",
    edit(
      "src/host/storage/flusher.ts",
      "    this.groups.delete(group.partition);\n    this.moving",
      "    this.moving",
    ),
  ),
  hosting(
    "P-042",
    "a group that left keeps its sequence blocks",
    "operations/hosting.test",
    "P-042 what operations keep",
    edit(
      "src/operations/serving/serving.ts",
      "if (this.blocksByGroup.get(partition) === blocks) this.blocksByGroup.delete(partition);",
      "this.blocksByGroup.get(partition);",
    ),
  ),
];
