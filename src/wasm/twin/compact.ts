/**
 * Twin of asm/fold.ts and asm/compact.ts: last write per key, one reservation for many calls.
 *
 * Works on the arena it is given; owns nothing.
 *
 * Invariant: keys order as unsigned bytes, a prefix before its extensions; equal keys keep their
 * write order.
 */
import { areas } from "../layout.js";

const keyWords = areas.keyWords >>> 2;
const order = areas.order >>> 2;
const two32 = 0x1_0000_0000;

function compareKeys(bytes: Uint8Array, words: Uint32Array, left: number, right: number): number {
  const leftAt = words[keyWords + left * 2] as number;
  const rightAt = words[keyWords + right * 2] as number;
  const leftLength = words[keyWords + left * 2 + 1] as number;
  const rightLength = words[keyWords + right * 2 + 1] as number;
  const shared = leftLength < rightLength ? leftLength : rightLength;
  for (let at = 0; at < shared; at++) {
    const leftByte = bytes[leftAt + at] as number;
    const rightByte = bytes[rightAt + at] as number;
    if (leftByte !== rightByte) return leftByte - rightByte;
  }
  return leftLength - rightLength;
}

/** See `KernelExports.fold`. */
export function fold(words: Uint32Array, bytes: Uint8Array, count: number): number {
  if (count === 0) return 0;
  const sorted = new Uint32Array(count);
  for (let at = 0; at < count; at++) sorted[at] = at;
  // The index decides between equal keys, so that any sort is stable here.
  sorted.sort((left, right) => compareKeys(bytes, words, left, right) || left - right);
  let kept = 0;
  for (let at = 0; at < count; at++) {
    const key = sorted[at] as number;
    const next = sorted[at + 1];
    if (next !== undefined && compareKeys(bytes, words, key, next) === 0) continue;
    words[order + kept] = key;
    kept++;
  }
  return kept;
}

/**
 * See `KernelExports.share`. Counts are below 2^32 and at most 8,192, so that no sum passes 2^45.
 */
export function share(
  words: Uint32Array,
  count: number,
  limitLow: number,
  limitHigh: number,
): number {
  const limit = (limitHigh >>> 0) * two32 + (limitLow >>> 0);
  let total = 0;
  let taken = 0;
  for (; taken < count; taken++) {
    const next = total + (words[(areas.shareCounts >>> 2) + taken] as number);
    if (next > limit) break;
    words[(areas.shareOffsetLow >>> 2) + taken] = total >>> 0;
    words[(areas.shareOffsetHigh >>> 2) + taken] = Math.floor(total / two32);
    total = next;
  }
  words[areas.results >>> 2] = total >>> 0;
  words[(areas.results >>> 2) + 1] = Math.floor(total / two32);
  return taken;
}
