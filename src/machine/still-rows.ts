/**
 * A stretch of rows as it was at one moment, read in slices while entries go on being applied.
 *
 * Watches the overlay: a row of the stretch that is about to change and was not read yet is kept as
 * it was. Owned by whoever opened it, who closes it.
 *
 * Invariants: 1. Every read shows the moment of opening. 2. Rows kept are bounded: beyond the bound
 * `overrun` is true and what is read means nothing. 3. A closed view keeps and costs nothing.
 */
import { DataReads } from "./data-reads.js";
import { RowKind, type ByteKey } from "./store/keys.js";
import { LayerMerge } from "./store/layer-merge.js";
import type { ChangeWatcher, Overlay, RowVisitor } from "./store/overlay.js";
import type { Stretch } from "./kv/pages.js";
import { RowTable, plainSorter } from "./store/row-table.js";
import type { ReadableRows } from "./store/rows.js";

export type { Stretch } from "./kv/pages.js";

/** The reads of a stretch of values, and what the reader owes it. */
export interface StillReads {
  readonly reads: DataReads;
  /** Too much changed meanwhile: to be given up. */
  readonly overrun: boolean;
  close(): void;
}

class StillRows implements ReadableRows, ChangeWatcher, StillReads {
  readonly reads: DataReads;
  overrun = false;
  private readonly held = new RowTable(plainSorter);
  private readonly first: ByteKey;
  private readonly last: ByteKey;
  private readonly unwatch: () => void;

  /**
   * `prefix`: what all rows of the generation begin with. The stretch: rows of `kind` with first ≤
   * name < last. Reads outside of it show the present.
   */
  constructor(
    private readonly overlay: Overlay,
    private readonly prefix: ByteKey,
    kind: number,
    first: ByteKey,
    last: ByteKey,
    private readonly maxHeldBytes: number,
  ) {
    this.first = this.key(kind, first);
    this.last = this.key(kind, last);
    this.reads = new DataReads(this);
    this.unwatch = overlay.watch(this);
  }

  private key(kind: number, name: ByteKey): ByteKey {
    return this.prefix + String.fromCharCode(kind) + name;
  }

  beforeChange(key: ByteKey): void {
    if (this.overrun || key < this.first || key >= this.last) return;
    if (this.held.get(key) !== undefined) return;
    this.held.put(key, this.overlay.get(key), false);
    if (this.held.sizeBytes > this.maxHeldBytes) this.overrun = true;
  }

  get(kind: number, name: ByteKey): Uint8Array | null {
    const key = this.key(kind, name);
    const kept = this.held.get(key);
    return kept === undefined ? this.overlay.get(key) : kept.value;
  }

  scan(kind: number, first: ByteKey, last: ByteKey | null, visit: RowVisitor): void {
    const nameAt = this.prefix.length + 1;
    const from = this.key(kind, first);
    const end = last === null ? this.prefix + String.fromCharCode(kind + 1) : this.key(kind, last);
    const merge = new LayerMerge(from, end);
    merge.add(this.held.sortedRuns());
    let old = merge.next();
    let going = true;
    const show = (key: ByteKey, value: Uint8Array | null): boolean => {
      if (value !== null) going = visit(key.slice(nameAt), value);
      return going;
    };
    this.overlay.scan(from, end, (key, value) => {
      while (old !== null && old.key < key) {
        const row = old;
        old = merge.next();
        if (!show(row.key, row.value)) return false;
      }
      if (old === null || old.key !== key) return show(key, value);
      const row = old;
      old = merge.next();
      return show(key, row.value);
    });
    while (going && old !== null) {
      const row = old;
      old = merge.next();
      show(row.key, row.value);
    }
  }

  /** Stops watching. Safe to call again. */
  close(): void {
    this.unwatch();
  }
}

/** A view of the values of a stretch; null when there is none. */
export function stillValues(
  overlay: Overlay,
  prefix: ByteKey,
  stretch: Stretch | null,
  maxHeldBytes: number,
): StillReads | null {
  if (stretch === null) return null;
  const { first, last } = stretch;
  return new StillRows(overlay, prefix, RowKind.value, first, last, maxHeldBytes);
}
