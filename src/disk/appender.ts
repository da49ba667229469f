/**
 * The writing half of the log: frames what all groups queue into one growing batch, and keeps exactly
 * one disk write in flight (group commit).
 *
 * Owns the queue, the growing batch and the batch in flight. May call base, ports, wasm, segments.
 *
 * Invariants: 1. Records reach the log in the order of their operations; nothing overtakes within a
 * group. 2. A batch is issued only after the one before it is durable, so that each completion vouches
 * for a prefix of the log (P-111), and a rotated segment is durable before its successor is written.
 * 3. `done` of an operation runs after all its records are durable. 4. After a failed write nothing is
 * written and nothing is acknowledged (P-110). 5. A hard state never names a commit index whose entry
 * is not before it in the log, so that a torn write leaves a consistent group.
 */
import { assert } from "../base/assert.js";
import { EMPTY_BYTES } from "../base/bytes.js";
import type { PartitionId } from "../base/ids.js";
import type { HardState, LogEntry, LogPosition, LogWrite } from "../ports.js";
import { type BatchRegion, type Kernels, frameBytes } from "../wasm/kernels.js";
import { type EntryPlace, GroupIndex } from "./groupindex.js";
import { FLOOR_BYTES, SECTOR_BYTES, encodeFloor, encodeLink, logKind } from "./records.js";
import type { LogPorts, Segment, SegmentSet } from "./segments.js";

/** An entry on its way to a newer segment. */
export interface RestatedEntry {
  readonly index: GroupIndex;
  readonly entry: LogEntry;
  readonly from: EntryPlace;
}

/** One thing to write, with how far its framing got. */
export type Operation =
  | { readonly kind: "write"; readonly write: LogWrite; begun: boolean; framed: number }
  | {
      readonly kind: "install";
      readonly group: PartitionId;
      readonly floor: LogPosition;
      readonly hardState: HardState;
      readonly done: () => void;
    }
  | { readonly kind: "drop"; readonly group: PartitionId; readonly done: () => void }
  | {
      readonly kind: "restate";
      readonly entries: readonly RestatedEntry[];
      framed: number;
      readonly done: () => void;
    }
  | { readonly kind: "close"; readonly done: () => void };

interface Batch {
  readonly number: number;
  readonly region: BatchRegion;
  readonly segment: Segment;
  readonly offset: number;
  readonly done: (() => void)[];
}

/** What the last segment keeps back on a full disk for records that lead to free space (bytes). */
const RESERVE_BYTES = 256 * 1024;

export class Appender {
  readonly groups = new Map<PartitionId, GroupIndex>();
  /** Operations that did not fit the growing batch, in order. */
  private queue: Operation[] = [];
  private queueHead = 0;
  /** Groups whose state record must be written again: a raised floor, or one that moves forward. */
  private readonly states = new Set<GroupIndex>();
  private growing: Batch | null = null;
  private flying: Batch | null = null;
  private batches = 0;
  private completed = 0;
  private wantsRotation = false;
  private scheduled = false;
  private stopped = false;
  /** The segment before the written one, until the link to it is framed. */
  private linkTo: Segment | null = null;
  /** Payload bytes that groups wrote, and what was there at the start: what rewriting is measured by. */
  clientBytes = 0;
  private durableSegment = 0;
  private durableOffset = 0;
  private readonly floorBytes = new Uint8Array(FLOOR_BYTES);
  private readonly reserveBytes: number;

  constructor(
    private readonly segments: SegmentSet,
    private readonly kernels: Kernels,
    private readonly ports: LogPorts,
    /** Called after each durable write, before its operations hear of it. */
    private readonly written: () => void,
  ) {
    // With records of at most half a segment, an empty segment then always has room for one.
    this.reserveBytes = Math.min(RESERVE_BYTES, segments.segmentBytes / 8);
  }

  /** After recovery: everything in the segments is durable. */
  start(): void {
    this.durableSegment = this.segments.active.sequence;
    this.durableOffset = this.segments.active.endOffset;
    this.wantsRotation = this.segments.active.sealed;
    this.clientBytes = this.segments.sizeBytes();
  }

