/**
 * Twin of asm/record.ts: frames, seals, scans and seeks log records in plain TypeScript.
 *
 * Works on the arena it is given; owns nothing.
 *
 * Invariants: 1. Byte for byte the results of the compiled kernel. 2. Reads nothing outside [start,
 * start + bytes).
 */
import { areas, frame, scanStop, sizes } from "../layout.js";
import { feedWord, feedWords } from "./crc32c.js";

const header = frame.headerBytes;

function saltedState(salt: number, segmentLow: number, segmentHigh: number): number {
  return feedWord(feedWord(feedWord(-1, salt), segmentLow), segmentHigh);
}

function alignUp(bytes: number): number {
  return (bytes + 7) & ~7;
}

/** See `KernelExports.seal`. */
export function seal(
  words: Uint32Array,
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
  words.fill(0, (region + bytes) >>> 2, (region + bytes + padded) >>> 2);
  const salted = saltedState(salt, segmentLow, segmentHigh);
  let chain = previous;
  let records = 0;
  let at = 0;
  while (at < bytes) {
    const word = base + (at >>> 2);
    let stride = alignUp(words[word + 2] as number);
    if (stride < header || stride > bytes - at) return 1;
    if (at + stride === bytes) {
      words[word + 3] = ((words[word + 3] as number) & 0xffff) | ((padded >>> 3) << 16);
      stride += padded;
    }
    words[word] = frame.magic;
    words[word + 4] = chain;
    words[word + 5] = durable;
    const state = feedWords(feedWord(salted, offset + at), words, word + 2, word + (stride >>> 2));
    chain = ~state >>> 0;
    words[word + 1] = chain;
    at += stride;
    records++;
  }
  const results = areas.results >>> 2;
  words[results] = at;
  words[results + 1] = chain;
  words[results + 2] = records;
  return 0;
}

/**
 * The bytes that the frame at `word` takes with its padding, or 0 when its header is not plausible.
 */
function strideOf(words: Uint32Array, word: number): number {
  const length = words[word + 2] as number;
  if (length < header || length > header + sizes.payloadBytes) return 0;
  const kind = words[word + 3] as number;
  const padding = (kind >>> 16) * 8;
  if (((kind >>> 8) & 255) !== frame.version || padding > frame.padBytes) return 0;
  return alignUp(length) + padding;
}

function isZeroHeader(words: Uint32Array, word: number): boolean {
  for (let at = 0; at < header >>> 2; at++) if (words[word + at] !== 0) return false;
  return true;
}

function writeRow(words: Uint32Array, row: number, word: number, offset: number): void {
  const at = (areas.scanTable >>> 2) + row * sizes.scanWords;
  const kind = words[word + 3] as number;
  words[at] = offset;
  words[at + 1] = words[word + 2] as number;
  words[at + 2] = (kind & 255) | (kind & 0xffff_0000);
  for (let field = 0; field < 6; field++) {
    words[at + 3 + field] = words[word + 6 + field] as number;
  }
  words[at + 9] = words[word + 5] as number;
}

/** See `KernelExports.scan`. */
export function scan(
  words: Uint32Array,
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
    const word = (start + at) >>> 2;
    if (words[word] !== frame.magic) {
      stop = isZeroHeader(words, word) ? scanStop.zero : scanStop.badMagic;
      break;
    }
    const stride = strideOf(words, word);
    if (stride === 0) {
      stop = scanStop.badHeader;
      break;
    }
    if (stride > bytes - at) break;
    if (rows === capacity) {
      stop = scanStop.tableFull;
      break;
    }
    const state = feedWords(feedWord(salted, offset + at), words, word + 2, word + (stride >>> 2));
    if (~state >>> 0 !== words[word + 1]) {
      stop = scanStop.badChecksum;
      break;
    }
    if (words[word + 4] !== chain) {
      stop = scanStop.brokenChain;
      break;
    }
    chain = words[word + 1] as number;
    writeRow(words, rows, word, offset + at);
    rows++;
    at += stride;
  }
  const results = areas.results >>> 2;
  words[results] = at;
  words[results + 1] = chain;
  words[results + 2] = rows;
  return stop;
}

/**
 * See `KernelExports.seek`. At most 64 times the window is read for checksums, whatever the bytes
 * claim.
 */
export function seek(
  words: Uint32Array,
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
    const word = (start + at) >>> 2;
    if (words[word] !== frame.magic) continue;
    const stride = strideOf(words, word);
    if (stride === 0) continue;
    if (stride > bytes - at) {
      if (!cutFound) cut = at;
      cutFound = true;
      continue;
    }
    budget -= stride;
    if (budget < 0) return 2;
    const state = feedWords(feedWord(salted, offset + at), words, word + 2, word + (stride >>> 2));
    if (~state >>> 0 !== words[word + 1]) continue;
    words[results] = at;
    words[results + 1] = words[word + 5] as number;
    words[results + 2] = cut;
    return 1;
  }
  words[results] = bytes;
  words[results + 1] = 0;
  words[results + 2] = cut;
  return 0;
}
