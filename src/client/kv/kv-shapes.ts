/**
 * What goes into and comes out of key/value calls.
 *
 * Invariants: 1. Values are bytes; text given by the caller is its UTF-8 form; null is "exists,
 * holds nothing". 2. Revisions are bigint.
 */
import type { SvcError } from "../values/errors.js";
import type { Int64Input, Timestamp } from "../values/numbers.js";
import type { CallOptions, Durability } from "../values/options.js";

export interface KvCallOptions extends CallOptions {
  /** Persistent (default), or Ephemeral: in the leader's memory. */
  readonly durability?: Durability | undefined;
}

export interface KvGetOptions extends KvCallOptions {
  /** An exact revision (≥ 0); default: the latest. */
  readonly revision?: Int64Input | undefined;
}

/** Conditions of a set; all that are given must hold. */
export interface KvSetConditions {
  /** Lease of the entry in ms; 0 or omitted = none. */
  readonly expiresMs?: number | undefined;
  /** Only if a live value exists. */
  readonly ifExists?: boolean | undefined;
  /** Only if no live value exists. */
  readonly ifNotExists?: boolean | undefined;
  /** Only if the stored bytes equal this; null equals missing, empty and null. */
  readonly ifValue?: string | Uint8Array | null | undefined;
  /** Only if the latest revision, also a deletion's, equals this; -1 = never set. */
  readonly ifRevision?: Int64Input | undefined;
  /** Do not keep this revision once it is superseded. */
  readonly noHistory?: boolean | undefined;
  /** Further flag bits as the wire has them (SET 1, … SET_IF_EQUAL_TO_REVISION 32). */
  readonly flags?: number | undefined;
}

export interface KvSetOptions extends KvCallOptions, KvSetConditions {}

export interface KvSetItem extends KvSetConditions {
  readonly key: string;
  readonly value: string | Uint8Array | null;
}

/** Names one entry in a many-call. */
export interface KvItemKey {
  readonly key: string;
  readonly revision?: Int64Input | undefined;
}

/** An entry. */
export interface KvEntry {
  readonly key: string;
  /** The bytes; null = the entry holds nothing. */
  readonly value: Uint8Array | null;
  /** The value as text; null when it is null or no UTF-8. */
  readonly text: string | null;
  readonly revision: bigint;
  /** Estimated end of its lease, zeros = none; for information only. */
  readonly expires: Timestamp;
  readonly lastModified: Timestamp;
}

/** An entry without its value. */
export interface KvExistence {
  readonly key: string;
  readonly revision: bigint;
  readonly expires: Timestamp;
  readonly lastModified: Timestamp;
}

/** Answer of set and extend. */
export interface KvWrite {
  /** Whether the write took place: conditions held (set), the entry exists (extend). */
  readonly applied: boolean;
  /** Revision of the write, or the current one when a condition failed (-1 = none). */
  readonly revision: bigint;
  readonly lastModified: Timestamp;
}

/** Answer of delete. */
export interface KvDelete {
  /** Whether this call found a live entry and deleted it. */
  readonly deleted: boolean;
  /** An earlier try of this call may have deleted it. */
  readonly doubtful: boolean;
  readonly revision: bigint;
  readonly lastModified: Timestamp;
}

/** One item of a many-call: its result, or why there is none. */
export type KvManyResult<Result> =
  | { readonly key: string; readonly result: Result; readonly error: null }
  | { readonly key: string; readonly result: null; readonly error: SvcError };

/** One item of a page. */
export type KvItem = KvEntry;

export interface KvPageOptions extends KvCallOptions {
  /** Items per page, 1 to 10,000; default: as many as fit a page of the server. */
  readonly limit?: number | undefined;
  /** Where the page before ended. */
  readonly cursor?: string | undefined;
}

/** What iterating over all pages takes. */
export interface KvIterateOptions {
  /** Longest time of the whole iteration in ms from its first step (default: none). */
  readonly overallDeadlineMs?: number | undefined;
}

export interface KvPage {
  readonly items: readonly KvItem[];
  readonly hasMore: boolean;
  /** Continues behind this page; null when there is no more. */
  readonly nextCursor: string | null;
}

/** Keys of one bucket, from `start` to `end` (omitted = open), in byte order. */
export interface BucketRange {
  readonly bucket: string;
  readonly start?: string | undefined;
  /** Default true. */
  readonly startInclusive?: boolean | undefined;
  readonly end?: string | undefined;
  /** Default false. */
  readonly endInclusive?: boolean | undefined;
}

export interface KvRangeOptions extends KvCallOptions {
  /** Items per page, 1 to 10,000 (default 1000). */
  readonly limit?: number | undefined;
}
