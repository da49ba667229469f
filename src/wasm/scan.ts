/**
 * Reading a log segment back: verify frames window by window, in place, and tell a torn tail from
 * damage.
 *
 * Owns the scan window and the scan table of one kernel instance.
 *
 * The caller reads bytes of the segment straight into `window` (or as much as is left), calls
 * `scan`, and goes on at `nextOffset`. Rows and payload views are valid until the next scan or
 * seek.
 *
 * Invariants: 1. A row is a frame whose magic, header, checksum, place and chain all hold. 2.
 * `scan` never reports a frame that reaches past the bytes given. 3. It makes progress or gives a
 * reason other than "more".
 */
import { assert } from "../base/assert.js";
import type { GuardedKernel } from "./guard.js";
import { areas, frame, scanWord, scanStop, sizes } from "./layout.js";

const two32 = 0x1_0000_0000;

export interface ScanPlace {
  readonly segmentId: number;
  readonly salt: number;
  /** Offset in the segment of the first byte of the window; a multiple of 8. */
  readonly offset: number;
  /** Checksum that the first record must chain to. */
  readonly previousChecksum: number;
  /** True when the window reaches the end of the segment file. */
  readonly last: boolean;
}

/**
 * Why a scan stopped. "more": read on from `nextOffset`. "end": the segment is used to its last
 * byte. "zero": never written from here. The others are torn or damaged: `seek` behind them tells
 * which.
 */
export type ScanReason =
  | "more"
  | "end"
  | "zero"
  | "truncated"
  | "bad-magic"
  | "bad-header"
  | "bad-checksum"
  | "broken-chain";

export interface ScanResult {
  readonly reason: ScanReason;
  readonly records: number;
  /** Offset in the segment behind the last verified frame. */
  readonly nextOffset: number;
  /** Checksum of the last verified frame, or the one given. */
  readonly checksum: number;
}

/** One verified frame. */
export interface ScannedRecord {
  readonly kind: number;
  readonly group: number;
  readonly incarnation: number;
  readonly index: number;
  readonly term: number;
  /** Offset of the frame in the segment. */
  readonly offset: number;
  readonly payloadBytes: number;
  /** Offset in the segment that was known durable when this record was sealed. */
  readonly durableOffset: number;
}

export interface SeekResult {
  /**
   * "found": a valid frame lies at `offset`. "none": not in this window. "unsure": too many
   * look-alikes to tell.
   */
  readonly outcome: "found" | "none" | "unsure";
  /**
   * found: where it lies. none: where the next window must begin (a plausible frame may be cut off
   * there).
   */
  readonly offset: number;
  /**
   * found: everything below this was durable when it was sealed; a bad record below this is damage,
   * not a torn tail.
   */
  readonly durableOffset: number;
}

const reasons: readonly ScanReason[] = [
  "more",
  "more",
  "zero",
  "bad-magic",
  "bad-header",
  "bad-checksum",
  "broken-chain",
];

export class SegmentScanner {
  /** Read segment bytes into the front of this; it never detaches. */
  readonly window: Uint8Array;
  /** The rows as words, `sizes.scanWords` each, see `scanWord`. */
  readonly table: Uint32Array;
  private windowOffset = 0;
  private rows = 0;

  constructor(private readonly kernel: GuardedKernel) {
    this.window = kernel.bytes.subarray(areas.window, areas.window + sizes.windowBytes);
    const row = areas.scanTable >>> 2;
    this.table = kernel.words.subarray(row, row + sizes.scanRecords * sizes.scanWords);
  }

  /** Verifies the frames in the first `bytes` bytes of the window. One crossing. */
  scan(bytes: number, place: ScanPlace): ScanResult {
    this.check(bytes, place.offset);
    const stop = this.kernel.call((exports) =>
      exports.scan(
        areas.window,
        bytes,
        place.segmentId | 0,
        (place.segmentId / two32) | 0,
        place.salt | 0,
        place.offset | 0,
        place.previousChecksum | 0,
        sizes.scanRecords,
      ),
    );
    const consumed = this.kernel.result(0);
    this.windowOffset = place.offset;
    this.rows = this.kernel.result(2);
    let reason = reasons[stop];
    assert(reason !== undefined, "the kernel stops for a known reason");
    if (stop === scanStop.needMore) {
      const full = consumed === 0 && bytes === sizes.windowBytes;
      assert(!full, "no frame is larger than the window");
      if (place.last) reason = this.reasonAtEnd(consumed, bytes);
    }
    return {
      reason,
      records: this.rows,
      nextOffset: place.offset + consumed,
      checksum: this.kernel.result(1),
    };
  }

  /**
   * Looks for the first valid frame in the first `bytes` bytes of the window, whatever it chains
   * to. Used behind a bad record. When the outcome is "none" and its offset equals `place.offset`,
   * nothing more can be found.
   */
  seek(bytes: number, place: Omit<ScanPlace, "previousChecksum">): SeekResult {
    this.check(bytes, place.offset);
    this.rows = 0;
    const found = this.kernel.call((exports) =>
      exports.seek(
        areas.window,
        bytes,
        place.segmentId | 0,
        (place.segmentId / two32) | 0,
        place.salt | 0,
        place.offset | 0,
      ),
    );
    const at = this.kernel.result(found === 1 ? 0 : 2);
    const outcome = found === 1 ? "found" : found === 0 ? "none" : "unsure";
    return {
      outcome,
      offset: place.offset + at,
      durableOffset: found === 1 ? this.kernel.result(1) : 0,
    };
  }

  /** Row `row` of the last scan as an object; hot loops read `table` instead. */
  record(row: number): ScannedRecord {
    assert(row >= 0 && row < this.rows, "the row exists");
    const at = row * sizes.scanWords;
    const word = (which: number): number => this.table[at + which] as number;
    return {
      kind: word(scanWord.kind) & 255,
      group: word(scanWord.group),
      incarnation: word(scanWord.incarnation),
      index: word(scanWord.indexHigh) * two32 + word(scanWord.indexLow),
      term: word(scanWord.termHigh) * two32 + word(scanWord.termLow),
      offset: word(scanWord.offset),
      payloadBytes: word(scanWord.length) - frame.headerBytes,
      durableOffset: word(scanWord.durable),
    };
  }

  /** View of the payload of row `row`. Copy what outlives the next scan. */
  payload(row: number): Uint8Array {
    assert(row >= 0 && row < this.rows, "the row exists");
    const at = row * sizes.scanWords;
    const offset = this.table[at + scanWord.offset] as number;
    const length = this.table[at + scanWord.length] as number;
    const start = offset - this.windowOffset;
    return this.window.subarray(start + frame.headerBytes, start + length);
  }

  private check(bytes: number, offset: number): void {
    assert(bytes >= 0 && bytes <= sizes.windowBytes, "the bytes lie in the window");
    assert(offset % 8 === 0 && offset >= 0 && offset < two32, "a window starts at a multiple of 8");
  }

  private reasonAtEnd(consumed: number, bytes: number): ScanReason {
    if (consumed === bytes) return "end";
    const rest = this.window.subarray(consumed, bytes);
    return rest.length < frame.headerBytes && rest.every((byte) => byte === 0)
      ? "zero"
      : "truncated";
  }
}
