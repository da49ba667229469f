/**
 * Log records of one batch, framed in kernel memory and sealed with one call, so that the disk
 * writes them without a copy.
 *
 * Owns the regions of one kernel instance.
 *
 * A region is free, growing, or lent: `acquire` gives a growing one, `seal` lends its bytes to a
 * disk write, `release` takes it back after the write completed. Several regions exist so that one
 * grows while another is in flight.
 *
 * Invariants: 1. Bytes of a lent region never change until `release`; a checked build verifies that
 * at release. 2. Every byte up to the end of the padding is written by append or seal; padding is
 * zero. 3. Frames are contiguous and each starts at a multiple of 8. 4. Indexes and terms are
 * integers below 2^53.
 */
import { assert } from "../base/assert.js";
import type { GuardedKernel } from "./guard.js";
import { areas, frame, scanStop, sizes } from "./layout.js";

const two32 = 0x1_0000_0000;

/**
 * Where a sealed batch will lie; mixed into every checksum, so that a record is valid in one place
 * only.
 */
export interface SealPlace {
  /** Number of the segment, 0 to 2^53 - 1. */
  readonly segmentId: number;
  /** u32 drawn from the identity of cluster and node. */
  readonly salt: number;
  /** Offset of the batch in the segment; a multiple of 8. */
  readonly offset: number;
  /**
   * Checksum of the record before (the first of a segment: what the owner of the log chose). u32.
   */
  readonly previousChecksum: number;
  /** Offset in this segment below which everything is known durable now. */
  readonly durableOffset: number;
  /**
   * 0: no padding beyond 8 bytes. Otherwise the batch ends at a multiple of this (a power of two,
   * 512 to 4096).
   */
  readonly sectorBytes: number;
}

/** A sealed batch: a view of kernel memory, valid until the region is released. */
export interface SealedBatch {
  readonly bytes: Uint8Array;
  /** Checksum of the last record: the `previousChecksum` of the next batch. */
  readonly checksum: number;
  readonly records: number;
  /** Offset in the segment where the next batch begins. */
  readonly nextOffset: number;
}

type RegionState = "free" | "growing" | "lent";

/** Bytes that a record with a payload of `payloadBytes` takes in a region. */
export function frameBytes(payloadBytes: number): number {
  return (frame.headerBytes + payloadBytes + 7) & ~7;
}

/** One batch of records. Made by `RecordKernel` only. */
export class BatchRegion {
  private state: RegionState = "free";
  private used = 0;
  private count = 0;
  private place: SealPlace | undefined;
  private sealedBytes = 0;

  constructor(
    private readonly kernel: GuardedKernel,
    private readonly start: number,
  ) {}

  /** Bytes of the records appended so far, without sector padding. */
  get bytes(): number {
    return this.used;
  }

  /** Records appended so far. */
  get records(): number {
    return this.count;
  }

  get free(): boolean {
    return this.state === "free";
  }

  /** Bytes that the batch will take when it is sealed at `offset`. */
  bytesAt(offset: number, sectorBytes: number): number {
    const padding = sectorBytes === 0 ? 0 : -(offset + this.used) & (sectorBytes - 1);
    return this.used + padding;
  }

  /** Only for `RecordKernel.acquire`. */
  begin(): void {
    assert(this.state === "free", "a region begins only when it is free");
    this.state = "growing";
    this.used = 0;
    this.count = 0;
  }

  /** True if a record with `payloadBytes` bytes still fits, sector padding included. */
  fits(payloadBytes: number): boolean {
    return this.used + frameBytes(payloadBytes) <= sizes.regionBytes - frame.padBytes;
  }

