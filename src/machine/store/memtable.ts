/**
 * What was applied and is not yet flushed, as one ordered view in front of the durable store. One
 * per node.
 *
 * Layers, newest first: active memtable, immutable memtable (being flushed), mirror of some rows of
 * the store, store. Calls the store by `get` and `scan` only; the host calls `write` with an
 * immutable table.
 *
 * Invariants: 1. One view merges the layers; deletions are explicit. 2. A freeze falls between
 * entries, and the freeze hooks write the records of all groups that moved into the table that
 * becomes immutable. 3. At most one table is immutable; it is dropped only by `dropImmutable`,
 * after its flush is durable. 4. Values are never changed after `put`, by nobody. 5. Nothing is
 * written while a scan runs.
 */
import { assert } from "../../base/assert.js";
import type { StoreChange, StorePort } from "../../ports.js";
import { fromByteKey, toByteKey, type ByteKey } from "./keys.js";
import { LayerMerge } from "./layer-merge.js";
import { ReadCache } from "./read-cache.js";
import { RowTable, plainSorter, type EntrySorter } from "./row-table.js";

/** How far one group had been applied when its table was frozen. */
export interface FrozenGroup {
  readonly group: number;
  readonly appliedIndex: number;
  readonly appliedTerm: number;
}

/** One flush: pass `changes` to `StorePort.write`, then call `dropImmutable`. */
export interface ImmutableTable {
  /** Sorted by key, one change per key. */
  readonly changes: readonly StoreChange[];
  readonly sizeBytes: number;
  /**
   * The groups whose record is in this table: their logs are needed only above these positions once
   * it is durable.
   */
  readonly groups: readonly FrozenGroup[];
}

/**
 * Called at each freeze: writes the owner's record with `put` if it moved, and says so; null when
 * nothing moved.
 */
export type FreezeHook = () => FrozenGroup | null;

/** Told before a row changes: a consistent snapshot keeps the row as it was. */
export interface ChangeWatcher {
  beforeChange(key: ByteKey): void;
}

export interface MemtableOptions {
  readonly store: StorePort;
  readonly sorter?: EntrySorter;
  /** Bound on rows of the store kept in memory (bytes); 0 keeps none. */
  readonly cacheBytes?: number;
  /**
   * For a table that is never flushed: its rows stay, and must not pin the memory of those that
   * went.
   */
  readonly copiesValues?: boolean;
}

/**
 * What rows of the store that were read may take in memory. Four times as much saved nothing that
 * could be measured where 60,000 or 200,000 keys of 100 bytes were set and read at random.
 */
const CACHE_BYTES_DEFAULT = 16 * 1024 * 1024;

export type RowVisitor = (key: ByteKey, value: Uint8Array) => boolean;

export class Memtable {
  private readonly store: StorePort;
  private readonly sorter: EntrySorter;
  private readonly cache: ReadCache;
  private readonly hooks = new Set<FreezeHook>();
  private readonly watchers = new Set<ChangeWatcher>();
  private active: RowTable;
  private immutable: RowTable | null = null;
  private scans = 0;
  private readonly copiesValues: boolean;

  constructor(options: MemtableOptions) {
    this.store = options.store;
    this.sorter = options.sorter ?? plainSorter;
    this.cache = new ReadCache(options.cacheBytes ?? CACHE_BYTES_DEFAULT);
    this.active = new RowTable(this.sorter);
    this.copiesValues = options.copiesValues ?? false;
  }

  /** Bytes of the active table: what the next freeze would take. */
  get sizeBytes(): number {
    return this.active.sizeBytes;
  }

  /** Bytes that are in memory only: active and immutable. Intake is slowed by this. */
  get unflushedBytes(): number {
    return this.active.sizeBytes + (this.immutable?.sizeBytes ?? 0);
  }

  /** Changes in the active table. */
  get rows(): number {
    return this.active.rows;
  }

  get hasImmutable(): boolean {
    return this.immutable !== null;
  }

