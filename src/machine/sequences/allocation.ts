/**
 * Exact arithmetic of allocations: how many values fit, and where a range ends. Pure.
 *
 * Invariants: 1. Everything is checked before anything is written; nothing wraps. 2. The work does
 * not depend on counts.
 */
import { INT64_MAX } from "../../base/int64.js";
import type { BlockCursor } from "../commands/command.js";
import type { SequenceRow } from "./sequence-row.js";

/**
 * The value from which the next allocation goes on: the cursor's where it is the record's own
 * block, else the record's.
 */
export function allocationBase(row: SequenceRow, cursor: BlockCursor | null): bigint {
  return cursor !== null && isCurrentBlock(row, cursor) ? cursor.lastHandedOut : row.currentValue;
}

/** True when `cursor` stands in the last reservation of this very record. */
export function isCurrentBlock(row: SequenceRow, cursor: BlockCursor): boolean {
  if (cursor.incarnation !== row.incarnation || cursor.revision !== row.revision) return false;
  const { lastHandedOut } = cursor;
  if (lastHandedOut < row.before || lastHandedOut > row.currentValue) return false;
  return (lastHandedOut - row.before) % row.increment === 0n;
}

/** How many values may still be allocated above `base`. */
export function valuesAvailable(row: SequenceRow, base: bigint): bigint {
  const limit = row.maxValue ?? INT64_MAX;
  return limit <= base ? 0n : (limit - base) / row.increment;
}
