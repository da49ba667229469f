/**
 * Planted bugs of what apply decides about the records of the cluster: placement, levels and key ranges. Each is caught
 * by a test of `test/unit/machine/` that is run on a copy of the tree with the bug.
 */
import { edit, type Planted } from "./edits.js";

/** A bug, and the test that has to fail. */
export interface RecordBug extends Planted {
  readonly pitfall: string;
  /** Below `test/unit/`. */
  readonly file: string;
  /** What the name of the test begins with. */
  readonly test: string;
}

/** In the file at `path`, `to` instead of `from`. */
export type Change = readonly [path: string, from: string, to: string];

export function recordBug(
  pitfall: string,
  name: string,
  file: string,
  test: string,
  ...changes: readonly Change[]
): RecordBug {
  return { name, pitfall, edits: changes.map((change) => edit(...change)), file, test };
}

const PLACEMENT = "src/machine/meta/meta-placement.ts";
const RANGE_MOVES = "P-100 P-103 P-104 P-105 any commands";
const LEVELS = "src/machine/meta/meta-levels.ts";
const ORDERS = "P-092 P-094 the orders";
const REPORTS = "P-094 P-096 the reports";
const SEQUENCES = "P-083 P-092 P-094 P-205 any orders and reports";

function placement(
  pitfall: string,
  name: string,
  test: string,
  find: string,
  replace: string,
): RecordBug {
  const edits = [edit(PLACEMENT, find, replace)];
  return { name, pitfall, edits, file: "machine/placement.test", test };
}

function level(
  pitfall: string,
  name: string,
  test: string,
  ...edits: RecordBug["edits"]
): RecordBug {
  return { name, pitfall, edits, file: "machine/levels.test", test };
}

function range(
  pitfall: string,
  name: string,
  test: string,
  [source, find, replace]: readonly [source: string, find: string, replace: string],
): RecordBug {
  const edits = [edit(`src/machine/meta/${source}.ts`, find, replace)];
  return { name, pitfall, edits, file: "machine/meta-ranges.test", test };
}

