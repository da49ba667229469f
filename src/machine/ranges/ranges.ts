/**
 * The rules of an interval of keys that goes from one group to another: what source and target do
 * with each command of a move.
 *
 * Pure decisions over the rows of the context. Invariants: 1. Only the group's own rows decide;
 * what is not of this move and its attempt has no effect. 2. What is filled is served by nobody
 * before it is adopted, and only what is closed is adopted. 3. What was frozen is served again only
 * for a later attempt than the one that froze it. 4. Imports count: each number is applied once. 5.
 * Nothing is filled where rows are still to be deleted, and nothing is deleted but of an interval
 * that left.
 */
import { compareHlc } from "../../base/hlc.js";
import type {
  RangeAdoptCommand,
  RangeCloseCommand,
  RangeCommand,
  RangeDropCommand,
  RangeFreezeCommand,
  RangeImportCommand,
  RangeOpenCommand,
  RangeOutcome,
  RangePurgeCommand,
  RangeReleaseCommand,
  RangeStatus,
  RangeUnfreezeCommand,
} from "../commands/command.js";
import type { DecisionContext, Rules } from "../decision/context.js";
import {
  isSettled,
  type KeyInterval,
  type OwnershipRow,
  type OwnershipState,
  NOTHING_FILLED,
} from "../ownership/ownership-row.js";
import { spaceOf } from "../ownership/ownership.js";
import { byteKeyToText, textToByteKey } from "../store/keys.js";
import { kvKey } from "../store/names.js";
import { Content } from "./content.js";
import {
  areNew,
  checkItem,
  fillIn,
  fillNew,
  spanIn,
  type CheckedItem,
  type Filling,
} from "./move-set.js";
import { purgeSlice } from "./purge.js";

/** Largest number of rows that one purge may delete. */
const PURGE_LIMIT_MAX = 10_000;

function outcome(status: RangeStatus, row: OwnershipRow | null = null, dropped = 0): RangeOutcome {
  const isFilled = row?.state === "arriving" || row?.state === "closed";
  const { nextImport, keys } = isFilled ? row : { nextImport: 0, keys: 0 };
  return { kind: "range", status, nextImport, keys, dropped };
}

/** True for bounds that lie in the key space, in order. */
function isInterval({ keySpace, startKey, endKey }: KeyInterval): boolean {
  const space = kvKey(keySpace);
  if (space === null) return false;
  const bounds = [startKey, endKey].filter((bound) => bound !== null).map(kvKey);
  if (!bounds.every((bound) => bound !== null && spaceOf(bound) === space)) return false;
  const [first, last] = bounds;
  return typeof first !== "string" || typeof last !== "string" || first < last;
}

function isNamed({ moveId, attempt }: RangeCommand): boolean {
  return Number.isSafeInteger(moveId) && moveId >= 1 && Number.isInteger(attempt) && attempt >= 1;
}

function isSame(row: OwnershipRow, { startKey, endKey }: KeyInterval): boolean {
  return row.startKey === startKey && row.endKey === endKey;
}

/** What the group has of a move, and is not done with; a move has one interval. */
function rowOf({ ownership }: DecisionContext, command: RangeCommand): OwnershipRow | null {
  if (!isNamed(command) || kvKey(command.keySpace) === null) return null;
  const rows = ownership.rowsOf(textToByteKey(command.keySpace));
  return rows.find((row) => row.moveId === command.moveId && !isSettled(row)) ?? null;
}

function isFilled({ state }: OwnershipRow): boolean {
  return state === "arriving" || state === "closed";
}

function newRow(
  command: RangeOpenCommand | RangeFreezeCommand,
  state: OwnershipState,
): OwnershipRow {
  const { keySpace, startKey, endKey, generation, moveId, attempt } = command;
  const named = { keySpace, startKey, endKey, state, generation, moveId, attempt };
  return { ...named, ...NOTHING_FILLED, purgedTo: null, isPurged: false };
}

