/**
 * Planted bugs of what backups and restores rest on, each caught by a test of `test/unit/` that is
 * run on a copy of the tree with the bug.
 */
import type { RecordBug } from "../records.js";
import { backup } from "./bug.js";
import { cutBugs } from "./cut.js";
import { collectionBugs } from "./collection.js";
import { engineBugs } from "./engine.js";
import { backupFileBugs } from "./files.js";
import { logBugs } from "./log.js";
import { restoringBugs } from "./restoring.js";
import { takingBugs } from "./taking.js";

const ALONE = ["host/node.test", "P-134 a mark is alone"] as const;
const EXACT = ["host/node.test", "P-134 a mark is stamped exactly"] as const;
const NOTED = ["machine/backups.test", "P-132 a replica notes"] as const;
const REFOUNDED = ["machine/backups.test", "P-138 a restored cluster is refounded"] as const;

export const backupBugs: readonly RecordBug[] = [
  backup(
    "P-134",
    "a mark shares its entry with commands behind it",
    ALONE,
    "machine/commands/codec",
    'kind === "mark" || RAISING',
    "RAISING",
  ),
  backup(
    "P-134",
    "the millisecond of a mark goes on behind it",
    ALONE,
    "base/hlc",
    "this.last = { n, l, c: COUNTER_MAX };",
    "this.last = { n, l, c: 0 };",
  ),
  backup(
    "P-134",
    "a mark goes where stamps are above it already",
    EXACT,
    "host/group/proposer",
    'if (compareHlc(at, leadership.lastStamp) <= 0) return "passed";',
    'if (compareHlc(at, leadership.lastStamp) < 0) return "passed";',
  ),
  backup(
    "P-134",
    "the stamp of a mark is forgotten: a slow clock stamps below it",
    EXACT,
    "base/hlc",
    "    this.last = stamp;\n    return true;",
    "    return true;",
  ),
  backup(
    "P-132",
    "the digest of a mark is that of the entry before it",
    NOTED,
    "machine/machine",
    "    this.chain.number(commands.length);\n",
    '    const early = commands[0];\n    if (early?.kind === "mark") this.noteMark(entry, early);\n    this.chain.number(commands.length);\n',
  ),
  backup(
    "P-138",
    "a node refounds a cluster of another id",
    REFOUNDED,
    "machine/meta/refounding",
    'if (command.clusterId !== cluster.clusterId) return outcome("invalid");',
    "",
  ),
  backup(
    "P-138",
    "a cluster that has members is refounded",
    REFOUNDED,
    "machine/meta/refounding",
    "if (reads.members().length > 0)",
    "if (reads.members().length > 3)",
  ),
  ...cutBugs,
  ...takingBugs,
  ...logBugs,
  ...restoringBugs,
  ...backupFileBugs,
  ...collectionBugs,
  ...engineBugs,
];
