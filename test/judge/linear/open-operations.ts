/**
 * Which operations of one object have no place yet: a list in call order whose members can leave and come back, and what
 * names the set of those that left.
 *
 * Invariants: 1. The answered ones that left are named by 64 random bits of their set, the others by a set of their own:
 * those may be left out of an order, these may not. 2. Members come back in the reverse order in which they left.
 */
import { Prng } from "../../../src/base/prng.js";

export class OpenOperations {
  private readonly following: Int32Array;
  private readonly preceding: Int32Array;
  private readonly high: Uint32Array;
  private readonly low: Uint32Array;
  /** Number of an operation among those without an answer; -1 for an answered one. */
  private readonly unknownNumbers: Int32Array;
  private readonly unknownBits: Uint32Array;
  private readonly isPlaced: Uint8Array;
  private setHigh = 0;
  private setLow = 0;

  /** `isUnknown` by operation, in call order. */
  constructor(
    private readonly isUnknown: readonly boolean[],
    seed: number,
  ) {
    const count = isUnknown.length;
    this.following = new Int32Array(count + 1);
    this.preceding = new Int32Array(count + 1);
    for (let at = 0; at <= count; at++) {
      this.following[at] = at === count ? 0 : at + 1;
      this.preceding[at] = at === 0 ? count : at - 1;
    }
    const prng = new Prng(seed);
    this.high = Uint32Array.from({ length: count }, () => prng.nextUint32());
    this.low = Uint32Array.from({ length: count }, () => prng.nextUint32());
    let unknown = 0;
    this.unknownNumbers = Int32Array.from(isUnknown, (open) => (open ? unknown++ : -1));
    this.unknownBits = new Uint32Array((unknown + 31) >> 5);
    this.isPlaced = new Uint8Array(count);
  }

  /** The first one; equal to `end` when there is none. */
  get first(): number {
    return this.following[this.end] as number;
  }

  get end(): number {
    return this.isUnknown.length;
  }

  after(operation: number): number {
    return this.following[operation] as number;
  }

  has(operation: number): boolean {
    return this.isPlaced[operation] === 0;
  }

  /** Names the answered ones that left. */
  get name(): string {
    return `${this.setHigh} ${this.setLow}`;
  }

  /** Which of those without an answer left: a copy. */
  unknownLeft(): Uint32Array {
    return this.unknownBits.slice();
  }

  leave(operation: number): void {
    this.isPlaced[operation] = 1;
    const before = this.preceding[operation] as number;
    const after = this.following[operation] as number;
    this.following[before] = after;
    this.preceding[after] = before;
    this.toggle(operation);
  }

  comeBack(operation: number): void {
    this.isPlaced[operation] = 0;
    const before = this.preceding[operation] as number;
    const after = this.following[operation] as number;
    this.following[before] = operation;
    this.preceding[after] = operation;
    this.toggle(operation);
  }

  private toggle(operation: number): void {
    const number = this.unknownNumbers[operation] as number;
    if (number >= 0) {
      const word = number >> 5;
      this.unknownBits[word] = ((this.unknownBits[word] as number) ^ (1 << (number & 31))) >>> 0;
      return;
    }
    this.setHigh = (this.setHigh ^ (this.high[operation] as number)) >>> 0;
    this.setLow = (this.setLow ^ (this.low[operation] as number)) >>> 0;
  }
}
