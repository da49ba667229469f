/**
 * Planted bugs of keys that go to another group: who owns them, what moves of them, and what the
 * commands of a move refuse. Each is caught by a test of `test/unit/machine/` on a copy of the tree.
 */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

const COPY = "src/machine/ranges/copy-source.ts";
const RULES = "src/machine/ranges/ranges.ts";
const MOVES = "P-101 P-102 K1 K2 an interval moves";
const COMMANDS = "P-094 P-100 each command";

function bug(
  pitfall: string,
  name: string,
  test: string,
  file: string,
  find: string,
  replace: string,
): RecordBug {
  const at = test.startsWith("P-042") || test.startsWith("K13") ? "ownership" : "ranges";
  return { name, pitfall, edits: [edit(file, find, replace)], file: `machine/${at}.test`, test };
}

const FILLING = "P-102 whatever a target has";
const SET = "src/machine/ranges/move-set.ts";

export const rangeBugs: readonly RecordBug[] = [
  bug(
    "P-102",
    "a key counts as new beside one that is there",
    FILLING,
    SET,
    "rows.scan(RowKind.value, first, `${last}\\0`, () =>",
    "rows.scan(RowKind.value, first, `${first}\\0`, () =>",
  ),
  bug(
    "P-101",
    "what changes behind a copy is not given again",
    MOVES,
    COPY,
    "name <= this.reached)) this.note(name);",
    "name <= this.reached)) return;",
  ),
  bug(
    "P-101",
    "a copy does not see rows that go",
    MOVES,
    "src/machine/store/rows.ts",
    "    if (this.watchers.length > 0) this.tell(kind, name, null);\n    const isKnown",
    "    const isKnown",
  ),
  bug(
    "P-102",
    "older revisions do not move",
    MOVES,
    COPY,
    "const history = this.older(slice, key, keptOf(row));",
    "const history = this.older(slice, key, keptOf(row)).slice(0, 0);",
  ),
  bug(
    "P-102",
    "tombstones do not move",
    MOVES,
    COPY,
    "    if (value === null) {\n",
    "    if (value === null || wholeKvRow(value).deleted) {\n",
  ),
  bug(
    "P-102",
    "the end of a lease is carried as it is",
    "P-102 T3 leases keep",
    "src/machine/ranges/carried-lease.ts",
    "const leftMs = endMs - sourceLeaseMs;",
    "const leftMs = endMs - nowMs;",
  ),
  bug(
    "P-102",
    "a lease that ends while it is copied goes on",
    "P-102 a lease that somebody was told",
    COPY,
    "    for (const key of this.leases.take(this.leaseNowMs())) this.note(key);\n",
    "",
  ),
  bug(
    "P-100",
    "a bucket shows keys that are frozen or gone",
    "K13 K15 K16 buckets",
    "src/machine/kv/page-builder.ts",
    "    if (!this.owned.owns(key)) return this.pass(key, bytes.length);\n",
    "",
  ),
  bug(
    "P-101",
    "what was not closed is adopted",
    COMMANDS,
    RULES,
    'if (row.state !== "closed" || row.attempt !== command.attempt) return outcome("stale");',
    'if (row.attempt !== command.attempt) return outcome("stale");',
  ),
  bug(
    "P-094",
    "imports of two attempts are mixed",
    COMMANDS,
    RULES,
    'return row !== null && isFilled(row) && row.attempt === command.attempt ? row : "stale";',
    'return row !== null && isFilled(row) ? row : "stale";',
  ),
  bug(
    "P-094",
    "an import may be missing",
    COMMANDS,
    RULES,
    '  if (command.number > row.nextImport) return outcome("gap", row);\n',
    "",
  ),
  bug(
    "P-100",
    "an attempt opens what it froze itself",
    COMMANDS,
    RULES,
    "if (row.attempt >= command.attempt) return",
    "if (row.attempt > command.attempt) return",
  ),
  bug(
    "P-105",
    "a purge takes the first key of the neighbour",
    "P-105 a purge takes nothing",
    "src/machine/ranges/purge.ts",
    "scanBucket(rows, space, { first, last }, visitor);",
    "scanBucket(rows, space, { first, last: last === null ? null : `${last}\\0` }, visitor);",
  ),
  bug(
    "P-102",
    "rows that are frozen are collected",
    MOVES,
    "src/machine/collect.ts",
    "    if (!context.ownership.owns(name)) return { dropped: 0, finished: true };\n",
    "",
  ),
  bug(
    "P-042",
    "the map of ownership stays as it was before an install",
    "P-042 the map follows",
    "src/machine/machine.ts",
    "    this.moved = true;\n    this.ownership.load(this.groupRows);\n",
    "    this.moved = true;\n",
  ),
];
