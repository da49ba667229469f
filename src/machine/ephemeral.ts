/**
 * Locks and key/value entries that live in the leader's memory: one table per leadership, made and
 * dropped by the host.
 *
 * The same decisions and reads as for persistent rows, over a table of its own. May call the
 * decision files of this folder. Invariants: 1. Tokens lie above all that any earlier leadership of
 * the group could have granted: they are counted from floor + (term - 1) × 2^36 and never reach the
 * next term's (L15). 2. Rows that are held or live are never dropped to make room. 3. The table is bounded:
 * beyond the bound new rows are refused.
 */
import { assert } from "../base/assert.js";
import { INT64_MAX } from "../base/int64.js";
import type { StorePort } from "../ports.js";
import { applyEphemeral } from "./apply.js";
import { collectRows } from "./collect.js";
import type { EntryStamp, KvCommand, KvOutcome, LockCommand, LockOutcome } from "./command.js";
import type { DecisionContext } from "./context.js";
import { DataReads } from "./data-reads.js";
import { NO_STAMP } from "../base/hlc.js";
import { Overlay } from "./overlay.js";
import { GroupRows } from "./rows.js";
import { type StillReads, type Stretch, stillValues } from "./still-rows.js";

/** Tokens that one leadership may grant per lock. */
export const EPHEMERAL_TOKENS_PER_TERM = 1n << 36n;

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
}

export class EphemeralTable {
  readonly reads: DataReads;
  private readonly overlay: Overlay;
  private readonly context: DecisionContext;
  private readonly maxBytes: number;

  constructor(options: EphemeralOptions) {
    const first = options.floor + BigInt(options.term - 1) * EPHEMERAL_TOKENS_PER_TERM;
    const ceiling = first + EPHEMERAL_TOKENS_PER_TERM - 1n;
    assert(first >= 0n && ceiling <= INT64_MAX, "the tokens of a term fit int64");
    this.maxBytes = options.maxBytes;
    this.overlay = new Overlay({ store: emptyStore, cacheBytes: 0, copiesValues: true });
    const rows = new GroupRows(this.overlay, "", null);
    this.reads = new DataReads(rows);
    this.context = {
      rows,
      nowMs: 0,
      stamp: NO_STAMP,
      tokenFloor: first,
      tokenCeiling: ceiling,
      nextLife: 1,
    };
  }

  get sizeBytes(): number {
    return this.overlay.sizeBytes;
  }

  /** As Machine.still. */
  still(stretch: Stretch | null, maxHeldBytes: number): StillReads | null {
    return stillValues(this.overlay, "", stretch, maxHeldBytes);
  }

  get rows(): number {
    return this.overlay.rows;
  }

  /**
   * Decides one command at the lease time given. "full": no room for a new row; nothing was done
   * (overload).
   */
  apply(command: LockCommand | KvCommand, stamp: EntryStamp): LockOutcome | KvOutcome | "full" {
    const { context } = this;
    if (stamp.leaseMs > context.nowMs) context.nowMs = stamp.leaseMs;
    context.stamp = stamp.stamp;
    if (this.overlay.sizeBytes >= this.maxBytes && this.mayAddBytes(command)) return "full";
    return applyEphemeral(context, command);
  }

  private mayAddBytes(command: LockCommand | KvCommand): boolean {
    return command.kind === "try-lock" || command.kind === "kv-set";
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
