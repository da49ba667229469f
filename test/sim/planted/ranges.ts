/**
 * Planted bugs of key ranges that move: what freezes and opens an interval, what a copy brings along, who
 * owns what, and what readers see of it.
 */
import type { Edit } from "../../planted/edits.js";
import type { FaultKind } from "../faults/kinds.js";
import type { RangePlan } from "../members/rangeplan.js";
import type { PlanOverrides } from "../plan/plan.js";
import { edit, type Floor, plantedIn, type Mutation } from "./mutation.js";

/** A dozen moves come in so short a run, where nothing but what a bug needs is broken. */
const TICKS = 15_000;
/** What shows at any time needs less. */
const BRIEF = 10_000;
const NEVER_MS = 86_400_000;
/** People and a hand change ranges all the time, and no fault waits for moves. */
const LIVELY: Partial<RangePlan> = {
  kinds: ["split-space", "split-space", "merge-spaces"],
  ...{ everyMs: 400, handEveryMs: 400, spaces: 2, callMs: 8000, hasWitness: false },
  hasChains: false,
  ...{ isAutomatic: false, aims: [], aimEveryMs: 600 },
  thresholds: {
    ...{ splitThreshold: 0, splitMinSize: 0, mergeMinSize: 40 },
    collectionEveryMs: NEVER_MS,
  },
};
const QUICK: PlanOverrides = {
  ...{ ticks: TICKS, faults: [], ranges: LIVELY },
  ...{ nodes: 3, clients: 6, thinkMs: 40, requestTimeoutMs: 3000 },
};

/** With faults that wait for moves. */
function aimed(...aims: readonly FaultKind[]): PlanOverrides {
  return { ranges: { ...LIVELY, aims } };
}

function planted(floor: Floor) {
  const plant = plantedIn(floor);
  return (
    pitfall: string,
    name: string,
    edits: readonly Edit[],
    overrides: PlanOverrides = {},
  ): Mutation => plant(pitfall, name, "ranges", edits, { ...QUICK, ...overrides });
}

/** Keys change while they are copied. */
const BUSY: PlanOverrides = {
  operations: { set: 10, "kv-delete": 6, "set-conditional": 2, get: 4 },
  ...{ clients: 8, thinkMs: 10 },
};
/** Many keys are read at once, while they change. */
const READERS: PlanOverrides = {
  operations: { set: 8, "kv-delete": 2, bucket: 6, range: 4, "scan-all": 4 },
  ...{ clients: 8, thinkMs: 20 },
};

const host = planted("host");
const control = planted("control");
const machine = planted("machine");
const operations = planted("operations");

const DUTIES = "src/control/range-duties.ts";
const META = "src/machine/meta/meta-ranges.ts";
const BEGIN = "src/machine/meta/range-begin.ts";
const MOVER = "src/host/ranges/range-mover.ts";
const COPY = "src/machine/ranges/copy-source.ts";
const RULES = "src/machine/ranges/ranges.ts";

