/**
 * The two-half chain over effects that replicas compare, from rounds of xxh32 (base/xxhash).
 *
 * Pure but for the halves a StateDigest owns. Invariants: 1. Only 32-bit integer arithmetic: the
 * same on every machine. 2. The digest is against divergence and accident, not against an
 * adversary.
 */
import { PRIME_1, PRIME_3, PRIME_5, rotate, round, xxh32 } from "../../base/xxhash.js";
import type { ByteKey } from "./keys.js";

export { xxh32 };

/**
 * Values up to this size are hashed whole; of larger ones the first and last half of it. The log
 * checks every byte.
 */
const WHOLE_BYTES_MAX = 2048;

/** What goes into a digest of a key whose bytes lie from `at` to `end`. */
export function keyHashOf(kind: number, bytes: Uint8Array, at: number, end: number): number {
  let hash = (Math.imul(kind, PRIME_5) + (end - at)) | 0;
  for (let place = at; place < end; place++) {
    hash = Math.imul(hash ^ (bytes[place] as number), PRIME_1);
    hash ^= hash >>> 15;
  }
  return hash;
}

/** The same of a byte key. */
export function keyHash(kind: number, key: ByteKey): number {
  let hash = (Math.imul(kind, PRIME_5) + key.length) | 0;
  for (let at = 0; at < key.length; at++) {
    hash = Math.imul(hash ^ key.charCodeAt(at), PRIME_1);
    hash ^= hash >>> 15;
  }
  return hash;
}

/** Two 32-bit halves, changed by every effect in order. */
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
    const hash = keyHash(kind, key);
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
