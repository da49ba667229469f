/**
 * 64-bit integers at the border of the library.
 *
 * Invariants: 1. A value leaves as an exact bigint, or as a number only when that is exact. 2. What
 * does not fit throws SvcRangeError; nothing is rounded or wrapped.
 */
import { INT32_MAX, isInt64 } from "../../base/int64.js";
import type { Hlc } from "../../base/hlc.js";
import { bigIntToHalves, halvesToBigInt, type Int64Halves } from "../../proto/codec.js";
import { wrongType } from "./arguments.js";
import { SvcRangeError, type CallOutcome } from "./errors.js";
import { asObject, bigintOf, intOf, type JsonObject } from "./json.js";

/** An int64 given by the caller: a bigint, or a number that is a safe integer. */
export type Int64Input = bigint | number;

/**
 * A hybrid timestamp of the service: node `n`, Unix milliseconds `l`, counter `c`. Informative; all
 * zero means none.
 */
export type Timestamp = Hlc;

/**
 * The exact value; throws SvcRangeError when `value` is no int64 (or an unsafe number),
 * InvalidInputError when it is no number at all. @internal
 */
export function int64Of(name: string, value: Int64Input): bigint {
  if (typeof value !== "bigint" && typeof value !== "number") {
    throw wrongType(name, "a bigint or a number", value);
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    throw new SvcRangeError(`${name}: ${value} is not a safe integer; give a bigint`);
  }
  const exact = BigInt(value);
  if (!isInt64(exact))
    throw new SvcRangeError(`${name}: ${exact} is no signed 64-bit integer`, exact);
  return exact;
}

/** An int32 of at least `min`; throws as `int64Of` otherwise. @internal */
export function int32Of(name: string, value: number, min: number): number {
  if (typeof value !== "number") throw wrongType(name, "a number", value);
  if (Number.isInteger(value) && value >= min && value <= INT32_MAX) return value;
  throw new SvcRangeError(`${name}: ${value} is no integer from ${min} to ${INT32_MAX}`);
}

/**
 * `value` as a number. Throws SvcRangeError, whose `value` is exact, when that would round.
 *
 * @example
 * const token = toSafeNumber(handle.fencingToken);
 */
export function toSafeNumber(value: bigint, outcome: CallOutcome = "none"): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new SvcRangeError(`${value} is not exact as a number; use the bigint form`, value, {
    outcome,
  });
}

/** A 64-bit field as bigint; small values take a short cut. @internal */
export function fromHalves(halves: Int64Halves): bigint {
  if (halves.high === 0 && halves.low >= 0) return BigInt(halves.low);
  return halvesToBigInt(halves);
}

/** A field of the wire. @internal */
export function toHalves(value: bigint): Int64Halves {
  return bigIntToHalves(value);
}

/** Optional fields: null = absent. @internal */
export function toHalvesOrNull(value: bigint | null): Int64Halves | null {
  return value === null ? null : bigIntToHalves(value);
}

/**
 * Three flat fields as a timestamp. Unix milliseconds are safe integers for 280,000 years.
 * @internal
 */
export function stampOf(n: number, l: Int64Halves, c: number): Timestamp {
  return { n, l: Number(halvesToBigInt(l)), c: c >>> 0 };
}

/** A timestamp member of an answer. @internal */
export function stampFromJson(body: JsonObject, name: string): Timestamp {
  const stamp = asObject(body[name], name);
  return { n: intOf(stamp, "n"), l: Number(bigintOf(stamp, "l")), c: intOf(stamp, "c") };
}
