/**
 * Log records: seal a batch, scan a window, seek a valid frame. See src/wasm/record.ts and scan.ts
 * for the meaning.
 *
 * Works on the region or window it is given; owns the scan table. Never reads outside [start, start
 * + bytes).
 */
import {
  HEADER,
  MAGIC,
  MEMORY_END,
  PAD_MAX,
  PAYLOAD_MAX,
  REGIONS,
  ROW_BYTES,
  SCAN_RECORDS,
  SCAN_TABLE,
  VERSION,
  setResult,
} from "./arena";
import { feedAligned, feedWord } from "./crc32c";

const STOP_NEED_MORE: i32 = 0;
const STOP_TABLE_FULL: i32 = 1;
const STOP_ZERO: i32 = 2;
const STOP_BAD_MAGIC: i32 = 3;
const STOP_BAD_HEADER: i32 = 4;
const STOP_BAD_CHECKSUM: i32 = 5;
const STOP_BROKEN_CHAIN: i32 = 6;

function saltedState(salt: u32, segmentLow: u32, segmentHigh: u32): u32 {
  return feedWord(feedWord(feedWord(0xffff_ffff, salt), segmentLow), segmentHigh);
}

/**
 * Checksum of the frame at `pointer` that takes `stride` bytes; `salted` already holds the segment.
 */
function frameChecksum(salted: u32, offset: u32, pointer: usize, stride: i32): u32 {
  return ~feedAligned(feedWord(salted, offset), pointer + 8, stride - 8);
}

function alignUp(bytes: i32): i32 {
  return (bytes + 7) & ~7;
}

export function seal(
  region: usize,
  bytes: i32,
  segmentLow: u32,
  segmentHigh: u32,
  salt: u32,
  offset: u32,
  previous: u32,
  durable: u32,
  sectorBytes: u32,
): i32 {
  assert(region >= REGIONS && region + bytes + PAD_MAX <= MEMORY_END);
  assert((bytes & 7) == 0 && (offset & 7) == 0);
  const padded: i32 = sectorBytes == 0 ? 0 : (0 - (offset + bytes)) & (sectorBytes - 1);
  memory.fill(region + bytes, 0, padded);
  const salted = saltedState(salt, segmentLow, segmentHigh);
  let chain = previous;
  let records: u32 = 0;
  let at: i32 = 0;
  while (at < bytes) {
    const pointer = region + at;
    let stride = alignUp(load<i32>(pointer, 8));
    if (stride < HEADER || stride > bytes - at) return 1;
    if (at + stride == bytes) {
      store<u16>(pointer, padded >>> 3, 14);
      stride += padded;
    } else {
      assert(load<u16>(pointer, 14) == 0);
    }
    assert(load<u8>(pointer, 12) != 0 && load<u8>(pointer, 13) == VERSION);
    store<u32>(pointer, MAGIC);
    store<u32>(pointer, chain, 16);
    store<u32>(pointer, durable, 20);
    chain = frameChecksum(salted, offset + at, pointer, stride);
    store<u32>(pointer, chain, 4);
    at += stride;
    records++;
  }
  setResult(0, at);
  setResult(1, chain);
  setResult(2, records);
  return 0;
}

/**
 * The bytes that the frame at `pointer` takes with its padding, or 0 when its header is not
 * plausible.
 */
function strideOf(pointer: usize): i32 {
  const length = load<i32>(pointer, 8);
  const padding = (<i32>load<u16>(pointer, 14)) << 3;
  if (length < HEADER || length > HEADER + PAYLOAD_MAX) return 0;
  if (load<u8>(pointer, 13) != VERSION || padding > PAD_MAX) return 0;
  return alignUp(length) + padding;
}

function isZeroHeader(pointer: usize): bool {
  let any: u64 = 0;
  for (let at: i32 = 0; at < HEADER; at += 8) any |= load<u64>(pointer + at);
  return any == 0;
}

function writeRow(row: i32, pointer: usize, offset: u32): void {
  const at = SCAN_TABLE + <usize>row * ROW_BYTES;
  store<u32>(at, offset);
  store<u32>(at, load<u32>(pointer, 8), 4);
  store<u32>(at, load<u32>(pointer, 12) & 0xffff_00ff, 8);
  store<u64>(at, load<u64>(pointer, 24), 12);
  store<u64>(at, load<u64>(pointer, 32), 20);
  store<u64>(at, load<u64>(pointer, 40), 28);
  store<u32>(at, load<u32>(pointer, 20), 36);
}

export function scan(
  start: usize,
  bytes: i32,
  segmentLow: u32,
  segmentHigh: u32,
  salt: u32,
  offset: u32,
  previous: u32,
  capacity: i32,
): i32 {
  assert(bytes >= 0 && start + bytes <= MEMORY_END && (start & 7) == 0);
  assert(capacity > 0 && capacity <= SCAN_RECORDS);
  const salted = saltedState(salt, segmentLow, segmentHigh);
  let chain = previous;
  let rows: i32 = 0;
  let at: i32 = 0;
  let stop = STOP_NEED_MORE;
  while (bytes - at >= HEADER) {
    const pointer = start + at;
    if (load<u32>(pointer) != MAGIC) {
      stop = isZeroHeader(pointer) ? STOP_ZERO : STOP_BAD_MAGIC;
      break;
    }
    const stride = strideOf(pointer);
    if (stride == 0) {
      stop = STOP_BAD_HEADER;
      break;
    }
    if (stride > bytes - at) break;
    if (rows == capacity) {
      stop = STOP_TABLE_FULL;
      break;
    }
    const sum = frameChecksum(salted, offset + at, pointer, stride);
    if (sum != load<u32>(pointer, 4)) {
      stop = STOP_BAD_CHECKSUM;
      break;
    }
    if (load<u32>(pointer, 16) != chain) {
      stop = STOP_BROKEN_CHAIN;
      break;
    }
    chain = sum;
    writeRow(rows, pointer, offset + at);
    rows++;
    at += stride;
  }
  setResult(0, at);
  setResult(1, chain);
  setResult(2, rows);
  return stop;
}

export function seek(
  start: usize,
  bytes: i32,
  segmentLow: u32,
  segmentHigh: u32,
  salt: u32,
  offset: u32,
): i32 {
  assert(bytes >= 0 && start + bytes <= MEMORY_END && (start & 7) == 0);
  const salted = saltedState(salt, segmentLow, segmentHigh);
  let budget: i64 = <i64>bytes * 64;
  // A header may straddle the end of the window: by default the next window begins where none fits
  // any more.
  let cut: i32 = bytes < HEADER ? 0 : alignUp(bytes - HEADER + 1);
  let cutFound = false;
  for (let at: i32 = 0; bytes - at >= HEADER; at += 8) {
    const pointer = start + at;
    if (load<u32>(pointer) != MAGIC) continue;
    const stride = strideOf(pointer);
    if (stride == 0) continue;
    if (stride > bytes - at) {
      if (!cutFound) cut = at;
      cutFound = true;
      continue;
    }
    budget -= stride;
    if (budget < 0) return 2;
    if (frameChecksum(salted, offset + at, pointer, stride) != load<u32>(pointer, 4)) continue;
    setResult(0, at);
    setResult(1, load<u32>(pointer, 20));
    setResult(2, cut);
    return 1;
  }
  setResult(0, bytes);
  setResult(1, 0);
  setResult(2, cut);
  return 0;
}