export const rangeBugs: readonly Mutation[] = [
  machine(
    "P-100",
    "an interval is frozen in the memory of those who applied it alone",
    [
      edit(
        "src/machine/ownership/ownership.ts",
        "      const space = textToByteKey(row.keySpace);\n      const entries = spaces.get(space) ?? [];",
        '      if (row.state === "leaving") return true;\n      const space = textToByteKey(row.keySpace);\n      const entries = spaces.get(space) ?? [];',
      ),
    ],
    aimed("strike-move"),
  ),
  machine(
    "P-100",
    "a cut does not compare the attempt",
    [
      edit(
        META,
        'if (move.attempt !== command.attempt || move.phase === "aborting") {',
        'if (move.phase === "aborting") {',
      ),
    ],
    { ...aimed("late-cut"), nodes: 5 },
  ),
  control("P-100", "an interval is opened before the meta partition has ended the attempt", [
    edit(
      DUTIES,
      '    if (move?.phase === "copying") return null;\n',
      '    if (move?.phase === "copying") {\n' +
        '      return { kind: "range-unfreeze", ...of, attempt: EVERY_ATTEMPT };\n    }\n',
    ),
  ]),
  host(
    "P-100",
    "an interval is opened when the time to freeze it is over, whoever ended the attempt",
    [
      edit(
        MOVER,
        "    this.deps.tally.attemptEnded(reason);\n    this.drop();\n",
        "    this.deps.tally.attemptEnded(reason);\n    this.drop();\n" +
          "    if (this.frozenAtMs !== Infinity) {\n" +
          "      const above = attemptOf(this.of.attempt + 1);\n" +
          '      const command = { kind: "range-unfreeze", ...this.of, attempt: above } as const;\n' +
          "      this.group.propose(command, this.deps.nowMs() + PATIENCE_MS, () => undefined);\n" +
          "    }\n",
      ),
    ],
    aimed("mute-side"),
  ),
  host(
    "P-101",
    "what changed last is not brought along",
    [
      edit(
        MOVER,
        "    if (this.endsPass) return this.close(nowMs);\n",
        "    if (this.passes >= 0) return this.close(nowMs);\n",
      ),
    ],
    BUSY,
  ),
  machine(
    "P-101",
    "a copy does not notice what is deleted behind it",
    [
      edit(
        COPY,
        "  beforeChange(kind: number, name: ByteKey): void {\n",
        "  beforeChange(kind: number, name: ByteKey, value?: Uint8Array | null): void {\n" +
          "    if (kind === RowKind.value && value && wholeKvRow(value).deleted) return;\n",
      ),
    ],
    BUSY,
  ),
  machine(
    "P-102",
    "older revisions do not move along",
    [
      edit(
        COPY,
        "this.older(slice, key, keptOf(row));",
        "this.older(slice, key, keptOf(row).slice(0, 0));",
      ),
    ],
    BUSY,
  ),
  machine(
    "P-102",
    "tombstones do not move along",
    [
      edit(
        COPY,
        "    if (!row.deleted) this.follow(key, row);\n",
        "    if (row.deleted) return;\n    this.follow(key, row);\n",
      ),
    ],
    BUSY,
  ),
  machine(
    "P-102",
    "a lease end is copied as the source's clock has it",
    [
      edit(
        "src/machine/ranges/carried-lease.ts",
        "  return leaseEnd(leaseEnd(nowMs, leftMs), marginMs);",
        "  return leaseEnd(endMs, leftMs * marginMs * 0);",
      ),
    ],
    { operations: { "set-expiring": 6, "kv-extend": 2, get: 6, exists: 2 } },
  ),
  operations(
    "P-100",
    "keys are read while they are frozen, and after the cut",
    [
      edit(
        "src/operations/kv/kv.ts",
        "    if (!group.machine.owns(request.key)) return attempt.unowned();\n    const nowMs",
        "    const nowMs",
      ),
      edit(
        "src/operations/kv/kv.ts",
        "      if (!group.machine.owns(request.key)) return attempt.unowned();\n      answer(",
        "      answer(",
      ),
    ],
    { ...BUSY, ...aimed("deaf-side"), ticks: BRIEF },
  ),
  control("P-100", "the target adopts what was not closed", [
    edit(
      DUTIES,
      'const isDue = move.phase === "cut" && row.state === "closed" && row.attempt === move.attempt;',
      'const isDue = move.phase !== "aborting" && row.attempt === move.attempt;',
    ),
    edit(
      RULES,
      'if (row.state !== "closed" || row.attempt !== command.attempt) return outcome("stale");\n  if (compareHlc',
      'if (row.attempt !== command.attempt) return outcome("stale");\n  if (compareHlc',
    ),
  ]),
  machine(
    "P-101",
    "imports of two attempts are mixed",
    [
      edit(
        RULES,
        'return row !== null && isFilled(row) && row.attempt === command.attempt ? row : "stale";',
        'return row !== null && isFilled(row) ? row : "stale";',
      ),
      edit(
        RULES,
        '    if (row.attempt < command.attempt) {\n      leave(context, row);\n      return outcome("unsettled");\n    }\n',
        "",
      ),
    ],
    { ...BUSY, ...aimed("mute-side", "strike-move") },
  ),
  machine(
    "P-101",
    "the number of an import is not looked at",
    [
      edit(RULES, '  if (command.number < row.nextImport) return outcome("unchanged", row);\n', ""),
      edit(
        RULES,
        '  if (command.number > row.nextImport) return outcome("gap", row);\n  const items',
        "  const items",
      ),
      edit(
        RULES,
        '  if (command.number !== row.nextImport) return outcome("gap", row);\n  const isEqual',
        "  const isEqual",
      ),
    ],
    { ...BUSY, ...aimed("late-copy"), ticks: BRIEF },
  ),
  machine(
    "P-101",
    "pages and scans show rows of keys that the group does not own",
    [
      edit(
        "src/machine/kv/page-builder.ts",
        "    if (!this.owned.owns(key)) return this.pass(key, bytes.length);\n",
        "",
      ),
    ],
    { ...READERS, ticks: BRIEF },
  ),
  machine(
    "P-102",
    "a purge takes the first key of the neighbour along",
    [
      edit(
        "src/machine/ranges/purge.ts",
        "  scanBucket(rows, space, { first, last }, visitor);",
        "  scanBucket(rows, space, { first, last: last === null ? null : `${last}\\0` }, visitor);",
      ),
    ],
    { ...BUSY, ...aimed("give-up") },
  ),
  control("P-102", "the source lets go of an interval before the cut", [
    edit(
      DUTIES,
      '    if (move?.phase === "copying") return null;\n',
      '    if (move?.phase === "copying") return { kind: "range-release", ...of };\n',
    ),
  ]),
  machine(
    "P-103",
    "the id of a split that failed is used again",
    [
      edit(
        BEGIN,
        "const target = existing?.partitionId ?? cluster.nextPartitionId;",
        "const living = reads.partitions().filter(({ state }) => state !== 'Removed');\n" +
          "  const next0 = Math.max(...living.map(({ partitionId }) => partitionId)) + 1;\n" +
          "  const target = existing?.partitionId ?? next0;",
      ),
    ],
    aimed("mute-side"),
  ),
  operations(
    "P-101",
    "a part of a scan that was refused is taken for an empty one",
    [
      edit(
        "src/operations/serving/leader-parts.ts",
        "if (failure === null && parts.length === ends.length) {",
        "if (failure === null) {",
      ),
      edit(
        "src/operations/kv/span-tiles.ts",
        "  if (span === null) return true;\n",
        "  if (span === null || spaces.length >= 0) return true;\n",
      ),
    ],
    { ...READERS, faults: ["kill-leader", "isolate"], ticks: BRIEF },
  ),
  machine(
    "P-104",
    "ranges that do not touch are merged",
    [
      edit(
        BEGIN,
        "return ![ranges[at - 1], ranges[at + 1]].some((range) => range?.partitionId === target);",
        "return !ranges.some((range) => range.partitionId === target);",
      ),
    ],
    { ticks: BRIEF },
  ),
  machine(
    "P-100",
    "a key space is removed while one of its ranges is away",
    [
      edit(
        META,
        "const isHome = existing.every(({ partitionId }) => partitionId === home);",
        "const isHome = existing.some(({ partitionId }) => partitionId === home);",
      ),
    ],
    {
      // Key spaces end late in each cycle.
      ticks: 24_000,
      ranges: {
        ...LIVELY,
        ...{ kinds: ["split-space", "unregister-space"], hasWitness: true },
      },
    },
  ),
  operations(
    "P-101",
    "a bucket of two ranges is read without a second round",
    [edit("src/operations/kv/span-read.ts", "        stands &&= isSame;\n", "")],
    // One part is read later than the other, and one write after the other comes between.
    {
      ...{ operations: { bucket: 6, set: 2 }, clients: 6, thinkMs: 20, faults: [], ticks: BRIEF },
      ranges: {
        ...{ ...LIVELY, kinds: ["split-space"], everyMs: 1000, handEveryMs: 0, hasChains: true },
        // A range that a split makes is led where the first one is, until leaders are spread.
        host: { leaderBalanceEveryMs: 300 },
        ...{ aims: ["late-calls"], aimEveryMs: 500 },
      },
    },
  ),
  machine(
    "P-042",
    "who owns what is not read anew after a snapshot",
    [
      edit(
        "src/machine/machine.ts",
        "    this.moved = true;\n    this.ownership.load(this.groupRows);\n",
        "    this.moved = true;\n",
      ),
    ],
    { faults: ["away", "away", "kill-leader"] },
  ),
];
