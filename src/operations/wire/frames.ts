/**
 * The frames that carry calls and answers between two nodes: many small ones in one frame, a large
 * one in several.
 *
 * Frame: version u8, direction u8 (1 calls, 2 answers), epoch of the asking node u32, then items,
 * each counted: id u53, part u8 (0 whole, 1 first, 2 middle, 3 last), body. Or a farewell: version,
 * direction 3, epoch of the node that is told, id u53 of its last call that was taken, where
 * one was. Owns what is gathered.
 *
 * Invariants: 1. No frame is larger than FRAME_MAX_BYTES. 2. An item that cannot be read is told
 * apart by its id and spoils nothing but itself. 3. The parts of an item follow each other, or the
 * item is dropped; what is gathered is bounded. 4. All items of a frame belong to one life of the
 * asking node.
 */
import { assert } from "../../base/assert.js";
import { concatBytes } from "../../base/bytes.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { FRAME_MAX_BYTES } from "../../base/limits.js";
import { type CallAnswer, type CallItem, readAnswer, readCall } from "./calls.js";

const VERSION = 1;
const DIRECTIONS = ["calls", "answers", "farewell"] as const;
export type Direction = Exclude<(typeof DIRECTIONS)[number], "farewell">;

/**
 * The last frame of a node that stops: calls of `epoch` that it has not answered by then it never
 * took. `lastId`: the last one that it took; 0 = none.
 */
export function farewell(epoch: number, lastId: number): Uint8Array {
  const direction = DIRECTIONS.indexOf("farewell") + 1;
  const writer = new ByteWriter(16).uint8(VERSION).uint8(direction).uint32(epoch);
  if (lastId > 0) writer.uint53(lastId);
  return writer.finish();
}

const Part = { whole: 0, first: 1, middle: 2, last: 3 } as const;
/** Id and part of an item. */
const ITEM_HEAD_BYTES = 9;
/** A body beyond this is sent in parts of this size. */
const PART_BYTES = FRAME_MAX_BYTES / 2;
/** From this size on a frame takes no more items. */
const FULL_BYTES = FRAME_MAX_BYTES / 4;

/** A frame to be sent, and whose calls or answers it carries. */
export interface OutFrame {
  readonly bytes: Uint8Array;
  readonly ids: readonly number[];
}

/** Frames in the making, to one peer in one direction. */
export class Draft {
  private readonly writer = new ByteWriter(1024);
  private ids: number[] = [];
  private epoch = 0;
  private sealed: OutFrame[] = [];

  constructor(readonly direction: Direction) {}

  get isEmpty(): boolean {
    return this.ids.length === 0 && this.sealed.length === 0;
  }

  add(epoch: number, id: number, body: Uint8Array): void {
    const full = this.writer.sizeBytes + body.length > FULL_BYTES;
    if (this.ids.length > 0 && (full || epoch !== this.epoch)) this.seal();
    if (body.length <= PART_BYTES) return this.append(epoch, id, Part.whole, body);
    for (let at = 0; at < body.length; at += PART_BYTES) {
      const end = Math.min(body.length, at + PART_BYTES);
      const rest = end === body.length ? Part.last : Part.middle;
      this.append(epoch, id, at === 0 ? Part.first : rest, body.subarray(at, end));
      this.seal();
    }
  }

  /** Empties it; the parts of one item are frames that follow each other. */
  take(): readonly OutFrame[] {
    if (this.ids.length > 0) this.seal();
    const { sealed } = this;
    this.sealed = [];
    return sealed;
  }

  private append(epoch: number, id: number, part: number, body: Uint8Array): void {
    const { writer } = this;
    if (this.ids.length === 0) {
      this.epoch = epoch;
      const direction = DIRECTIONS.indexOf(this.direction) + 1;
      writer.reset().uint8(VERSION).uint8(direction).uint32(epoch);
    }
    this.ids.push(id);
    writer.length(ITEM_HEAD_BYTES + body.length);
    writer.uint53(id).uint8(part).raw(body);
  }

