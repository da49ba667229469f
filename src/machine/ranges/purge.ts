/**
 * Deletes the rows of an interval that left the group, in slices.
 *
 * Pure decision over the rows of the context. Invariants: 1. No key outside of the interval is
 * touched. 2. Older revisions go before the row that lists them. 3. One slice deletes at most
 * `limit` rows and looks at VISITS_PER_DROP times as many, or SLICE_BYTES of rows.
 */
import { trimRevisions } from "../kv/kept-revisions.js";
import { wholeKvRow } from "../kv/kv.js";
import { encodeKvRow, rowWith } from "../kv/kv-row.js";
import { scanBucket, type BucketVisitor } from "../kv/pages.js";
import { RowKind, historyKey, type ByteKey } from "../store/keys.js";
import type { Rows } from "../store/rows.js";
import type { FilledSpan } from "./move-set.js";

const VISITS_PER_DROP = 4;
const SLICE_BYTES = 1024 * 1024;

/** Gathers the rows of one slice: nothing may change while a scan runs. */
class PurgeVisitor implements BucketVisitor {
  readonly found: { readonly key: ByteKey; readonly value: Uint8Array }[] = [];
  /** The last key looked at. */
  reached: ByteKey | null = null;
  isCut = false;
  private visits = 0;
  private bytes = 0;

  constructor(private readonly limit: number) {}

  private look(key: ByteKey, sizeBytes: number): boolean {
    const { limit } = this;
    const isFull = this.visits >= limit * VISITS_PER_DROP || this.bytes >= SLICE_BYTES;
    if (isFull || this.found.length >= limit) {
      this.isCut = true;
      return false;
    }
    this.visits++;
    this.bytes += key.length + sizeBytes;
    this.reached = key;
    return true;
  }

  offer(key: ByteKey, value: Uint8Array): boolean {
    if (!this.look(key, value.length)) return false;
    this.found.push({ key, value });
    return true;
  }

  pass(key: ByteKey, sizeBytes: number): boolean {
    return this.look(key, sizeBytes);
  }
}

/** What one slice came to. */
export interface PurgeSlice {
  readonly dropped: number;
  /** Up to this key nothing is left; null: as before. */
  readonly purgedTo: ByteKey | null;
  readonly isEnd: boolean;
}

/** Deletes at most `limit` rows of one key: how many, and whether nothing of it is left. */
function purgeKey(
  rows: Rows,
  key: ByteKey,
  value: Uint8Array,
  limit: number,
): { readonly dropped: number; readonly isGone: boolean } {
  const row = wholeKvRow(value);
  const trimmed = trimRevisions(row.kept, 0, limit);
  for (const revision of trimmed.dropped) {
    const name = historyKey(key, revision);
    const bytes = rows.get(RowKind.history, name);
    if (bytes !== null) rows.deleteRead(RowKind.history, name, bytes);
  }
  const dropped = trimmed.dropped.length;
  if (trimmed.kept.length === 0 && dropped < limit) {
    rows.deleteRead(RowKind.value, key, value);
    return { dropped: dropped + 1, isGone: true };
  }
  if (dropped > 0) {
    rows.put(RowKind.value, key, encodeKvRow(rowWith(row, { kept: trimmed.kept })));
  }
  return { dropped, isGone: false };
}

/** `after`: where the slice before ended; null = at the beginning. */
export function purgeSlice(
  rows: Rows,
  span: FilledSpan,
  after: ByteKey | null,
  limit: number,
): PurgeSlice {
  const visitor = new PurgeVisitor(limit);
  const { space, last } = span;
  const above = after === null ? "" : `${after}\0`;
  const first = above > span.first ? above : span.first;
  scanBucket(rows, space, { first, last }, visitor);
  let dropped = 0;
  let purgedTo: ByteKey | null = null;
  for (const { key, value } of visitor.found) {
    const purged = purgeKey(rows, key, value, limit - dropped);
    dropped += purged.dropped;
    if (!purged.isGone) return { dropped, purgedTo, isEnd: false };
    purgedTo = key;
  }
  return { dropped, purgedTo: visitor.reached ?? purgedTo, isEnd: !visitor.isCut };
}
