/**
 * Planted bugs of what apply makes of locks with heirs, each caught by a test that is run on a copy
 * of the tree with the bug: in the rules, whose leader the searches try (`heirs.ts`), and in what
 * apply stores, reads and tells of them.
 */
import { recordBug, type RecordBug } from "../records.js";

const RULES = "src/machine/locks/succession.ts";
const HEIRS = "src/machine/locks/heirs.ts";
const ROW = "src/machine/locks/lock-row.ts";
const LOCKS = "src/machine/locks/locks.ts";
const SCENARIOS = "machine/heirs/scenarios.test";
const ROWS = "machine/heirs/rows.test";
const APPLY = "machine/heirs/apply.test";
const EACH = "Q14 Q15 Q16 F4 L12 scenarios of heirs";
const LIKE_RULES = "Q14 Q15 Q16 P-029 apply decides";

export const heirRowBugs: readonly RecordBug[] = [
  recordBug(
    "P-068",
    "the base of an orphaned list moves back upon a late extend",
    SCENARIOS,
    EACH,
    [
      RULES,
      '  if (!claim(values, row, when, owner, token)) return "invalid-owner";\n  if (note',
      [
        "  if (isOrphaned(row, when) && token !== null && token < row.base.token) {",
        "    row.base = { ...row.base, token, owner };",
        "  }",
        '  if (!claim(values, row, when, owner, token)) return "invalid-owner";',
        "  if (note",
      ].join("\n"),
    ],
  ),
  recordBug("P-068", "an heir of an orphaned list that asks is granted at once", SCENARIOS, EACH, [
    RULES,
    "  if (at >= 0) row.heirs = row.heirs.slice(0, at);\n",
    [
      "  if (at >= 0) {",
      "    for (let i = 0; i <= at; i++) advance(row, when.nowMs + ask.leaseMs);",
      '    return "locked";',
      "  }",
      "",
    ].join("\n"),
  ]),
  recordBug(
    "P-068",
    "others are granted an orphaned lock when the lease of its base is over",
    SCENARIOS,
    EACH,
    [
      RULES,
      "  if (isOrphaned(row, when)) return tryOrphaned(values, row, when, ask);\n",
      [
        "  if (isOrphaned(row, when)) {",
        "    const decided = tryOrphaned(values, row, when, ask);",
        '    if (decided !== "busy" || row.endMs > when.nowMs) return decided;',
        "    drop(row);",
        "  }",
        "",
      ].join("\n"),
    ],
  ),
  recordBug("P-068", "the heirs go when the base of an orphaned list comes back", SCENARIOS, EACH, [
    RULES,
    "    row.base = { ...base, attempt: ask.attempt };\n",
    "    row.base = { ...base, attempt: ask.attempt };\n    drop(row);\n",
  ]),
  recordBug("P-057", "the token of a grant is the next one of the base's", SCENARIOS, EACH, [
    RULES,
    "  row.top = values.next(row.top);\n  row.isHeld = true;",
    "  row.top = values.next(row.base.token);\n  row.isHeld = true;",
  ]),
  recordBug("P-057", "a list begins with the token behind the base's", SCENARIOS, EACH, [
    RULES,
    "  for (const ask of added) {\n",
    "  if (row.heirs.length === 0) row.top = row.base.token;\n  for (const ask of added) {\n",
  ]),
  recordBug("P-068", "a forced release voids the heirs of an orphaned list", SCENARIOS, EACH, [
    RULES,
    "  if (!isOld) drop(row);\n",
    "  drop(row);\n",
  ]),
  recordBug("P-029", "apply knows of no term but the first one", APPLY, LIKE_RULES, [
    "src/machine/machine.ts",
    "    context.term = entry.term;\n",
    "",
  ]),
  recordBug(
    "P-068",
    "who spoke before is the holder in spite of what an heir said",
    APPLY,
    LIKE_RULES,
    [HEIRS, "    before.base !== after.base ||\n", ""],
  ),
  recordBug("P-068", "that an heir asked again is not stored", APPLY, LIKE_RULES, [
    HEIRS,
    "    before.heirs !== after.heirs ||\n",
    "",
  ]),
  recordBug(
    "P-059",
    "a lock goes although its heirs may hold it",
    ROWS,
    "P-057 P-059 L17 collection",
    [
      LOCKS,
      "heirs.length > 0 ? Math.max(row.endMs, untilMs) : row.endMs",
      "heirs.length > 0 ? Math.min(row.endMs, untilMs) : row.endMs",
    ],
  ),
  recordBug("P-057", "the tokens of heirs go with their row", ROWS, "P-057 P-059 L17 collection", [
    LOCKS,
    "  if (top >= context.tokenFloor) context.tokenFloor = top + 1n;\n",
    "  if (row.token >= context.tokenFloor) context.tokenFloor = row.token + 1n;\n",
  ]),
  recordBug(
    "P-057",
    "what is named does not count for a snapshot",
    ROWS,
    "P-039 P-057 a snapshot",
    [ROW, "(row.succession?.top ?? row.token)", "row.token"],
  ),
  recordBug("P-137", "a restored list is good in the term that wrote it", ROWS, "P-137 T7", [
    "src/machine/restoring/restored-rows.ts",
    "  return successionLockRow({ ...successionOf(row), listTerm: FOREIGN_TERM });\n",
    "  return successionLockRow({ ...successionOf(row) });\n",
  ]),
  recordBug("P-057", "heirs are named beyond the largest token", ROWS, "P-057 no heir is named", [
    HEIRS,
    "  if (after.top > context.tokenCeiling || !isListed) return null;\n",
    "  if (!isListed) return null;\n",
  ]),
  recordBug("P-164", "a list is as long as anybody wants", ROWS, "11 lists have a bound", [
    HEIRS,
    "  if (after.top > context.tokenCeiling || !isListed) return null;\n",
    "  if (after.top > context.tokenCeiling) return null;\n",
  ]),
  recordBug("P-029", "a row is taken for the one that was written last", APPLY, LIKE_RULES, [
    "src/machine/locks/recent-rows.ts",
    "      if (this.bytes[at] === bytes) return",
    "      if (this.bytes[at]?.length === bytes.length) return",
  ]),
  recordBug("P-186", "watchers are not told whom a release makes the holder", SCENARIOS, EACH, [
    "src/machine/events.ts",
    "    tell(WatchEventType.locked, grant, { note: grant.note });\n",
    "",
  ]),
  recordBug("P-186", "who came between is told of to nobody", SCENARIOS, EACH, [
    HEIRS,
    "    to: hasMoved ? [...passed, after.base].map(grantOf) : [],\n",
    "    to: hasMoved ? [after.base].map(grantOf) : [],\n",
  ]),
];
