/**
 * Seeded random numbers: xoshiro128** (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", 2018), seeded through splitmix32. The only source of randomness below the front
 * ends.
 *
 * Invariants: 1. The same seed gives the same sequence on every machine. 2. Only 32-bit integer
 * arithmetic is used.
 */
import { assert } from "./assert.js";

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

export class Prng {
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  /** `seed`: any integer; only its low 32 bits count. */
  constructor(seed: number) {
    let state = seed | 0;
    const next = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let mixed = state ^ (state >>> 16);
      mixed = Math.imul(mixed, 0x21f0aaad);
      mixed ^= mixed >>> 15;
      mixed = Math.imul(mixed, 0x735a2d97);
      return mixed ^ (mixed >>> 15);
    };
    this.a = next();
    this.b = next();
    this.c = next();
    this.d = next() | 1;
  }

  /** A uniform 32-bit unsigned integer. */
  nextUint32(): number {
    const result = Math.imul(rotateLeft(Math.imul(this.b, 5), 7), 9) >>> 0;
    const shifted = this.b << 9;
    this.c ^= this.a;
    this.d ^= this.b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= shifted;
    this.d = rotateLeft(this.d, 11);
    return result;
  }

  /** A uniform integer in [0, bound). `bound`: 1 to 2^32. */
  below(bound: number): number {
    assert(Number.isInteger(bound) && bound >= 1 && bound <= 0x1_0000_0000, "bound is 1 to 2^32");
    const limit = 0x1_0000_0000 - (0x1_0000_0000 % bound);
    for (;;) {
      const value = this.nextUint32();
      if (value < limit) return value % bound;
    }
  }

  /** True with the probability numerator / denominator. */
  chance(numerator: number, denominator: number): boolean {
    return this.below(denominator) < numerator;
  }

  /**
   * A generator of its own, for a part of the program named `name`: its draws do not disturb this
   * one's later order.
   */
  fork(name: string): Prng {
    let hash = this.nextUint32();
    for (let at = 0; at < name.length; at++) {
      hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
    }
    return new Prng(hash);
  }
}
