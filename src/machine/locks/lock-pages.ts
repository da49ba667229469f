/**
 * Pages of locks in the order of their resources (F2). Pure.
 *
 * Invariants: 1. A page goes on strictly above `after`. 2. `next` is the last resource that was
 * looked at, when there are more behind it; whatever is shown of those up to there is in the page.
 * 3. Expiry is judged with the time given; who held what ended is not shown.
 */
import { present } from "../../base/assert.js";
import { ended } from "../decision/lease.js";
import {
  RowKind,
  byteKeyToText,
  fromByteKey,
  keySuccessor,
  textToByteKey,
  toByteKey,
  type ByteKey,
} from "../store/keys.js";
import type { ReadableRows } from "../store/rows.js";
import { LockState, decodeLockRow } from "./lock-row.js";

/** What an item costs beside resource, owner and note (bytes). */
const LOCK_ITEM_BYTES = 64;

export interface LockItem {
  readonly resource: string;
  /** Null: nobody holds it. */
  readonly owner: Uint8Array | null;
  readonly note: Uint8Array | null;
  /** Of the last grant. */
  readonly token: bigint;
  /** Lease clock (ms); 0 when nobody holds it. */
  readonly leaseEndMs: number;
}

export interface LockPageQuery {
  readonly prefix: string;
  /** UTF-8 of the resource above which to go on; null: from the start. */
  readonly after: Uint8Array | null;
  readonly heldOnly: boolean;
  readonly limit: number;
  readonly maxBytes: number;
  /** Rows that are looked at. */
  readonly maxVisits: number;
}

export interface LockPage {
  readonly items: readonly LockItem[];
  /** UTF-8; null at the end. */
  readonly next: Uint8Array | null;
}

/** Items cost so much of a page (bytes). */
export function lockItemBytes({ resource, owner, note }: Omit<LockItem, "token">): number {
  return LOCK_ITEM_BYTES + resource.length + (owner?.length ?? 0) + (note?.length ?? 0);
}

export function readLockPage(rows: ReadableRows, query: LockPageQuery, nowMs: number): LockPage {
  const { after, heldOnly, limit, maxBytes, maxVisits } = query;
  const prefix = textToByteKey(query.prefix);
  const behind = after === null ? prefix : `${toByteKey(after)}\0`;
  const first = behind > prefix ? behind : prefix;
  const last = prefix === "" ? null : keySuccessor(prefix);
  const items: LockItem[] = [];
  let reached: ByteKey | null = null;
  let hasMore = false;
  let visits = 0;
  let sizeBytes = 0;
  if (last !== null && first >= last) return { items, next: null };
  rows.scan(RowKind.lock, first, last, (key, value) => {
    hasMore = visits >= maxVisits || items.length >= limit || sizeBytes >= maxBytes;
    if (hasMore && reached !== null) return false;
    visits++;
    reached = key;
    const row = present(decodeLockRow(value), "a stored lock row is whole");
    const { endMs, token } = row;
    const isHeld = row.state === LockState.held && !ended(endMs, nowMs);
    if (!isHeld && heldOnly) return true;
    const resource = byteKeyToText(key);
    const item: LockItem = isHeld
      ? { resource, owner: row.owner, note: row.note, token, leaseEndMs: endMs }
      : { resource, owner: null, note: null, token, leaseEndMs: 0 };
    items.push(item);
    sizeBytes += lockItemBytes(item);
    return true;
  });
  return { items, next: hasMore && reached !== null ? fromByteKey(reached) : null };
}
