/**
 * Twin of asm/record.ts: frames, seals, scans and seeks log records in plain TypeScript.
 *
 * Works on the arena it is given; owns nothing.
 *
 * Invariants: 1. Byte for byte the results of the compiled kernel. 2. Reads nothing outside [start,
 * start + bytes).
 */
import { areas, frame, scanStop, sizes } from "../layout.js";
import { feedLane, feedLanes } from "./crc32c.js";

const header = frame.headerBytes;

function saltedState(salt: number, segmentLow: number, segmentHigh: number): number {
  return feedLane(feedLane(feedLane(-1, salt), segmentLow), segmentHigh);
}

function alignUp(bytes: number): number {
  return (bytes + 7) & ~7;
}

/** See `KernelExports.seal`. */
export function seal(
  lanes: Uint32Array,
  region: number,
  bytes: number,
  segmentLow: number,
  segmentHigh: number,
  salt: number,
  offset: number,
  previous: number,
  durable: number,
  sectorBytes: number,
): number {
  const base = region >>> 2;
  const padded = sectorBytes === 0 ? 0 : -(offset + bytes) & (sectorBytes - 1);
  lanes.fill(0, (region + bytes) >>> 2, (region + bytes + padded) >>> 2);
  const salted = saltedState(salt, segmentLow, segmentHigh);
  let chain = previous;
  let records = 0;
  let at = 0;
  while (at < bytes) {
    const lane = base + (at >>> 2);
    let stride = alignUp(lanes[lane + 2] as number);
    if (stride < header || stride > bytes - at) return 1;
    if (at + stride === bytes) {
      lanes[lane + 3] = ((lanes[lane + 3] as number) & 0xffff) | ((padded >>> 3) << 16);
      stride += padded;
    }
    lanes[lane] = frame.magic;
    lanes[lane + 4] = chain;
    lanes[lane + 5] = durable;
    const state = feedLanes(feedLane(salted, offset + at), lanes, lane + 2, lane + (stride >>> 2));
    chain = ~state >>> 0;
    lanes[lane + 1] = chain;
    at += stride;
    records++;
  }
  const results = areas.results >>> 2;
  lanes[results] = at;
  lanes[results + 1] = chain;
  lanes[results + 2] = records;
  return 0;
}

/**
 * The bytes that the frame at `lane` takes with its padding, or 0 when its header is not plausible.
 */
function strideOf(lanes: Uint32Array, lane: number): number {
  const length = lanes[lane + 2] as number;
  if (length < header || length > header + sizes.payloadBytes) return 0;
  const kind = lanes[lane + 3] as number;
  const padding = (kind >>> 16) * 8;
  if (((kind >>> 8) & 255) !== frame.version || padding > frame.padBytes) return 0;
  return alignUp(length) + padding;
}

function isZeroHeader(lanes: Uint32Array, lane: number): boolean {
  for (let at = 0; at < header >>> 2; at++) if (lanes[lane + at] !== 0) return false;
  return true;
}

function writeRow(lanes: Uint32Array, row: number, lane: number, offset: number): void {
  const at = (areas.scanTable >>> 2) + row * sizes.scanLanes;
  const kind = lanes[lane + 3] as number;
  lanes[at] = offset;
  lanes[at + 1] = lanes[lane + 2] as number;
  lanes[at + 2] = (kind & 255) | (kind & 0xffff_0000);
  for (let field = 0; field < 6; field++) {
    lanes[at + 3 + field] = lanes[lane + 6 + field] as number;
  }
  lanes[at + 9] = lanes[lane + 5] as number;
}

/** See `KernelExports.scan`. */
export function scan(
  lanes: Uint32Array,
  start: number,
  bytes: number,
  segmentLow: number,
  segmentHigh: number,
  salt: number,
  offset: number,
  previous: number,
  capacity: number,
): number {
  const salted = saltedState(salt, segmentLow, segmentHigh);
  let chain = previous >>> 0;
  let rows = 0;
  let at = 0;
  let stop: number = scanStop.needMore;
  while (bytes - at >= header) {
    const lane = (start + at) >>> 2;
    if (lanes[lane] !== frame.magic) {
      stop = isZeroHeader(lanes, lane) ? scanStop.zero : scanStop.badMagic;
      break;
    }
    const stride = strideOf(lanes, lane);
    if (stride === 0) {
      stop = scanStop.badHeader;
      break;
    }
    if (stride > bytes - at) break;
    if (rows === capacity) {
      stop = scanStop.tableFull;
      break;
    }
    const state = feedLanes(feedLane(salted, offset + at), lanes, lane + 2, lane + (stride >>> 2));
    if (~state >>> 0 !== lanes[lane + 1]) {
      stop = scanStop.badChecksum;
      break;
    }
    if (lanes[lane + 4] !== chain) {
      stop = scanStop.brokenChain;
      break;
    }
    chain = lanes[lane + 1] as number;
    writeRow(lanes, rows, lane, offset + at);
    rows++;
    at += stride;
  }
  const results = areas.results >>> 2;
  lanes[results] = at;
  lanes[results + 1] = chain;
  lanes[results + 2] = rows;
  return stop;
}

/**
 * See `KernelExports.seek`. At most 64 times the window is read for checksums, whatever the bytes
 * claim.
 */
export function seek(
  lanes: Uint32Array,
  start: number,
  bytes: number,
  segmentLow: number,
  segmentHigh: number,
  salt: number,
  offset: number,
): number {
  const salted = saltedState(salt, segmentLow, segmentHigh);
  const results = areas.results >>> 2;
  let budget = bytes * 64;
  // A header may straddle the end of the window: by default the next window begins where none fits
  // any more.
  let cut = bytes < header ? 0 : alignUp(bytes - header + 1);
  let cutFound = false;
  for (let at = 0; bytes - at >= header; at += 8) {
    const lane = (start + at) >>> 2;
    if (lanes[lane] !== frame.magic) continue;
    const stride = strideOf(lanes, lane);
    if (stride === 0) continue;
    if (stride > bytes - at) {
      if (!cutFound) cut = at;
      cutFound = true;
      continue;
    }
    budget -= stride;
    if (budget < 0) return 2;
    const state = feedLanes(feedLane(salted, offset + at), lanes, lane + 2, lane + (stride >>> 2));
    if (~state >>> 0 !== lanes[lane + 1]) continue;
    lanes[results] = at;
    lanes[results + 1] = lanes[lane + 5] as number;
    lanes[results + 2] = cut;
    return 1;
  }
  lanes[results] = bytes;
  lanes[results + 1] = 0;
  lanes[results + 2] = cut;
  return 0;
}
