/**
 * Scans of keys: bucket, prefix pages, range pages (K12 to K17). Pure.
 *
 * Rows lie in key order. The bucket B holds the key B itself (when B has no `/`) and the keys B/x
 * without a further `/`; keys of deeper buckets lie between them and are jumped over. Invariants:
 * 1. All bounds are byte-wise and half-open. 2. A bucket is compared as a whole component. 3. A
 * page continues strictly above its cursor. 4. Keys that the group does not own are not shown.
 */
import { RowKind, keySuccessor, nameKey, toByteKey, type ByteKey } from "../store/keys.js";
import type { OwnedKeys } from "../ownership/ownership.js";
import { kvKey } from "../store/names.js";
import { PageBuilder } from "./page-builder.js";
import type { BucketReading, PageBounds, PageReading, RangeQuery } from "../decision/reading.js";
import type { ReadableRows } from "../store/rows.js";

const SEPARATOR = "/";
/**
 * The character right above the separator: `a0` is the first key above all that begin with `a/`.
 */
const ABOVE_SEPARATOR = "0";
/** Rows of one deeper bucket that are stepped over before the scan jumps behind that bucket. */
const STEPS_MAX = 16;

const invalid = { kind: "invalid" } as const;

/** Half-open interval of keys; `last` null = to the end. */
interface Interval {
  readonly first: ByteKey;
  readonly last: ByteKey | null;
}

/** The smallest key above `key`. */
function above(key: ByteKey): ByteKey {
  return `${key}\0`;
}

function larger(a: ByteKey, b: ByteKey): ByteKey {
  return a > b ? a : b;
}

function smaller(a: ByteKey, b: ByteKey | null): ByteKey {
  return b === null || a < b ? a : b;
}

function isPageBounds(bounds: PageBounds): boolean {
  return Number.isInteger(bounds.limit) && bounds.limit >= 0;
}

export function readPrefixPage(
  rows: ReadableRows,
  owned: OwnedKeys,
  prefixText: string,
  bounds: PageBounds,
  nowMs: number,
  tombstones: boolean,
): PageReading {
  const prefix = kvKey(prefixText);
  if (prefix === null || !isPageBounds(bounds)) return invalid;
  const { limit, maxBytes, maxVisits } = bounds;
  const builder = new PageBuilder(owned, nowMs, limit, maxBytes, maxVisits, tombstones);
  const after = bounds.after === null ? prefix : above(toByteKey(bounds.after));
  const first = larger(prefix, after);
  const last = keySuccessor(prefix);
  if (last === null || first < last) {
    rows.scan(RowKind.value, first, last, (key, value) => builder.offer(key, value));
  }
  return { kind: "page", page: builder.page() };
}

/** Who is shown the rows of a bucket. False ends the scan: the row is then not taken. */
export interface BucketVisitor {
  offer(key: ByteKey, value: Uint8Array): boolean;
  /** A row of a deeper bucket on the way. */
  pass(key: ByteKey, sizeBytes: number): boolean;
}

/**
 * Visits the rows of exactly this bucket within the interval, in order, until the builder has
 * enough.
 */
export function scanBucket(
  rows: ReadableRows,
  bucket: ByteKey,
  interval: Interval,
  builder: BucketVisitor,
): void {
  const isOwn = !bucket.includes(SEPARATOR);
  if (isOwn && interval.first <= bucket && (interval.last === null || bucket < interval.last)) {
    const own = rows.get(RowKind.value, bucket);
    if (own !== null && !builder.offer(bucket, own)) return;
  }
  const start = bucket + SEPARATOR;
  const last = smaller(bucket + ABOVE_SEPARATOR, interval.last);
  let first: ByteKey | null = larger(start, interval.first);
  while (first !== null && first < last) {
    first = scanUntilJump(rows, start.length, { first, last }, builder);
  }
}

/**
 * Scans on; returns where to go on behind a deeper bucket, or null at the end or when the builder
 * has enough.
 */
