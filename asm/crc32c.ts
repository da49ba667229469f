/**
 * CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) by slicing by 16, after Kounavis and Berry,
 * "A systematic approach to building high performance software-based CRC generators" (2005).
 *
 * Owns the tables area. States are complements of checksums.
 */
import { TABLES } from "./arena";

/** Fills the sixteen tables. Must run once before anything else here. */
export function makeTables(): void {
  for (let byte: u32 = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) {
      value = (value >>> 1) ^ (value & 1 ? 0x82f6_3b78 : 0);
    }
    store<u32>(TABLES + (<usize>byte << 2), value);
  }
  for (let at: usize = 256; at < 4096; at++) {
    const before = load<u32>(TABLES + ((at - 256) << 2));
    store<u32>(TABLES + (at << 2), (before >>> 8) ^ entry(0, before));
  }
}

/** Entry of table `table` for the low byte of `value`. */
// @ts-ignore: decorator
@inline
function entry(table: usize, value: u32): u32 {
  return load<u32>(TABLES + (table << 10) + (<usize>(value & 255) << 2));
}

/** The four table entries of one lane; `top` is the table of its lowest byte. */
// @ts-ignore: decorator
@inline
function sliced(top: usize, lane: u32): u32 {
  return (
    entry(top, lane) ^
    entry(top - 1, lane >>> 8) ^
    entry(top - 2, lane >>> 16) ^
    entry(top - 3, lane >>> 24)
  );
}

/** The state after one more 32-bit lane. */
// @ts-ignore: decorator
@inline
export function feedLane(state: u32, lane: u32): u32 {
  return sliced(3, state ^ lane);
}

/** The state after `bytes` more bytes at `start`; a multiple of 8. */
export function feedAligned(state: u32, start: usize, bytes: i32): u32 {
  assert((bytes & 7) == 0);
  let crc = state;
  let at = start;
  const end = start + bytes;
  const end16 = start + (bytes & ~15);
  while (at < end16) {
    const first = load<u64>(at);
    const second = load<u64>(at, 8);
    const low = <u32>first ^ crc;
    crc =
      sliced(15, low) ^
      sliced(11, <u32>(first >>> 32)) ^
      sliced(7, <u32>second) ^
      sliced(3, <u32>(second >>> 32));
    at += 16;
  }
  if (at < end) {
    const last = load<u64>(at);
    crc = sliced(7, <u32>last ^ crc) ^ sliced(3, <u32>(last >>> 32));
  }
  return crc;
}

/** CRC-32C of any number of bytes. `seed`: the checksum of what came before. */
export function checksum(start: usize, bytes: i32, seed: u32): u32 {
  assert(bytes >= 0);
  const aligned = bytes & ~7;
  let crc = feedAligned(~seed, start, aligned);
  for (let at = start + aligned; at < start + bytes; at++) {
    crc = (crc >>> 8) ^ entry(0, crc ^ load<u8>(at));
  }
  return ~crc;
}
