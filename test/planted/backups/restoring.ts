/** Planted bugs of what a restore makes of the state: floors, incarnations, who the cluster is. */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";
import { backup } from "./bug.js";

const FLOORS = "P-137 L14 L15 floors";
const SECOND = "P-137 L14 a second restore";
const GROUP = "P-137 a group is restored";
const SEQUENCES = "P-137 S6 a restored sequence";
const STRANGER = "P-138 nothing of who";

function restoring(
  pitfall: string,
  name: string,
  test: string,
  ...[path, from, to]: readonly [path: string, from: string, to: string]
): RecordBug {
  const edits = [edit(`src/machine/restoring/${path}.ts`, from, to)];
  return { name, pitfall, edits, file: "machine/restoring.test", test };
}

export const restoringBugs: readonly RecordBug[] = [
  restoring(
    "P-137",
    "the token floor is not lifted by a restore",
    GROUP,
    "restored-group",
    "      tokenFloor,\n      ephemeralFloor,\n      membership",
    "      ephemeralFloor,\n      membership",
  ),
  restoring(
    "P-137",
    "the token floor is lifted once for two restores",
    SECOND,
    "lifted",
    "end.tokenFloor, earlier.tokenFloor);",
    "end.tokenFloor);",
  ),
  restoring(
    "P-137",
    "tokens that were granted after the target are granted again",
    FLOORS,
    "lifted",
    "tokenFloor, end.tokenFloor, earlier.tokenFloor);",
    "tokenFloor, earlier.tokenFloor);",
  ),
  restoring(
    "P-137",
    "the ephemeral floor is lifted by as much as the tokens of locks",
    FLOORS,
    "lifted",
    "above + (BigInt(end.term) + TERM_MARGIN) * EPHEMERAL_TOKENS_PER_TERM",
    "above + TOKEN_MARGIN",
  ),
  restoring(
    "P-137",
    "a restored sequence keeps its incarnation",
    SEQUENCES,
    "restored-rows",
    "{ ...row, incarnation, currentValue,",
    "{ ...row, currentValue,",
  ),
  restoring(
    "P-137",
    "values of a block that was open are handed out again",
    SEQUENCES,
    "restored-rows",
    ", before: currentValue });",
    " });",
  ),
  restoring(
    "P-137",
    "a floor that is too large is written",
    FLOORS,
    "lifted",
    "floor > FLOOR_MAX ? null : floor",
    "floor",
  ),
  restoring(
    "P-138",
    "a restored cluster has the id of the old one",
    STRANGER,
    "restored-rows",
    "    clusterId,\n    membershipVersion",
    "    membershipVersion",
  ),
  restoring(
    "P-138",
    "a restored cluster has the members of the old one",
    STRANGER,
    "restored-rows",
    "    case RowKind.member:\n",
    "",
  ),
  restoring(
    "P-138",
    "replicas are restored with the partitions",
    STRANGER,
    "restored-rows",
    "founders: [], replicas: [], ",
    "founders: [], ",
  ),
  restoring(
    "P-137",
    "the lease clock begins anew",
    GROUP,
    "restored-group",
    "      ...record,\n      tokenFloor,",
    "      ...record,\n      leaseMs: 0,\n      tokenFloor,",
  ),
  restoring(
    "P-132",
    "what was written in the last millisecond is not restored",
    "P-132 a millisecond",
    "replay-end",
    "stamp.l <= targetMs",
    "stamp.l * 2 ** 32 + stamp.c <= targetMs * 2 ** 32",
  ),
  backup(
    "P-100",
    "of two that have keys when a cluster is forced the first one has them",
    ["machine/settled-ranges.test", "7.7 every key has one owner"],
    "machine/restoring/range-owners",
    "return row.moveId > other.row.moveId;",
    "return row.moveId < other.row.moveId;",
  ),
  backup(
    "P-101",
    "when a cluster is forced the pool goes before whoever has later values",
    ["machine/settled-ranges.test", "7.7 every key has one owner"],
    "machine/restoring/range-owners",
    "if (pool !== undefined && hasAllOf(pool, last.known, interval)) return home;",
    "if (pool !== undefined) return home;",
  ),
];
