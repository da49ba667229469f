/**
 * Exact signed 64-bit integers as two 32-bit halves, for values that travel without arithmetic on
 * them.
 *
 * The shape ({ low, high, unsigned }) is the one that the protobuf codec writes and reads, so that
 * a value crosses that border without a conversion. Arithmetic on single values uses bigint; on
 * batches, the kernels of `wasm/`.
 *
 * Invariants: 1. `low` and `high` are signed 32-bit integers. 2. An Int64 is immutable.
 */
import { assert } from "./assert.js";

export const INT64_MAX = 9_223_372_036_854_775_807n;
export const INT64_MIN = -9_223_372_036_854_775_808n;
export const INT32_MAX = 2_147_483_647;
export const INT32_MIN = -2_147_483_648;

const TWO_POWER_32 = 0x1_0000_0000;

export class Int64 {
  readonly low: number;
  readonly high: number;
  readonly unsigned = false;

  /** `high`, `low`: the two's complement halves; each is taken modulo 2^32. */
  constructor(high: number, low: number) {
    this.low = low | 0;
    this.high = high | 0;
  }

  static readonly ZERO = new Int64(0, 0);

  /** `value`: a safe integer. */
  static fromNumber(value: number): Int64 {
    assert(Number.isSafeInteger(value), "an Int64 is made from a safe integer");
    return new Int64(Math.floor(value / TWO_POWER_32), value);
  }

  /** `value`: within the int64 range. */
  static fromBigInt(value: bigint): Int64 {
    assert(isInt64(value), "an Int64 is made from a value in the int64 range");
    return new Int64(Number(BigInt.asIntN(32, value >> 32n)), Number(BigInt.asIntN(32, value)));
  }

  toBigInt(): bigint {
    return (BigInt(this.high) << 32n) | BigInt(this.low >>> 0);
  }

  /** True when the value is exact as a JavaScript number. */
  isSafe(): boolean {
    return this.high >= -0x20_0000 && this.high < 0x20_0000 && this.toNumber() !== -(2 ** 53);
  }

  /** The nearest double; exact only when isSafe(). */
  toNumber(): number {
    return this.high * TWO_POWER_32 + (this.low >>> 0);
  }

  /** Decimal text, exact over the whole range. */
  toString(): string {
    return this.isSafe() ? String(this.toNumber()) : this.toBigInt().toString();
  }

  /** `count`: a small number, not negative. Wraps around. */
  plus(count: number): Int64 {
    const low = (this.low >>> 0) + count;
    return new Int64(this.high + Math.floor(low / TWO_POWER_32), low);
  }

  equals(other: Int64): boolean {
    return this.low === other.low && this.high === other.high;
  }
}

/** True when `value` fits int64. */
export function isInt64(value: bigint): boolean {
  return value >= INT64_MIN && value <= INT64_MAX;
}

/** True when `value` is an integer that fits int32. */
export function isInt32(value: number): boolean {
  return (value | 0) === value;
}
