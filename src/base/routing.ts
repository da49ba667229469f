/**
 * From a name to its partition: key space, placement group, hash text, hash, bucket (contract 6.1,
 * `svc.bucket-jump-xxh32-v1`). The one function for keys, locks and sequences, of the
 * service and of its clients.
 *
 * Pure but for a scratch buffer. xxh32: Collet's xxHash. Jump hash: Lamping and Veach, "A Fast,
 * Minimal Memory, Consistent Hash Algorithm", 2014. Invariants: 1. Exact on every machine: 64-bit
 * products in 32-bit halves, divisions in IEEE double precision in the written order. 2. Pool size
 * and offset come from the committed map, never from a flag.
 */
import { assert } from "./assert.js";
import { encodeText } from "./bytes.js";
import { xxh32 } from "./xxhash.js";

export const HASH_ALGORITHM = "svc.bucket-jump-xxh32-v1";
export const PREFIX_SEPARATOR = "/";
export const GROUP_SEPARATOR = "|";
export const HASH_PARTITION_OFFSET = 1;
export const SEQUENCE_KEY_PREFIX = "__svc:sequences:";

const SEED_HIGH = 0xaaaaaaaa | 0;
const SEED_LOW = 0x55555555;
/** 2862933555777941757 in two halves. */
const FACTOR_HIGH = 0x27bb2ee6;
const FACTOR_LOW = 0x87b0b0fd;
const TWO_POWER_31 = 0x8000_0000;
const TWO_POWER_32 = 0x1_0000_0000;

/** The bucket of a key: its text before the last `/`, the whole key without one. */
export function keySpaceOf(key: string): string {
  const at = key.lastIndexOf(PREFIX_SEPARATOR);
  return at < 0 ? key : key.slice(0, at);
}

/** The key space up to its first `|`, the whole of it without one. */
export function placementGroupOf(keySpace: string): string {
  const at = keySpace.indexOf(GROUP_SEPARATOR);
  return at < 0 ? keySpace : keySpace.slice(0, at);
}

export function keyHashText(key: string): string {
  return placementGroupOf(keySpaceOf(key));
}

/**
 * Keys of this bucket hash by this text: buckets, ranges and key spaces are routed as their keys
 * are.
 */
export function keySpaceHashText(keySpace: string): string {
  return placementGroupOf(keySpace);
}

export function lockHashText(resource: string): string {
  return resource;
}

/** `name`: as trimmed. */
export function sequenceHashText(name: string): string {
  return SEQUENCE_KEY_PREFIX + name;
}

const scratch = new Uint8Array(4096);
const encoder = new TextEncoder();
/** Up to this length a loop over ASCII is faster than the encoder. */
const LOOP_LENGTH_MAX = 64;

/** ASCII of `text` at the start of the scratch buffer; false: it is no ASCII. */
function writeAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) return false;
    scratch[at] = unit;
  }
  return true;
}

/** UTF-8 of `text` at the start of the scratch buffer or in bytes of its own. */
function utf8(text: string): { readonly bytes: Uint8Array; readonly size: number } {
  if (text.length * 3 > scratch.length) {
    const bytes = encodeText(text);
    return { bytes, size: bytes.length };
  }
  if (text.length <= LOOP_LENGTH_MAX && writeAscii(text)) {
    return { bytes: scratch, size: text.length };
  }
  return { bytes: scratch, size: encoder.encodeInto(text, scratch).written };
}

/**
 * Low 32 bits of the 64-bit product's high part and so on: (high, low) × factor + 1 modulo 2^64,
 * into `state`.
 */
class HashState {
  high = 0;
  low = 0;

  /** h = h × 2862933555777941757 + 1. */
  advance(): void {
    const { high, low } = this;
    const lowLow = low & 0xffff;
    const lowHigh = low >>> 16;
    const factorLow = FACTOR_LOW & 0xffff;
    const factorHigh = FACTOR_LOW >>> 16;
    // Four products of 16-bit halves; each sum stays below 2^53.
    const bottom = lowLow * factorLow;
    const middle = lowHigh * factorLow + (bottom >>> 16);
    const middle2 = lowLow * factorHigh + (middle % 0x1_0000);
    const carry =
      lowHigh * factorHigh + Math.floor(middle / 0x1_0000) + Math.floor(middle2 / 0x1_0000);
    const productLow = (((middle2 % 0x1_0000) * 0x1_0000) | (bottom & 0xffff)) >>> 0;
    const crossed = (Math.imul(low, FACTOR_HIGH) + Math.imul(high, FACTOR_LOW)) | 0;
    const sum = productLow + 1;
    const overflow = sum >= TWO_POWER_32 ? 1 : 0;
    this.low = sum >>> 0;
    this.high = ((carry % TWO_POWER_32) + crossed + overflow) >>> 0;
  }
}

const state = new HashState();

/** Bucket of `hashText` among `pool` buckets: 0 to pool − 1. `hashText`: well-formed. */
export function bucketIndex(hashText: string, pool: number): number {
  assert(Number.isInteger(pool) && pool >= 1, "the hash pool has at least one bucket");
  const { bytes, size } = utf8(hashText);
  state.high = xxh32(bytes, SEED_HIGH, 0, size);
  state.low = xxh32(bytes, SEED_LOW, 0, size);
  let bucket = -1;
  let next = 0;
  while (next < pool) {
    bucket = next;
    state.advance();
    next = Math.floor((bucket + 1) * (TWO_POWER_31 / ((state.high >>> 1) + 1)));
  }
  return bucket;
}

/** The data partition of a hash text, in a map with `pool` hash partitions. */
export function hashPartition(hashText: string, pool: number): number {
  return HASH_PARTITION_OFFSET + bucketIndex(hashText, pool);
}
