/**
 * How row keys of up to STORE_KEY_MAX_BYTES become LMDB keys of at most 511 bytes, in the same
 * order.
 *
 * A key of at most FIRST_BYTES is stored as it is. A longer one is cut into a first chunk and
 * further chunks: after the first chunk stands a *branch* (chunk and one zero byte, empty value),
 * and the rest lives in a second table under the digest of everything before it. The rest may
 * branch again.
 *
 * | Table | Stored key | Value |
 * |---|---|---|
 * | short | key, at most 510 bytes | as it is |
 * | short | first 510 bytes, 0x00 | empty: a branch |
 * | long | digest of what is before (16), chunk (up to 494) | length of key, full key, value |
 * | long | digest (16), chunk of 494, 0x00 | full key up to here: a branch |
 *
 * Invariants: 1. Only a branch is longer than its table's chunk limit, so that no content can mimic
 * one and a branch sorts after the equal row and before everything else. 2. Full keys are kept and
 * compared: a digest alone proves nothing.
 */
import { createHash } from "node:crypto";
import { assert } from "../../base/assert.js";
import { concatBytes } from "../../base/bytes.js";
import { STORE_KEY_MAX_BYTES } from "../../ports.js";

export const LMDB_KEY_MAX_BYTES = 511;
const DIGEST_BYTES = 16;
/** Longest chunk of the first level. */
export const FIRST_BYTES = LMDB_KEY_MAX_BYTES - 1;
/** Longest chunk of every further level. */
export const CHUNK_BYTES = LMDB_KEY_MAX_BYTES - 1 - DIGEST_BYTES;

const BRANCH_MARK = new Uint8Array(1);
export const NO_DIGEST = new Uint8Array(0);

export function isLongKey(key: Uint8Array): boolean {
  return key.length > FIRST_BYTES;
}

export function checkKey(key: Uint8Array): void {
  assert(key.length > 0 && key.length <= STORE_KEY_MAX_BYTES, "a row key has 1 to 2304 bytes");
}

/** The first 16 bytes of SHA-256: collisions are beyond reach, and compared away all the same. */
export function digestOf(prefix: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha256").update(prefix).digest().subarray(0, DIGEST_BYTES));
}

/** Lengths of the prefixes of a long key at which it branches, ascending. */
export function branchLengths(keyBytes: number): number[] {
  const lengths: number[] = [];
  for (let at = FIRST_BYTES; at < keyBytes; at += CHUNK_BYTES) lengths.push(at);
  return lengths;
}

/** The stored key of the branch that ends with the first `length` bytes of `key`. */
export function branchKey(key: Uint8Array, length: number): Uint8Array {
  if (length === FIRST_BYTES) return concatBytes(key.subarray(0, length), BRANCH_MARK);
  const before = length - CHUNK_BYTES;
  const digest = digestOf(key.subarray(0, before));
  return concatBytes(digest, key.subarray(before, length), BRANCH_MARK);
}

/** The stored key of a long key's row in the long table. */
export function longRowKey(key: Uint8Array): Uint8Array {
  const lengths = branchLengths(key.length);
  const before = lengths[lengths.length - 1];
  assert(before !== undefined, "a long key branches");
  return concatBytes(digestOf(key.subarray(0, before)), key.subarray(before));
}

/** Value of a row in the long table. */
export function encodeLongValue(key: Uint8Array, value: Uint8Array): Uint8Array {
  const length = new Uint8Array([key.length & 255, key.length >>> 8]);
  return concatBytes(length, key, value);
}

/** Full key and value of a row in the long table; null when it is not of that shape. */
export function decodeLongValue(
  stored: Uint8Array,
): { readonly key: Uint8Array; readonly value: Uint8Array } | null {
  if (stored.length < 2) return null;
  const end = 2 + ((stored[0] as number) | ((stored[1] as number) << 8));
  if (end > stored.length) return null;
  return { key: stored.slice(2, end), value: stored.slice(end) };
}
