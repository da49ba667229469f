/**
 * What the log knows of one group, in memory: hard state, floor, and where each retained entry
 * lies.
 *
 * Owns 25 bytes per retained entry in typed arrays. Tells the ledger which segment gained or lost a
 * live record.
 *
 * Invariants: 1. Slot i stands for log index `base + i`; a slot with segment 0 is a hole, and holes
 * exist during recovery only. 2. No slot lies at or below the floor. 3. Every live record is in the
 * ledger exactly once: each entry, and the newest state record.
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import type { RecoveredGroupLog, HardState, LogPosition, TermRun } from "../../ports.js";
import { NO_FLOOR, NO_HARD_STATE } from "./records.js";
import { SizeRuns } from "./sizeruns.js";

/** Told about each record that begins or ceases to be needed. */
export interface SegmentLedger {
  add(group: GroupIndex, segment: number, bytes: number): void;
  remove(group: GroupIndex, segment: number, bytes: number): void;
}

/** Live records of one group in one segment. */
export interface SegmentShare {
  records: number;
  bytes: number;
}

/** Where one entry lies. */
export interface EntryPlace {
  readonly segment: number;
  readonly offset: number;
  readonly payloadBytes: number;
  readonly term: number;
}

/** A jump of indexes larger than this is damage, not a hole to be filled later. */
const HOLE_MAX = 1 << 22;
/** Ledger weight of a state record. */
const STATE_BYTES = 64;

export class GroupIndex {
  hardState: HardState = NO_HARD_STATE;
  floor: LogPosition = NO_FLOOR;
  /** Sequence of the segment with the newest state record, 0 before the first. */
  stateSegment = 0;
  readonly shares = new Map<number, SegmentShare>();
  private base = 1;
  private head = 0;
  private count = 0;
  private segments = new Uint32Array(16);
  private offsets = new Uint32Array(16);
  private sizes = new Uint32Array(16);
  private terms = new Float64Array(16);
  private kinds = new Uint8Array(16);

  constructor(
    readonly group: PartitionId,
    private readonly ledger: SegmentLedger,
  ) {}

  get firstIndex(): number {
    return this.base;
  }

  get lastIndex(): number {
    return this.count === 0 ? this.floor.index : this.base + this.count - 1;
  }

  /** Where entry `index` lies; null when it is not retained. */
  place(index: number): EntryPlace | null {
    const at = index - this.base;
    if (at < 0 || at >= this.count) return null;
    const slot = this.head + at;
    const segment = this.segments[slot] as number;
    if (segment === 0) return null;
    const payloadBytes = this.sizes[slot] as number;
    return { segment, offset: this.offsets[slot] as number, payloadBytes, term: this.term(slot) };
  }

  private term(slot: number): number {
    return this.terms[slot] as number;
  }

  /**
   * Puts entry `index` last, after voiding every entry at or above it. False: the index jumps too
   * far.
   */
  append(
    index: number,
    term: number,
    kind: number,
    segment: number,
    offset: number,
    payloadBytes: number,
  ): boolean {
    assert(index > this.floor.index && segment > 0, "an entry lies above the floor");
    this.voidFrom(index);
    if (this.count === 0) this.base = index;
    const holes = index - this.base - this.count;
    assert(holes >= 0, "an entry is appended last");
    if (holes > HOLE_MAX) return false;
    this.reserve(holes + 1);
    if (holes > 0) this.segments.fill(0, this.head + this.count, this.head + this.count + holes);
    this.count += holes + 1;
    this.fill(this.head + this.count - 1, term, kind, segment, offset, payloadBytes);
    return true;
  }

  /**
   * Takes the copy of entry `index` that was written forward. False: it contradicts what is there,
   * or jumps too far.
   */
  restate(
    index: number,
    term: number,
    kind: number,
    segment: number,
    offset: number,
    payloadBytes: number,
  ): boolean {
    if (index <= this.floor.index) return true;
    const at = index - this.base;
    if (this.count === 0 || at >= this.count) {
      return this.append(index, term, kind, segment, offset, payloadBytes);
    }
    if (at < 0) {
      if (-at > HOLE_MAX) return false;
      this.prepend(-at);
    }
    const slot = this.head + (index - this.base);
    const old = this.segments[slot] as number;
    if (old !== 0) {
      if (this.term(slot) !== term || this.sizes[slot] !== payloadBytes) return false;
      this.release(slot);
    }
    this.fill(slot, term, kind, segment, offset, payloadBytes);
    return true;
  }

  private fill(
    slot: number,
    term: number,
    kind: number,
    segment: number,
    offset: number,
    payloadBytes: number,
  ): void {
    this.segments[slot] = segment;
    this.offsets[slot] = offset;
    this.sizes[slot] = payloadBytes;
    this.terms[slot] = term;
    this.kinds[slot] = kind;
    this.ledger.add(this, segment, payloadBytes);
  }

