/**
 * A queue of numbers in one typed array: pushed and cut at its end, dropped at its beginning.
 *
 * Invariants: 1. Nothing is allocated but to double the room. 2. Dropping costs nothing until the
 * room at the end is used up.
 */
import { assert } from "../../base/assert.js";

const none = new Float64Array(0);

export class Totals {
  private values = none;
  private from = 0;
  private used = 0;

  get length(): number {
    return this.used;
  }

  get last(): number {
    return this.at(this.used - 1);
  }

  at(position: number): number {
    assert(position >= 0 && position < this.used, "totals are asked within the log");
    return this.values[this.from + position] as number;
  }

  push(value: number): void {
    if (this.from + this.used === this.values.length) this.makeRoom();
    this.values[this.from + this.used] = value;
    this.used++;
  }

  /** Keeps the first `count`. */
  cut(count: number): void {
    this.used = Math.min(this.used, count);
  }

  /** Drops the first `count`. */
  drop(count: number): void {
    assert(count <= this.used, "only what is there is dropped");
    this.from += count;
    this.used -= count;
  }

  private makeRoom(): void {
    if (this.from > this.values.length / 2) {
      this.values.copyWithin(0, this.from, this.from + this.used);
    } else {
      const larger = new Float64Array(Math.max(8, this.values.length * 2));
      larger.set(this.values.subarray(this.from, this.from + this.used));
      this.values = larger;
    }
    this.from = 0;
  }
}