  /** True when nothing is queued, growing or in flight. */
  get idle(): boolean {
    return (
      this.flying === null && this.growing === null && this.waiting === 0 && this.states.size === 0
    );
  }

  /** Operations that wait for room in a batch. */
  get waiting(): number {
    return this.queue.length - this.queueHead;
  }

  get hasStopped(): boolean {
    return this.stopped;
  }

  isDurable(place: EntryPlace): boolean {
    if (place.segment !== this.durableSegment) return place.segment < this.durableSegment;
    return place.offset < this.durableOffset;
  }

  groupIndex(group: PartitionId): GroupIndex {
    let index = this.groups.get(group);
    if (index === undefined) {
      index = new GroupIndex(group, this.segments);
      this.groups.set(group, index);
    }
    return index;
  }

  submit(operation: Operation): void {
    if (this.stopped) return;
    if (this.waiting > 0 || this.states.size > 0 || !this.frame(operation)) {
      this.queue.push(operation);
    }
    this.schedule();
  }

  /** Has the state record of a group written again. */
  restateGroup(index: GroupIndex): void {
    this.states.add(index);
    this.schedule();
  }

  /** Sees to it that what is queued is issued at the end of this turn. */
  schedule(): void {
    if (this.scheduled || this.stopped || this.flying !== null) return;
    this.scheduled = true;
    this.ports.timers.soon(() => {
      this.scheduled = false;
      this.pump();
    });
  }

  /** Frames what fits, and issues the batch if no other is in flight. */
  private pump(): void {
    if (this.stopped) return;
    this.fill();
    if (this.flying !== null || this.growing === null) return;
    this.issue(this.growing);
    this.fill();
  }

  private fill(): void {
    for (const index of this.states) {
      if (!this.putState(index, index.hardState, true)) return;
    }
    while (this.queueHead < this.queue.length) {
      if (!this.frame(this.queue[this.queueHead] as Operation)) break;
      this.queueHead++;
    }
    if (this.queueHead === this.queue.length || this.queueHead > 1024) {
      this.queue = this.queue.slice(this.queueHead);
      this.queueHead = 0;
    }
  }

