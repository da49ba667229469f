/**
 * Idempotency entries of sequences (S10, S11): finding, remembering, forgetting by number and by
 * lease time.
 *
 * Pure decisions over the rows of the context. Entries lie under the life of their sequence, which
 * changes with every update and every create, so that all of a former life are out of reach at
 * once; the collector removes them later. Invariants: 1. What is recalled is what was answered, to
 * the bit. 2. Forgetting depends on the command and the lease clock only. 3. An entry past its end
 * counts as new although its row is still there. 4. One call drops at most EVICTIONS_MAX rows; more
 * than it adds, so that a lowered bound is reached soon.
 */
import { present } from "../../base/assert.js";
import type { AllocateCommand } from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import {
  RowKind,
  sequenceKeyKey,
  sequenceOrderKey,
  toByteKey,
  type ByteKey,
} from "../store/keys.js";
import { ended, leaseEnd } from "../decision/lease.js";
import type { Rows } from "../store/rows.js";
import {
  decodeAllocationRow,
  decodeSequenceRow,
  encodeAllocationRow,
  encodeOrderRow,
  encodeSequenceRow,
  type AllocationRow,
  type SequenceRow,
} from "./sequence-row.js";

const EVICTIONS_MAX = 64;

function load(rows: Rows, life: number, key: ByteKey): AllocationRow | null {
  const bytes = rows.get(RowKind.sequenceKey, sequenceKeyKey(life, key));
  return bytes === null ? null : present(decodeAllocationRow(bytes), "a stored entry is whole");
}

function isOver(entry: AllocationRow, nowMs: number): boolean {
  return entry.endMs !== 0 && ended(entry.endMs, nowMs);
}

/** The allocation that this key got in the present life, or null. */
export function recallAllocation(
  context: DecisionContext,
  row: SequenceRow,
  key: ByteKey,
): AllocationRow | null {
  const entry = load(context.rows, row.life, key);
  return entry === null || isOver(entry, context.nowMs) ? null : entry;
}

/**
 * Remembers the allocation that is about to be written with the next revision; changes the counters
 * in `row`.
 */
export function rememberAllocation(
  context: DecisionContext,
  name: ByteKey,
  row: SequenceRow,
  key: ByteKey,
  before: bigint,
  command: AllocateCommand,
): void {
  const { rows } = context;
  const former = load(rows, row.life, key);
  if (former !== null) {
    rows.delete(RowKind.sequenceOrder, sequenceOrderKey(row.life, former.ordinal));
    row.entries--;
  }
  const retainedMs = safeCount(command.keysRetainedMs);
  const entry: AllocationRow = {
    name,
    count: command.count,
    before,
    increment: row.increment,
    incarnation: row.incarnation,
    revision: row.revision + 1,
    ordinal: row.nextOrdinal,
    endMs: retainedMs === 0 ? 0 : leaseEnd(context.nowMs, retainedMs),
  };
  const entryKey = sequenceKeyKey(row.life, key);
  if (former === null) rows.insert(RowKind.sequenceKey, entryKey, encodeAllocationRow(entry));
  else rows.put(RowKind.sequenceKey, entryKey, encodeAllocationRow(entry));
  const order = sequenceOrderKey(row.life, row.nextOrdinal);
  rows.insert(RowKind.sequenceOrder, order, encodeOrderRow(key));
  row.nextOrdinal++;
  row.entries++;
  evict(context, row, safeCount(command.keysRetainedMax));
}

function safeCount(value: number): number {
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/**
 * Drops the oldest entries beyond `entriesMax` (0 = no bound), and those at the old end that are
 * over.
 */
function evict(context: DecisionContext, row: SequenceRow, entriesMax: number): void {
  const { rows } = context;
  for (let dropped = 0; dropped < EVICTIONS_MAX && row.firstOrdinal < row.nextOrdinal; dropped++) {
    const order = sequenceOrderKey(row.life, row.firstOrdinal);
    const keyBytes = rows.get(RowKind.sequenceOrder, order);
    if (keyBytes !== null) {
      const key = toByteKey(keyBytes);
      const entry = present(load(rows, row.life, key), "an order row names an entry");
      const tooMany = entriesMax > 0 && row.entries > entriesMax;
      if (!tooMany && !isOver(entry, context.nowMs)) return;
      rows.delete(RowKind.sequenceKey, sequenceKeyKey(row.life, key));
      rows.delete(RowKind.sequenceOrder, order);
      row.entries--;
    }
    row.firstOrdinal++;
  }
}

/**
 * For the collector: drops the entry in this row if it is over or its life has ended. Returns
 * whether it was dropped. `rowName`: its name part (life and key).
 */
export function dropRemembered(
  context: DecisionContext,
  rowName: ByteKey,
  bytes: Uint8Array,
): boolean {
  const { rows } = context;
  const entry = present(decodeAllocationRow(bytes), "a stored entry is whole");
  const lifeKey = rowName.slice(0, 8);
  const stored = rows.get(RowKind.sequence, entry.name);
  const row = stored === null ? null : present(decodeSequenceRow(stored), "a sequence is whole");
  const living = row !== null && sequenceKeyKey(row.life, "") === lifeKey;
  if (living && !isOver(entry, context.nowMs)) return false;
  rows.delete(RowKind.sequenceKey, rowName);
  rows.delete(RowKind.sequenceOrder, lifeKey + sequenceOrderKey(0, entry.ordinal).slice(8));
  if (living) {
    row.entries--;
    rows.put(RowKind.sequence, entry.name, encodeSequenceRow(row));
  }
  return true;
}
