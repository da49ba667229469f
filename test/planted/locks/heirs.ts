/**
 * Planted bugs of heirs: edits of the rules, and of the leader in the searches of
 * `test/unit/machine/succession/`, each caught by its random histories.
 */
import { type Planted, edit } from "../edits.js";

const RULES = "src/machine/locks/succession.ts";
const LEADER = "test/unit/machine/succession/leader.ts";

/** Small cases that show what hardly any history does. */
const VAGUE = "an heir that names no token, and its release of an earlier grant, still on its way";
const UNTOLD = "a base that was not told comes back, and its release reaches the old leader";

export interface HeirBug extends Planted {
  /** Random histories of seed 1 that show it: measured, with some to spare. */
  readonly within: number;
  /** The small case that shows it in any order of few acts. */
  readonly small?: string;
}

/** One line out of the leader, or of the rules. */
function without(file: string, line: string): Planted["edits"] {
  return [edit(file, line, "")];
}

export const heirBugs: readonly HeirBug[] = [
  {
    name: "a step to an heir of a list that is not applied yet",
    within: 1000,
    edits: [
      edit(
        LEADER,
        "  const heir = heirAfter(row, token);\n  if (heir === null ||",
        [
          "  const named = machine.entries.find(({ order }) => order === Order.append)?.added[0];",
          "  const coming = named === undefined ? null : { ...named, token: row.top + 1 };",
          "  const heir = heirAfter(row, token) ?? coming;",
          "  if (heir === null ||",
        ].join("\n"),
      ),
      edit(LEADER, "  if (row.listTerm !== machine.term || ownerOf", "  if (ownerOf"),
      edit(
        LEADER,
        "  if (!isInTime(row, heir, leaseNow(world, machine), world.margin)) return false;\n",
        "",
      ),
    ],
  },
  {
    name: "a step while a rewrite is on its way",
    within: 5000,
    edits: without(LEADER, "    if (order === Order.set) return false;\n"),
  },
  {
    name: "a step over an heir that left, in memory",
    within: 1000,
    edits: [
      edit(
        LEADER,
        "  const heir = heirAfter(row, token);\n  if (heir === null ||",
        [
          "  let heir = heirAfter(row, token);",
          "  while (heir !== null && !isLiving(placeOf(machine, heir.owner))) {",
          "    heir = heirAfter(row, heir.token);",
          "  }",
          "  if (heir === null ||",
        ].join("\n"),
      ),
    ],
  },
  {
    name: "a step after the end of the list",
    within: 100_000,
    edits: [edit(RULES, "return nowMs + heir.leaseMs + marginMs <= row.untilMs;", "return true;")],
  },
  {
    name: "a release is answered before it is durable",
    within: 100,
    edits: [
      edit(
        LEADER,
        "  entry.client = client;\n  entry.isStep = 1;\n",
        [
          "  entry.isStep = 1;",
          "  judgeReleased(world, token);",
          "  const told = send(world, Kind.unlocked, machine.index, client);",
          "  told.token = token;",
          "  told.isGood = 1;",
          "",
        ].join("\n"),
      ),
    ],
  },
  {
    name: "the list names the wait, not its attempt",
    within: 250_000,
    edits: without(LEADER, "  if (place.attempt !== heir.attempt) return false;\n"),
  },
  {
    name: "the base moves back upon a late extend",
    within: 2000,
    edits: [
      edit(
        RULES,
        '  if (!claim(values, row, when, owner, token)) return "invalid-owner";\n  if (note',
        [
          "  if (isOrphaned(row, when) && token < row.base.token) {",
          "    row.base = { ...row.base, token, owner };",
          "  }",
          '  if (!claim(values, row, when, owner, token)) return "invalid-owner";',
          "  if (note",
        ].join("\n"),
      ),
    ],
  },
  {
    name: "an heir of an orphaned list is granted at once",
    within: 1000,
    edits: [
      edit(
        RULES,
        "  if (at >= 0) row.heirs = row.heirs.slice(0, at);\n",
        [
          "  if (at >= 0) {",
          "    for (let i = 0; i <= at; i++) advance(row, when.nowMs + ask.leaseMs);",
          '    return "locked";',
          "  }",
          "",
        ].join("\n"),
      ),
    ],
  },
  {
    name: "others are granted when the lease of the base of an orphaned list is over",
    within: 600_000,
    edits: [
      edit(
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
      ),
    ],
  },
  {
    name: "the heirs are dropped when the base comes back",
    within: 1_000_000,
    small: UNTOLD,
    edits: [
      edit(
        RULES,
        "    row.base = { ...base, attempt: ask.attempt };\n",
        "    row.base = { ...base, attempt: ask.attempt };\n    drop(row);\n",
      ),
    ],
  },
  {
    name: "a new grant has the token behind that of the base",
    within: 100,
    edits: [
      edit(
        RULES,
        "  row.top = values.next(row.top);\n  row.isHeld = true;",
        "  row.top = values.next(row.base.token);\n  row.isHeld = true;",
      ),
    ],
  },
  {
    name: "a leader keeps what it had in memory in its former term",
    within: 1_000_000,
    edits: without(
      LEADER,
      "  machine.position = NONE;\n  machine.told = [];\n  machine.places = [];\n",
    ),
  },
  {
    name: "a step while another release of the same grant is on its way",
    within: 1_500_000,
    edits: without(LEADER, "    if (order === Order.unlock && isStep === 0) return false;\n"),
  },
  {
    name: "a new list begins behind the token of the base",
    within: 1000,
    edits: [
      edit(
        RULES,
        "  for (const ask of added) {\n",
        "  if (row.heirs.length === 0) row.top = row.base.token;\n  for (const ask of added) {\n",
      ),
    ],
  },
  {
    name: "what was granted to nobody is handed on in memory",
    within: 400_000,
    edits: [
      edit(
        LEADER,
        "  world.counts.givenBack++;\n",
        [
          "  world.counts.givenBack++;",
          "  if (step(world, machine, token, owner)) {",
          "    const entry = propose(world, machine, Order.unlock);",
          "    entry.owner = owner;",
          "    entry.token = token;",
          "    entry.isStep = 1;",
          "    return;",
          "  }",
          "",
        ].join("\n"),
      ),
    ],
  },
  {
    name: "a forced release of the base of an orphaned list voids its heirs",
    within: 50_000,
    edits: [edit(RULES, "  if (!isOld) drop(row);\n", "  drop(row);\n")],
  },
  {
    name: "a step while a forced release is on its way",
    within: 1_000_000,
    edits: without(LEADER, "    if (order === Order.force) return false;\n"),
  },
  {
    name: "a step while a try of who is named is on its way",
    within: 100_000,
    edits: without(
      LEADER,
      "    if ((order === Order.ask || order === Order.first) && isNamed(row, owner)) return false;\n",
    ),
  },
  {
    name: "an heir that is tried is passed over",
    within: 600_000,
    edits: without(LEADER, "    if (isTried(machine, heir.owner)) return;\n"),
  },
  {
    name: "what is behind a release goes behind its repeat as well",
    within: 400_000,
    edits: [
      edit(
        LEADER,
        "token === currentToken(machine) && !isAgain",
        "token === currentToken(machine)",
      ),
    ],
  },
  {
    name: "who extends along an orphaned list is taken for the base, and those before it stay",
    within: 1000,
    edits: [edit(RULES, "  for (; at > 0; at--) advance(row, row.untilMs);\n", "  at = 0;\n")],
  },
  {
    name: "what an heir says without a token counts",
    within: 1_500_000,
    small: VAGUE,
    edits: [
      edit(
        RULES,
        "  if (token === null) return same(row.base.owner, owner) ? 0 : -1;\n",
        [
          "  if (token === null) {",
          "    if (same(row.base.owner, owner)) return 0;",
          "    return row.heirs.findIndex((heir) => same(heir.owner, owner)) + 1 || -1;",
          "  }",
          "",
        ].join("\n"),
      ),
      edit(
        RULES,
        "  return row.heirs.some((heir) => same(heir.owner, owner));\n",
        "  return false;\n",
      ),
    ],
  },
  {
    name: "an heir that names no token is refused, maybe told as it was",
    within: 5000,
    edits: [
      edit(
        RULES,
        "  return row.heirs.some((heir) => same(heir.owner, owner));\n",
        "  return false;\n",
      ),
    ],
  },
  {
    name: "an heir has the note of the base",
    within: 100,
    edits: [
      edit(RULES, "  row.base = first;\n", "  row.base = { ...first, note: row.base.note };\n"),
    ],
  },
];
