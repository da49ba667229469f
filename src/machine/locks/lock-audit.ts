/**
 * Who released which lock by force (F5): rows of the group's own state, the newest of them kept,
 * and read from the newest back.
 *
 * Invariants: 1. A row is written by the command that has the effect, and by no other. 2. Numbers
 * are never used again. 3. Stamps do not fall along the numbers. 4. A command drops a bounded
 * number of rows.
 */
import { assert, present } from "../../base/assert.js";
import { type Hlc, compareHlc } from "../../base/hlc.js";
import { LOCK_AUDIT_ROWS_MAX } from "../../base/limits.js";
import type { DecisionContext } from "../decision/context.js";
import { RowKind, uint53Key } from "../store/keys.js";
import type { ReadableRows } from "../store/rows.js";
import {
  type LockAuditHead,
  type LockAuditRow,
  decodeAuditHead,
  decodeLockAudit,
  encodeAuditHead,
  encodeLockAudit,
} from "./lock-audit-row.js";

/** Rows that one command drops, at most: more than one only after fewer are to be kept. */
const DROPS_MAX = 64;
const HEAD_KEY = "";
const NOTHING: LockAuditHead = { oldest: 1, next: 1 };

function headOf(rows: ReadableRows): LockAuditHead {
  const bytes = rows.get(RowKind.lockAuditHead, HEAD_KEY);
  return bytes === null ? NOTHING : present(decodeAuditHead(bytes), "a stored head is whole");
}

function rowAt(rows: ReadableRows, id: number): LockAuditRow {
  const bytes = rows.get(RowKind.lockAudit, uint53Key(id));
  assert(bytes !== null, "the rows that the head tells of are there");
  return present(decodeLockAudit(bytes), "a stored row of the audit is whole");
}

/** True for a number of rows that may be kept. */
export function isRetained(rows: number): boolean {
  return Number.isInteger(rows) && rows >= 1 && rows <= LOCK_AUDIT_ROWS_MAX;
}

/** Adds a row with the stamp of the entry; returns its number. */
export function addLockAudit(
  { rows, stamp }: DecisionContext,
  row: Omit<LockAuditRow, "stamp">,
  retained: number,
): number {
  const { oldest, next } = headOf(rows);
  rows.put(RowKind.lockAudit, uint53Key(next), encodeLockAudit({ ...row, stamp }));
  let kept = oldest;
  const untilId = Math.min(next + 1 - retained, oldest + DROPS_MAX);
  for (; kept < untilId; kept++) rows.delete(RowKind.lockAudit, uint53Key(kept));
  rows.put(RowKind.lockAuditHead, HEAD_KEY, encodeAuditHead({ oldest: kept, next: next + 1 }));
  return next;
}

export interface LockAuditItem extends LockAuditRow {
  readonly id: number;
}

export interface LockAuditPage {
  /** The newest first. */
  readonly items: readonly LockAuditItem[];
  /** The last one looked at, when there are more behind it. */
  readonly next: { readonly stamp: Hlc; readonly id: number } | null;
}

/** Where a page begins: below this. Of other partitions the stamp alone counts. */
export interface AuditPosition {
  readonly stamp: Hlc;
  readonly id: number;
}

/** Up to `limit` rows of resources that begin so, of `maxVisits` that are looked at. */
export function readLockAudit(
  rows: ReadableRows,
  prefix: string,
  below: AuditPosition | null,
  limit: number,
  maxVisits: number,
): LockAuditPage {
  const head = headOf(rows);
  let id = (below === null ? head.next : firstNotBelow(rows, head, below)) - 1;
  const items: LockAuditItem[] = [];
  let last: LockAuditItem | null = null;
  for (let visits = 0; id >= head.oldest; id--, visits++) {
    const isFull = items.length >= limit || visits >= maxVisits;
    if (isFull && last !== null) return { items, next: { stamp: last.stamp, id: last.id } };
    last = { ...rowAt(rows, id), id };
    if (last.resource.startsWith(prefix)) items.push(last);
  }
  return { items, next: null };
}

/** The first number that is not below the position, by halves: stamps do not fall. */
function firstNotBelow(
  rows: ReadableRows,
  { oldest, next }: LockAuditHead,
  below: AuditPosition,
): number {
  let low = oldest;
  let high = next;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const order = compareHlc(rowAt(rows, middle).stamp, below.stamp);
    if (order < 0 || (order === 0 && middle < below.id)) low = middle + 1;
    else high = middle;
  }
  return low;
}