function scanUntilJump(
  rows: ReadableRows,
  nameAt: number,
  interval: Interval,
  builder: BucketVisitor,
): ByteKey | null {
  let jump: ByteKey | null = null;
  let steps = 0;
  let deeper = "";
  rows.scan(RowKind.value, interval.first, interval.last, (key, value) => {
    const slash = key.indexOf(SEPARATOR, nameAt);
    if (slash < 0) return builder.offer(key, value);
    if (!builder.pass(key, value.length)) return false;
    const inside = key.slice(0, slash);
    steps = inside === deeper ? steps + 1 : 1;
    deeper = inside;
    if (steps < STEPS_MAX) return true;
    jump = inside + ABOVE_SEPARATOR;
    return false;
  });
  return jump;
}

/** A span of keys, last excluded. */
export interface KeySpan {
  readonly first: ByteKey;
  readonly last: ByteKey;
}

/** The smallest span of keys that holds all of a bucket; null when it is no name of one. */
export function bucketSpan(bucketText: string): KeySpan | null {
  const bucket = kvKey(bucketText);
  return bucket === null ? null : { first: bucket, last: bucket + ABOVE_SEPARATOR };
}

/** The keys that begin with a prefix; null when it is none. UTF-8 never ends in 0xff. */
export function prefixSpan(prefixText: string): KeySpan | null {
  const prefix = kvKey(prefixText);
  const last = prefix === null ? null : keySuccessor(prefix);
  return prefix === null || last === null ? null : { first: prefix, last };
}

/** The rest of a range behind `after`, as a span of keys; null when the query is not one. */
export function rangeSpan(query: RangeQuery, after: Uint8Array | null): KeySpan | null {
  const whole = bucketSpan(query.bucket);
  const interval = rangeInterval(query, after);
  if (whole === null || interval === null) return null;
  const last = smaller(whole.last, interval.last);
  return { first: smaller(larger(whole.first, interval.first), last), last };
}

/** K13, K14: everything or "too-large", never a part. */
export function readBucket(
  rows: ReadableRows,
  owned: OwnedKeys,
  bucketText: string,
  nowMs: number,
  maxBytes: number,
): BucketReading {
  const bucket = kvKey(bucketText);
  if (bucket === null) return invalid;
  const builder = new PageBuilder(owned, nowMs, 0, maxBytes, Number.MAX_SAFE_INTEGER, false);
  scanBucket(rows, bucket, { first: "", last: null }, builder);
  const page = builder.page();
  if (page.next !== null || page.sizeBytes > maxBytes) return { kind: "too-large" };
  return { kind: "items", items: page.items, sizeBytes: page.sizeBytes };
}

/** Bounds may be any text of up to the size of a key, also empty and also outside the bucket. */
function boundKey(text: string): ByteKey | null {
  return text === "" ? "" : nameKey(text);
}

function rangeInterval(query: RangeQuery, after: Uint8Array | null): Interval | null {
  let first: ByteKey = "";
  let last: ByteKey | null = null;
  if (query.startKey !== null) {
    const start = boundKey(query.startKey);
    if (start === null) return null;
    first = query.startInclusive ? start : above(start);
  }
  if (query.endKey !== null) {
    const end = boundKey(query.endKey);
    if (end === null) return null;
    last = query.endInclusive ? above(end) : end;
  }
  if (after !== null) first = larger(first, above(toByteKey(after)));
  return { first, last };
}

export function readRangePage(
  rows: ReadableRows,
  owned: OwnedKeys,
  query: RangeQuery,
  bounds: PageBounds,
  nowMs: number,
): PageReading {
  const bucket = kvKey(query.bucket);
  if (bucket === null || !isPageBounds(bounds)) return invalid;
  const interval = rangeInterval(query, bounds.after);
  if (interval === null) return invalid;
  const { limit, maxBytes, maxVisits } = bounds;
  const builder = new PageBuilder(owned, nowMs, limit, maxBytes, maxVisits, false);
  scanBucket(rows, bucket, interval, builder);
  return { kind: "page", page: builder.page() };
}
