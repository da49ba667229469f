/**
 * From a hash text to its partition: xxHash32 twice, then the jump consistent hash (contract 6.1).
 *
 * Jump hash: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014.
 * May call: base, machine.
 * Invariants: 1. The result depends on the text and the pool size only, for the cluster's whole
 * life. 2. Integer arithmetic except the one division, which IEEE doubles define exactly.
 */
import { assert } from "../base/assert.js";
import { encodeText } from "../base/bytes.js";
import { FIRST_DATA_PARTITION, type PartitionId, partitionId } from "../base/ids.js";
import { xxh32 } from "../machine/digest.js";

const SEED_HIGH = 0xaaaaaaaa;
const SEED_LOW = 0x55555555;

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
    const middle =
      low0 * MULTIPLIER_LOW_1 + low1 * MULTIPLIER_LOW_0 + Math.floor(product00 / 65536);
    const carry = low1 * MULTIPLIER_LOW_1 + Math.floor(middle / 65536);
    const crossed = Math.imul(high, MULTIPLIER_LOW) + Math.imul(low, MULTIPLIER_HIGH);
    const productLow = (((middle % 65536) << 16) | (product00 & 0xffff)) >>> 0;
    high = ((carry + crossed + (productLow === 0xffff_ffff ? 1 : 0)) % 0x1_0000_0000) >>> 0;
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