/** The interval is not the group's: what it has of it is to be deleted. */
function leave({ rows, ownership }: DecisionContext, row: OwnershipRow): RangeOutcome {
  ownership.replace(rows, { ...row, ...NOTHING_FILLED, state: "left" });
  return outcome("done");
}

/** The interval is the group's, as any other key of it. */
function own({ rows, ownership }: DecisionContext, row: OwnershipRow): void {
  if (ownership.ownsByDefault) ownership.carve(rows, row);
  else ownership.assign(rows, { ...row, ...NOTHING_FILLED, state: "here" });
}

function open(context: DecisionContext, command: RangeOpenCommand): RangeOutcome {
  if (!isNamed(command) || !isInterval(command)) return outcome("invalid");
  const { rows, ownership } = context;
  const row = rowOf(context, command);
  if (row !== null) {
    if (row.attempt > command.attempt || row.state === "leaving") return outcome("stale");
    if (!isFilled(row)) return outcome("unsettled");
    if (row.attempt < command.attempt) {
      leave(context, row);
      return outcome("unsettled");
    }
    if (!isSame(row, command)) return outcome("invalid");
    return outcome(row.state === "closed" ? "closed" : "unchanged", row);
  }
  if (!ownership.ownsNone(command)) return outcome("stale");
  if (!ownership.overlapping(command).every(isSettled)) return outcome("unsettled");
  const opened = newRow(command, "arriving");
  ownership.assign(rows, opened);
  return outcome("done", opened);
}

/** All items, checked; null when one is not what an item of the interval is. */
function checkedItems(
  { rows }: DecisionContext,
  row: OwnershipRow,
  command: RangeImportCommand,
): CheckedItem[] | null {
  const { number, sourceLeaseMs, copyAgeMs } = command;
  const numbers = [number, sourceLeaseMs, copyAgeMs];
  if (!numbers.every((value) => Number.isSafeInteger(value) && value >= 0)) return null;
  const span = spanIn(row);
  const checked: CheckedItem[] = [];
  for (const item of command.items) {
    const found = checkItem(rows, span, item);
    if (found === null) return null;
    checked.push(found);
  }
  return checked;
}

/** The row of the attempt that fills an interval, or why there is none. */
function filledBy(
  context: DecisionContext,
  command: RangeImportCommand | RangeCloseCommand,
): OwnershipRow | "stale" {
  const row = rowOf(context, command);
  return row !== null && isFilled(row) && row.attempt === command.attempt ? row : "stale";
}

function importItems(context: DecisionContext, command: RangeImportCommand): RangeOutcome {
  const row = filledBy(context, command);
  if (row === "stale") return outcome("stale");
  if (command.number < row.nextImport) return outcome("unchanged", row);
  if (row.state === "closed") return outcome("stale");
  if (command.number > row.nextImport) return outcome("gap", row);
  const items = checkedItems(context, row, command);
  if (items === null) return outcome("invalid", row);
  const { rows, ownership, nowMs } = context;
  const { sourceLeaseMs, copyAgeMs } = command;
  const content = new Content(row.keys, row.digestLow, row.digestHigh);
  const carriage = { sourceLeaseMs, copyAgeMs, nowMs };
  const filling: Filling = { rows, carriage, content, stamp: row.stamp };
  const fill = areNew(rows, items) ? fillNew : fillIn;
  for (const item of items) fill(filling, item);
  const { keys, digestLow, digestHigh } = content;
  const { stamp } = filling;
  const nextImport = row.nextImport + 1;
  const filled = { ...row, nextImport, keys, digestLow, digestHigh, stamp };
  ownership.replace(rows, filled);
  return outcome("done", filled);
}

