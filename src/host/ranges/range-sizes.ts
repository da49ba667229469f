/**
 * How many live keys ranges hold: counted in slices where they are led, asked for by whoever leads
 * the meta partition.
 *
 * Frames go on the lane "control". Invariants: 1. A count is of one leadership, and exact for about
 * the time that it took; what is not known is unknown, never a guess. 2. One range is counted at a
 * time, in bounded slices. 3. What was counted stands as long as too few commands came since
 * to matter, and no lease of it ended. 4. Every question ends once, in no turn. 5. What is held is
 * bounded.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { type PartitionId, partitionId } from "../../base/ids.js";
import { LiveCount } from "../../machine/kv/live-count.js";
import type { Machine } from "../../machine/machine.js";
import { textToByteKey } from "../../machine/store/keys.js";
import { ControlMark } from "../replication/control-marks.js";

const MARK = ControlMark.rangeSize;
const ASK = 1;
const ANSWER = 2;
const FRAME_MAX_BYTES = 8192;
/** Visits of one slice, some milliseconds, and the pause between two (ms). */
const SLICE_VISITS = 1000;
const SLICE_PAUSE_MS = 5;
const QUESTIONS_MAX = 512;
const KNOWN_MAX = 8192;
const ANSWER_MS = 30_000;
/** A count stands while fewer commands than this part of it came since. */
const STALE_PART = 20;

/** Half-open; null = open on that side. */
export interface SizedRange {
  readonly partitionId: number;
  readonly keySpace: string;
  readonly startKey: string | null;
  readonly endKey: string | null;
  /** So many are enough to know: nobody counts on; absent: all. */
  readonly enoughKeys?: number;
}

export interface RangeSize {
  /** Null: not known. */
  readonly keys: number | null;
  /** Where it would be split in halves; null when there is no such key, or nothing is known. */
  readonly middle: string | null;
}

export type SizeDone = (size: RangeSize) => void;

/** One group, as counting sees it; a hosted group is one. */
export interface CountedGroup {
  isServing(): boolean;
  term(): number;
  /** Commands that were accepted, and how many of them, at least, the rows show. */
  acceptedChanges(): number;
  appliedChanges(): number;
  leaseNowMs(): number;
  readonly machine: Machine;
}

export interface RangeSizesDeps {
  readonly nodeId: number;
  nowMs(): number;
  soon(callback: () => void): void;
  find(partition: PartitionId): CountedGroup | null;
  /** Who leads the partition, as far as is known here; 0 = unknown. */
  leader(partition: PartitionId): number;
  send(to: number, bytes: Uint8Array): boolean;
  tickSoon(): void;
  /** A turn is wanted then. */
  wakeAt(atMs: number): void;
}

interface Known extends RangeSize {
  readonly term: number;
  /** So many commands at least are in it. */
  readonly changes: number;
  /** When the first lease ends of what was counted (lease time, ms). */
  readonly firstEndMs: number;
}

interface Counting {
  readonly range: SizedRange;
  readonly term: number;
  readonly changes: number;
  readonly tally: LiveCount;
  readonly waiting: SizeDone[];
}

interface Question {
  readonly to: number;
  readonly untilMs: number;
  readonly done: SizeDone;
}

const UNKNOWN: RangeSize = { keys: null, middle: null };

/** Whether `bytes`, from the lane "control", are for `RangeSizes`. */
export function isRangeSizeFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

function nameOf({ partitionId: id, keySpace, startKey, endKey }: SizedRange): string {
  return JSON.stringify([id, keySpace, startKey, endKey]);
}

function isEnough({ count }: LiveCount, { enoughKeys = Infinity }: SizedRange): boolean {
  return count >= enoughKeys;
}

function writeBound(writer: ByteWriter, bound: string | null): void {
  writer.boolean(bound !== null);
  if (bound !== null) writer.text(bound);
}

function readBound(reader: ByteReader): string | null {
  return reader.boolean() ? reader.text() : null;
}

export class RangeSizes {
  private readonly known = new Map<string, Known>();
  private readonly counting = new Map<string, Counting>();
  private readonly questions = new Map<number, Question>();
  private nextId = 1;
  private nextSliceMs = -Infinity;
  /** Frames that could not be read. */
  badFrames = 0;

  constructor(private readonly deps: RangeSizesDeps) {}

  /** `done` hears the size of a range, wherever it is led. */
  ask(range: SizedRange, done: SizeDone): void {
    const { deps } = this;
    const leader = deps.leader(partitionId(range.partitionId));
    if (leader === deps.nodeId) return this.count(range, (size) => deps.soon(() => done(size)));
    const id = this.nextId++;
    if (leader === 0 || this.questions.size >= QUESTIONS_MAX || !this.send(leader, id, range)) {
      return deps.soon(() => done(UNKNOWN));
    }
    this.questions.set(id, { to: leader, untilMs: deps.nowMs() + ANSWER_MS, done });
    deps.tickSoon();
  }

  /** What is known of a range that is led here: the latest count, however old; null = unknown. */
  latest(range: SizedRange): number | null {
    const group = this.deps.find(partitionId(range.partitionId));
    const known = this.known.get(nameOf(range));
    const isOfNow = group?.isServing() === true && known?.term === group.term();
    return isOfNow ? known.keys : null;
  }

