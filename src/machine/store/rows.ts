/**
 * The rows of one group and one generation, as decisions and reads see them: a kind and a name,
 * never a whole store key.
 *
 * Invariants: 1. Every change goes through the digest, so that replicas with equal digests made
 * equal changes. 2. A name part never leaves its kind: scans end with the kind. 3. What the rows
 * take is counted, with hardly a read of its own from the store: exact but for kept revisions that
 * are dropped, which count as large as those that were kept lately.
 */
import { present } from "../../base/assert.js";
import type { StateDigest } from "./digest.js";
import { ROW_KIND_END, RowKind, readUint32Key, type ByteKey } from "./keys.js";
import type { Memtable, RowVisitor } from "./memtable.js";

/** What reads need. */
export interface ReadableRows {
  get(kind: number, name: ByteKey): Uint8Array | null;
  /** Visits rows with first ≤ name < last (null: all) in byte order until `visit` returns false. */
  scan(kind: number, first: ByteKey, last: ByteKey | null, visit: RowVisitor): void;
}

/** What decisions need. */
export interface Rows extends ReadableRows {
  put(kind: number, name: ByteKey, value: Uint8Array): void;
  /** As `put`, for a row that `get` just said is absent. */
  insert(kind: number, name: ByteKey, value: Uint8Array): void;
  delete(kind: number, name: ByteKey): void;
  /** As `delete`, for a row that was just read: its size is known, of an older revision too. */
  deleteRead(kind: number, name: ByteKey, value: Uint8Array): void;
}

/** Told of every change of a value or an older revision, before it is made. */
export interface ValueWatcher {
  /** `value` null: the row is about to go. */
  beforeChange(kind: number, name: ByteKey, value: Uint8Array | null): void;
  /** Other rows took the place of all: what was seen counts no more. */
  replaced(): void;
}

/** Who keeps what it decoded of meta's rows asks which of them it has to read again. */
export interface ChangedRecords {
  /**
   * Names of the rows of `kind` that changed since it was asked for them last; null: it was not, or
   * too many did, and all may have.
   */
  takeChanged(kind: number): ReadonlySet<ByteKey> | null;
  /** Whether `takeChanged` would tell of any, without taking it. */
  hasChanged(kind: number): boolean;
}

const KINDS: readonly number[] = Object.values(RowKind);
/** The place of each kind in a table of those that there are. */
const SLOTS = new Uint8Array(ROW_KIND_END).fill(KINDS.length);
for (const [slot, kind] of KINDS.entries()) SLOTS[kind] = slot;
const NO_PREFIXES: readonly ByteKey[] = [];
const NO_WATCHERS: readonly ValueWatcher[] = [];

/** More changed names of a kind are not kept: who asks late reads all. */
const CHANGED_MAX = 4096;
const NO_CHANGES: ReadonlySet<ByteKey> = new Set();

/** Revisions that the average size of kept ones goes by. */
const KEPT_COUNTED = 32;
/** The size of a row that is not there. */
const NO_ROW = -1;

function sizeOf(value: Uint8Array | null): number {
  return value === null ? NO_ROW : value.length;
}

export class GroupRows implements Rows, ChangedRecords {
  private readonly memtable: Memtable;
  private readonly digest: StateDigest | null;
  /** What all rows of a kind begin with, by the kind's slot; of a group without rows, nothing. */
  private prefixes: readonly ByteKey[] = NO_PREFIXES;
  /**
   * The key made last: a decision reads a row and then writes it, and need not build and hash the
   * key twice.
   */
  private lastKind = -1;
  private lastName: ByteKey = "";
  private lastKey: ByteKey = "";
  /** Of the row of `lastKey`, as it was read or written last; NO_ROW = there is none. */
  private lastBytes = NO_ROW;
  /** Of the revisions kept lately, on average; -1 = none was. */
  private keptBytes = -1;
  private countedBytes: number;
  private watchers: readonly ValueWatcher[] = NO_WATCHERS;
  /** By kind, those that somebody asked for; without what was too much to keep. */
  private changed: Map<number, Set<ByteKey>> | null = null;

  /**
   * `prefix`: what all rows of the generation begin with. `digest`: takes in every change; null for
   * none. `dataBytes`: names and values of the rows that are there.
   */
  constructor(
    memtable: Memtable,
    readonly prefix: ByteKey,
    digest: StateDigest | null,
    dataBytes = 0,
  ) {
    this.memtable = memtable;
    this.digest = digest;
    this.countedBytes = dataBytes;
  }

  /** Names and values of all rows, about. */
  get dataBytes(): number {
    return this.countedBytes;
  }

  private prefixOf(kind: number): ByteKey {
    const slot = SLOTS[kind] as number;
    const known = this.prefixes[slot];
    if (known !== undefined) return known;
    this.prefixes = KINDS.map((each) => this.prefix + String.fromCharCode(each));
    return present(this.prefixes[slot], "rows have a known kind");
  }

  private key(kind: number, name: ByteKey): ByteKey {
    // History rows are touched once each: comparing their long names would cost more than it saves.
    if (kind === RowKind.history) return this.prefixOf(kind) + name;
    if (kind !== this.lastKind || name !== this.lastName) {
      this.lastKind = kind;
      this.lastName = name;
      this.lastKey = this.prefixOf(kind) + name;
    }
    return this.lastKey;
  }

