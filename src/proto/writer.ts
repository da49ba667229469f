/**
 * Writes Protocol Buffers messages into one buffer in one pass; what the generated codec writes to.
 *
 * Owns its buffer. Invariants: 1. What it hands out was written completely (no old memory). 2. A
 * 64-bit number is given as two halves or as a safe integer, never rounded. 3. Nested messages are
 * complete before anything is handed out.
 */
import { assert } from "../base/assert.js";

/**
 * A 64-bit number as two halves of 32 bits; what the codec reads and writes. `Int64` has this
 * shape.
 */
export interface Int64Halves {
  readonly low: number;
  readonly high: number;
  readonly unsigned: boolean;
}

const TWO_POWER_32 = 0x1_0000_0000;
/** Text up to this many units certainly has a length that fits one byte (three bytes a unit). */
const SHORT_TEXT_UNITS = 42;

/**
 * Writes messages into one growing buffer. Has the methods that the generated code calls; lengths
 * of nested messages are put in front of them when they are complete (one byte is kept free, the
 * rare longer length moves the bytes).
 */
export class ProtoWriter {
  private buffer: Buffer;
  private at = 0;
  private readonly starts: number[] = [];

  constructor(capacityBytes: number) {
    this.buffer = Buffer.allocUnsafe(capacityBytes);
  }

  get sizeBytes(): number {
    return this.at;
  }

  get capacityBytes(): number {
    return this.buffer.length;
  }

  /** The bytes from `start` on; valid until the next write or reset. */
  view(start: number): Buffer {
    assert(this.starts.length === 0, "every nested message is complete");
    return this.buffer.subarray(start, this.at);
  }

  /** A copy of the bytes from `start` to `end`. */
  copy(start: number, end: number): Buffer {
    assert(this.starts.length === 0, "every nested message is complete");
    return Buffer.from(this.buffer.subarray(start, end));
  }

  /** Keeps the first `sizeBytes` bytes. */
  truncate(sizeBytes: number): this {
    assert(sizeBytes <= this.at && this.starts.length === 0, "a writer is cut at a whole message");
    this.at = sizeBytes;
    return this;
  }

  /** Forgets a message that could not be completed: keeps the first `sizeBytes` bytes. */
  abandon(sizeBytes: number): this {
    this.starts.length = 0;
    return this.truncate(sizeBytes);
  }

  /** Moves the bytes from `start` on down to `target`, dropping what was between. */
  moveDown(start: number, target: number): this {
    assert(target <= start && this.starts.length === 0, "whole messages move down");
    this.buffer.copyWithin(target, start, this.at);
    this.at = target + (this.at - start);
    return this;
  }

  /**
   * Writes the varint `value` so that it ends just before `end`, within bytes that were kept free.
   * Returns its start.
   */
  prependVarint(value: number, end: number): number {
    let start = end - varintSizeBytes(value);
    const first = start;
    for (let rest = value; ; rest >>>= 7) {
      const last = rest < 0x80;
      this.buffer[start++] = last ? rest : (rest & 0x7f) | 0x80;
      if (last) return first;
    }
  }

  private reserve(countBytes: number): void {
    const needed = this.at + countBytes;
    if (needed <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2));
    this.buffer.copy(larger, 0, 0, this.at);
    this.buffer = larger;
  }

  /** Keeps `countBytes` zero bytes free, to be filled by prependVarint. */
  skip(countBytes: number): this {
    this.reserve(countBytes);
    this.buffer.fill(0, this.at, this.at + countBytes);
    this.at += countBytes;
    return this;
  }

  private varint(value: number): this {
    const buffer = this.buffer;
    let at = this.at;
    let rest = value >>> 0;
    while (rest >= 0x80) {
      buffer[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buffer[at++] = rest;
    this.at = at;
    return this;
  }

  private longVarint(low: number, high: number): this {
    let below = low >>> 0;
    let above = high >>> 0;
    const buffer = this.buffer;
    while (above !== 0) {
      buffer[this.at++] = (below & 0x7f) | 0x80;
      below = ((below >>> 7) | (above << 25)) >>> 0;
      above >>>= 7;
    }
    return this.varint(below);
  }

  uint32(value: number): this {
    this.reserve(5);
    return this.varint(value);
  }

  int32(value: number): this {
    this.reserve(10);
    return value < 0 ? this.longVarint(value, -1) : this.varint(value);
  }

  /** A packed list. */
  int32s(values: readonly number[]): this {
    this.fork();
    for (const value of values) this.int32(value);
    return this.ldelim();
  }

  bool(value: boolean): this {
    this.reserve(1);
    this.buffer[this.at++] = value ? 1 : 0;
    return this;
  }

  int64(value: Int64Halves | number): this {
    this.reserve(10);
    if (typeof value !== "number") return this.longVarint(value.low, value.high);
    assert(Number.isSafeInteger(value), "a number in a 64-bit field is a safe integer");
    return this.longVarint(value % TWO_POWER_32, Math.floor(value / TWO_POWER_32));
  }

  uint64(value: Int64Halves | number): this {
    return this.int64(value);
  }

  bytes(value: Uint8Array): this {
    this.reserve(5 + value.length);
    this.varint(value.length);
    this.buffer.set(value, this.at);
    this.at += value.length;
    return this;
  }

  string(text: string): this {
    const units = text.length;
    this.reserve(5 + units * 3);
    if (units > SHORT_TEXT_UNITS) {
      this.varint(Buffer.byteLength(text));
      this.at += this.buffer.write(text, this.at, "utf8");
      return this;
    }
    const buffer = this.buffer;
    const start = this.at;
    for (let unit = 0; unit < units; unit++) {
      const code = text.charCodeAt(unit);
      if (code >= 0x80) {
        const size = buffer.write(text, start + 1, "utf8");
        buffer[start] = size;
        this.at = start + 1 + size;
        return this;
      }
      buffer[start + 1 + unit] = code;
    }
    buffer[start] = units;
    this.at = start + 1 + units;
    return this;
  }

  /** Begins a nested message; its length comes with `ldelim`. */
  fork(): this {
    this.reserve(1);
    this.starts.push(this.at++);
    return this;
  }

  /** Completes the innermost nested message. */
  ldelim(): this {
    const start = this.starts.pop();
    assert(start !== undefined, "a nested message was begun");
    const size = this.at - start - 1;
    const lengthSize = varintSizeBytes(size);
    if (lengthSize > 1) {
      this.reserve(lengthSize - 1);
      this.buffer.copyWithin(start + lengthSize, start + 1, this.at);
    }
    const end = start + lengthSize + size;
    this.at = start;
    this.varint(size);
    this.at = end;
    return this;
  }
}

function varintSizeBytes(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}
