/**
 * What moves with a key: its latest row with the list of kept revisions, every kept revision, as
 * tombstone and after its expiry too, with revision numbers and stamps as they are (P-102).
 *
 * Checked as a whole, then carried out, over the rows of the context. Invariants: 1. A whole item
 * takes the place of all that the target has of the key. 2. Older revisions are among those that
 * the latest row lists: what knows the latest row finds them all. 3. `content` counts exactly what
 * the interval has.
 */
import { present } from "../../base/assert.js";
import { compareHlc, type Hlc } from "../../base/hlc.js";
import type { RangeItem } from "../commands/command.js";
import { isKept, trimRevisions } from "../kv/kept-revisions.js";
import { wholeKvRow } from "../kv/kv.js";
import { decodeKvRow, encodeKvRow, rowWith, type KvRow } from "../kv/kv-row.js";
import type { KeyInterval } from "../ownership/ownership-row.js";
import { spaceOf, spanOf } from "../ownership/ownership.js";
import { RowKind, historyKey, textToByteKey, type ByteKey } from "../store/keys.js";
import { kvKey } from "../store/names.js";
import type { ReadableRows, Rows } from "../store/rows.js";
import { carriedEnd, type LeaseCarriage } from "./carried-lease.js";
import type { Content } from "./content.js";

/** Revisions that a key may keep: as many as its flag permits. A row with more is none of ours. */
const KEPT_MAX = 65_535;

function keepsTooMany({ kept }: KvRow): boolean {
  return kept.reduce((sum, { count }) => sum + count, 0) > KEPT_MAX;
}

/** The revisions that a row lists as kept, ascending. */
export function keptOf(row: KvRow): readonly number[] {
  return trimRevisions(row.kept, 0, Infinity).dropped;
}

/** An item whose bytes are rows and which fits its place. */
export interface CheckedItem {
  readonly key: ByteKey;
  readonly row: KvRow | null;
  readonly continues: boolean;
  readonly history: readonly KvRow[];
}

/** The span of keys of one key space that is filled. */
export interface FilledSpan {
  readonly space: ByteKey;
  readonly first: ByteKey;
  readonly last: ByteKey | null;
}

export function spanIn(interval: KeyInterval): FilledSpan {
  return { space: textToByteKey(interval.keySpace), ...spanOf(interval) };
}

/** True when the key is one of the span. */
export function isIn({ space, first, last }: FilledSpan, key: ByteKey): boolean {
  return spaceOf(key) === space && first <= key && (last === null || key < last);
}

/** Null when it is no item for the span, or does not continue what the rows have. */
export function checkItem(
  rows: ReadableRows,
  span: FilledSpan,
  item: RangeItem,
): CheckedItem | null {
  const key = kvKey(item.key);
  if (key === null || !isIn(span, key)) return null;
  const row = item.row === null ? null : decodeKvRow(item.row);
  if (row === null && item.row !== null) return null;
  if (row !== null && (item.continues || keepsTooMany(row))) return null;
  const stored = item.continues ? rows.get(RowKind.value, key) : null;
  const latest = stored === null ? row : wholeKvRow(stored);
  if (latest === null && (item.continues || item.history.length > 0)) return null;
  const history: KvRow[] = [];
  let above = -1;
  for (const bytes of item.history) {
    const older = decodeKvRow(bytes);
    if (older === null || older.revision <= above) return null;
    if (latest === null || !isKept(latest.kept, older.revision)) return null;
    above = older.revision;
    history.push(older);
  }
  return { key, row, continues: item.continues, history };
}

/** What the filling of an interval changes. */
export interface Filling {
  readonly rows: Rows;
  readonly carriage: LeaseCarriage;
  readonly content: Content;
  /** The largest that came. */
  stamp: Hlc;
}

function carried(filling: Filling, row: KvRow): Uint8Array {
  if (compareHlc(row.stamp, filling.stamp) > 0) filling.stamp = row.stamp;
  if (row.endMs === null) return encodeKvRow(row);
  const endMs = carriedEnd(row.endMs, row.deleted, filling.carriage);
  return encodeKvRow(rowWith(row, { endMs }));
}

/** Takes away all older revisions of a key that the rows have. */
function removeHistory({ rows, content }: Filling, key: ByteKey, latest: KvRow): void {
  for (const revision of keptOf(latest)) {
    const name = historyKey(key, revision);
    const bytes = rows.get(RowKind.history, name);
    if (bytes === null) continue;
    content.remove(RowKind.history, key, wholeKvRow(bytes));
    rows.deleteRead(RowKind.history, name, bytes);
  }
}

/**
 * True when the rows have none of these keys: the keys are in order, and nothing lies between the
 * first and the last of them. Whatever comes first into an interval comes so, and looking once is
 * less than looking for each.
 */
export function areNew(rows: ReadableRows, items: readonly CheckedItem[]): boolean {
  let last: ByteKey | null = null;
  for (const { key, continues } of items) {
    if (continues || (last !== null && key <= last)) return false;
    last = key;
  }
  const first = items[0]?.key;
  if (first === undefined || last === null) return false;
  let isEmpty = true;
  rows.scan(RowKind.value, first, `${last}\0`, () => (isEmpty = false));
  return isEmpty;
}

/** As `fillIn`, for a key that the rows do not have: its older revisions are not there either. */
export function fillNew(filling: Filling, { key, row, history }: CheckedItem): void {
  if (row === null) return;
  const { rows, content } = filling;
  rows.insert(RowKind.value, key, carried(filling, row));
  content.add(RowKind.value, key, row);
  for (const older of history) {
    rows.put(RowKind.history, historyKey(key, older.revision), carried(filling, older));
    content.add(RowKind.history, key, older);
  }
}

/** Carries out an item that was checked against the same rows. */
export function fillIn(filling: Filling, { key, row, continues, history }: CheckedItem): void {
  const { rows, content } = filling;
  if (!continues) {
    const bytes = rows.get(RowKind.value, key);
    if (bytes !== null) {
      const latest = wholeKvRow(bytes);
      content.remove(RowKind.value, key, latest);
      removeHistory(filling, key, latest);
      if (row === null) rows.delete(RowKind.value, key);
    }
    if (row !== null) {
      rows.put(RowKind.value, key, carried(filling, row));
      content.add(RowKind.value, key, row);
    }
  }
  for (const older of history) {
    const name = historyKey(key, older.revision);
    const bytes = rows.get(RowKind.history, name);
    if (bytes !== null) content.remove(RowKind.history, key, wholeKvRow(bytes));
    rows.put(RowKind.history, name, carried(filling, older));
    content.add(RowKind.history, key, older);
  }
}

/** An older revision that the latest row lists. */
export function olderRow(rows: ReadableRows, key: ByteKey, revision: number): Uint8Array {
  const bytes = rows.get(RowKind.history, historyKey(key, revision));
  return present(bytes, "a kept revision is there");
}
