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

/** From here on a view of words pays; the machines that this runs on are little-endian. */
const WORDS_MIN_BYTES = 256;

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

/**
 * The stripes of 16 bytes from `at` on, as whole words: half the time of putting them together, once
 * the view has paid off. `at` is at a multiple of 4 in memory.
 */
function stripesByWords(bytes: Uint8Array, seed: number, at: number, stripes: number): number {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + at, stripes * 4);
  let a = (seed + PRIME_1 + PRIME_2) | 0;
  let b = (seed + PRIME_2) | 0;
  let c = seed | 0;
  let d = (seed - PRIME_1) | 0;
  for (let word = 0; word < words.length; word += 4) {
    a = round(a, words[word] as number);
    b = round(b, words[word + 1] as number);
    c = round(c, words[word + 2] as number);
    d = round(d, words[word + 3] as number);
  }
  return (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
}

/** xxh32 of bytes[start, end) with `seed`: an unsigned 32-bit integer. */
export function xxh32(bytes: Uint8Array, seed: number, start = 0, end = bytes.length): number {
  const size = end - start;
  let at = start;
  let hash = (seed + PRIME_5) | 0;
  if (size >= WORDS_MIN_BYTES && ((bytes.byteOffset + start) & 3) === 0) {
    hash = stripesByWords(bytes, seed, start, size >>> 4);
    at += size & ~15;
  } else if (size >= 16) {
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
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(rotate((hash + Math.imul(wordAt(bytes, at), PRIME_3)) | 0, 17), PRIME_4);
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