  private release(slot: number): void {
    const segment = this.segments[slot] as number;
    if (segment === 0) return;
    this.ledger.remove(this, segment, this.sizes[slot] as number);
  }

  /** Voids every entry at or above `index`. */
  voidFrom(index: number): void {
    const keep = Math.max(0, index - this.base);
    for (let at = this.count - 1; at >= keep; at--) this.release(this.head + at);
    this.count = Math.min(this.count, keep);
  }

  /** Forgets the entries at or below `floor`, which never falls. */
  raiseFloor(floor: LogPosition): void {
    assert(floor.index >= this.floor.index, "a floor never falls");
    const gone = Math.min(this.count, floor.index + 1 - this.base);
    for (let at = 0; at < gone; at++) this.release(this.head + at);
    if (gone > 0) {
      this.head += gone;
      this.base += gone;
      this.count -= gone;
    }
    this.floor = floor;
    if (this.count === 0) this.base = floor.index + 1;
    this.shrink();
  }

  /** A snapshot took the place of all entries. */
  install(floor: LogPosition, hardState: HardState): void {
    this.voidFrom(0);
    this.floor = floor;
    this.base = floor.index + 1;
    this.hardState = hardState;
  }

  /** The newest state record of the group lies in `segment` now. */
  moveState(segment: number): void {
    if (this.stateSegment !== 0) this.ledger.remove(this, this.stateSegment, STATE_BYTES);
    this.stateSegment = segment;
    this.ledger.add(this, segment, STATE_BYTES);
  }

  /** The group left this node: nothing of it is needed. */
  drop(): void {
    this.voidFrom(0);
    if (this.stateSegment !== 0) this.ledger.remove(this, this.stateSegment, STATE_BYTES);
    this.stateSegment = 0;
  }

  /** The first index above the floor that is a hole, or null when the log is whole. */
  firstHole(): number | null {
    if (this.count > 0 && this.base !== this.floor.index + 1) return this.floor.index + 1;
    for (let at = 0; at < this.count; at++) {
      if (this.segments[this.head + at] === 0) return this.base + at;
    }
    return null;
  }

  /** Indexes, ascending, of the entries that lie in `segment`; at most `limit`. */
  entriesIn(segment: number, limit: number): number[] {
    const found: number[] = [];
    for (let at = 0; at < this.count && found.length < limit; at++) {
      if (this.segments[this.head + at] === segment) found.push(this.base + at);
    }
    return found;
  }

  recovered(): RecoveredGroupLog {
    const termRuns: TermRun[] = [];
    const specialEntries: { index: number; kind: number }[] = [];
    const sizeRuns = new SizeRuns();
    let runTerm = -1;
    for (let at = 0; at < this.count; at++) {
      const slot = this.head + at;
      const term = this.term(slot);
      if (term !== runTerm) termRuns.push({ term, firstIndex: this.base + at });
      runTerm = term;
      sizeRuns.add(this.base + at, this.sizes[slot] as number);
      const kind = this.kinds[slot] as number;
      if (kind !== 0) specialEntries.push({ index: this.base + at, kind });
    }
    return {
      group: this.group,
      hardState: this.hardState,
      floor: this.floor,
      lastIndex: this.lastIndex,
      termRuns,
      specialEntries,
      sizeRuns: sizeRuns.all,
    };
  }

  /** Room for `more` slots behind the last. */
  private reserve(more: number): void {
    const needed = this.head + this.count + more;
    if (needed <= this.segments.length) return;
    // Moving to the front is enough while the abandoned head is at least as large as what is kept.
    const roomy = this.head >= this.count + more;
    this.move(roomy ? this.segments.length : Math.max(needed, this.segments.length * 2), 0);
  }

  /** Makes room for `holes` slots before the first, and declares them. */
  private prepend(holes: number): void {
    if (this.head < holes) this.move(this.count + holes + 16, holes);
    this.head -= holes;
    this.base -= holes;
    this.count += holes;
    this.segments.fill(0, this.head, this.head + holes);
  }

  private shrink(): void {
    if (this.segments.length > 4096 && this.count * 8 < this.segments.length) {
      this.move(Math.max(16, this.count * 2), 0);
    }
  }

  private move(capacity: number, head: number): void {
    const from = this.head;
    const to = this.head + this.count;
    const moved = <T extends Uint32Array | Float64Array | Uint8Array>(old: T, fresh: T): T => {
      fresh.set(old.subarray(from, to), head);
      return fresh;
    };
    this.segments = moved(this.segments, new Uint32Array(capacity));
    this.offsets = moved(this.offsets, new Uint32Array(capacity));
    this.sizes = moved(this.sizes, new Uint32Array(capacity));
    this.terms = moved(this.terms, new Float64Array(capacity));
    this.kinds = moved(this.kinds, new Uint8Array(capacity));
    this.head = head;
  }
}
