/**
 * The rows of watched names as they are, and the events that tell them: what a watch begins with,
 * and what it is told where each change is not known any more (W4, W6).
 *
 * Pure. Invariants: 1. Keys that the group does not own are not shown. 2. Rows come in the order of
 * their names. 3. Whether a lease has ended is judged with the time given.
 */
import { present } from "../base/assert.js";
import { WatchEventType } from "../base/result-types.js";
import { NO_STAMP } from "../base/hlc.js";
import type { SequenceRecord } from "./commands/command.js";
import { ended } from "./decision/lease.js";
import { type WatchEvent, watchEvent } from "./events.js";
import type { KvRow } from "./kv/kv-row.js";
import { isLive, wholeKvRow } from "./kv/kv.js";
import { prefixSpan, scanBucket } from "./kv/pages.js";
import { type LockRow, LockState, decodeLockRow } from "./locks/lock-row.js";
import type { OwnedKeys } from "./ownership/ownership.js";
import { readSequence } from "./sequences/sequences.js";
import { type ByteKey, RowKind, historyKey, keySuccessor, textToByteKey } from "./store/keys.js";
import type { ReadableRows } from "./store/rows.js";

/** Many names, of which a watch is. */
export interface WatchedSpan {
  readonly of: "prefix" | "bucket" | "locks";
  readonly name: string;
}

/** `value` null: a row on the way, of no name of the span. False ends the scan: it was not taken. */
export type RowSeen = (name: ByteKey, value: Uint8Array | null) => boolean;

export class WatchedRows {
  constructor(
    private readonly rows: ReadableRows,
    private readonly owned: OwnedKeys,
  ) {}

  /** The row of a key of legal form; null when there is none, or it is not the group's. */
  key(key: ByteKey): KvRow | null {
    const bytes = this.owned.owns(key) ? this.rows.get(RowKind.value, key) : null;
    return bytes === null ? null : wholeKvRow(bytes);
  }

  /** A retained revision of a key (K2). */
  revision(key: ByteKey, revision: number): KvRow | null {
    const bytes = this.rows.get(RowKind.history, historyKey(key, revision));
    return bytes === null ? null : wholeKvRow(bytes);
  }

  lock(resource: ByteKey): LockRow | null {
    const bytes = this.rows.get(RowKind.lock, resource);
    return bytes === null ? null : lockRow(bytes);
  }

  sequence(name: string): SequenceRecord | null {
    return readSequence(this.rows, name);
  }

  /** Shows the rows of a span above `after` until `seen` wants no more. */
  scan({ of, name }: WatchedSpan, after: ByteKey | null, seen: RowSeen): void {
    if (of === "locks") return this.scanLocks(textToByteKey(name), after, seen);
    const offer = (key: ByteKey, value: Uint8Array): boolean =>
      this.owned.owns(key) ? seen(key, value) : true;
    const first = after === null ? "" : `${after}\0`;
    if (of === "bucket") {
      const visitor = { offer, pass: (key: ByteKey) => seen(key, null) };
      return scanBucket(this.rows, textToByteKey(name), { first, last: null }, visitor);
    }
    const span = present(prefixSpan(name), "the prefix of a watch is one");
    const from = first > span.first ? first : span.first;
    if (from < span.last) this.rows.scan(RowKind.value, from, span.last, offer);
  }

  private scanLocks(prefix: ByteKey, after: ByteKey | null, seen: RowSeen): void {
    const first = after === null ? prefix : `${after}\0`;
    const last = prefix === "" ? null : keySuccessor(prefix);
    if (last === null || first < last) this.rows.scan(RowKind.lock, first, last, seen);
  }
}

export function lockRow(bytes: Uint8Array): LockRow {
  return present(decodeLockRow(bytes), "a stored lock row is whole");
}

/** What is told of a key that stands so. */
export function keyEvent(name: string, row: KvRow, nowMs: number): WatchEvent {
  const { revision, stamp } = row;
  if (isLive(row, nowMs)) {
    const value = row.value?.slice() ?? null;
    return watchEvent(WatchEventType.set, name, stamp, { revision, value });
  }
  const type = row.deleted ? WatchEventType.deleted : WatchEventType.expired;
  return watchEvent(type, name, stamp, { revision });
}

/** When the lease of a key ends that runs at `nowMs`; null: none does. */
export function keyLeaseEnd(row: KvRow, nowMs: number): number | null {
  return isLive(row, nowMs) ? row.endMs : null;
}

/** What is told of a lock that stands so. */
export function lockEvent(name: string, row: LockRow, nowMs: number): WatchEvent {
  const { token } = row;
  if (row.state === LockState.released) {
    return watchEvent(WatchEventType.unlocked, name, NO_STAMP, { token });
  }
  const owner = row.owner.slice();
  if (ended(row.endMs, nowMs)) {
    return watchEvent(WatchEventType.lockExpired, name, NO_STAMP, { token, owner });
  }
  const note = row.note?.slice() ?? null;
  return watchEvent(WatchEventType.locked, name, NO_STAMP, { token, owner, note });
}

export function lockLeaseEnd(row: LockRow, nowMs: number): number | null {
  return row.state === LockState.held && !ended(row.endMs, nowMs) ? row.endMs : null;
}