  /** The row, or null. Not to be changed. */
  get(key: ByteKey): Uint8Array | null {
    const entry = this.active.get(key);
    if (entry !== undefined) return entry.value;
    return this.getBelow(key);
  }

  private getBelow(key: ByteKey): Uint8Array | null {
    const immutable = this.immutable?.get(key);
    if (immutable !== undefined) return immutable.value;
    const cached = this.cache.get(key);
    if (cached !== undefined) return cached;
    const value = this.store.get(fromByteKey(key));
    this.cache.put(key, value);
    return value;
  }

  put(key: ByteKey, value: Uint8Array): void {
    this.change(key);
    this.active.put(key, this.keep(value), false);
  }

  /** As `put`, for a row that `get` just said is absent: its deletion will then leave no trace. */
  insert(key: ByteKey, value: Uint8Array): void {
    this.change(key);
    this.active.put(key, this.keep(value), true);
  }

  delete(key: ByteKey): void {
    this.change(key);
    this.active.remove(key);
  }

  private keep(value: Uint8Array): Uint8Array {
    return this.copiesValues ? value.slice() : value;
  }

  private change(key: ByteKey): void {
    assert(this.scans === 0, "no row changes while a scan runs");
    if (this.watchers.size > 0) {
      for (const watcher of this.watchers) watcher.beforeChange(key);
    }
  }

  /**
   * Visits the rows with first ≤ key < last (null: to the end) in byte order until `visit` returns
   * false.
   */
  scan(first: ByteKey, last: ByteKey | null, visit: RowVisitor): void {
    this.scanRows(first, last, visit, false);
  }

  /** As `scan`, without reading what the rows hold: it costs the same however large they are. */
  scanKeys(first: ByteKey, last: ByteKey | null, visit: (key: ByteKey) => boolean): void {
    this.scanRows(first, last, visit, true);
  }

  private scanRows(
    first: ByteKey,
    last: ByteKey | null,
    visit: RowVisitor,
    keysOnly: boolean,
  ): void {
    if (last !== null && last <= first) return;
    this.scans++;
    try {
      this.scanLayers(first, last, visit, keysOnly);
    } finally {
      this.scans--;
    }
  }

  private scanLayers(
    first: ByteKey,
    last: ByteKey | null,
    visit: RowVisitor,
    keysOnly: boolean,
  ): void {
    const merge = new LayerMerge(first, last);
    merge.add(this.active.sortedRuns());
    if (this.immutable !== null) merge.add(this.immutable.sortedRuns());
    const end = last === null ? null : fromByteKey(last);
    merge.over(
      (row) => {
        const below = (bytes: Uint8Array, stored: Uint8Array): boolean =>
          row(toByteKey(bytes), stored);
        this.store.scan(fromByteKey(first), end, below, keysOnly);
      },
      (key, value) => value === null || visit(key, value),
    );
  }

  /**
   * Registers what a group wants written at each freeze. Returns the function that takes the
   * registration back.
   */
  onFreeze(hook: FreezeHook): () => void {
    this.hooks.add(hook);
    return () => this.hooks.delete(hook);
  }

  watch(watcher: ChangeWatcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /**
   * Freezes the active table and starts an empty one. Only while none is immutable, and between
   * entries.
   */
  freeze(): ImmutableTable {
    assert(this.immutable === null, "one table is immutable at a time");
    assert(this.scans === 0, "no freeze while a scan runs");
    const groups: FrozenGroup[] = [];
    for (const hook of this.hooks) {
      const group = hook();
      if (group !== null) groups.push(group);
    }
    const changes: StoreChange[] = [];
    for (const entry of this.active.ordered()) {
      changes.push({ key: entry.bytes(), value: entry.value });
    }
    this.immutable = this.active;
    this.active = new RowTable(this.sorter);
    return { changes, sizeBytes: this.immutable.sizeBytes, groups };
  }

  /** After the flush of the immutable table is durable: its rows are now the store's. */
  dropImmutable(): void {
    assert(this.immutable !== null, "a table is immutable");
    for (const entry of this.immutable.ordered()) this.cache.landed(entry.key, entry.value);
    this.immutable = null;
  }
}
