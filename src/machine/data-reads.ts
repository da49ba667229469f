/**
 * Reads of locks, sequences and key/value over the rows of one group or of one ephemeral table.
 *
 * Pure: the host proves leadership and gives a committed lease time. Invariants: 1. Expiry is
 * judged by `ended` with the time given. 2. An exact revision is found or reported missing, never
 * approximated. 3. Buckets and pages show keys that the group owns; who asks for one key asks
 * first whether it is the group's.
 */
import type { SequenceRecord } from "./commands/command.js";
import { readValue, type KvReadMode } from "./kv/kv-reads.js";
import type { LiveCount } from "./kv/live-count.js";
import { type AuditPosition, type LockAuditPage, readLockAudit } from "./locks/lock-audit.js";
import { type LockPage, type LockPageQuery, readLockPage } from "./locks/lock-pages.js";
import { loadLock, successionOf } from "./locks/heirs.js";
import type { Succession } from "./locks/lock-row.js";
import { readLock } from "./locks/locks.js";
import { readBucket, readPrefixPage, readRangePage } from "./kv/pages.js";
import type {
  BucketReading,
  KvReading,
  LockReading,
  PageBounds,
  PageReading,
  RangeQuery,
} from "./decision/reading.js";
import type { OwnedKeys } from "./ownership/ownership.js";
import { resourceKey } from "./store/names.js";
import type { ReadableRows } from "./store/rows.js";
import {
  readSequence,
  readSequenceBlock,
  type SequenceBlockReading,
} from "./sequences/sequences.js";
import { WatchedRows } from "./watched-rows.js";

export class DataReads {
  constructor(
    private readonly rows: ReadableRows,
    private readonly owned: OwnedKeys,
  ) {}

  /** As watches see them. */
  get watched(): WatchedRows {
    return new WatchedRows(this.rows, this.owned);
  }

  /** L10, L11. */
  getLock(resource: string, nowMs: number): LockReading {
    return readLock(this.rows, resource, nowMs);
  }

  /**
   * A lock with its heirs, as the rules of succession.ts see it, of which they also say whether its
   * list is orphaned; null: it was never granted. Its bytes are views.
   */
  succession(resource: string): Readonly<Succession> | null {
    const key = resourceKey(resource);
    const row = key === null ? null : loadLock(this.rows, key);
    return row === null ? null : successionOf(row);
  }

  /** F2. */
  lockPage(query: LockPageQuery, nowMs: number): LockPage {
    return readLockPage(this.rows, query, nowMs);
  }

  /** F5: rows of resources that begin with `prefix`, the newest first. */
  lockAudit(
    prefix: string,
    below: AuditPosition | null,
    limit: number,
    maxVisits: number,
  ): LockAuditPage {
    return readLockAudit(this.rows, prefix, below, limit, maxVisits);
  }

  /**
   * The record, null when absent (or when the name is not one). `currentValue` is the end of what
   * is reserved.
   */
  getSequence(name: string): SequenceRecord | null {
    return readSequence(this.rows, name);
  }

  /** The record with the value below its last reservation; null when absent. */
  getSequenceBlock(name: string): SequenceBlockReading | null {
    return readSequenceBlock(this.rows, name);
  }

  /** K3: `revision` -1 = latest. */
  kvGet(key: string, revision: bigint, nowMs: number): KvReading {
    return this.kvRead(key, revision, nowMs, "get");
  }

  kvExists(key: string, revision: bigint, nowMs: number): KvReading {
    return this.kvRead(key, revision, nowMs, "exists");
  }

  private kvRead(key: string, revision: bigint, nowMs: number, mode: KvReadMode): KvReading {
    return readValue(this.rows, key, revision, nowMs, mode);
  }

  /** K12, K13: all live keys of a bucket, or "too-large" beyond `maxBytes`. */
  bucket(bucket: string, nowMs: number, maxBytes: number): BucketReading {
    return readBucket(this.rows, this.owned, bucket, nowMs, maxBytes);
  }

  /** Lets `tally` look at the next rows. */
  countLive(tally: LiveCount, nowMs: number, maxVisits: number): void {
    tally.slice(this.rows, nowMs, maxVisits);
  }

  /** K15, K17: live keys beginning with `prefix`; with `tombstones` also deleted ones. */
  prefixPage(prefix: string, bounds: PageBounds, nowMs: number, tombstones: boolean): PageReading {
    return readPrefixPage(this.rows, this.owned, prefix, bounds, nowMs, tombstones);
  }

  /** K16. */
  rangePage(query: RangeQuery, bounds: PageBounds, nowMs: number): PageReading {
    return readRangePage(this.rows, this.owned, query, bounds, nowMs);
  }
}