  private issue(batch: Batch): void {
    const { segment, region } = batch;
    const sealed = region.seal({
      segmentId: segment.sequence,
      salt: this.segments.salt,
      offset: batch.offset,
      previousChecksum: segment.checksum,
      durableOffset: batch.offset,
      sectorBytes: SECTOR_BYTES,
    });
    segment.endOffset = sealed.nextOffset;
    segment.checksum = sealed.checksum;
    if (this.states.size === 0) this.segments.stampEmptied(batch.number);
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
      this.complete(batch, sealed.nextOffset);
    });
  }

  private complete(batch: Batch, endOffset: number): void {
    assert(batch.number === this.completed + 1, "batches complete in order");
    this.completed = batch.number;
    this.durableSegment = batch.segment.sequence;
    this.durableOffset = endOffset;
    // What grew meanwhile goes to the disk first; the answers are given while it is written.
    this.pump();
    this.segments.removeEmptied(this.completed);
    this.written();
    for (const done of batch.done) done();
  }

  /** Tries again to remove what is needless. */
  tidy(): void {
    this.segments.removeEmptied(this.completed);
  }

  private frame(operation: Operation): boolean {
    switch (operation.kind) {
      case "write":
        return this.frameWrite(operation);
      case "install":
        return this.frameInstall(operation);
      case "restate":
        return this.frameRestated(operation);
      case "drop":
        return this.frameDrop(operation);
      case "close":
        return (
          this.put(logKind.close, 0, 0, 0, 0, EMPTY_BYTES, true) > 0 && this.join(operation.done)
        );
    }
  }

  private frameWrite(operation: Extract<Operation, { kind: "write" }>): boolean {
    const { group, hardState, entries, done } = operation.write;
    const index = this.groupIndex(group);
    const first = entries[0];
    // The commit index of the record before the entries stays below them; see invariant 5.
    const early = first !== undefined && hardState !== null && hardState.commit >= first.index;
    if (!operation.begun) {
      const reachable = first === undefined || first.index <= index.lastIndex + 1;
      assert(reachable && (first?.index ?? Infinity) > index.floor.index, "entries join the log");
      if (hardState !== null) {
        const commit = early ? first.index - 1 : hardState.commit;
        if (!this.putState(index, { ...hardState, commit }, false)) return false;
      }
      operation.begun = true;
    }
    while (operation.framed < entries.length) {
      const entry = entries[operation.framed] as LogEntry;
      const { kind, term, payload } = entry;
      const at = this.put(logKind.entry, group, kind, entry.index, term, payload, false);
      if (at === 0) return false;
      const segment = this.segments.active.sequence;
      const taken = index.append(entry.index, term, kind, segment, at, payload.length);
      assert(taken, "entries of a write are contiguous");
      this.clientBytes += payload.length;
      operation.framed++;
    }
    if (early && !this.putState(index, hardState, false)) return false;
    return this.join(done);
  }

  private frameInstall(operation: Extract<Operation, { kind: "install" }>): boolean {
    const { group, floor, hardState, done } = operation;
    const index = this.groupIndex(group);
    const body = encodeFloor(floor);
    const { vote, commit, term } = hardState;
    if (this.put(logKind.install, group, vote, commit, term, body, false) === 0) return false;
    index.install(floor, hardState);
    index.moveState(this.segments.active.sequence);
    this.states.delete(index);
    return this.join(done);
  }

  private frameDrop(operation: Extract<Operation, { kind: "drop" }>): boolean {
    const index = this.groups.get(operation.group);
    if (this.put(logKind.drop, operation.group, 0, 0, 0, EMPTY_BYTES, true) === 0) return false;
    if (index !== undefined) {
      index.drop();
      this.states.delete(index);
      this.groups.delete(operation.group);
    }
    return this.join(operation.done);
  }

  private frameRestated(operation: Extract<Operation, { kind: "restate" }>): boolean {
    const { entries, done } = operation;
    while (operation.framed < entries.length) {
      const { index, entry, from } = entries[operation.framed] as RestatedEntry;
      const now = index.place(entry.index);
      if (now !== null && now.segment === from.segment && now.offset === from.offset) {
        const { kind, term, payload } = entry;
        const at = this.put(logKind.restated, index.group, kind, entry.index, term, payload, false);
        if (at === 0) return false;
        const segment = this.segments.active.sequence;
        const taken = index.restate(entry.index, term, kind, segment, at, payload.length);
        assert(taken, "a restated entry takes its own place");
      }
      operation.framed++;
    }
    return this.join(done);
  }

  private putState(index: GroupIndex, hardState: HardState, reserved: boolean): boolean {
    const { vote, commit, term } = hardState;
    encodeFloorInto(this.floorBytes, index.floor);
    const body = this.floorBytes;
    if (this.put(logKind.state, index.group, vote, commit, term, body, reserved) === 0)
      return false;
    index.hardState = hardState;
    index.moveState(this.segments.active.sequence);
    this.states.delete(index);
    return true;
  }

  /** Frames one record. Returns its offset in the written segment, or 0 when there is no room now. */
  private put(
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
      this.batches--;
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
    const number = ++this.batches;
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
  private join(done: () => void): true {
    const batch = this.growing ?? this.flying;
    if (batch === null) this.ports.timers.soon(done);
    else batch.done.push(done);
    return true;
  }

  /** Nothing is written any more; the growing batch is given up. */
  stop(): void {
    this.stopped = true;
    this.growing?.region.release();
    this.growing = null;
  }
}

function encodeFloorInto(target: Uint8Array, floor: LogPosition): void {
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  view.setUint32(0, floor.index, true);
  view.setUint32(4, Math.floor(floor.index / 0x1_0000_0000), true);
  view.setUint32(8, floor.term, true);
  view.setUint32(12, Math.floor(floor.term / 0x1_0000_0000), true);
}
