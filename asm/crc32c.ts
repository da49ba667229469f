/**
 * CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) by slicing by 16, after Kounavis and Berry,
 * "A systematic approach to building high performance software-based CRC generators" (2005).
 *
 * Owns the tables area. States are complements of checksums.
 */
import { TABLES } from "./arena";

// Constants, so that a table's address becomes part of the load instruction.
const T1: usize = TABLES + 1 * 1024;
const T2: usize = TABLES + 2 * 1024;
const T3: usize = TABLES + 3 * 1024;
const T4: usize = TABLES + 4 * 1024;
const T5: usize = TABLES + 5 * 1024;
const T6: usize = TABLES + 6 * 1024;
const T7: usize = TABLES + 7 * 1024;
const T8: usize = TABLES + 8 * 1024;
const T9: usize = TABLES + 9 * 1024;
const T10: usize = TABLES + 10 * 1024;
const T11: usize = TABLES + 11 * 1024;
const T12: usize = TABLES + 12 * 1024;
const T13: usize = TABLES + 13 * 1024;
const T14: usize = TABLES + 14 * 1024;
const T15: usize = TABLES + 15 * 1024;

/** Fills the sixteen tables. Must run once before anything else here. */
export function makeTables(): void {
  for (let byte: u32 = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) {
      value = (value >>> 1) ^ (value & 1 ? 0x82f6_3b78 : 0);
    }
    store<u32>(TABLES + ((<usize>byte) << 2), value);
  }
  for (let at: usize = 256; at < 4096; at++) {
    const before = load<u32>(TABLES + ((at - 256) << 2));
    store<u32>(TABLES + (at << 2), (before >>> 8) ^ load<u32>(at4(before), TABLES));
  }
}

/** Byte offset of an entry for the low byte of `value` in any table. */
function at4(value: u32): usize {
  return <usize>((value & 255) << 2);
}

/** The state after one more 32-bit word. */
export function feedWord(state: u32, word: u32): u32 {
  const mixed = state ^ word;
  return (
    load<u32>(at4(mixed), T3) ^
    load<u32>(at4(mixed >>> 8), T2) ^
    load<u32>(at4(mixed >>> 16), T1) ^
    load<u32>(at4(mixed >>> 24), TABLES)
  );
}

/** The state after `bytes` more bytes at `start`; a multiple of 8. */
export function feedAligned(state: u32, start: usize, bytes: i32): u32 {
  assert((bytes & 7) == 0);
  let crc = state;
  let at = start;
  const end = start + bytes;
  const end16 = start + (bytes & ~15);
  while (at < end16) {
    const first = load<u32>(at) ^ crc;
    const second = load<u32>(at, 4);
    const third = load<u32>(at, 8);
    const fourth = load<u32>(at, 12);
    crc =
      load<u32>(at4(first), T15) ^
      load<u32>(at4(first >>> 8), T14) ^
      load<u32>(at4(first >>> 16), T13) ^
      load<u32>(at4(first >>> 24), T12) ^
      load<u32>(at4(second), T11) ^
      load<u32>(at4(second >>> 8), T10) ^
      load<u32>(at4(second >>> 16), T9) ^
      load<u32>(at4(second >>> 24), T8) ^
      load<u32>(at4(third), T7) ^
      load<u32>(at4(third >>> 8), T6) ^
      load<u32>(at4(third >>> 16), T5) ^
      load<u32>(at4(third >>> 24), T4) ^
      load<u32>(at4(fourth), T3) ^
      load<u32>(at4(fourth >>> 8), T2) ^
      load<u32>(at4(fourth >>> 16), T1) ^
      load<u32>(at4(fourth >>> 24), TABLES);
    at += 16;
  }
  if (at < end) {
    const first = load<u32>(at) ^ crc;
    const second = load<u32>(at, 4);
    crc =
      load<u32>(at4(first), T7) ^
      load<u32>(at4(first >>> 8), T6) ^
      load<u32>(at4(first >>> 16), T5) ^
      load<u32>(at4(first >>> 24), T4) ^
      load<u32>(at4(second), T3) ^
      load<u32>(at4(second >>> 8), T2) ^
      load<u32>(at4(second >>> 16), T1) ^
      load<u32>(at4(second >>> 24), TABLES);
  }
  return crc;
}

/** CRC-32C of any number of bytes. `seed`: the checksum of what came before. */
export function checksum(start: usize, bytes: i32, seed: u32): u32 {
  assert(bytes >= 0);
  const aligned = bytes & ~7;
  let crc = feedAligned(~seed, start, aligned);
  for (let at = start + aligned; at < start + bytes; at++) {
    crc = (crc >>> 8) ^ load<u32>(at4(crc ^ load<u8>(at)), TABLES);
  }
  return ~crc;
}