  /**
   * Adds one record, payload copied. False, and nothing changed, when it does not fit: seal this
   * batch and take another. `kind`: 1 to 255 (see `recordKind`); `group`, `incarnation`: u32;
   * `index`, `term`: 0 to 2^53 - 1.
   */
  append(
    kind: number,
    group: number,
    incarnation: number,
    index: number,
    term: number,
    payload: Uint8Array,
  ): boolean {
    const length = payload.length;
    assert(this.state === "growing", "records are appended to a growing region only");
    assert(length <= sizes.payloadBytes, "a record payload is within its limit");
    assert(kind > 0 && kind < 256, "a record kind is 1 to 255");
    assert(Number.isSafeInteger(index) && index >= 0, "a log index is a safe integer");
    assert(Number.isSafeInteger(term) && term >= 0, "a term is a safe integer");
    if (!this.fits(length)) return false;
    const { words, bytes } = this.kernel;
    const at = this.start + this.used;
    const word = at >>> 2;
    const stride = frameBytes(length);
    words[word + 2] = frame.headerBytes + length;
    words[word + 3] = kind | (frame.version << 8);
    words[word + 6] = group;
    words[word + 7] = incarnation;
    words[word + 8] = index;
    words[word + 9] = index / two32;
    words[word + 10] = term;
    words[word + 11] = term / two32;
    if (length > 0) {
      // The last eight bytes first: what the payload does not cover is then zero.
      words[(at + stride - 8) >>> 2] = 0;
      words[(at + stride - 4) >>> 2] = 0;
      bytes.set(payload, at + frame.headerBytes);
    }
    this.used += stride;
    this.count++;
    return true;
  }

  /**
   * Fills in chain and checksums and lends the bytes to the caller's disk write, until `release`.
   * One crossing.
   */
  seal(place: SealPlace): SealedBatch {
    assert(this.state === "growing" && this.count > 0, "a batch with records is sealed once");
    assert(place.offset % 8 === 0 && place.offset < two32, "a batch starts at a multiple of 8");
    assert(
      place.sectorBytes === 0 ||
        ((place.sectorBytes & (place.sectorBytes - 1)) === 0 &&
          place.sectorBytes >= 8 &&
          place.sectorBytes <= frame.padBytes),
      "a sector is a power of two up to 4096 bytes",
    );
    const status = this.kernel.call((exports) =>
      exports.seal(
        this.start,
        this.used,
        place.segmentId | 0,
        (place.segmentId / two32) | 0,
        place.salt | 0,
        place.offset | 0,
        place.previousChecksum | 0,
        place.durableOffset | 0,
        place.sectorBytes,
      ),
    );
    assert(status === 0, "the frames of a region add up to its size");
    const bytes = this.kernel.result(0);
    assert(this.kernel.result(2) === this.count, "every appended record was sealed");
    this.state = "lent";
    this.place = place;
    this.sealedBytes = bytes;
    return {
      bytes: this.kernel.bytes.subarray(this.start, this.start + bytes),
      checksum: this.kernel.result(1),
      records: this.count,
      nextOffset: place.offset + bytes,
    };
  }

  /**
   * Ends the loan after the disk write completed (or failed for good), or gives up a growing batch.
   */
  release(): void {
    assert(this.state !== "free", "only a taken region is released");
    if (this.state === "lent" && this.kernel.checked) this.verifyLoan();
    this.state = "free";
    this.place = undefined;
  }

  /**
   * A checked build proves that nobody wrote into the lent bytes, then spoils them for late
   * readers.
   */
  private verifyLoan(): void {
    const place = this.place;
    assert(place !== undefined, "a lent region knows its place");
    let at = 0;
    let previous = place.previousChecksum;
    while (at < this.sealedBytes) {
      const stop = this.kernel.call((exports) =>
        exports.scan(
          this.start + at,
          this.sealedBytes - at,
          place.segmentId | 0,
          (place.segmentId / two32) | 0,
          place.salt | 0,
          (place.offset + at) | 0,
          previous | 0,
          sizes.scanRecords,
        ),
      );
      assert(
        stop === scanStop.needMore || stop === scanStop.tableFull,
        "a lent region did not change while its write was in flight",
      );
      assert(this.kernel.result(0) > 0, "a lent region holds whole frames");
      at += this.kernel.result(0);
      previous = this.kernel.result(1);
    }
    this.kernel.bytes.fill(0xdd, this.start, this.start + this.sealedBytes);
  }
}

/** The regions of one instance. */
export class RecordKernel {
  private readonly regions: BatchRegion[] = [];

  constructor(kernel: GuardedKernel) {
    for (let at = 0; at < sizes.regions; at++) {
      this.regions.push(new BatchRegion(kernel, areas.regions + at * sizes.regionBytes));
    }
  }

  /** A free region, now growing; undefined while all are growing or in flight. */
  acquire(): BatchRegion | undefined {
    const region = this.regions.find((candidate) => candidate.free);
    region?.begin();
    return region;
  }
}
