/**
 * What a page of keys is asked for: the text that a cursor belongs to, and where the page begins.
 *
 * Pure. Invariants: 1. Two questions have the same text exactly when they are the same. 2. A cursor
 * belongs to its question.
 */
import { compareText, decodeText } from "../../base/bytes.js";
import { decodeCursor, encodeCursor } from "../../machine/kv/cursor.js";
import type { RangeQuery } from "../../machine/decision/reading.js";
import type { KvBucketRequest, KvRangeRequest } from "./kv-requests.js";

/** Text that is equal exactly for the same question. */
export function queryText(...parts: readonly (string | number | boolean | null)[]): string {
  return parts.map((part) => (part === null ? "-" : `${String(part).length}:${part}`)).join("");
}

function rangeQueryText(request: KvRangeRequest): string {
  const { prefix, startKey, startInclusive, endKey, endInclusive, durability } = request;
  return queryText("range", prefix, startKey, startInclusive, endKey, endInclusive, durability);
}

/** The key above which a page goes on; null = at its start; "bad" for a cursor of another query. */
export function rangeAfter(request: KvRangeRequest): Uint8Array | null | "bad" {
  if (request.cursor === null) return null;
  return decodeCursor(rangeQueryText(request), request.cursor) ?? "bad";
}

/** The cursor of a page that ended at `next`. */
export function rangeCursor(request: KvRangeRequest, next: Uint8Array): string {
  return encodeCursor(rangeQueryText(request), next);
}

/** The keys that get-by-range is asked for. */
export function rangeQueryOf(request: KvRangeRequest): RangeQuery {
  const { prefix, startKey, startInclusive, endKey, endInclusive } = request;
  return {
    bucket: prefix,
    startKey,
    startInclusive: startKey === null || startInclusive,
    endKey,
    endInclusive,
  };
}

/** All keys of a bucket, as a range of it. */
export function wholeBucket(bucket: string): RangeQuery {
  return { bucket, startKey: null, startInclusive: true, endKey: null, endInclusive: true };
}

/** Keys from `low` to `high`; null = open. */
export interface TextSpan {
  readonly low: string | null;
  readonly high: string | null;
  /** `high` itself is not one of them. */
  readonly isHighOpen: boolean;
}

/** The keys that the answer to a request about a bucket may show, or a few more below them. */
export function bucketSpanOf(request: KvBucketRequest | KvRangeRequest): TextSpan {
  if (request.kind === "kv-bucket") return { low: null, high: null, isHighOpen: false };
  const { startKey, endKey, endInclusive } = request;
  const reached = rangeAfter(request);
  const after = reached === null || reached === "bad" ? null : decodeText(reached);
  const isLater = after !== null && (startKey === null || compareText(after, startKey) > 0);
  return { low: isLater ? after : startKey, high: endKey, isHighOpen: !endInclusive };
}
