/**
 * Reads the names of a watch in slices: the present state, or what changed since positions (W4,
 * W6), while entries are applied between two slices.
 *
 * Owns how far it is. Invariants: 1. Frontier: a name that was read is told by events from then
 * on, one that was not is told by the read; so each state is told once, and the newest always. 2.
 * A slice is one instant; a single name, and a bucket of up to BUCKET_BYTES, is one slice. 3.
 * Whatever it reads, the leases that run are noted.
 */
import { NO_STAMP } from "../../base/hlc.js";
import { WatchEventType, WatchKind } from "../../base/result-types.js";
import {
  type WatchEvent,
  eventBytes,
  isExpiry,
  sequenceEvent,
  watchEvent,
} from "../../machine/events.js";
import { byteKeyToText, textToByteKey, type ByteKey } from "../../machine/store/keys.js";
import {
  type WatchedSpan,
  keyEvent,
  keyLeaseEnd,
  lockEvent,
  lockLeaseEnd,
  lockRow,
} from "../../machine/watched-rows.js";
import { wholeKvRow } from "../../machine/kv/kv.js";
import type { KvRow } from "../../machine/kv/kv-row.js";
import type { LockRow } from "../../machine/locks/lock-row.js";
import { WATCH_MESSAGE_BYTES } from "../../base/limits.js";
import { ChangedNames } from "./changed-names.js";
import type { Filter, NameSort } from "./filters.js";
import { type Position, type Positions, isBehind } from "./positions.js";
import type { WatchedState } from "./watching.js";

/** Rows that one slice looks at, and of a bucket. */
const SLICE_ROWS = 500;
const BUCKET_ROWS = 20_000;
const BUCKET_BYTES = 2 << 20;

/** "quiet": nothing is told but ends of leases, of those that were not looked after. */
export type ScanMode = "initial" | "merged" | "quiet";

export interface ScanPorts {
  /** null: the partition is not here. */
  state(partition: number): WatchedState | null;
  /** Whether what the partition has of the key is told. */
  speaksFor(partition: number, name: string): boolean;
  /** False: there are too many. */
  noteLease(partition: number, sort: NameSort, name: string, endMs: number): boolean;
}

/** What a slice came to. */
export type Slice =
  | { readonly kind: "events"; readonly partition: number; readonly events: WatchEvent[] }
  /** The partition is not here any more. */
  | { readonly kind: "lost"; readonly partition: number }
  /** More leases are watched than may be. */
  | { readonly kind: "full" };

const SPANS: Readonly<Record<number, WatchedSpan["of"]>> = {
  [WatchKind.prefix]: "prefix",
  [WatchKind.bucket]: "bucket",
  [WatchKind.lockPrefix]: "locks",
};

export class Scan {
  private readonly partitions: readonly number[];
  private readonly span: WatchedSpan | null;
  private at = 0;
  /** The last name that was read in the present partition. */
  private after: ByteKey | null = null;
  /** More leases are watched than may be. */
  private isFull = false;
  /** Up to which name each slice read, null = all, and at which lease time. */
  private readonly slices = new Map<number, { last: ByteKey | null; leaseMs: number }[]>();
  /** Ends of leases that events told of meanwhile. */
  private readonly ends = new Set<string>();
  private readonly gaps: number;
  /** Ends of leases were found in rows. */
  private hasFound = false;
  /** What this reading finds for others; null: it does not read everything. */
  private noting: ChangedNames | null = null;

  constructor(
    private readonly filter: Filter,
    readonly mode: ScanMode,
    /** Of what is told already; null: of nothing. */
    readonly since: Positions | null,
    private readonly ports: ScanPorts,
  ) {
    this.gaps = filter.gaps;
    this.partitions = [...filter.partitions].sort((a, b) => a - b);
    const of = SPANS[filter.kind];
    this.span = of === undefined ? null : { of, name: filter.name };
  }

  /** It may be long. */
  get isOfMany(): boolean {
    return this.span !== null;
  }

  get isDone(): boolean {
    return this.at >= this.partitions.length;
  }

  /** Every lease that runs was noted. */
  get knowsLeases(): boolean {
    return this.isDone && this.filter.gaps === this.gaps;
  }

  /** From where on every end of a lease is in the history, when it is done; null: from now on. */
  get endsSince(): Positions | null {
    return this.mode === "quiet" && !this.hasFound ? this.since : null;
  }