export const recordBugs: readonly RecordBug[] = [
  range("P-042", "a record that was written is not read again", RANGE_MOVES, [
    "meta-reads",
    "now.get(record.partitionId) ?? record",
    "record",
  ]),
  placement(
    "P-096",
    "who has left the cluster is kept",
    "P-096 who has left",
    "const isMember = isNodeId(change.nodeId) && reads.member(change.nodeId) !== null;",
    "const isMember = isNodeId(change.nodeId);",
  ),
  {
    name: "whoever is removed by force takes its role back",
    pitfall: "P-095",
    edits: [
      edit(
        "src/machine/meta/meta-members.ts",
        "if (member.evicted || !mayBecome(member.role, role))",
        "if (!mayBecome(member.role, role))",
      ),
    ],
    file: "machine/placement.test",
    test: "P-095 a removal by force",
  },
  placement(
    "P-092",
    "two replicas of a partition are on their way at once",
    SEQUENCES,
    '  if (!replicas.every(isVoter)) return "busy";\n',
    "",
  ),
  placement(
    "P-096",
    "the report of an old leader drops a voter",
    SEQUENCES,
    '  if (report.configIndex < record.configIndex) return "stale";\n',
    "",
  ),
  placement(
    "P-094",
    "an order that was decided on an older record is carried out",
    SEQUENCES,
    '  if (order.generation !== record.generation) return "stale";\n  const replicas = changed(',
    "  const replicas = changed(",
  ),
  placement(
    "P-096",
    "who leaves gets replicas",
    "who leaves or is evicted",
    'member !== null && member.role !== "leaving" && !member.evicted',
    "member !== null && !member.evicted",
  ),
  placement(
    "P-096",
    "who is evicted gets replicas",
    "who leaves or is evicted",
    'member.role !== "leaving" && !member.evicted',
    'member.role !== "leaving"',
  ),
  placement(
    "P-083",
    "the last voter is ordered to go",
    SEQUENCES,
    'replicas.length === 1 ? "last-voter" : withRole',
    "withRole",
  ),
  placement(
    "P-205",
    "a cancelled learner is off the list before the group has let it go",
    SEQUENCES,
    'withRole(record, change.nodeId, "removing") : "invalid"',
    'replicas.filter(({ nodeId }) => nodeId !== change.nodeId) : "invalid"',
  ),
  placement(
    "P-205",
    "what a report rests on is compared with the life of a replica, not with its role",
    REPORTS,
    "report.restsOn >= replica.since",
    "report.restsOn >= replica.incarnation",
  ),
  placement(
    "P-205",
    "who is replaced is off the list before an entry rests on that",
    "who leaves or is evicted",
    'if (isReplaced) return [{ ...replica, role: "removing", since }];',
    'if (isReplaced) return members.has(replica.nodeId) ? [{ ...replica, role: "removing", since }] : [];',
  ),
  placement(
    "P-092",
    "who stays makes a tenth voter",
    "who leaves or is evicted",
    '  if (record.replicas.filter(isVoter).length >= VOTERS_MAX) return "too-many-voters";\n  return withRole',
    "  return withRole",
  ),
  placement(
    "P-205",
    "who has left the cluster is listed as one that comes",
    "P-205 who leaves is not listed",
    "return mayCome ? replica : ",
    "return mayCome || replica.replaces === 0 ? replica : ",
  ),
  {
    ...{ name: "a member that was listed meanwhile is removed", pitfall: "P-205" },
    edits: [
      edit(
        "src/machine/meta/meta-members.ts",
        "some((record) => isListed(record, nodeId));",
        "some((record) => isListed(record, -nodeId));",
      ),
    ],
    ...{ file: "machine/placement.test", test: "P-205 who leaves is not listed" },
  },
  placement(
    "P-094",
    "who was replaced stays",
    REPORTS,
    "isVoter(replica) && replaced.has(replica.nodeId)",
    "false",
  ),
  placement(
    "P-097",
    "a replica that is added has the life of a founder",
    ORDERS,
    "const life = incarnation(since);",
    "const life = FOUNDING_INCARNATION;",
  ),
  placement(
    "P-094",
    "a change leaves the generation as it was",
    SEQUENCES,
    "const generation = next(record.generation);\n    const row",
    "const generation = record.generation;\n    const row",
  ),
  level(
    "P-030",
    "the level is raised although a learner does not support it",
    "P-030 U1 learners",
    edit(
      LEVELS,
      "reads.members().every((member) => supports(",
      'reads.members().every((member) => member.role === "learner" || supports(',
    ),
  ),
  level(
    "P-030",
    "the level is raised by a member list of the past",
    "P-030 U1 the level rises",
    edit(
      LEVELS,
      '  if (membershipVersion !== cluster.membershipVersion) return outcome("stale", level);\n',
      "",
    ),
  ),
  level(
    "P-030",
    "what the cluster permits takes effect in apply at once",
    "P-030 U1 the level rises",
    edit(
      LEVELS,
      '  return outcome("done", to);',
      '  context.level = to;\n  return outcome("done", to);',
    ),
  ),
  level(
    "P-030",
    "a joiner whose program is too old is let in",
    "P-030 U3",
    edit(
      "src/machine/meta/meta-members.ts",
      '  if (!supports(command, cluster.level)) return outcome("level-unsupported", version);\n  if (reads.members().length',
      "  if (reads.members().length",
    ),
  ),
  level(
    "P-030",
    "the level of a group falls",
    "P-030 P-039 U2",
    edit("src/machine/decision/level.ts", "level <= context.level", "level === context.level"),
  ),
  level(
    "P-039",
    "a snapshot lacks the level of its group",
    "P-030 P-039 U2",
    edit(
      "src/machine/snapshot/format.ts",
      "encodeGroupRecord({ ...record, ...own })",
      'encodeGroupRecord({ ...record, ...own, level: 1 as GroupRecord["level"] })',
    ),
  ),
  level(
    "P-130",
    "replicas at different levels have the same digest",
    "P-030 P-039 U2",
    edit(
      "src/machine/machine.ts",
      "    if (context.level !== level) this.effects.number(context.level);\n",
      "",
    ),
  ),
  range("P-100", "a cut does not compare the attempt", RANGE_MOVES, [
    "meta-ranges",
    'if (move.attempt !== command.attempt || move.phase === "aborting") {',
    'if (move.phase === "aborting") {',
  ]),
  range("P-100", "a move is cut after it was aborted", RANGE_MOVES, [
    "meta-ranges",
    'if (move.attempt !== command.attempt || move.phase === "aborting") {',
    "if (move.attempt !== command.attempt) {",
  ]),
  range("P-103", "the id of a failed split is used again", RANGE_MOVES, [
    "range-begin",
    "existing?.partitionId ?? cluster.nextPartitionId",
    "existing?.partitionId ?? reads.livingPartitions() + 1",
  ]),
  range("P-103", "two moves take keys from one partition", RANGE_MOVES, [
    "range-begin",
    'if (state !== "Active" || !replicas',
    "if (!replicas",
  ]),
  range("P-105", "ranges are merged that do not touch", "P-105 a merge", [
    "range-begin",
    "return ![ranges[at - 1], ranges[at + 1]].some(",
    "return !ranges.some(",
  ]),
  range("P-107", "descriptors go with one range away", RANGE_MOVES, [
    "meta-ranges",
    "existing.every(({ partitionId })",
    "existing.some(({ partitionId })",
  ]),
];
