/**
 * A span of rows as it was at one moment, read in slices while entries go on being applied.
 *
 * Watches the memtable: a row of the span that is about to change and was not read yet is kept
 * as it was. Owned by whoever opened it, who closes it.
 *
 * Invariants: 1. Every read shows the moment of opening, and the keys that were the group's then. 2. Rows kept are bounded: beyond the bound
 * `overrun` is true and what is read means nothing. 3. A closed view keeps and costs nothing.
 */
import { DataReads } from "./data-reads.js";
import { RowKind, type ByteKey } from "./store/keys.js";
import { HeldRows } from "./store/held-rows.js";
import type { ChangeWatcher, Memtable, RowVisitor } from "./store/memtable.js";
import type { KeySpan } from "./kv/pages.js";
import type { Ownership, OwnedKeys } from "./ownership/ownership.js";
import type { ReadableRows } from "./store/rows.js";

export type { KeySpan } from "./kv/pages.js";

/** The reads of a span of values, and what the reader owes it. */
export interface PointInTimeReads {
  readonly reads: DataReads;
  /** Too much changed meanwhile: to be given up. */
  readonly overrun: boolean;
  close(): void;
}

class PointInTimeRows implements ReadableRows, ChangeWatcher, PointInTimeReads {
  readonly reads: DataReads;
  overrun = false;
  private readonly held: HeldRows;
  private readonly first: ByteKey;
  private readonly last: ByteKey;
  private readonly unwatch: () => void;

  /**
   * `prefix`: what all rows of the generation begin with. The span: rows of `kind` with first ≤
   * name < last. Reads outside of it show the present.
   */
  constructor(
    memtable: Memtable,
    private readonly prefix: ByteKey,
    kind: number,
    first: ByteKey,
    last: ByteKey,
    owned: OwnedKeys,
    private readonly maxHeldBytes: number,
  ) {
    this.first = this.key(kind, first);
    this.last = this.key(kind, last);
    this.held = new HeldRows(memtable);
    this.reads = new DataReads(this, owned);
    this.unwatch = memtable.watch(this);
  }

  private key(kind: number, name: ByteKey): ByteKey {
    return this.prefix + String.fromCharCode(kind) + name;
  }

  beforeChange(key: ByteKey): void {
    if (this.overrun || key < this.first || key >= this.last) return;
    this.held.keep(key);
    if (this.held.sizeBytes > this.maxHeldBytes) this.overrun = true;
  }

  get(kind: number, name: ByteKey): Uint8Array | null {
    return this.held.get(this.key(kind, name));
  }

  scan(kind: number, first: ByteKey, last: ByteKey | null, visit: RowVisitor): void {
    const nameAt = this.prefix.length + 1;
    const from = this.key(kind, first);
    const end = last === null ? this.prefix + String.fromCharCode(kind + 1) : this.key(kind, last);
    this.held.scan(from, end, (key, value) => value === null || visit(key.slice(nameAt), value));
  }

  /** Stops watching. Safe to call again. */
  close(): void {
    this.unwatch();
  }
}

/** A view of the values of a span; null when there is none. */
export function pointInTimeValues(
  memtable: Memtable,
  prefix: ByteKey,
  ownership: Ownership,
  span: KeySpan | null,
  maxHeldBytes: number,
): PointInTimeReads | null {
  if (span === null) return null;
  const { first, last } = span;
  const owned = ownership.view();
  return new PointInTimeRows(memtable, prefix, RowKind.value, first, last, owned, maxHeldBytes);
}
