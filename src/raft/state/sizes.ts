/**
 * Payload sizes along the log, as running totals: how many bytes any stretch of entries has.
 *
 * Invariants:
 * 1. Totals never fall along the log.
 * 2. Entries added here are known exactly; restored ones are averaged over the stretches that the
 *    store handed in, so that a log of a million entries costs as many numbers as it has stretches.
 * 3. A limit always lets one entry through.
 */
import { assert } from "../../base/assert.js";
import { Totals } from "./totals.js";
import type { LogIndex, SizeRun } from "./types.js";

export class SizeLog {
  /**
   * Restored stretches: the total up to markTotals[n] belongs to index markIndexes[n]; between
   * marks it is a line.
   */
  private readonly markIndexes: LogIndex[];
  private readonly markTotals: number[];
  /** The total up to exactBase + 1 + n is number n of `totals`. */
  private exactBase: LogIndex;
  private readonly totals = new Totals();

  constructor(floor: LogIndex, runs: readonly SizeRun[], last: LogIndex) {
    let total = 0;
    let end = floor;
    // Pushed to, an empty array would take room for sixteen at once.
    this.markIndexes = [floor];
    this.markTotals = [0];
    for (let at = 0; at < runs.length; at++) {
      const run = runs[at] as SizeRun;
      const next = runs[at + 1];
      assert(run.first === end + 1 && run.sizeBytes >= 0, "size runs cover the log without a gap");
      end = next === undefined ? last : next.first - 1;
      total += run.sizeBytes;
      this.markIndexes.push(end);
      this.markTotals.push(total);
    }
    assert(end === last, "size runs cover the log to its end");
    this.exactBase = last;
  }

  /** Adds one entry at the end. */
  push(sizeBytes: number): void {
    assert(sizeBytes >= 0 && Number.isSafeInteger(sizeBytes), "a size is a whole number of bytes");
    const before = this.totals.length === 0 ? this.baseTotal() : this.totals.last;
    this.totals.push(before + sizeBytes);
  }

  /**
   * The payload bytes of everything up to and including `index`, counted from some fixed beginning.
   */
  upTo(index: LogIndex): number {
    if (index > this.exactBase) return this.totals.at(index - this.exactBase - 1);
    return this.interpolate(index);
  }

  /** The payload bytes of entries `first` to `last`. */
  between(first: LogIndex, last: LogIndex): number {
    return last < first ? 0 : this.upTo(last) - this.upTo(first - 1);
  }

  /** Each payload's size. */
  list(first: LogIndex, last: LogIndex): number[] {
    const sizes: number[] = [];
    let before = this.upTo(first - 1);
    for (let index = first; index <= last; index++) {
      const total = this.upTo(index);
      sizes.push(total - before);
      before = total;
    }
    return sizes;
  }

  /**
   * The last entry of the longest stretch from `first` to at most `last` that fits; at least
   * `first`.
   */
  limit(first: LogIndex, last: LogIndex, budgetBytes: number, overheadBytes: number): LogIndex {
    const before = this.upTo(first - 1);
    const costs = (to: LogIndex): number =>
      this.upTo(to) - before + (to - first + 1) * overheadBytes;
    if (costs(last) <= budgetBytes) return last;
    let low = first;
    let high = last;
    while (low < high) {
      const middle = low + Math.ceil((high - low) / 2);
      if (costs(middle) <= budgetBytes) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Drops everything above `last`. */
  cut(last: LogIndex): void {
    if (last >= this.exactBase) {
      this.totals.cut(last - this.exactBase);
      return;
    }
    const total = this.interpolate(last);
    while (this.markIndexes.length > 1 && (this.markIndexes.at(-1) as LogIndex) > last) {
      this.markIndexes.pop();
      this.markTotals.pop();
    }
    if ((this.markIndexes.at(-1) as LogIndex) < last) {
      this.markIndexes.push(last);
      this.markTotals.push(total);
    }
    this.totals.cut(0);
    this.exactBase = last;
  }

  /** Sizes up to and including `floor` will not be asked for again; the total at `floor` will. */
  compact(floor: LogIndex): void {
    if (floor < this.exactBase) {
      let gone = 0;
      while (
        gone + 1 < this.markIndexes.length &&
        (this.markIndexes[gone + 1] as LogIndex) <= floor
      ) {
        gone++;
      }
      this.markIndexes.splice(0, gone);
      this.markTotals.splice(0, gone);
    } else {
      const total = this.upTo(floor);
      this.totals.drop(floor - this.exactBase);
      this.exactBase = floor;
      this.setMark(floor, total);
    }
  }

  /** Forgets everything; the log begins behind `floor`. */
  restart(floor: LogIndex): void {
    this.setMark(floor, 0);
    this.totals.cut(0);
    this.exactBase = floor;
  }

  private setMark(index: LogIndex, total: number): void {
    this.markIndexes.length = 1;
    this.markTotals.length = 1;
    this.markIndexes[0] = index;
    this.markTotals[0] = total;
  }

  private baseTotal(): number {
    return this.markTotals.at(-1) as number;
  }

  private interpolate(index: LogIndex): number {
    let high = this.markIndexes.length - 1;
    if (index >= (this.markIndexes[high] as LogIndex)) return this.markTotals[high] as number;
    let low = 0;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.markIndexes[middle] as LogIndex) <= index) low = middle;
      else high = middle - 1;
    }
    const left = this.markIndexes[low] as LogIndex;
    const right = this.markIndexes[low + 1] as LogIndex;
    if (index <= left) return this.markTotals[low] as number;
    const from = this.markTotals[low] as number;
    const to = this.markTotals[low + 1] as number;
    return from + Math.floor(((to - from) * (index - left)) / (right - left));
  }
}
