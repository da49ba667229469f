/**
 * Batch compaction: the last write of each key in order, one reservation for many calls.
 *
 * Owns the key and share areas of one kernel instance.
 *
 * Invariants: 1. Keys are numbered 0, 1, 2 … in the order of `addKey`, which is their write order.
 * 2. Views handed out are valid until the next call of the same kind.
 */
import { assert } from "../base/assert.js";
import type { GuardedKernel } from "./guard.js";
import { areas, sizes } from "./layout.js";

const two32 = 0x1_0000_0000;

export class CompactKernel {
  private keys = 0;
  private keyBytes = 0;
  private readonly order: Uint32Array;
  private readonly shareCounts: Uint32Array;
  private readonly offsetLow: Uint32Array;
  private readonly offsetHigh: Uint32Array;

  constructor(private readonly kernel: GuardedKernel) {
    const { words } = kernel;
    this.order = words.subarray(areas.order >>> 2, (areas.order >>> 2) + sizes.keys);
    const share = (area: number): Uint32Array =>
      words.subarray(area >>> 2, (area >>> 2) + sizes.shareItems);
    this.shareCounts = share(areas.shareCounts);
    this.offsetLow = share(areas.shareOffsetLow);
    this.offsetHigh = share(areas.shareOffsetHigh);
  }

  /** Starts a new batch of keys. */
  clearKeys(): void {
    this.keys = 0;
    this.keyBytes = 0;
  }

  /**
   * Adds the key of the next change, copied. False, and nothing changed, when the batch is full.
   */
  addKey(key: Uint8Array): boolean {
    const at = areas.keyBytes + this.keyBytes;
    if (this.keys === sizes.keys || this.keyBytes + key.length > sizes.keyBytes) return false;
    const word = (areas.keyWords >>> 2) + this.keys * 2;
    this.kernel.words[word] = at;
    this.kernel.words[word + 1] = key.length;
    this.kernel.bytes.set(key, at);
    this.keys++;
    this.keyBytes += key.length;
    return true;
  }

  /**
   * Numbers of the last change of each key, ascending by key bytes. One crossing. Valid until the
   * next `fold`.
   */
  fold(): Uint32Array {
    const count = this.keys;
    const kept = this.kernel.call((exports) => exports.fold(count));
    assert(kept <= count && kept > 0 === count > 0, "folding keeps at least one of any");
    return this.order.subarray(0, kept);
  }

  /**
   * Folds calls of one sequence into one reservation: takes calls in order while their sum stays
   * within `limit` (0 to 2^53 - 1). Counts are integers from 1 to 2^32 - 1, at most
   * `sizes.shareItems` of them.
   */
  share(counts: ArrayLike<number>, limit: number): SharedReservation {
    assert(counts.length <= sizes.shareItems, "the calls fit the share area");
    assert(Number.isSafeInteger(limit) && limit >= 0, "the limit is a safe integer");
    this.shareCounts.set(counts);
    const taken = this.kernel.call((exports) =>
      exports.share(counts.length, limit | 0, (limit / two32) | 0),
    );
    return {
      taken,
      total: this.kernel.result(1) * two32 + this.kernel.result(0),
      offsetLow: this.offsetLow,
      offsetHigh: this.offsetHigh,
    };
  }
}

/**
 * One reservation of `total` values for the first `taken` calls; call i gets the values behind its
 * offset.
 */
export interface SharedReservation {
  readonly taken: number;
  readonly total: number;
  /**
   * Values of the reservation that go to calls before call i, as words: the first `taken` count,
   * until the next `share`.
   */
  readonly offsetLow: Uint32Array;
  readonly offsetHigh: Uint32Array;
}
