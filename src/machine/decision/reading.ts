/**
 * What reads of the state machine answer: types only, no wire formats.
 *
 * Invariants: 1. Lease ends are on the lease clock of the group; null = no lease. 2. `value` null =
 * exists and holds nothing, or nothing is described: `type` tells. 3. Values are not to be changed.
 */
import type { Hlc } from "../../base/hlc.js";

export interface LockReading {
  /** LockType got, doesNotExist or invalidInput. */
  readonly type: number;
  readonly owner: Uint8Array | null;
  /** Of the grant; null: none. */
  readonly note: Uint8Array | null;
  readonly token: bigint;
  /** Lease clock (ms); 0 when not got. */
  readonly leaseEndMs: number;
}

export interface KvReading {
  /** KvType got, exists, doesNotExist or invalidInput. */
  readonly type: number;
  /** KvState for the wire: set, deleted (the latest is a tombstone), undefined. */
  readonly state: number;
  readonly value: Uint8Array | null;
  /** 0 unless got or exists. */
  readonly revision: number;
  readonly leaseEndMs: number | null;
  readonly lastModified: Hlc;
}

export interface PageItem {
  readonly key: string;
  /** KvState set, or deleted for a tombstone that was asked for. */
  readonly state: number;
  readonly value: Uint8Array | null;
  readonly revision: number;
  readonly leaseEndMs: number | null;
  readonly lastModified: Hlc;
}

export interface Page {
  readonly items: readonly PageItem[];
  /** UTF-8 of the last key looked at: continue strictly above it. Null when there is no more. */
  readonly next: Uint8Array | null;
  /** Approximate size of the items. */
  readonly sizeBytes: number;
  /** Rows looked at, a large one counted once more for each KiB. */
  readonly visits: number;
}

export interface PageBounds {
  /** Continue strictly above this key; null = from the start. */
  readonly after: Uint8Array | null;
  /** Items at most; 0 = no bound by number. */
  readonly limit: number;
  /** A page ends when it reaches this size, but holds at least one item if there is one. */
  readonly maxBytes: number;
  /**
   * Visits, as the page counts them, expired and deleted rows included; the page ends there even if
   * it is empty. The last row may exceed them.
   */
  readonly maxVisits: number;
}

export interface RangeQuery {
  /** The bucket, taken literally. */
  readonly bucket: string;
  readonly startKey: string | null;
  readonly startInclusive: boolean;
  readonly endKey: string | null;
  readonly endInclusive: boolean;
}

export type BucketReading =
  | { readonly kind: "items"; readonly items: readonly PageItem[]; readonly sizeBytes: number }
  | { readonly kind: "too-large" }
  | { readonly kind: "invalid" };

export type PageReading =
  { readonly kind: "page"; readonly page: Page } | { readonly kind: "invalid" };
