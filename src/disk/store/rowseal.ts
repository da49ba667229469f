/**
 * The checksum that every stored row carries: four bytes behind its value, over its key and value.
 *
 * LMDB has none of its own, and a rotten bit of one replica would be served by its leader and
 * copied by its snapshots.
 *
 * | Stored value |
 * |---|
 * | value, xxh32 of the value seeded by xxh32 of the stored key (little-endian) |
 *
 * Invariant: what was changed by accident, in key or value, does not open (but for one in 2^32).
 */
import { xxh32 } from "../../base/xxhash.js";

export const SEAL_BYTES = 4;

const KEY_SEED = 0x73766372;

function sealOf(key: Uint8Array, bytes: Uint8Array, start: number, end: number): number {
  return xxh32(bytes, xxh32(key, KEY_SEED) | 0, start, end);
}

/** Writes the seal of the value at [start, end) of `pool` behind it. */
export function sealRow(key: Uint8Array, pool: Uint8Array, start: number, end: number): void {
  const seal = sealOf(key, pool, start, end);
  pool[end] = seal;
  pool[end + 1] = seal >>> 8;
  pool[end + 2] = seal >>> 16;
  pool[end + 3] = seal >>> 24;
}

/** The value of a stored row, a plain view of `stored`; null when it is not what was written. */
export function openRow(key: Uint8Array, stored: Uint8Array): Uint8Array | null {
  const end = stored.length - SEAL_BYTES;
  if (end < 0) return null;
  const seal =
    (stored[end] as number) |
    ((stored[end + 1] as number) << 8) |
    ((stored[end + 2] as number) << 16) |
    ((stored[end + 3] as number) << 24);
  if ((sealOf(key, stored, 0, end) | 0) !== seal) return null;
  return new Uint8Array(stored.buffer, stored.byteOffset, end);
}
