/**
 * Locks and key/value entries that live in the leader's memory: one table per leadership, made and
 * dropped by the host.
 *
 * The same decisions and reads as for persistent rows, over a table of its own. Invariants: 1.
 * Tokens lie above all that any earlier leadership of the group could have granted: they are
 * counted from floor + (term - 1) × 2^36 and never reach the next term's (L15). 2. Rows that are
 * held or live are never dropped to make room. 3. The table is bounded: beyond the bound new rows
 * are refused.
 */
import { assert } from "../base/assert.js";
import { FIRST_LEVEL } from "../base/ids.js";
import { INT64_MAX } from "../base/int64.js";
import { EPHEMERAL_TOKENS_PER_TERM } from "../base/limits.js";
import { STORE_KEY_MAX_BYTES, type StorePort } from "../ports.js";
import { type EphemeralOutcome, applyEphemeral } from "./apply.js";
import { collectRows } from "./collect.js";
import type { EntryStamp, KvCommand, LockCommand } from "./commands/command.js";
import type { DecisionContext } from "./decision/context.js";
import { DataReads } from "./data-reads.js";
import { type Hlc, NO_STAMP, compareHlc } from "../base/hlc.js";
import { trimRevisions } from "./kv/kept-revisions.js";
import { wholeKvRow } from "./kv/kv.js";
import { bucketSpan } from "./kv/pages.js";
import { type ByteKey, RowKind, fromByteKey, historyKey, toByteKey } from "./store/keys.js";
import { Memtable } from "./store/memtable.js";
import { isWholeRow } from "./snapshot/row-check.js";
import { GroupRows } from "./store/rows.js";
import { isOwned } from "./ownership/ownership-row.js";
import { Ownership } from "./ownership/ownership.js";
import { type PointInTimeReads, type KeySpan, pointInTimeValues } from "./point-in-time.js";
import { ValueWatch } from "./value-watch.js";

/** The kinds of rows that such a table has. */
const KINDS: ReadonlySet<number> = new Set([RowKind.lock, RowKind.value, RowKind.history]);

/** A row of a table, as it goes to the next leader. */
export interface EphemeralRow {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

export interface EphemeralHead {
  /** Of the latest decision. */
  readonly leaseMs: number;
  readonly stamp: Hlc;
  readonly nextLife: number;
}

/** Of an ownership: no version. */
const NEVER_DROPPED = -1;

/** A store that holds nothing: the table is all there is. */
const emptyStore: StorePort = {
  get: () => null,
  scan: () => undefined,
  write: () => assert(false, "an ephemeral table is never flushed"),
  sizeBytes: () => 0,
  close: () => undefined,
};

export interface EphemeralOptions {
  /** Machine.ephemeralFloor. */
  readonly floor: bigint;
  /** Term of the leadership. */
  readonly term: number;
  /** Bound of the table (bytes). */
  readonly maxBytes: number;
  /** Which keys are the group's; without it, all are. */
  readonly ownership?: Ownership;
}

export class EphemeralTable {
  readonly reads: DataReads;
  private readonly memtable: Memtable;
  private readonly context: DecisionContext;
  private readonly maxBytes: number;
  /** Of the ownership, when rows of keys that are not the group's were dropped last. */
  private ownedVersion: number;

  constructor(options: EphemeralOptions) {
    const first = options.floor + BigInt(options.term - 1) * EPHEMERAL_TOKENS_PER_TERM;
    const ceiling = first + EPHEMERAL_TOKENS_PER_TERM - 1n;
    assert(first >= 0n && ceiling <= INT64_MAX, "the tokens of a term fit int64");
    this.maxBytes = options.maxBytes;
    this.memtable = new Memtable({ store: emptyStore, cacheBytes: 0, copiesValues: true });
    const rows = new GroupRows(this.memtable, "", null);
    const ownership = options.ownership ?? new Ownership(true);
    this.ownedVersion = ownership.version;
    this.reads = new DataReads(rows, ownership);
    this.context = {
      rows,
      ownership,
      term: options.term,
      nowMs: 0,
      stamp: NO_STAMP,
      tokenFloor: first,
      tokenCeiling: ceiling,
      nextLife: 1,
      // What is ephemeral is no entry of a log.
      level: FIRST_LEVEL,
      collectedKeysMs: 0,
      collectedLocksMs: 0,
      lapsedLocks: 0,
    };
  }

  /** Leases of locks that ended without a release, as decisions found them. */
  get lapsedLocks(): number {
    return this.context.lapsedLocks;
  }

  get sizeBytes(): number {
    return this.memtable.sizeBytes;
  }

  /** What a copy of the table says of itself: latest lease time and stamp, number of lives. */
  get head(): EphemeralHead {
    const { nowMs, stamp, nextLife } = this.context;
    return { leaseMs: nowMs, stamp, nextLife };
  }