  get(kind: number, name: ByteKey): Uint8Array | null {
    const key = this.key(kind, name);
    const value = this.memtable.get(key);
    if (kind !== RowKind.history) this.lastBytes = sizeOf(value);
    return value;
  }

  /** Returns what takes the registration back. */
  watchValues(watcher: ValueWatcher): () => void {
    this.watchers = [...this.watchers, watcher];
    return () => {
      this.watchers = this.watchers.filter((other) => other !== watcher);
    };
  }

  /** Other rows take the place of these. */
  retire(): void {
    for (const watcher of this.watchers) watcher.replaced();
  }

  private tell(kind: number, name: ByteKey, value: Uint8Array | null): void {
    if (kind !== RowKind.value && kind !== RowKind.history) return;
    for (const watcher of this.watchers) watcher.beforeChange(kind, name, value);
  }

  takeChanged(kind: number): ReadonlySet<ByteKey> | null {
    this.changed ??= new Map<number, Set<ByteKey>>();
    const changed = this.changed.get(kind) ?? null;
    if (changed?.size === 0) return NO_CHANGES;
    this.changed.set(kind, new Set());
    return changed;
  }

  hasChanged(kind: number): boolean {
    return this.changed?.get(kind)?.size !== 0;
  }

  private noteChange(kind: number, name: ByteKey): void {
    const changed = this.changed?.get(kind);
    if (changed === undefined) return;
    if (changed.size < CHANGED_MAX) changed.add(name);
    else this.changed?.delete(kind);
  }

  put(kind: number, name: ByteKey, value: Uint8Array): void {
    if (this.watchers.length > 0) this.tell(kind, name, value);
    const isKnown = this.isLast(kind, name);
    const key = this.key(kind, name);
    const before = isKnown ? this.lastBytes : sizeOf(this.memtable.get(key));
    this.memtable.put(key, value);
    this.count(kind, name, before, value.length);
    this.takeIn(kind, name, key, value);
  }

  insert(kind: number, name: ByteKey, value: Uint8Array): void {
    if (this.watchers.length > 0) this.tell(kind, name, value);
    const key = this.key(kind, name);
    this.memtable.insert(key, value);
    this.count(kind, name, NO_ROW, value.length);
    this.takeIn(kind, name, key, value);
  }

  delete(kind: number, name: ByteKey): void {
    if (this.watchers.length > 0) this.tell(kind, name, null);
    const isKnown = this.isLast(kind, name);
    const key = this.key(kind, name);
    const before = isKnown ? this.lastBytes : this.bytesOf(kind, key);
    this.remove(kind, name, key, before);
  }

  deleteRead(kind: number, name: ByteKey, value: Uint8Array): void {
    if (this.watchers.length > 0) this.tell(kind, name, null);
    this.remove(kind, name, this.key(kind, name), value.length);
  }

  private remove(kind: number, name: ByteKey, key: ByteKey, before: number): void {
    this.memtable.delete(key);
    this.count(kind, name, before, NO_ROW);
    this.takeIn(kind, name, key, null);
  }

  /** The row of `lastKey`, whose size is at hand. */
  private isLast(kind: number, name: ByteKey): boolean {
    return kind === this.lastKind && name === this.lastName;
  }

  /** A kept revision is cold: it is not read for its size when others tell it. */
  private bytesOf(kind: number, key: ByteKey): number {
    if (kind === RowKind.history && this.keptBytes >= 0) return Math.round(this.keptBytes);
    return sizeOf(this.memtable.get(key));
  }

  private count(kind: number, name: ByteKey, before: number, after: number): void {
    // Most writes replace a row by one of its size.
    if (before !== after) {
      const was = before === NO_ROW ? 0 : name.length + before;
      const is = after === NO_ROW ? 0 : name.length + after;
      this.countedBytes = Math.max(0, this.countedBytes + is - was);
    }
    if (kind !== RowKind.history) this.lastBytes = after;
    else if (after !== NO_ROW) {
      const { keptBytes } = this;
      this.keptBytes = keptBytes < 0 ? after : keptBytes + (after - keptBytes) / KEPT_COUNTED;
    }
  }

  private takeIn(kind: number, name: ByteKey, key: ByteKey, value: Uint8Array | null): void {
    if (kind >= RowKind.cluster) this.noteChange(kind, name);
    if (this.digest === null) return;
    if (kind !== RowKind.history) this.digest.row(kind, name, value);
    else {
      // The bytes of a history row were taken in when they were the latest revision: which one
      // moved is enough.
      const revision = readUint32Key(key, key.length - 4);
      this.digest.moved(value === null ? kind + 1 : kind, revision);
    }
  }

  scan(kind: number, first: ByteKey, last: ByteKey | null, visit: RowVisitor): void {
    // A scan makes its prefix itself: opening a group scans, and most groups keep no rows.
    const prefix = this.prefix + String.fromCharCode(kind);
    const end = last === null ? this.prefix + String.fromCharCode(kind + 1) : prefix + last;
    const size = prefix.length;
    this.memtable.scan(prefix + first, end, (key, value) => visit(key.slice(size), value));
  }
}
