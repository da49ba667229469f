/**
 * The map of the memory and the record frame, as src/wasm/layout.ts has it; a test holds the two
 * together.
 *
 * Addresses in bytes. Raw pointers only: nothing here ever allocates.
 */

export const RESULTS: usize = 0x1_0000;
export const TABLES: usize = 0x1_4000;
export const RANGE_COUNTS: usize = 0x2_0000;
export const RANGE_START_LOW: usize = 0x2_8000;
export const RANGE_START_HIGH: usize = 0x3_0000;
export const RANGE_END_LOW: usize = 0x3_8000;
export const RANGE_END_HIGH: usize = 0x4_0000;
export const RANGE_VERDICTS: usize = 0x4_8000;
export const SHARE_COUNTS: usize = 0x5_0000;
export const SHARE_OFFSET_LOW: usize = 0x5_8000;
export const SHARE_OFFSET_HIGH: usize = 0x6_0000;
export const KEY_WORDS: usize = 0x8_0000;
export const ORDER: usize = 0x10_0000;
export const SCRATCH: usize = 0x14_0000;
export const KEY_BYTES: usize = 0x34_0000;
export const SCAN_TABLE: usize = 0xb8_0000;
export const WINDOW: usize = 0xe0_0000;
export const REGIONS: usize = 0x160_0000;
export const MEMORY_END: usize = 0x2e0_0000;

export const RANGE_ITEMS: i32 = 8192;
export const SHARE_ITEMS: i32 = 8192;
export const KEYS_MAX: i32 = 65_536;
export const SCAN_RECORDS: i32 = 65_536;
export const ROW_BYTES: usize = 40;

export const MAGIC: u32 = 0x3152_5653;
export const VERSION: u32 = 1;
export const HEADER: i32 = 48;
export const PAYLOAD_MAX: i32 = 4 * 1024 * 1024;
export const PAD_MAX: i32 = 4096;

/** Stores result word `word`. */
export function setResult(word: i32, value: u32): void {
  store<u32>(RESULTS + ((<usize>word) << 2), value);
}
