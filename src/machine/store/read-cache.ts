/**
 * A bounded mirror of those rows of the durable store that were read not long ago; that a row is
 * absent counts as knowledge too. Two halves: a full young half becomes the old half, and the old
 * half goes.
 *
 * Invariants: 1. What is kept equals the store: the store changes only when a flush lands, and then
 * the owner tells every row of the flush. Rows that nobody reads, such as superseded revisions, do
 * not enter by being written. 2. Both halves together stay within the bound, but for one row. 3.
 * Rows are kept in slabs of their own, so that a kept row pins no memory of rows that are gone.
 */
import type { ByteKey } from "./keys.js";
import { rowSlabs } from "./row-memory.js";
import { ROW_OVERHEAD_BYTES } from "./row-table.js";

export class ReadCache {
  private readonly halfBytes: number;
  private young = new Map<ByteKey, Uint8Array | null>();
  private old = new Map<ByteKey, Uint8Array | null>();
  private slabs = rowSlabs();
  private youngBytes = 0;

  /** `maximumBytes`: bound of both halves; 0 keeps nothing. */
  constructor(maximumBytes: number) {
    this.halfBytes = Math.floor(maximumBytes / 2);
  }

  /** The row, null when the store has none, undefined when it is not known. */
  get(key: ByteKey): Uint8Array | null | undefined {
    const young = this.young.get(key);
    if (young !== undefined) return young;
    const old = this.old.get(key);
    if (old !== undefined) this.put(key, old);
    return old;
  }

  /** Notes what a flush has put under this key, if the key is kept. */
  landed(key: ByteKey, value: Uint8Array | null): void {
    if (this.young.has(key)) this.put(key, value);
    else if (this.old.delete(key)) this.put(key, value);
  }

  /** Notes what the store holds under this key. */
  put(key: ByteKey, value: Uint8Array | null): void {
    if (this.halfBytes === 0) return;
    this.young.set(key, value === null ? null : this.slabs.copy(value));
    this.youngBytes += key.length + (value?.length ?? 0) + ROW_OVERHEAD_BYTES;
    if (this.youngBytes <= this.halfBytes) return;
    this.old = this.young;
    this.young = new Map();
    this.slabs = rowSlabs();
    this.youngBytes = 0;
  }
}