function close(context: DecisionContext, command: RangeCloseCommand): RangeOutcome {
  const row = filledBy(context, command);
  if (row === "stale") return outcome("stale");
  if (row.state === "closed") return outcome("unchanged", row);
  if (command.number !== row.nextImport) return outcome("gap", row);
  const isEqual =
    command.keys === row.keys &&
    command.digestLow === row.digestLow &&
    command.digestHigh === row.digestHigh;
  if (!isEqual) return outcome("mismatch", row);
  const closed: OwnershipRow = { ...row, state: "closed" };
  context.ownership.replace(context.rows, closed);
  return outcome("closed", closed);
}

/** No stamp that the group gives from now on is below one that it took in. */
function adopt(context: DecisionContext, command: RangeAdoptCommand): RangeOutcome {
  const row = rowOf(context, command);
  if (row === null) return outcome("unchanged");
  if (row.state !== "closed" || row.attempt !== command.attempt) return outcome("stale");
  if (compareHlc(row.stamp, context.stamp) > 0) context.stamp = row.stamp;
  own(context, row);
  return outcome("done");
}

function drop(context: DecisionContext, command: RangeDropCommand): RangeOutcome {
  const row = rowOf(context, command);
  if (row === null || row.state === "left") return outcome("unchanged");
  if (!isFilled(row) || row.attempt > command.attempt) return outcome("stale");
  return leave(context, row);
}

function freeze(context: DecisionContext, command: RangeFreezeCommand): RangeOutcome {
  if (!isNamed(command) || !isInterval(command)) return outcome("invalid");
  const { rows, ownership } = context;
  const row = rowOf(context, command);
  if (row !== null) {
    if (row.state !== "leaving" || row.attempt > command.attempt) return outcome("stale");
    if (row.attempt < command.attempt || !isSame(row, command)) return outcome("not-owned");
    return outcome("unchanged");
  }
  if (!ownership.ownsAll(command)) return outcome("not-owned");
  ownership.assign(rows, newRow(command, "leaving"));
  return outcome("done");
}

function unfreeze(context: DecisionContext, command: RangeUnfreezeCommand): RangeOutcome {
  const row = rowOf(context, command);
  if (row?.state !== "leaving") return outcome("unchanged");
  if (row.attempt >= command.attempt) return outcome("stale");
  own(context, row);
  return outcome("done");
}

function release(context: DecisionContext, command: RangeReleaseCommand): RangeOutcome {
  const row = rowOf(context, command);
  if (row === null || row.state === "left") return outcome("unchanged");
  if (row.state !== "leaving" || row.attempt !== command.attempt) return outcome("stale");
  return leave(context, row);
}

function purge(context: DecisionContext, command: RangePurgeCommand): RangeOutcome {
  const { limit, startKey, attempt } = command;
  if (!Number.isInteger(limit) || limit < 1 || limit > PURGE_LIMIT_MAX) return outcome("invalid");
  const row = rowOf(context, command);
  if (row?.state !== "left" || row.attempt !== attempt || row.startKey !== startKey) {
    return outcome("unchanged");
  }
  const { rows, ownership } = context;
  const after = row.purgedTo === null ? null : textToByteKey(row.purgedTo);
  const { dropped, purgedTo, isEnd } = purgeSlice(rows, spanIn(row), after, limit);
  if (isEnd && ownership.ownsByDefault) {
    ownership.assign(rows, { ...row, purgedTo: null, isPurged: true });
  } else if (isEnd) ownership.carve(rows, row);
  else if (purgedTo !== null) {
    ownership.replace(rows, { ...row, purgedTo: byteKeyToText(purgedTo) });
  }
  return outcome(isEnd ? "done" : "more", null, dropped);
}

export const RANGE_RULES: Rules<RangeCommand, RangeOutcome> = {
  "range-open": open,
  "range-import": importItems,
  "range-close": close,
  "range-adopt": adopt,
  "range-drop": drop,
  "range-freeze": freeze,
  "range-unfreeze": unfreeze,
  "range-release": release,
  "range-purge": purge,
};
