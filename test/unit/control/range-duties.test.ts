/** What leaders owe moves of ranges beside the copy: each state of a row against each state of its move. */
import t from "tap";
import { NO_STAMP } from "../../../src/base/hlc.js";
import { attempt, mapVersion, moveId, rangeGeneration } from "../../../src/base/ids.js";
import { type RangeRecords, rangeDuties } from "../../../src/control/range-duties.js";
import type { RangeDescriptor, RangeMove } from "../../../src/machine/commands/command.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import { GroupRows } from "../../../src/machine/store/rows.js";
import { Ownership } from "../../../src/machine/ownership/ownership.js";
import type { OwnershipRow } from "../../../src/machine/ownership/ownership-row.js";

const SOURCE = 1;
const TARGET = 9;
const TAIL = { keySpace: "room", startKey: "room/5", endKey: null };
const NOTHING = { nextImport: 1, keys: 0, digestLow: 0, digestHigh: 0, stamp: NO_STAMP };

function row(state: OwnershipRow["state"], changes: Partial<OwnershipRow> = {}): OwnershipRow {
  const of = { generation: rangeGeneration(1), moveId: moveId(5), attempt: attempt(2) };
  return { ...TAIL, state, ...of, ...NOTHING, purgedTo: null, isPurged: false, ...changes };
}

const MOVE: RangeMove = {
  ...TAIL,
  ...{ moveId: moveId(5), kind: "split", source: SOURCE, target: TARGET },
  ...{ generation: rangeGeneration(1), attempt: attempt(2), phase: "copying", reason: "none" },
  ...{ sourceDone: false, targetDone: false, deadlineLeaseMs: 1 },
};
const WHOLE: RangeDescriptor = {
  ...{ startKey: null, endKey: null },
  ...{ partitionId: SOURCE, generation: rangeGeneration(1) },
};

function owned(partition: number, rows: readonly OwnershipRow[]): Ownership {
  const store = {
    get: () => null,
    scan: () => undefined,
    write: () => undefined,
    sizeBytes: () => 0,
    close: () => undefined,
  };
  const ownership = new Ownership(partition === SOURCE);
  const target = new GroupRows(new Memtable({ store }), "", null);
  for (const each of rows) ownership.assign(target, each);
  return ownership;
}

function records(move: RangeMove | null, changes: Partial<RangeRecords> = {}): RangeRecords {
  return {
    mapVersion: mapVersion(7),
    poolSize: 1,
    moves: () => (move === null ? [] : [move]),
    moveOf: () => move,
    rangesOf: () => [WHOLE],
    ...changes,
  };
}

/** In short: "range-release", "finish-move source". */
function duties(
  partition: number,
  rows: readonly OwnershipRow[],
  move: Partial<RangeMove> | null,
  changes: Partial<RangeRecords> = {},
): string {
  const led = { partition, ownership: owned(partition, rows) };
  const found = rangeDuties(led, records(move === null ? null : { ...MOVE, ...move }, changes));
  return found
    .map(({ command }) => ("side" in command ? `finish-move ${command.side}` : command.kind))
    .join();
}

void t.test("the source opens what no cut can take any more, and gives up what was cut", (t) => {
  const frozen = [row("leaving")];
  t.equal(duties(SOURCE, frozen, {}), "", "while it is copied the mover decides");
  t.equal(duties(SOURCE, frozen, { phase: "cut" }), "range-release");
  t.equal(duties(SOURCE, frozen, { phase: "aborting", reason: "deadline" }), "range-unfreeze");
  t.equal(duties(SOURCE, frozen, null), "range-unfreeze", "the move is over, the range is its own");
  const isNext = { ...WHOLE, generation: rangeGeneration(2) };
  const grown = { rangesOf: () => [isNext] };
  const why =
    "P-094 frozen late, by who heard late that another range was joined with it meanwhile";
  t.equal(duties(SOURCE, frozen, null, grown), "range-unfreeze", why);
  const part = { rangesOf: () => [{ ...isNext, startKey: "room/7" }] };
  t.equal(duties(SOURCE, frozen, null, part), "range-release");
  const elsewhere = { rangesOf: () => [{ ...WHOLE, partitionId: TARGET }] };
  t.equal(duties(SOURCE, frozen, null, elsewhere), "range-release");
  const gone = { rangesOf: () => [] };
  t.equal(duties(SOURCE, frozen, null, gone), "range-unfreeze", "at home, where all went");
  const old = { mapVersion: mapVersion(4) };
  t.equal(duties(SOURCE, frozen, null, old), "", "an older map says nothing about it");
  t.end();
});

void t.test("what left is purged, and then the side is done", (t) => {
  const cut = { phase: "cut" } as const;
  t.equal(duties(SOURCE, [row("left")], cut), "range-purge");
  t.equal(duties(SOURCE, [row("left", { isPurged: true })], cut), "finish-move source");
  t.equal(duties(SOURCE, [row("left")], null), "range-purge", "long after the move too");
  t.equal(duties(SOURCE, [], cut), "", "what is owned as ever was not released");
  t.equal(duties(SOURCE, [row("left", { isPurged: true })], { ...cut, sourceDone: true }), "");
  t.equal(duties(SOURCE, [], { phase: "aborting", reason: "deadline" }), "finish-move source");
  t.end();
});

void t.test("the target adopts the attempt that was cut, and drops all others", (t) => {
  const cut = { phase: "cut" } as const;
  t.equal(duties(TARGET, [row("closed")], {}), "", "not before the cut");
  t.equal(duties(TARGET, [row("closed")], cut), "range-adopt");
  t.equal(duties(TARGET, [row("closed", { attempt: attempt(1) })], cut), "", "another attempt");
  t.equal(duties(TARGET, [row("arriving")], cut), "");
  t.equal(duties(TARGET, [row("here")], cut), "finish-move target");
  const aborted = { phase: "aborting", reason: "deadline" } as const;
  t.equal(duties(TARGET, [row("arriving")], aborted), "range-drop");
  t.equal(duties(TARGET, [row("closed")], aborted), "range-drop");
  t.equal(duties(TARGET, [row("arriving")], null), "range-drop");
  t.equal(duties(TARGET, [row("left")], aborted), "range-purge");
  t.equal(duties(TARGET, [], aborted), "finish-move target");
  t.equal(duties(TARGET, [], { ...aborted, targetDone: true }), "");
  t.equal(duties(TARGET, [], cut), "", "nothing came yet");
  t.end();
});

void t.test("a row of another move is not this one's", (t) => {
  const later = { moveId: moveId(7) };
  t.equal(duties(SOURCE, [row("leaving")], later), "range-unfreeze", "frozen late");
  t.equal(duties(TARGET, [row("arriving")], later), "range-drop", "opened late");
  t.equal(duties(5, [], {}), "", "who has no part in it");
  t.end();
});