  private send(to: number, id: number, range: SizedRange): boolean {
    const writer = new ByteWriter(256).uint8(MARK).uint8(ASK).uint53(id);
    writer.uint32(range.partitionId).text(range.keySpace);
    writeBound(writer, range.startKey);
    writeBound(writer, range.endKey);
    writer.boolean(range.enoughKeys !== undefined).uint53(range.enoughKeys ?? 0);
    return this.deps.send(to, writer.finish());
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.counting.size + this.questions.size > 0;
  }

  /** In each turn: counts on. */
  turn(nowMs: number): void {
    if (nowMs < this.nextSliceMs) return;
    const [first] = this.counting;
    if (first === undefined) return;
    this.nextSliceMs = nowMs + SLICE_PAUSE_MS;
    this.countOn(...first);
  }

  /** When a turn is wanted although nothing happens. */
  get wakeAtMs(): number {
    return this.counting.size > 0 ? this.nextSliceMs : Infinity;
  }

  /** Once per tick: ends what waited for too long. */
  tick(nowMs: number): void {
    for (const [id, question] of [...this.questions]) {
      if (question.untilMs > nowMs) continue;
      this.questions.delete(id);
      question.done(UNKNOWN);
    }
  }

  private count(range: SizedRange, done: SizeDone): void {
    const group = this.deps.find(partitionId(range.partitionId));
    const keySpace = textToByteKey(range.keySpace);
    if (group?.isServing() !== true || this.counting.size >= QUESTIONS_MAX) return done(UNKNOWN);
    const known = this.known.get(nameOf(range));
    const name = `${nameOf(range)} ${range.enoughKeys ?? ""}`;
    const isOfNow = known?.term === group.term() && group.leaseNowMs() < known.firstEndMs;
    if (known !== undefined && isOfNow) {
      const since = group.acceptedChanges() - known.changes;
      if (since === 0 || since * STALE_PART < (known.keys ?? 0)) return done(known);
    }
    const under = this.counting.get(name);
    if (under !== undefined) {
      under.waiting.push(done);
      return;
    }
    const bounds = {
      keySpace,
      startKey: range.startKey === null ? null : textToByteKey(range.startKey),
      endKey: range.endKey === null ? null : textToByteKey(range.endKey),
    };
    const tally = new LiveCount(bounds);
    const changes = group.appliedChanges();
    this.counting.set(name, { range, term: group.term(), changes, tally, waiting: [done] });
    this.deps.wakeAt(this.nextSliceMs);
  }

  private countOn(name: string, { range, term, changes, tally, waiting }: Counting): void {
    const group = this.deps.find(partitionId(range.partitionId));
    const isSame = group?.isServing() === true && group.term() === term;
    if (isSame) group.machine.reads.countLive(tally, group.leaseNowMs(), SLICE_VISITS);
    if (isSame && !tally.isDone && !isEnough(tally, range)) return;
    this.counting.delete(name);
    const size = isSame ? { keys: tally.count, middle: tally.middle } : UNKNOWN;
    const { firstEndMs } = tally;
    if (isSame && tally.isDone) {
      this.remember(nameOf(range), { ...size, term, changes, firstEndMs });
    }
    for (const done of waiting) done(size);
  }

  private remember(name: string, known: Known): void {
    this.known.delete(name);
    this.known.set(name, known);
    for (const oldest of this.known.keys()) {
      if (this.known.size <= KNOWN_MAX) break;
      this.known.delete(oldest);
    }
  }

  linkDown(node: number): void {
    for (const [id, { to, done }] of [...this.questions]) {
      if (to !== node) continue;
      this.questions.delete(id);
      this.deps.soon(() => done(UNKNOWN));
    }
  }

  /** A frame of these came from another node. */
  frame(from: number, bytes: Uint8Array): void {
    const reader = new ByteReader(bytes);
    const isWhole = bytes.length <= FRAME_MAX_BYTES && reader.uint8() === MARK;
    const kind = reader.uint8();
    const id = reader.uint53();
    if (isWhole && kind === ASK && this.asked(from, id, reader)) return;
    if (isWhole && kind === ANSWER && this.answered(from, id, reader)) return;
    this.badFrames++;
  }

  private asked(from: number, id: number, reader: ByteReader): boolean {
    const range = {
      partitionId: reader.uint32(),
      keySpace: reader.text(),
      startKey: readBound(reader),
      endKey: readBound(reader),
    };
    const isBounded = reader.boolean();
    const enoughKeys = reader.uint53();
    if (!reader.isComplete() || range.partitionId < 1) return false;
    const asked = isBounded ? { ...range, enoughKeys } : range;
    this.count(asked, (size) => this.answer(from, id, size));
    return true;
  }

  private answer(to: number, id: number, { keys, middle }: RangeSize): void {
    const writer = new ByteWriter(64).uint8(MARK).uint8(ANSWER).uint53(id);
    writer.boolean(keys !== null).uint53(keys ?? 0);
    writeBound(writer, middle);
    this.deps.send(to, writer.finish());
  }

  private answered(from: number, id: number, reader: ByteReader): boolean {
    const isKnown = reader.boolean();
    const keys = reader.uint53();
    const middle = readBound(reader);
    if (!reader.isComplete()) return false;
    const question = this.questions.get(id);
    if (question?.to !== from) return true;
    this.questions.delete(id);
    question.done({ keys: isKnown ? keys : null, middle });
    return true;
  }
}
