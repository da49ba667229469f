/**
 * The map of one kernel instance's memory, and the record frame: every address and size that both
 * sides of the border use.
 *
 * asm/arena.ts holds the same numbers; a test compares the two, so that neither can drift alone.
 *
 * | Area | What lies there |
 * |---|---|
 * | 0 - 64 KiB | static data of the compiled module (texts of assertions); not for others |
 * | results | 16 words, the numbers a call gives back beside its return value |
 * | tables | CRC-32C tables for slicing by 16 |
 * | ranges | counts in, starts, ends and verdicts out |
 * | share | counts in, offsets out |
 * | keys, order, scratch, key bytes | sort and fold of one batch of changes |
 * | scan table, scan window | one window of a segment, and the frames found in it |
 * | regions | three batches of log records |
 *
 * Invariants: 1. Areas do not overlap and lie in ascending order. 2. Every area starts at a
 * multiple of 16. 3. The memory never grows: `memoryBytes` is its first and its last size.
 */

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

/** Sizes. Each is a hard bound that the bridge checks before it writes. */
export const sizes = {
  resultWords: 16,
  rangeItems: 8192,
  shareItems: 8192,
  keys: 65_536,
  keyBytes: 8 * mebibyte,
  scanRecords: 65_536,
  scanWords: 10,
  windowBytes: 8 * mebibyte,
  regions: 3,
  regionBytes: 8 * mebibyte,
  payloadBytes: 4 * mebibyte,
} as const;

/** Byte addresses of the areas. */
export const areas = {
  results: 0x1_0000,
  tables: 0x1_4000,
  rangeCounts: 0x2_0000,
  rangeStartLow: 0x2_8000,
  rangeStartHigh: 0x3_0000,
  rangeEndLow: 0x3_8000,
  rangeEndHigh: 0x4_0000,
  rangeVerdicts: 0x4_8000,
  shareCounts: 0x5_0000,
  shareOffsetLow: 0x5_8000,
  shareOffsetHigh: 0x6_0000,
  keyWords: 0x8_0000,
  order: 0x10_0000,
  scratch: 0x14_0000,
  keyBytes: 0x34_0000,
  scanTable: 0xb8_0000,
  window: 0xe0_0000,
  regions: 0x160_0000,
} as const;

/** The memory of one instance, first and last size. 0x2e0_0000 is 46 MiB, 736 pages of 64 KiB. */
export const memoryBytes = 0x2e0_0000;

/**
 * The record frame, little endian, 8-byte aligned. Offsets in bytes from the start of the frame.
 */
export const frame = {
  /** The bytes "SVR1". */
  magic: 0x3152_5653,
  version: 1,
  /** u32 magic. */
  magicAt: 0,
  /** u32 CRC-32C of salt, segment id, own offset and then bytes 8 to the end of the padding. */
  checksumAt: 4,
  /** u32 header and payload in bytes, without padding: never below `headerBytes`. */
  lengthAt: 8,
  /** u8 kind, u8 version, u16 extra padding in units of 8 bytes. */
  kindAt: 12,
  /** u32 checksum of the record before: the chain. */
  previousAt: 16,
  /** u32 offset in this segment below which all was known durable when the record was sealed. */
  durableAt: 20,
  groupAt: 24,
  incarnationAt: 28,
  indexAt: 32,
  termAt: 40,
  headerBytes: 48,
  /** Largest extra padding: one batch ends at most one sector later. */
  padBytes: 4096,
} as const;

/**
 * What a record says. Kinds of 16 and above belong to the caller.
 *
 * `entry` voids every earlier-written entry of its group from its own index on. `restated` is an
 * entry that was written forward by compaction: it voids nothing. `truncate` voids from its index
 * on. `install` (a snapshot took the place of the log) voids all earlier entries of the group.
 * `drop` voids all earlier records of the group.
 */
export const recordKind = {
  entry: 1,
  hardState: 2,
  truncate: 3,
  drop: 4,
  install: 5,
  restated: 6,
  firstOfCaller: 16,
} as const;

/** Words of one row of the scan table. */
export const scanWord = {
  offset: 0,
  length: 1,
  /** Low byte kind; the high 16 bits are the extra padding in units of 8 bytes. */
  kind: 2,
  group: 3,
  incarnation: 4,
  indexLow: 5,
  indexHigh: 6,
  termLow: 7,
  termHigh: 8,
  durable: 9,
} as const;

/** Why a scan stopped, as the kernels say it. */
export const scanStop = {
  /** The rest of the window is no whole frame. */
  needMore: 0,
  tableFull: 1,
  /** 48 bytes of zero: never written. */
  zero: 2,
  badMagic: 3,
  badHeader: 4,
  badChecksum: 5,
  brokenChain: 6,
} as const;

export const rangeVerdict = { ok: 0, beyondMaxValue: 1, beyondInt64: 2, invalidCount: 3 } as const;
