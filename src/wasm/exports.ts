/**
 * The raw functions that a kernel instance offers, compiled or twin: plain 32-bit numbers in and
 * out, pointers into its memory.
 *
 * Only the bridge classes (record.ts, scan.ts, compact.ts, ranges.ts) call these; they check every
 * bound first.
 *
 * Invariants: 1. Both implementations leave the same bytes in every output area and return the same
 * numbers. 2. 64-bit values cross the border as two 32-bit words, low before high. 3. No call grows
 * the memory.
 */

export interface KernelExports {
  /**
   * Frames and seals the records of one region in place. Result words: 0 bytes with padding, 1 last
   * checksum, 2 records.
   * Returns 0, or 1 when the lengths in the region do not add up to `bytes`.
   */
  seal(
    region: number,
    bytes: number,
    segmentLow: number,
    segmentHigh: number,
    salt: number,
    offset: number,
    previous: number,
    durable: number,
    sectorBytes: number,
  ): number;
  /**
   * Verifies frames in place. Result words: 0 bytes consumed, 1 last checksum, 2 rows. Returns a
   * `scanStop`.
   */
  scan(
    start: number,
    bytes: number,
    segmentLow: number,
    segmentHigh: number,
    salt: number,
    offset: number,
    previous: number,
    capacity: number,
  ): number;
  /**
   * Looks for the first frame that is valid by itself (the chain aside) at a multiple of 8 from
   * `start`. Result words: 0 its distance from `start`, 1 its durable offset, 2 distance of the
   * first plausible frame that the window cuts off (or `bytes`). Returns 1 found, 0 not found, 2
   * given up because of too many plausible headers.
   */
  seek(
    start: number,
    bytes: number,
    segmentLow: number,
    segmentHigh: number,
    salt: number,
    offset: number,
  ): number;
  /** CRC-32C of `bytes` bytes; `seed` is the checksum of what came before, 0 at the start. */
  checksum(start: number, bytes: number, seed: number): number;
  /**
   * Sorts `count` keys by bytes, keeps the last write of each; the order area holds them. Returns
   * how many remain.
   */
  fold(count: number): number;
  /**
   * Shares one reservation out: prefix sums of counts while the total stays within the limit.
   * Result words: 0 and 1 the total. Returns how many calls fit.
   */
  share(count: number, limitLow: number, limitHigh: number): number;
  /**
   * Allocates ranges over one cursor. Result words: 0 and 1 the final current value. Returns how
   * many were granted.
   */
  allocate(
    count: number,
    currentLow: number,
    currentHigh: number,
    incrementLow: number,
    incrementHigh: number,
    hasMaximum: number,
    maximumLow: number,
    maximumHigh: number,
  ): number;
}

/** An instance: its functions, its memory, and whether its assertions are compiled in. */
export interface KernelInstance {
  readonly exports: KernelExports;
  readonly memory: ArrayBuffer;
  readonly checked: boolean;
}
