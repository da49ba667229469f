/**
 * From a hash text to its partition: xxHash32 twice, then the jump consistent hash (contract 6.1).
 *
 * xxh32: Collet, "xxHash fast digest algorithm", format 0.1.1. Jump hash: Lamping and Veach, "A
 * Fast, Minimal Memory, Consistent Hash Algorithm", 2014. May call: base.
 * Invariants: 1. The result depends on the text and the pool size only, for the cluster's whole
 * life. 2. Integer arithmetic except the one division, which IEEE doubles define exactly.
 */
import { assert } from "../base/assert.js";
import { encodeText } from "../base/bytes.js";
import { FIRST_DATA_PARTITION, type PartitionId, partitionId } from "../base/ids.js";

const PRIME_1 = 0x9e3779b1;
const PRIME_2 = 0x85ebca77;
const PRIME_3 = 0xc2b2ae3d;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

const SEED_HIGH = 0xaaaaaaaa;
const SEED_LOW = 0x55555555;

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function laneAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

function round(accumulator: number, lane: number): number {
  return Math.imul(rotateLeft((accumulator + Math.imul(lane, PRIME_2)) | 0, 13), PRIME_1);
}

/** The 32-bit xxHash of `bytes`, unsigned. */
export function xxh32(bytes: Uint8Array, seed: number): number {
  const size = bytes.length;
  let at = 0;
  let hash: number;
  if (size >= 16) {
    let a = (seed + PRIME_1 + PRIME_2) | 0;
    let b = (seed + PRIME_2) | 0;
    let c = seed | 0;
    let d = (seed - PRIME_1) | 0;
    for (; at + 16 <= size; at += 16) {
      a = round(a, laneAt(bytes, at));
      b = round(b, laneAt(bytes, at + 4));
      c = round(c, laneAt(bytes, at + 8));
      d = round(d, laneAt(bytes, at + 12));
    }
    hash = (rotateLeft(a, 1) + rotateLeft(b, 7) + rotateLeft(c, 12) + rotateLeft(d, 18)) | 0;
  } else {
    hash = (seed + PRIME_5) | 0;
  }
  hash = (hash + size) | 0;
  for (; at + 4 <= size; at += 4) {
    const mixed = (hash + Math.imul(laneAt(bytes, at), PRIME_3)) | 0;
    hash = Math.imul(rotateLeft(mixed, 17), PRIME_4);
  }
  for (; at < size; at++) {
    const mixed = (hash + Math.imul(bytes[at] as number, PRIME_5)) | 0;
    hash = Math.imul(rotateLeft(mixed, 11), PRIME_1);
  }
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** 2862933555777941757 as two halves, the low one also in two. */
const MULTIPLIER_HIGH = 0x27bb2ee6;
const MULTIPLIER_LOW = 0x87b0b0fd;
const MULTIPLIER_LOW_0 = MULTIPLIER_LOW & 0xffff;
const MULTIPLIER_LOW_1 = MULTIPLIER_LOW >>> 16;

/** The bucket of the 64-bit hash (high, low) among `bucketCount` buckets, from 0. */
export function jumpHash(high: number, low: number, bucketCount: number): number {
  assert(bucketCount >= 1, "there is at least one bucket");
  let bucket = -1;
  let next = 0;
  while (next < bucketCount) {
    bucket = next;
    // One step of the generator modulo 2^64 in 16- and 32-bit limbs: bigint costs ten times as
    // much, and this runs for every request. Sums stay below 2^53.
    const low0 = low & 0xffff;
    const low1 = low >>> 16;
    const product00 = low0 * MULTIPLIER_LOW_0;
    const middle = low0 * MULTIPLIER_LOW_1 + low1 * MULTIPLIER_LOW_0 + Math.floor(product00 / 65536);
    const carry = low1 * MULTIPLIER_LOW_1 + Math.floor(middle / 65536);
    const crossed = Math.imul(high, MULTIPLIER_LOW) + Math.imul(low, MULTIPLIER_HIGH);
    const productLow = (((middle % 65536) << 16) | (product00 & 0xffff)) >>> 0;
    high = (carry + crossed + (productLow === 0xffff_ffff ? 1 : 0)) % 0x1_0000_0000 >>> 0;
    low = (productLow + 1) >>> 0;
    next = Math.floor((bucket + 1) * (0x8000_0000 / ((high >>> 1) + 1)));
  }
  return bucket;
}

/** The data partition of `hashText` in a cluster that was founded with `poolSize` of them. */
export function partitionOf(hashText: string, poolSize: number): PartitionId {
  const bytes = encodeText(hashText);
  const bucket = jumpHash(xxh32(bytes, SEED_HIGH), xxh32(bytes, SEED_LOW), poolSize);
  return partitionId(FIRST_DATA_PARTITION + bucket);
}