  /**
   * Rows from the one behind `after` on (null: the first), of about `maxBytes` together; `next`:
   * where to go on, null at the end. The table must not change in between.
   */
  rowsAfter(
    after: ByteKey | null,
    maxBytes: number,
  ): { readonly rows: readonly EphemeralRow[]; readonly next: ByteKey | null } {
    const rows: EphemeralRow[] = [];
    let sizeBytes = 0;
    let last: ByteKey = "";
    let next: ByteKey | null = null;
    this.memtable.scan(after === null ? "" : `${after}\0`, null, (key, value) => {
      if (sizeBytes >= maxBytes) {
        next = last;
        return false;
      }
      last = key;
      sizeBytes += key.length + value.length;
      rows.push({ key: fromByteKey(key), value });
      return true;
    });
    return { rows, next };
  }

  /**
   * Takes over rows of an earlier leadership's table, which decided its last at `head`. False: one
   * is no row of such a table, and the table is good for nothing.
   */
  takeOver(rows: readonly EphemeralRow[], head: EphemeralHead): boolean {
    const { context } = this;
    this.ownedVersion = NEVER_DROPPED;
    for (const { key, value } of rows) {
      const kind = key[0] ?? 0;
      if (!KINDS.has(kind) || key.length > STORE_KEY_MAX_BYTES || !isWholeRow(kind, value)) {
        return false;
      }
      this.memtable.put(toByteKey(key), value);
    }
    context.nowMs = Math.max(context.nowMs, head.leaseMs);
    if (compareHlc(head.stamp, context.stamp) > 0) context.stamp = head.stamp;
    context.nextLife = Math.max(context.nextLife, head.nextLife);
    return true;
  }

  /**
   * Drops what the table has of keys that the group owns no more: they are lost, as by a change of
   * leader (K19), and do not come back with the keys. To be called whenever entries were applied.
   */
  dropMoved(): void {
    const { rows, ownership } = this.context;
    if (ownership.version === this.ownedVersion) return;
    this.ownedVersion = ownership.version;
    for (const { keySpace } of ownership.all().filter((row) => !isOwned(row))) {
      const span = bucketSpan(keySpace);
      if (span === null) continue;
      const moved: (readonly [ByteKey, Uint8Array])[] = [];
      rows.scan(RowKind.value, span.first, span.last, (key, value) => {
        if (!ownership.owns(key)) moved.push([key, value]);
        return true;
      });
      for (const [key, value] of moved) {
        const { kept } = wholeKvRow(value);
        for (const revision of trimRevisions(kept, 0, Infinity).dropped) {
          rows.delete(RowKind.history, historyKey(key, revision));
        }
        rows.delete(RowKind.value, key);
      }
    }
  }

  /** As Machine.pointInTimeView. */
  pointInTimeView(span: KeySpan | null, maxHeldBytes: number): PointInTimeReads | null {
    const { memtable, context } = this;
    return pointInTimeValues(memtable, "", context.ownership, span, maxHeldBytes);
  }

  /** As Machine.watchValues, for as long as the table is that of its group. */
  watchValues(span: KeySpan): ValueWatch {
    return new ValueWatch(this.memtable, "", span, this.context.ownership, () => true);
  }

  get rows(): number {
    return this.memtable.rows;
  }

  /**
   * Decides one command at the lease time given. "full": no room for a new row; nothing was done
   * (overload).
   */
  apply(command: LockCommand | KvCommand, stamp: EntryStamp): EphemeralOutcome | "full" {
    const { context } = this;
    if (stamp.leaseMs > context.nowMs) context.nowMs = stamp.leaseMs;
    context.stamp = stamp.stamp;
    if (this.memtable.sizeBytes >= this.maxBytes && this.mayAddBytes(command)) return "full";
    return applyEphemeral(context, command);
  }

  private mayAddBytes({ kind }: LockCommand | KvCommand): boolean {
    return kind === "try-lock" || kind === "lock-with-note" || kind === "kv-set";
  }

  /**
   * Drops up to `limit` rows that are released, expired or deleted and past retention; 0 drops all
   * that ended. Returns how many were dropped and where to go on (null = done).
   */
  collect(
    nowMs: number,
    after: Uint8Array | null,
    limit: number,
    retentionMs: number,
  ): { readonly dropped: number; readonly next: Uint8Array | null } {
    if (nowMs > this.context.nowMs) this.context.nowMs = nowMs;
    return collectRows(this.context, {
      kind: "collect",
      after,
      limit,
      lockRetentionMs: retentionMs,
      // 0 would keep tombstones for ever, which memory cannot.
      tombstoneRetentionMs: Math.max(1, retentionMs),
    });
  }
}
