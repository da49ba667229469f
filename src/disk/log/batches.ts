/**
 * Group commit: one batch grows while exactly one other is being written.
 *
 * Owns the two batches and the change to the next segment.
 *
 * Invariants: 1. A batch is issued only after the one before it is durable, so that each completion
 * vouches for a prefix of the log (P-111), and a full segment is durable before its successor is
 * written. 2. The first record of a segment links to the end of the one before. 3. After a failed
 * write nothing is written and nothing is acknowledged (P-110). 4. Without a spare segment the end
 * of the written one is kept for records that lead to free space (P-120).
 */
import { assert, present } from "../../base/assert.js";
import { type BatchRegion, type Kernels, frameBytes } from "../../wasm/kernels.js";
import type { EntryPlace } from "./groupindex.js";
import { SECTOR_BYTES, encodeLink, logKind } from "./records.js";
import type { LogPorts, Segment } from "./segment.js";
import type { SegmentSet } from "./segments.js";

interface Batch {
  readonly number: number;
  readonly region: BatchRegion;
  readonly segment: Segment;
  readonly offset: number;
  readonly done: (() => void)[];
}

/** What the last segment keeps back on a full disk for records that lead to free space (bytes). */
const RESERVE_BYTES = 256 * 1024;

export class Batches {
  /** Number of the last durable batch. */
  completed = 0;
  private growing: Batch | null = null;
  private flying: Batch | null = null;
  private begun = 0;
  private wantsRotation = false;
  private stopped = false;
  /** The segment before the written one, until the link to it is framed. */
  private linkTo: Segment | null = null;
  private durableSegment = 0;
  private durableOffset = 0;
  private readonly reserveBytes: number;

  constructor(
    private readonly segments: SegmentSet,
    private readonly kernels: Kernels,
    private readonly ports: LogPorts,
    /** Called when a batch is durable, with what waited for it. */
    private readonly durable: (answers: readonly (() => void)[]) => void,
  ) {
    // With records of at most half a segment, an empty segment then always has room for one.
    this.reserveBytes = Math.min(RESERVE_BYTES, segments.segmentBytes / 8);
  }

  /** After recovery: everything in the segments is durable. */
  start(): void {
    const { active } = this.segments;
    this.durableSegment = active.sequence;
    this.durableOffset = active.endOffset;
    this.wantsRotation = active.sealed;
  }

  get isWriting(): boolean {
    return this.flying !== null;
  }

  /** True when a batch has grown and none is in flight. */
  get isReady(): boolean {
    return this.flying === null && this.growing !== null;
  }

  get hasStopped(): boolean {
    return this.stopped;
  }

  isDurable(place: EntryPlace): boolean {
    if (place.segment !== this.durableSegment) return place.segment < this.durableSegment;
    return place.offset < this.durableOffset;
  }

  /** Frames one record. Returns its offset in the written segment, 0 when there is no room. */
  put(
    kind: number,
    group: number,
    tag: number,
    index: number,
    term: number,
    payload: Uint8Array,
    reserved: boolean,
  ): number {
    const bytes = frameBytes(payload.length);
    assert(bytes <= this.segments.segmentBytes / 2, "a record is at most half a segment");
    for (;;) {
      const batch = this.growing ?? this.begin();
      if (batch === null) return 0;
      const offset = batch.offset + batch.region.bytes;
      const kept = reserved || this.segments.hasSpare ? 0 : this.reserveBytes;
      if (offset + bytes <= this.segments.segmentBytes - kept) {
        return batch.region.append(kind, group, tag, index, term, payload) ? offset : 0;
      }
      this.wantsRotation = true;
      if (batch.region.records > 0) return 0;
      // A batch that could not even begin gives its place up, so that the segment can be changed.
      batch.region.release();
      this.growing = null;
      this.begun--;
      if (!this.segments.hasSpare) return 0;
    }
  }

  private begin(): Batch | null {
    if (this.wantsRotation) {
      if (this.segments.hasSpare) {
        this.linkTo = this.segments.active;
        this.segments.rotate();
        this.wantsRotation = false;
      } else if (this.segments.active.sealed) return null;
    }
    const region = this.kernels.record.acquire();
    if (region === undefined) return null;
    const segment = this.segments.active;
    const number = ++this.begun;
    this.growing = { number, region, segment, offset: segment.endOffset, done: [] };
    if (this.linkTo !== null) {
      const { sequence, endOffset, checksum } = this.linkTo;
      const link = encodeLink({ endOffset, checksum });
      const fitted = region.append(logKind.link, 0, 0, sequence, 0, link);
      assert(fitted, "a link fits a new segment");
      this.linkTo = null;
    }
    return this.growing;
  }

  /** Has `done` called when all that is framed so far is durable. */
  join(done: () => void): true {
    const batch = this.growing ?? this.flying;
    if (batch === null) this.ports.timers.soon(done);
    else batch.done.push(done);
    return true;
  }

  /** Writes the growing batch. `isComplete`: it carries everything that emptied segments so far. */
  issue(isComplete: boolean): void {
    const batch = present(this.growing, "a batch is growing");
    assert(this.flying === null, "one disk write at a time");
    const { segment, region } = batch;
    const sealed = region.seal({
      segmentId: segment.sequence,
      salt: this.segments.salt,
      offset: batch.offset,
      previousChecksum: segment.checksum,
      durableOffset: batch.offset,
      sectorBytes: SECTOR_BYTES,
    });
    // Whole sectors, so that a torn write spoils nothing before it, and direct writes are possible.
    const sectors = (batch.offset | sealed.bytes.length) % SECTOR_BYTES === 0;
    assert(sectors, "a batch is made of whole sectors");
    segment.endOffset = sealed.nextOffset;
    segment.checksum = sealed.checksum;
    if (isComplete) this.segments.stampEmptied(batch.number);
    this.growing = null;
    this.flying = batch;
    const startedMs = this.ports.clock.monotonicMs();
    this.ports.files.write(segment.file, batch.offset, sealed.bytes, (result) => {
      region.release();
      this.flying = null;
      if (this.stopped) return;
      if (!result.ok) {
        // Space was taken when the segment was made: even "no-space" is a fault here.
        this.stop();
        const at = { offset: batch.offset, code: result.code, why: result.message };
        return this.ports.fatal.fatal("log write failed", at);
      }
      const tookMs = this.ports.clock.monotonicMs() - startedMs;
      this.ports.meter.logSyncMs(tookMs, sealed.records, sealed.bytes.length);
      assert(batch.number === this.completed + 1, "batches complete in order");
      this.completed = batch.number;
      this.durableSegment = segment.sequence;
      this.durableOffset = sealed.nextOffset;
      this.durable(batch.done);
    });
  }

  /** Nothing is written any more; the growing batch is given up. */
  stop(): void {
    this.stopped = true;
    this.growing?.region.release();
    this.growing = null;
  }
}
