/**
 * Sequences, rules S1 to S17: create, update, delete, allocations, block reservations, and reading.
 *
 * Pure decisions over the rows of the context. `currentValue` of a record is the end of all that is
 * reserved; what the leader's open block has handed out below it is the host's knowledge and comes
 * back as a cursor. Invariants: 1. A refusal changes no row and no counter. 2. The revision moves
 * by one with a reservation, a keyed or durable allocation and an update; handing back a block
 * moves neither revision nor updatedAt, for it is no write that a client asked for (S14 lists the
 * three), and a cursor used twice finds the block ended at itself. 3. A range is contiguous.
 */
import { present } from "../../base/assert.js";
import { INT32_MAX, isInt64 } from "../../base/int64.js";
import { BLOCK_SIZE_MAX } from "../../base/limits.js";
import { allocationBase, isCurrentBlock, valuesAvailable } from "./allocation.js";
import {
  SequenceType,
  type AllocateCommand,
  type AllocationOutcome,
  type CreateSequenceCommand,
  type DeleteSequenceCommand,
  type ReserveBlockCommand,
  type ReturnBlockCommand,
  type SequenceCommand,
  type SequenceOutcome,
  type SequenceRecord,
  type UpdateSequenceCommand,
} from "../commands/command.js";
import type { DecisionContext, Rules } from "../decision/context.js";
import { RowKind, type ByteKey } from "../store/keys.js";
import { idempotencyKey, sequenceKey } from "../store/names.js";
import { recallAllocation, rememberAllocation } from "./idempotency.js";
import type { ReadableRows } from "../store/rows.js";
import { decodeSequenceRow, encodeSequenceRow, type SequenceRow } from "./sequence-row.js";

export function loadSequence(rows: ReadableRows, key: ByteKey): SequenceRow | null {
  const bytes = rows.get(RowKind.sequence, key);
  return bytes === null ? null : present(decodeSequenceRow(bytes), "a stored sequence is whole");
}

export function storeSequence(context: DecisionContext, key: ByteKey, row: SequenceRow): void {
  context.rows.put(RowKind.sequence, key, encodeSequenceRow(row));
}

export function sequenceRefusal(type: number): SequenceOutcome {
  return { kind: "sequence", type, record: null };
}