  private seal(): void {
    const bytes = this.writer.finish();
    assert(bytes.length <= FRAME_MAX_BYTES, "a frame keeps its size");
    this.sealed.push({ bytes, ids: this.ids });
    this.ids = [];
    this.writer.reset();
  }
}

/** What an item of a frame says; `content` is null when only its id could be read. */
export interface FrameItem<T> {
  readonly id: number;
  readonly content: T | null;
}

export type Frame =
  | {
      readonly direction: "calls";
      readonly epoch: number;
      readonly items: readonly FrameItem<CallItem>[];
    }
  | {
      readonly direction: "answers";
      readonly epoch: number;
      readonly items: readonly FrameItem<CallAnswer>[];
    }
  | {
      readonly direction: "farewell";
      readonly epoch: number;
      /** 0: none, or its program does not tell. */
      readonly lastId: number;
      readonly items: readonly FrameItem<never>[];
    };

/** The parts of an item that came so far. */
interface Gathering {
  readonly epoch: number;
  readonly id: number;
  readonly parts: Uint8Array[];
  sizeBytes: number;
}

/** Reads the frames of one peer, and puts together what came in parts. */
export class Inbox {
  private readonly gathering = new Map<Direction, Gathering>();

  /** `itemBytesMax`: of an item that comes in parts. */
  constructor(private readonly itemBytesMax: number) {}

  /**
   * The items that are complete with this frame; null when it is none of this version. An item
   * without a readable id is dropped, and so is everything behind a damaged count.
   */
  open(bytes: Uint8Array): Frame | null {
    const reader = new ByteReader(bytes);
    const version = reader.uint8();
    const direction = DIRECTIONS[reader.uint8() - 1];
    const epoch = reader.uint32();
    if (reader.failed || version !== VERSION || direction === undefined) return null;
    if (direction === "farewell") {
      const lastId = reader.uint53();
      return { direction, epoch, lastId: reader.failed ? 0 : lastId, items: [] };
    }
    const bodies = this.bodies(bytes, reader, direction, epoch);
    if (direction === "answers") {
      const items = bodies.map(({ id, body }) => {
        return { id, content: body === null ? null : readAnswer(body) };
      });
      return { direction, epoch, items };
    }
    const items = bodies.map(({ id, body }) => {
      return { id, content: body === null ? null : readCall(id, body) };
    });
    return { direction, epoch, items };
  }

  private bodies(
    bytes: Uint8Array,
    reader: ByteReader,
    direction: Direction,
    epoch: number,
  ): { readonly id: number; readonly body: Uint8Array | null }[] {
    const found: { readonly id: number; readonly body: Uint8Array | null }[] = [];
    while (reader.remainingBytes > 0) {
      const sizeBytes = reader.length();
      const start = reader.position;
      if (!reader.skip(sizeBytes)) break;
      const item = new ByteReader(bytes, start, start + sizeBytes);
      const id = item.uint53();
      const part = item.uint8();
      if (item.failed) continue;
      const body = bytes.subarray(item.position, start + sizeBytes);
      if (part === Part.whole) found.push({ id, body });
      else if (part > Part.last) found.push({ id, body: null });
      else {
        const whole = this.gather(direction, epoch, id, part, body);
        if (whole !== "open") found.push({ id, body: whole });
      }
    }
    return found;
  }

  /** The whole body with its last part; null when it is too large; "open" until then. */
  private gather(
    direction: Direction,
    epoch: number,
    id: number,
    part: number,
    body: Uint8Array,
  ): Uint8Array | null | "open" {
    if (part === Part.first) {
      this.gathering.set(direction, { epoch, id, parts: [], sizeBytes: 0 });
    }
    const gathering = this.gathering.get(direction);
    // A part whose item was given up, or whose first part never came.
    if (gathering?.id !== id || gathering.epoch !== epoch) return "open";
    gathering.sizeBytes += body.length;
    if (gathering.sizeBytes > this.itemBytesMax) {
      this.gathering.delete(direction);
      return null;
    }
    gathering.parts.push(body.slice());
    if (part !== Part.last) return "open";
    this.gathering.delete(direction);
    return concatBytes(...gathering.parts);
  }
}
