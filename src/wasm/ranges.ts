/**
 * Checked 64-bit range arithmetic for a batch of allocations over one sequence cursor.
 *
 * Owns the range areas of one kernel instance.
 *
 * Invariants: 1. A refused item consumes nothing: the next one starts from the same value. 2.
 * Results stay words in kernel memory, valid until the next `allocate`; BigInt appears only in the
 * cursor, once per batch.
 */
import { assert } from "../base/assert.js";
import { Int64, isInt64 } from "../base/int64.js";
import type { GuardedKernel } from "./guard.js";
import { areas, sizes } from "./layout.js";

/** A sequence's numbers; each within int64. `increment` is at least 1. */
export interface Cursor {
  readonly current: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | undefined;
}

export class RangesKernel {
  /** How many values each item wants: 1 to 2^31 - 1. Written by the caller before `allocate`. */
  readonly counts: Uint32Array;
  readonly startLow: Uint32Array;
  readonly startHigh: Int32Array;
  readonly endLow: Uint32Array;
  readonly endHigh: Int32Array;
  /** Per item, see `rangeVerdict`. */
  readonly verdicts: Uint32Array;
  private items = 0;
  /**
   * The result area as int64: value 0 is the cursor afterwards, 4 to 6 carry the cursor's numbers
   * in.
   */
  private readonly values: BigInt64Array;
  private readonly halves: Int32Array;

  constructor(private readonly kernel: GuardedKernel) {
    const unsigned = (area: number): Uint32Array =>
      kernel.words.subarray(area >>> 2, (area >>> 2) + sizes.rangeItems);
    const signed = (area: number): Int32Array =>
      new Int32Array(kernel.words.buffer, area, sizes.rangeItems);
    this.values = new BigInt64Array(kernel.words.buffer, areas.results, sizes.resultWords / 2);
    this.halves = new Int32Array(kernel.words.buffer, areas.results, sizes.resultWords);
    this.counts = unsigned(areas.rangeCounts);
    this.startLow = unsigned(areas.rangeStartLow);
    this.startHigh = signed(areas.rangeStartHigh);
    this.endLow = unsigned(areas.rangeEndLow);
    this.endHigh = signed(areas.rangeEndHigh);
    this.verdicts = unsigned(areas.rangeVerdicts);
  }

  /**
   * Allocates for the first `items` counts, in order: start = current + increment, end = current +
   * count * increment.
   * Returns how many were granted; `current` tells the cursor afterwards. One crossing, no BigInt
   * per item.
   */
  allocate(items: number, cursor: Cursor): number {
    assert(items >= 0 && items <= sizes.rangeItems, "the items fit the range area");
    assert(isInt64(cursor.current) && isInt64(cursor.increment), "a cursor is int64");
    assert(cursor.increment >= 1n, "an increment is at least 1");
    const maximum = cursor.maxValue;
    assert(maximum === undefined || isInt64(maximum), "a maxValue is int64");
    this.items = items;
    // A store into memory splits a BigInt into its words much faster than arithmetic does.
    const { values, halves } = this;
    values[4] = cursor.current;
    values[5] = cursor.increment;
    values[6] = maximum ?? 0n;
    const half = (word: number): number => halves[word] as number;
    return this.kernel.call((exports) =>
      exports.allocate(
        items,
        half(8),
        half(9),
        half(10),
        half(11),
        maximum === undefined ? 0 : 1,
        half(12),
        half(13),
      ),
    );
  }

  /** The cursor after the last `allocate`. */
  current(): bigint {
    return this.values[0] as bigint;
  }

  /** First value of item `item`; meaningless (0) when it was refused. */
  start(item: number): Int64 {
    assert(item >= 0 && item < this.items, "the item exists");
    return new Int64(this.startHigh[item] as number, this.startLow[item] as number);
  }

  /** Last value of item `item`; meaningless (0) when it was refused. */
  end(item: number): Int64 {
    assert(item >= 0 && item < this.items, "the item exists");
    return new Int64(this.endHigh[item] as number, this.endLow[item] as number);
  }
}
