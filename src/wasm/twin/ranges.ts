/**
 * Twin of asm/ranges.ts: checked 64-bit range arithmetic for many allocations over one cursor, in
 * pairs of 32-bit words.
 *
 * Works on the arena it is given; owns nothing.
 *
 * The room left is divided by the increment once per batch; after that each item is a comparison of
 * step counts, so that nothing can overflow before it is checked. BigInt appears once per batch,
 * never per item.
 *
 * Invariants: 1. A refused item changes nothing. 2. start = current + increment; end = current +
 * count * increment.
 */
import { areas, rangeVerdict } from "../layout.js";

const two32 = 0x1_0000_0000;
const largestInt64 = 0x7fff_ffff_ffff_ffffn;

/** The signed 64-bit value of two words. */
function joined(low: number, high: number): bigint {
  return (BigInt(high | 0) << 32n) | BigInt(low >>> 0);
}

/** How many whole increments lie between `current` and `limit`; at least 0, below 2^64. */
function stepsWithin(current: bigint, limit: bigint, increment: bigint): bigint {
  return limit <= current ? 0n : (limit - current) / increment;
}

/** Steps left under one limit, as an unsigned pair of words. */
interface Room {
  low: number;
  high: number;
}

function roomOf(steps: bigint): Room {
  return { low: Number(steps & 0xffff_ffffn), high: Number(steps >> 32n) };
}

function take(room: Room, count: number): void {
  if (count > room.low) {
    room.high--;
    room.low += two32;
  }
  room.low -= count;
}

/** High 32 bits of the product of two unsigned 32-bit numbers. */
function multiplyHigh(left: number, right: number): number {
  const leftLow = left & 0xffff;
  const leftHigh = left >>> 16;
  const rightLow = right & 0xffff;
  const rightHigh = right >>> 16;
  const middle = leftHigh * rightLow + ((leftLow * rightLow) >>> 16);
  const second = leftLow * rightHigh + (middle & 0xffff);
  return leftHigh * rightHigh + Math.floor(middle / 65_536) + Math.floor(second / 65_536);
}

/** See `KernelExports.allocate`. */
export function allocate(
  words: Uint32Array,
  count: number,
  currentLow: number,
  currentHigh: number,
  incrementLow: number,
  incrementHigh: number,
  hasMaximum: number,
  maximumLow: number,
  maximumHigh: number,
): number {
  const cursor = joined(currentLow, currentHigh);
  const increment = joined(incrementLow, incrementHigh);
  const maximum = hasMaximum === 0 ? largestInt64 : joined(maximumLow, maximumHigh);
  const room64 = roomOf(stepsWithin(cursor, largestInt64, increment));
  const room = roomOf(stepsWithin(cursor, maximum, increment));
  const stepLow = incrementLow >>> 0;
  const stepHigh = incrementHigh >>> 0;
  let low = currentLow >>> 0;
  let high = currentHigh >>> 0;
  let granted = 0;
  for (let item = 0; item < count; item++) {
    const wanted = words[(areas.rangeCounts >>> 2) + item] as number;
    const counted = wanted > 0 && wanted < 0x8000_0000;
    let verdict: number = rangeVerdict.ok;
    if (!counted) verdict = rangeVerdict.invalidCount;
    else if (room64.high === 0 && wanted > room64.low) verdict = rangeVerdict.beyondInt64;
    else if (room.high === 0 && wanted > room.low) verdict = rangeVerdict.beyondMaxValue;
    let startLow = 0;
    let startHigh = 0;
    let endLow = 0;
    let endHigh = 0;
    if (verdict === rangeVerdict.ok) {
      startLow = low + stepLow;
      startHigh = high + stepHigh + (startLow >= two32 ? 1 : 0);
      endLow = low + (Math.imul(wanted, stepLow) >>> 0);
      endHigh =
        high +
        multiplyHigh(wanted, stepLow) +
        (Math.imul(wanted, stepHigh) >>> 0) +
        (endLow >= two32 ? 1 : 0);
      low = endLow >>> 0;
      high = endHigh >>> 0;
      take(room64, wanted);
      take(room, wanted);
      granted++;
    }
    words[(areas.rangeStartLow >>> 2) + item] = startLow;
    words[(areas.rangeStartHigh >>> 2) + item] = startHigh;
    words[(areas.rangeEndLow >>> 2) + item] = endLow;
    words[(areas.rangeEndHigh >>> 2) + item] = endHigh;
    words[(areas.rangeVerdicts >>> 2) + item] = verdict;
  }
  words[areas.results >>> 2] = low;
  words[(areas.results >>> 2) + 1] = high;
  return granted;
}