  /** Whether an event is to be told beside what is read. */
  accepts(partition: number, event: WatchEvent): boolean {
    const { name, endedMs } = event;
    // A read behind an end has told of it, or of what nobody knew to be there nothing.
    if (endedMs !== null && endedMs <= this.readAtMs(partition, name)) return false;
    return this.mode === "quiet" || this.hasRead(partition, name);
  }

  private noteSlice(partition: number, leaseMs: number): void {
    const last = this.partitions[this.at] === partition ? this.after : null;
    const slices = this.slices.get(partition);
    if (slices === undefined) this.slices.set(partition, [{ last, leaseMs }]);
    else slices.push({ last, leaseMs });
  }

  /** The lease time at which the name was read; below all: it was not. */
  private readAtMs(partition: number, name: string): number {
    const key = textToByteKey(name);
    const slice = this.slices.get(partition)?.find(({ last }) => last === null || key <= last);
    return slice?.leaseMs ?? -Infinity;
  }

  /** Whether the state of the name was read, so that its events are to be told. */
  private hasRead(partition: number, name: string): boolean {
    const place = this.partitions.indexOf(partition);
    if (place !== this.at) return place < this.at;
    return this.after !== null && textToByteKey(name) <= this.after;
  }

  /** An event was told: what it tells of is not told once more (W2). */
  noteTold(event: WatchEvent): void {
    const { name, revision, token } = event;
    if (isExpiry(event)) this.ends.add(endId(name, revision, token));
  }

  /** Reads on. Not when it is done. */
  next(): Slice {
    const partition = this.partitions[this.at] as number;
    const state = this.ports.state(partition);
    if (state === null) return { kind: "lost", partition };
    const events: WatchEvent[] = [];
    const changed = this.changedIn(partition);
    if (this.span === null) {
      this.single(partition, state, events);
      this.at++;
    } else if (changed !== null) this.some(changed, partition, state, events);
    else this.many(this.span, partition, state, events);
    // Where changed names alone are read, nothing is known of when others were.
    this.noteSlice(partition, changed === null ? state.leaseMs : -Infinity);
    if (this.isDone && this.noting?.follow() === true) this.filter.changed = this.noting;
    return this.isFull ? { kind: "full" } : { kind: "events", partition, events };
  }

  /** The names that may have changed in a partition that is being read now; null: any. */
  private changedIn(partition: number): ReadonlySet<string> | null {
    const { filter, since } = this;
    if (this.mode !== "merged" || since === null || this.span === null) return null;
    const names = filter.changed?.behind(since, partition) ?? null;
    if (names !== null) this.noting = null;
    else if (this.at === 0 && this.after === null) this.noting = ChangedNames.of(filter, since);
    return names;
  }

  private some(
    names: ReadonlySet<string>,
    partition: number,
    state: WatchedState,
    events: WatchEvent[],
  ): void {
    const { after } = this;
    const keys = Array.from(names, textToByteKey).filter((key) => after === null || key > after);
    let sizeBytes = 0;
    for (const key of keys.sort()) {
      if (sizeBytes >= WATCH_MESSAGE_BYTES) return;
      this.after = key;
      const name = byteKeyToText(key);
      const isOurs = this.ports.speaksFor(partition, name);
      const row = isOurs ? state.rows.key(key) : null;
      const event = row === null ? null : this.keyTold(partition, name, row, state.leaseMs);
      if (event === null) continue;
      events.push(event);
      sizeBytes += eventBytes(event);
    }
    this.at++;
    this.after = null;
  }

  private many(
    span: WatchedSpan,
    partition: number,
    state: WatchedState,
    events: WatchEvent[],
  ): void {
    const isBucket = span.of === "bucket";
    const rowsMax = isBucket ? BUCKET_ROWS : SLICE_ROWS;
    const bytesMax = isBucket ? BUCKET_BYTES : WATCH_MESSAGE_BYTES;
    let rows = 0;
    let sizeBytes = 0;
    let isCut = false;
    state.rows.scan(span, this.after, (key, value) => {
      isCut = rows >= rowsMax || sizeBytes >= bytesMax;
      if (isCut) return false;
      rows++;
      this.after = key;
      if (value === null) return true;
      const name = byteKeyToText(key);
      const event =
        span.of === "locks"
          ? this.lockTold(partition, name, lockRow(value), state.leaseMs)
          : this.ports.speaksFor(partition, name)
            ? this.keyTold(partition, name, wholeKvRow(value), state.leaseMs)
            : null;
      if (event !== null) {
        events.push(event);
        sizeBytes += eventBytes(event);
      }
      return true;
    });
    if (isCut) return;
    this.at++;
    this.after = null;
  }

