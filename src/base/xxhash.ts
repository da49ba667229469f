/**
 * xxh32: cheap hashing of bytes to 32 bits (Collet, xxHash specification).
 *
 * Pure. Invariants: 1. Only 32-bit integer arithmetic: the same on every machine. 2. Against
 * accident, not against an adversary.
 */

/** Primes of the algorithm; chains built on its rounds use them too. */
export const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;
export const PRIME_3 = 0xc2b2ae3d | 0;
const PRIME_4 = 0x27d4eb2f | 0;
export const PRIME_5 = 0x165667b1 | 0;

/** The 32 bits of `value`, turned left. */
export function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** From here on a view of words pays. */
const VIEW_MIN_BYTES = 256;

function wordAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/** One round of the hash: takes 32 bits of input into an accumulator. */
export function round(accumulator: number, input: number): number {
  return Math.imul(rotate((accumulator + Math.imul(input, PRIME_2)) | 0, 13), PRIME_1);
}

/** As `xxh32`, of what a view shows: words are read whole, wherever they lie. */
export function xxh32Of(view: DataView, seed: number, start: number, end: number): number {
  const size = end - start;
  let at = start;
  let hash = (seed + PRIME_5) | 0;
  if (size >= 16) {
    let a = (seed + PRIME_1 + PRIME_2) | 0;
    let b = (seed + PRIME_2) | 0;
    let c = seed | 0;
    let d = (seed - PRIME_1) | 0;
    for (; at + 16 <= end; at += 16) {
      a = round(a, view.getInt32(at, true));
      b = round(b, view.getInt32(at + 4, true));
      c = round(c, view.getInt32(at + 8, true));
      d = round(d, view.getInt32(at + 12, true));
    }
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  }
  hash = (hash + size) | 0;
  for (; at + 4 <= end; at += 4) hash = feedWord(hash, view.getInt32(at, true));
  for (; at < end; at++) hash = feedByte(hash, view.getUint8(at));
  return avalanche(hash);
}

/** xxh32 of bytes[start, end) with `seed`: an unsigned 32-bit integer. */
export function xxh32(bytes: Uint8Array, seed: number, start = 0, end = bytes.length): number {
  const size = end - start;
  if (size >= VIEW_MIN_BYTES) {
    return xxh32Of(new DataView(bytes.buffer, bytes.byteOffset + start, size), seed, 0, size);
  }
  let at = start;
  let hash = (seed + PRIME_5) | 0;
  if (size >= 16) {
    let a = (seed + PRIME_1 + PRIME_2) | 0;
    let b = (seed + PRIME_2) | 0;
    let c = seed | 0;
    let d = (seed - PRIME_1) | 0;
    for (; at + 16 <= end; at += 16) {
      a = round(a, wordAt(bytes, at));
      b = round(b, wordAt(bytes, at + 4));
      c = round(c, wordAt(bytes, at + 8));
      d = round(d, wordAt(bytes, at + 12));
    }
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  }
  hash = (hash + size) | 0;
  for (; at + 4 <= end; at += 4) hash = feedWord(hash, wordAt(bytes, at));
  for (; at < end; at++) hash = feedByte(hash, bytes[at] as number);
  return avalanche(hash);
}

function feedWord(hash: number, word: number): number {
  return Math.imul(rotate((hash + Math.imul(word, PRIME_3)) | 0, 17), PRIME_4);
}

function feedByte(hash: number, byte: number): number {
  return Math.imul(rotate((hash + Math.imul(byte, PRIME_5)) | 0, 11), PRIME_1);
}

function avalanche(input: number): number {
  let hash = Math.imul(input ^ (input >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
