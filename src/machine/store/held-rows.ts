/**
 * Rows of the memtable as they were at one moment: whoever watches the memtable keeps a row before
 * it changes, and reads go on as if it had not.
 *
 * Invariants: 1. Of several changes of a row the state before the first is kept. 2. The owner
 * bounds `sizeBytes`.
 */
import type { ByteKey } from "./keys.js";
import { LayerMerge, type MergedVisitor } from "./layer-merge.js";
import type { Memtable } from "./memtable.js";
import { RowTable, plainSorter } from "./row-table.js";

export class HeldRows {
  private readonly rows = new RowTable(plainSorter);

  constructor(private readonly memtable: Memtable) {}

  get sizeBytes(): number {
    return this.rows.sizeBytes;
  }

  /** Keeps the row of `key`, which is about to change. */
  keep(key: ByteKey): void {
    if (this.rows.get(key) === undefined) this.rows.put(key, this.memtable.get(key), false);
  }

  /** The row as it was; null when there was none. */
  get(key: ByteKey): Uint8Array | null {
    const kept = this.rows.get(key);
    return kept === undefined ? this.memtable.get(key) : kept.value;
  }

  /**
   * Visits the rows with first ≤ key < last in byte order until `visit` returns false; null: there
   * was no row, and there is or was one since.
   */
  scan(first: ByteKey, last: ByteKey, visit: MergedVisitor): void {
    const merge = new LayerMerge(first, last);
    merge.add(this.rows.sortedRuns());
    merge.over((row) => this.memtable.scan(first, last, row), visit);
  }
}