export function sequenceRecord(name: string, row: SequenceRow): SequenceRecord {
  return {
    name,
    currentValue: row.currentValue,
    initialValue: row.initialValue,
    increment: row.increment,
    maxValue: row.maxValue,
    blockSize: row.blockSize,
    incarnation: row.incarnation,
    revision: row.revision,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

export function isBlockSize(size: number): boolean {
  return Number.isInteger(size) && size >= 1 && size <= BLOCK_SIZE_MAX;
}

export function isIncrement(value: bigint): boolean {
  return value >= 1n && isInt64(value);
}

/** S2. */
function createSequence(context: DecisionContext, command: CreateSequenceCommand): SequenceOutcome {
  const key = sequenceKey(command.name);
  const { initialValue, increment, maxValue, blockSize } = command;
  if (key === null || !isInt64(initialValue) || !isIncrement(increment)) {
    return sequenceRefusal(SequenceType.invalidInput);
  }
  if (maxValue !== null && (!isInt64(maxValue) || maxValue < initialValue)) {
    return sequenceRefusal(SequenceType.invalidInput);
  }
  if (blockSize !== null && !isBlockSize(blockSize)) {
    return sequenceRefusal(SequenceType.invalidInput);
  }
  if (context.rows.get(RowKind.sequence, key) !== null) {
    return sequenceRefusal(SequenceType.alreadyExists);
  }
  const row: SequenceRow = {
    currentValue: initialValue,
    before: initialValue,
    initialValue,
    increment,
    maxValue,
    blockSize,
    incarnation: 0,
    revision: 0,
    createdAt: context.stamp,
    updatedAt: context.stamp,
    life: context.nextLife++,
    firstOrdinal: 0,
    nextOrdinal: 0,
    entries: 0,
  };
  context.rows.insert(RowKind.sequence, key, encodeSequenceRow(row));
  const record = sequenceRecord(command.name, row);
  return { kind: "sequence", type: SequenceType.success, record };
}

/** S16. Idempotency entries of the ended life are out of reach at once and collected later. */
function deleteSequence(context: DecisionContext, command: DeleteSequenceCommand): SequenceOutcome {
  const key = sequenceKey(command.name);
  if (key === null) return sequenceRefusal(SequenceType.invalidInput);
  if (context.rows.get(RowKind.sequence, key) === null) {
    return sequenceRefusal(SequenceType.notFound);
  }
  context.rows.delete(RowKind.sequence, key);
  return sequenceRefusal(SequenceType.success);
}

function allocationRefusal(type: number): AllocationOutcome {
  return {
    kind: "allocation",
    type,
    before: 0n,
    increment: 0n,
    count: 0,
    incarnation: 0,
    revision: 0,
  };
}

function isCount(count: number): boolean {
  return Number.isInteger(count) && count >= 1 && count <= INT32_MAX;
}

/**
 * Writes the row with `count` more values above `before` reserved. `open`: they are a block, of
 * which a cursor may hand back the rest; of a durable allocation nothing is left to hand back.
 */
function reserve(
  context: DecisionContext,
  key: ByteKey,
  row: SequenceRow,
  before: bigint,
  count: number,
  open: boolean,
): AllocationOutcome {
  row.currentValue = before + BigInt(count) * row.increment;
  row.before = open ? before : row.currentValue;
  row.revision++;
  row.updatedAt = context.stamp;
  storeSequence(context, key, row);
  return {
    kind: "allocation",
    type: SequenceType.success,
    before,
    increment: row.increment,
    count,
    incarnation: row.incarnation,
    revision: row.revision,
  };
}

/** S4, S5, S10, S11: one durable allocation, remembered when it has a key. */
function allocate(context: DecisionContext, command: AllocateCommand): AllocationOutcome {
  const name = sequenceKey(command.name);
  const key = command.key === null ? null : idempotencyKey(command.key);
  if (name === null || (command.key !== null && key === null) || !isCount(command.count)) {
    return allocationRefusal(SequenceType.invalidInput);
  }
  const row = loadSequence(context.rows, name);
  if (row === null) return allocationRefusal(SequenceType.notFound);
  const known = key === null ? null : recallAllocation(context, row, key);
  if (known !== null) {
    if (known.count !== command.count) return allocationRefusal(SequenceType.invalidInput);
    const { before, increment, count, incarnation, revision } = known;
    const type = SequenceType.success;
    return { kind: "allocation", type, before, increment, count, incarnation, revision };
  }
  const before = allocationBase(row, command.cursor);
  if (valuesAvailable(row, before) < BigInt(command.count)) {
    return allocationRefusal(SequenceType.maxValueExceeded);
  }
  if (key !== null) rememberAllocation(context, name, row, key, before, command);
  return reserve(context, name, row, before, command.count, false);
}

/** S8: at least `count` values, as many as a block has where they fit. */
function reserveBlock(context: DecisionContext, command: ReserveBlockCommand): AllocationOutcome {
  const name = sequenceKey(command.name);
  if (name === null || !isCount(command.count) || !isBlockSize(command.defaultBlockSize)) {
    return allocationRefusal(SequenceType.invalidInput);
  }
  const row = loadSequence(context.rows, name);
  if (row === null) return allocationRefusal(SequenceType.notFound);
  const before = allocationBase(row, command.cursor);
  const available = valuesAvailable(row, before);
  if (available < BigInt(command.count)) return allocationRefusal(SequenceType.maxValueExceeded);
  const wanted = Math.max(row.blockSize ?? command.defaultBlockSize, command.count);
  const count = available < BigInt(wanted) ? Number(available) : wanted;
  return reserve(context, name, row, before, count, true);
}

/**
 * S9: the unused rest of a block goes back. Success, or NotFound when it is not the block of the
 * record.
 */
function returnBlock(context: DecisionContext, command: ReturnBlockCommand): SequenceOutcome {
  const name = sequenceKey(command.name);
  const row = name === null ? null : loadSequence(context.rows, name);
  if (name === null || row === null || !isCurrentBlock(row, command.cursor)) {
    return sequenceRefusal(SequenceType.notFound);
  }
  const { lastHandedOut } = command.cursor;
  if (row.currentValue !== lastHandedOut || row.before !== lastHandedOut) {
    row.currentValue = lastHandedOut;
    row.before = lastHandedOut;
    storeSequence(context, name, row);
  }
  return sequenceRefusal(SequenceType.success);
}

/** S15; null when absent. */
export function readSequence(rows: ReadableRows, name: string): SequenceRecord | null {
  return readSequenceBlock(rows, name)?.record ?? null;
}

export interface SequenceBlockReading {
  readonly record: SequenceRecord;
  /** The value below the last reservation, which is (before, record.currentValue]. */
  readonly before: bigint;
}

export function readSequenceBlock(rows: ReadableRows, name: string): SequenceBlockReading | null {
  const key = sequenceKey(name);
  const row = key === null ? null : loadSequence(rows, key);
  return row === null ? null : { record: sequenceRecord(name, row), before: row.before };
}

/** All but update, which is next door. */
export const SEQUENCE_RULES: Rules<
  Exclude<SequenceCommand, UpdateSequenceCommand>,
  SequenceOutcome | AllocationOutcome
> = {
  "create-sequence": createSequence,
  "delete-sequence": deleteSequence,
  allocate,
  "reserve-block": reserveBlock,
  "return-block": returnBlock,
};
