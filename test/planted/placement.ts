/**
 * Planted bugs of the planners of placement and of key ranges, each caught by a test of `test/unit/control/` that is run
 * on a copy of the tree with the bug, as those of the records are.
 */
import { edit } from "./edits.js";
import type { RecordBug } from "./records.js";

const PLAN = "control/placement-plan.test";
const GROUP = "control/placed-group.test";
const LEADERS = "control/leader-balance.test";
const LEAVING = "control/leaving-placed.test";
const WORLD = "control/placement-world.test";
const RANGES = "control/range-plan.test";
const DUTIES = "control/range-duties.test";
const ANYTHING = "P-083 P-092 P-093 P-094 P-205 whatever happened";

function planner(
  pitfall: string,
  name: string,
  file: string,
  test: string,
  [source, find, replace]: readonly [source: string, find: string, replace: string],
): RecordBug {
  return { name, pitfall, edits: [edit(`src/control/${source}.ts`, find, replace)], file, test };
}

export const placementBugs: readonly RecordBug[] = [
  planner("P-092", "a live voter is taken while a dead one is listed", PLAN, "P-092 trim", [
    "placement-plan",
    "{ dead: 0, leaving: 1, silent: 2, sound: 3 }",
    "{ dead: 3, leaving: 1, silent: 2, sound: 0 }",
  ]),
  planner("P-092", "a removal leaves no live majority", PLAN, "P-092 trim", [
    "placement-plan",
    "return live * 2 > rest.length;",
    "return rest.length > 0;",
  ]),
  planner(
    "P-091",
    "a learner on a dead node is waited for without end",
    PLAN,
    "P-091 P-093 class 0",
    [
      "placement-plan",
      'this.ledger.standing(nodeId) === "dead" || this.isStalled(partitionId)',
      "this.isStalled(partitionId)",
    ],
  ),
  planner(
    "P-091",
    "a learner that gets nowhere is waited for without end",
    PLAN,
    "P-091 P-093 class 0",
    ["placement-plan", ' === "dead" || this.isStalled(partitionId)', ' === "dead"'],
  ),
  planner(
    "P-092",
    "a replica is ordered beside one that is on its way",
    PLAN,
    "P-091 P-093 class 0",
    ["placement-plan", '      if (role !== "voter") return this.finish(record, wished);\n', ""],
  ),
  planner("P-096", "who leaves is a target", PLAN, "P-096 O-2 targets", [
    "placement-ledger",
    'standing === "sound" || standing === "silent"',
    'standing !== "dead"',
  ]),
  planner("P-106", "large snapshots have no bound but their number", PLAN, "P-106 budgets", [
    "snapshot-load",
    " && this.bytes < places * SNAPSHOT_PLACE_BYTES",
    "",
  ]),
  planner("P-106", "near-empty snapshots wait as large ones do", PLAN, "P-106 budgets", [
    "snapshot-load",
    "Math.min(sizeBytes, SNAPSHOT_PLACE_BYTES)",
    "SNAPSHOT_PLACE_BYTES",
  ]),
  planner("P-106", "a node that is behind is given as many as any other", PLAN, "P-106 budgets", [
    "placement-ledger",
    "report.loopLagP99Ms > BEHIND_MS",
    "report.loopLagP99Ms > Infinity",
  ]),
  planner("P-106", "a replica keeps its place while it catches up", PLAN, "P-106 budgets", [
    "placement-ledger",
    "hasSnapshot ? 0 : this.sizeOf(partitionId)",
    "this.sizeOf(partitionId)",
  ]),
  planner("P-106", "balance moves at a difference of one", PLAN, "P-106 balance: at", [
    "placement-balance",
    "const DIFFERENCE = 2;",
    "const DIFFERENCE = 1;",
  ]),
  planner("P-093", "what waits has no reason", PLAN, "P-092 repair", [
    "placement-plan",
    "    if (reason !== null) this.wait(one.record, one.class, reason);\n",
    "",
  ]),
  planner("P-094", "a pair that failed is tried again at once", PLAN, "P-094 a failed pair", [
    "placement-plan",
    "      if (isLost) {\n",
    "      if (isLost && replaces < 0) {\n",
  ]),
  planner(
    "P-106",
    "leaders are counted among one's own groups only",
    LEADERS,
    "P-106 a node gives",
    ["leader-balance", "[nodeId, leads]", "[nodeId, nodeId === self ? groups.length : leads * 0]"],
  ),
  planner("P-096", "a member is removed while a record names it", LEAVING, "P-096 a member", [
    "membership",
    "const isNamed = placedOn.has(nodeId);",
    "const isNamed = placedOn.size < 0;",
  ]),
  planner("P-095", "a member is dead on the word of one node", LEAVING, "P-095 dead", [
    "silence",
    "witnesses.length * 2 > voters.length",
    "witnesses.length > 0",
  ]),
  planner("P-095", "who is linked to others is removed by force", LEAVING, "P-095 removal", [
    "silence",
    "heardBy.length > 0",
    "heardBy.length > 1",
  ]),
  planner("P-092", "majorities are counted in the record", GROUP, "P-092 majorities", [
    "placed-plan",
    "const { voters, votersOutgoing } = result.membership;",
    'const isIn = (role: string) => role === "voter";\n' +
      "  const listed = facts.record.replicas.filter(({ role }) => isIn(role));\n" +
      "  const [voters, votersOutgoing] = [listed.map(({ nodeId }) => nodeId), [] as number[]];",
  ]),
  planner("P-205", "a leader with an older record adds a replica again", GROUP, "P-205 a leader", [
    "placed-plan",
    "if (record.generation < placedGeneration) {",
    "if (record.generation < placedGeneration - 1e9) {",
  ]),
  planner("P-205", "a removal of one that never came is no entry", GROUP, "P-097 P-205", [
    "placed-plan",
    "return placedGeneration >= since && configIndex > record.configIndex;",
    "return configIndex > 0;",
  ]),
  planner("P-092", "a voter that the group is without is waited for", GROUP, "P-092 a voter", [
    "placed-plan",
    "[...missingVoters(facts), ...leaving, ...coming]",
    "[...leaving, ...coming]",
  ]),
  planner("P-092", "who is to go waits for the dead without end", WORLD, ANYTHING, [
    "placement-plan",
    'role === "removing" && this.isNeeded(record, nodeId)',
    'role === "removing" && this.isNeeded(record, nodeId) && replaces < 0',
  ]),
  planner("P-106", "who was to go stays for a silence", PLAN, "P-091 P-093 class 0", [
    "placement-plan",
    'ledger.standing(voter.nodeId) === "dead");',
    "!ledger.isLive(voter.nodeId));",
  ]),
  planner("P-205", "a partition is listed without a fence", WORLD, ANYTHING, [
    "placed-plan",
    "  if (placedGeneration < fence) {\n",
    "  if (placedGeneration < fence && !isWished) {\n",
  ]),
  planner("P-106", "neighbours merge up to the size that was set", RANGES, "P-105 P-106 merges", [
    "range-plan",
    "splitThreshold > 0 ? Math.min(mergeMinSize, splitThreshold / 4) : mergeMinSize",
    "mergeMinSize",
  ]),
  planner("P-106", "what was not counted is empty", RANGES, "P-105 P-106 merges", [
    "ranges",
    "if (one === null || other === null || one + other >= sizeKeys)",
    "if ((one ?? 0) + (other ?? 0) >= sizeKeys)",
  ]),
  planner("P-106", "a range changes again at once", RANGES, "6.3 splits", [
    "ranges",
    "return changedLeaseMs === 0 || nowLeaseMs - changedLeaseMs >= RANGE_SETTLES_MS;",
    "return nowLeaseMs >= changedLeaseMs;",
  ]),
  planner("P-100", "a move whose target has no leader is waited for", RANGES, "P-100 a move", [
    "range-plan",
    "if (!isLate && !this.view.isTargetLost(move)) return;",
    "if (!isLate) return;",
  ]),
  planner("P-102", "the source lets go of an interval before the cut", DUTIES, "the source opens", [
    "range-duties",
    '    if (move?.phase === "copying") return null;\n',
    '    if (move?.phase === "copying") return { kind: "range-release", ...of };\n',
  ]),
  planner("P-100", "an interval is opened while its attempt counts", DUTIES, "the source opens", [
    "range-duties",
    '    if (move?.phase === "copying") return null;\n',
    '    if (move?.phase === "copying") {\n' +
      '      return { kind: "range-unfreeze", ...of, attempt: EVERY_ATTEMPT };\n    }\n',
  ]),
  planner("P-100", "the target adopts before the cut", DUTIES, "the target adopts", [
    "range-duties",
    'move.phase === "cut" && row.state === "closed" && row.attempt === move.attempt;',
    'row.state === "closed" && row.attempt === move.attempt;',
  ]),
  planner(
    "P-100",
    "the target adopts another attempt than the one that was cut",
    DUTIES,
    "the target adopts",
    [
      "range-duties",
      'row.state === "closed" && row.attempt === move.attempt;',
      'row.state === "closed";',
    ],
  ),
];
