/**
 * Cheap 32-bit hashing: xxh32 (Collet, xxHash specification) and the two-lane chain over effects
 * that replicas compare.
 *
 * Pure but for the lanes a StateDigest owns. Invariants: 1. Only 32-bit integer arithmetic: the
 * same on every machine. 2. The digest is against divergence and accident, not against an
 * adversary.
 */
import type { ByteKey } from "./keys.js";

const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;
const PRIME_3 = 0xc2b2ae3d | 0;
const PRIME_4 = 0x27d4eb2f | 0;
const PRIME_5 = 0x165667b1 | 0;

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function lane(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

function round(accumulator: number, input: number): number {
  return Math.imul(rotate((accumulator + Math.imul(input, PRIME_2)) | 0, 13), PRIME_1);
}

/** xxh32 of bytes[start, end) with `seed`: an unsigned 32-bit integer. */
export function xxh32(bytes: Uint8Array, seed: number, start = 0, end = bytes.length): number {
  let at = start;
  let hash: number;
  if (end - start >= 16) {
    let a = (seed + PRIME_1 + PRIME_2) | 0;
    let b = (seed + PRIME_2) | 0;
    let c = seed | 0;
    let d = (seed - PRIME_1) | 0;
    for (; at + 16 <= end; at += 16) {
      a = round(a, lane(bytes, at));
      b = round(b, lane(bytes, at + 4));
      c = round(c, lane(bytes, at + 8));
      d = round(d, lane(bytes, at + 12));
    }
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  } else hash = (seed + PRIME_5) | 0;
  hash = (hash + (end - start)) | 0;
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(rotate((hash + Math.imul(lane(bytes, at), PRIME_3)) | 0, 17), PRIME_4);
  }
  for (; at < end; at++) {
    hash = Math.imul(rotate((hash + Math.imul(bytes[at] as number, PRIME_5)) | 0, 11), PRIME_1);
  }
  return avalanche(hash);
}

function avalanche(input: number): number {
  let hash = Math.imul(input ^ (input >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * Values up to this size are hashed whole; of larger ones the first and last half of it. The log
 * checks every byte.
 */
const WHOLE_BYTES_MAX = 2048;

/** Two 32-bit lanes, changed by every effect in order. */
export class StateDigest {
  low: number;
  high: number;

  constructor(low = 0, high = 0) {
    this.low = low | 0;
    this.high = high | 0;
  }

  set(low: number, high: number): void {
    this.low = low | 0;
    this.high = high | 0;
  }

  /** Takes in one number of at most 32 bits. */
  number(value: number): void {
    this.low = round(this.low, value);
    this.high = (rotate((this.high ^ value) | 0, 15) + Math.imul(this.low, PRIME_3)) | 0;
  }

  /** Takes in that a row which was taken in before went to another place, or that it left it. */
  moved(kind: number, tail: number): void {
    this.number((Math.imul(kind, PRIME_5) ^ tail) | 0);
  }

  /** Takes in one written row, or one deleted row with null. */
  row(kind: number, key: ByteKey, value: Uint8Array | null): void {
    let hash = (Math.imul(kind, PRIME_5) + key.length) | 0;
    for (let at = 0; at < key.length; at++) {
      hash = Math.imul(hash ^ key.charCodeAt(at), PRIME_1);
      hash ^= hash >>> 15;
    }
    this.number(hash);
    if (value === null) {
      this.number(-1);
      return;
    }
    this.number(value.length);
    if (value.length <= WHOLE_BYTES_MAX) this.number(xxh32(value, hash) | 0);
    else {
      const half = WHOLE_BYTES_MAX / 2;
      this.number(xxh32(value, hash, 0, half) | 0);
      this.number(xxh32(value, hash, value.length - half) | 0);
    }
  }

  /** Sixteen hexadecimal digits. */
  toString(): string {
    const hex = (value: number): string => (value >>> 0).toString(16).padStart(8, "0");
    return hex(this.high) + hex(this.low);
  }
}
