/**
 * Rows read from the store not long ago; that a row is absent is not kept. Two halves: a full young half becomes the old half.
 *
 * Invariants: 1. A kept row equals the store's: the owner forgets a key before it writes it, and asks again only
 * when no newer layer has the key, which is after its flush. 2. Both halves together stay within the bound, but for one row.
 */
import type { ByteKey } from "./keys.js";
import { ROW_OVERHEAD_BYTES } from "./row-table.js";

export class ReadCache {
  private readonly halfBytes: number;
  private young = new Map<ByteKey, Uint8Array>();
  private old = new Map<ByteKey, Uint8Array>();
  private youngBytes = 0;

  /** `maximumBytes`: bound of both halves; 0 keeps nothing. */
  constructor(maximumBytes: number) {
    this.halfBytes = Math.floor(maximumBytes / 2);
  }

  /** The row, or undefined when it is not kept. */
  get(key: ByteKey): Uint8Array | undefined {
    const young = this.young.get(key);
    if (young !== undefined) return young;
    const old = this.old.get(key);
    if (old !== undefined) this.put(key, old);
    return old;
  }

  put(key: ByteKey, value: Uint8Array): void {
    if (this.halfBytes === 0) return;
    this.young.set(key, value);
    this.youngBytes += key.length + value.length + ROW_OVERHEAD_BYTES;
    if (this.youngBytes <= this.halfBytes) return;
    this.old = this.young;
    this.young = new Map();
    this.youngBytes = 0;
  }

  forget(key: ByteKey): void {
    if (this.young.size > 0) this.young.delete(key);
    if (this.old.size > 0) this.old.delete(key);
  }
}
