/**
 * CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) by slicing by 8, after Kounavis and Berry,
 * "A systematic approach to building high performance software-based CRC generators" (2005).
 *
 * Owns its tables.
 *
 * Invariants: 1. `crc32c` of "123456789" is 0xE3069283. 2. A state is the complement of a checksum;
 * only `crc32c` complements.
 */

function makeTables(): Uint32Array {
  const tables = new Uint32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0x82f6_3b78 : 0);
    tables[byte] = value;
  }
  for (let at = 256; at < tables.length; at++) {
    const before = tables[at - 256] as number;
    tables[at] = (before >>> 8) ^ (tables[before & 255] as number);
  }
  return tables;
}

const tables = makeTables();

/** The state after one more 32-bit word. */
export function feedWord(state: number, word: number): number {
  const mixed = state ^ word;
  return (
    (tables[768 + (mixed & 255)] as number) ^
    (tables[512 + ((mixed >>> 8) & 255)] as number) ^
    (tables[256 + ((mixed >>> 16) & 255)] as number) ^
    (tables[mixed >>> 24] as number)
  );
}

/** The state after words `from` to `to`; their number is even, so that the bytes come in eights. */
export function feedWords(state: number, words: Uint32Array, from: number, to: number): number {
  let crc = state;
  for (let at = from; at < to; at += 2) {
    const first = crc ^ (words[at] as number);
    const second = words[at + 1] as number;
    crc =
      (tables[1792 + (first & 255)] as number) ^
      (tables[1536 + ((first >>> 8) & 255)] as number) ^
      (tables[1280 + ((first >>> 16) & 255)] as number) ^
      (tables[1024 + (first >>> 24)] as number) ^
      (tables[768 + (second & 255)] as number) ^
      (tables[512 + ((second >>> 8) & 255)] as number) ^
      (tables[256 + ((second >>> 16) & 255)] as number) ^
      (tables[second >>> 24] as number);
  }
  return crc;
}

/**
 * CRC-32C of bytes `from` to `to`. `seed`: the checksum of what came before, 0 at the start.
 * Unsigned.
 */
export function crc32c(bytes: Uint8Array, seed = 0, from = 0, to = bytes.length): number {
  let crc = ~seed;
  let at = from;
  for (; at + 8 <= to; at += 8) {
    crc =
      (tables[1792 + ((crc ^ (bytes[at] as number)) & 255)] as number) ^
      (tables[1536 + (((crc >>> 8) ^ (bytes[at + 1] as number)) & 255)] as number) ^
      (tables[1280 + (((crc >>> 16) ^ (bytes[at + 2] as number)) & 255)] as number) ^
      (tables[1024 + (((crc >>> 24) ^ (bytes[at + 3] as number)) & 255)] as number) ^
      (tables[768 + (bytes[at + 4] as number)] as number) ^
      (tables[512 + (bytes[at + 5] as number)] as number) ^
      (tables[256 + (bytes[at + 6] as number)] as number) ^
      (tables[bytes[at + 7] as number] as number);
  }
  for (; at < to; at++) {
    crc = (crc >>> 8) ^ (tables[(crc ^ (bytes[at] as number)) & 255] as number);
  }
  return ~crc >>> 0;
}