  private single(partition: number, state: WatchedState, events: WatchEvent[]): void {
    const { kind, name } = this.filter;
    const { rows, leaseMs } = state;
    let event: WatchEvent | null;
    if (kind === WatchKind.key) {
      const row = this.ports.speaksFor(partition, name) ? rows.key(textToByteKey(name)) : null;
      event = row === null ? null : this.keyTold(partition, name, row, leaseMs);
    } else if (kind === WatchKind.lock) {
      const row = rows.lock(textToByteKey(name));
      event = row === null ? this.absentTold() : this.lockTold(partition, name, row, leaseMs);
    } else event = this.sequenceTold(partition, state);
    if (event !== null) events.push(event);
  }

  private note(partition: number, sort: NameSort, name: string, endMs: number | null): void {
    if (endMs === null) return;
    if (!this.ports.noteLease(partition, sort, name, endMs)) this.isFull = true;
  }

  private keyTold(partition: number, name: string, row: KvRow, nowMs: number): WatchEvent | null {
    const leaseEndMs = keyLeaseEnd(row, nowMs);
    this.note(partition, "key", name, leaseEndMs);
    const at = this.since?.get(partition) ?? null;
    const isOver = !row.deleted && row.endMs !== null && leaseEndMs === null;
    const endedMs = isOver ? row.endMs : null;
    switch (this.mode) {
      case "initial":
        return row.deleted || isOver ? null : keyEvent(name, row, nowMs);
      case "quiet":
        if (!isNewEnd(endedMs, at) || this.ends.has(endId(name, row.revision, 0n))) return null;
        this.hasFound = true;
        return keyEvent(name, row, nowMs);
      case "merged": {
        const from = this.noting?.from(partition) ?? null;
        if (from !== null && isChanged(row, endedMs, from)) this.noting?.note(partition, name);
        return at === null || isChanged(row, endedMs, at) ? keyEvent(name, row, nowMs) : null;
      }
    }
  }

  private lockTold(
    partition: number,
    name: string,
    row: LockRow,
    nowMs: number,
  ): WatchEvent | null {
    const leaseEndMs = lockLeaseEnd(row, nowMs);
    this.note(partition, "lock", name, leaseEndMs);
    const event = lockEvent(name, row, nowMs);
    if (this.mode === "merged") return event;
    if (this.mode === "initial") return leaseEndMs === null ? null : event;
    const isOver = event.type === WatchEventType.lockExpired;
    const at = this.since?.get(partition) ?? null;
    const wasTold = this.ends.has(endId(name, 0, row.token));
    const isFound = isOver && isNewEnd(row.endMs, at) && !wasTold;
    this.hasFound ||= isFound;
    return isFound ? event : null;
  }

  /** A lock without a row is free, and so for long. */
  private absentTold(): WatchEvent | null {
    if (this.mode !== "merged") return null;
    return watchEvent(WatchEventType.unlocked, this.filter.name, NO_STAMP);
  }

  private sequenceTold(partition: number, { rows }: WatchedState): WatchEvent | null {
    if (this.mode === "quiet") return null;
    const record = rows.sequence(this.filter.name);
    const { sequenceCreated, sequenceUpdated, sequenceDeleted } = WatchEventType;
    if (record === null) {
      if (this.mode === "initial") return null;
      return watchEvent(sequenceDeleted, this.filter.name, NO_STAMP);
    }
    const at = this.since?.get(partition) ?? null;
    if (this.mode === "initial" || at === null || isBehind(record.createdAt, at)) {
      return sequenceEvent(sequenceCreated, record, record.updatedAt);
    }
    if (!isBehind(record.updatedAt, at)) return null;
    return sequenceEvent(sequenceUpdated, record, record.updatedAt);
  }
}

/** Names one lease that ended. */
function endId(name: string, revision: number, token: bigint): string {
  return `${revision}/${token}/${name}`;
}

/** Whether there was a change behind the position. */
function isChanged({ stamp }: KvRow, endedMs: number | null, at: Position): boolean {
  return isBehind(stamp, at) || isNewEnd(endedMs, at);
}

/** Whether a lease ended behind the position; `endMs` null: it did not end. */
function isNewEnd(endMs: number | null, at: Position | null): boolean {
  return endMs !== null && (at === null || endMs > at.leaseMs);
}
