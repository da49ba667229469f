/**
 * Writer and reader for replicated and stored bytes: little-endian fixed numbers, LEB128 lengths,
 * counted byte strings.
 *
 * Owns its buffer until `finish`. Invariants: 1. A reader never reads past its end: it turns
 * `failed`, yields zeros, and stays failed; the caller checks `isComplete()` once. 2. Lengths are
 * checked against what remains before anything is allocated. 3. Every byte of a finished buffer was
 * written. 4. One encoding for one value: over-long LEB128 fails.
 */
import { assert } from "./assert.js";
import { EMPTY_BYTES, decodeText } from "./bytes.js";

const textEncoder = new TextEncoder();
const scratch = new DataView(new ArrayBuffer(8));

export class ByteWriter {
  private buffer: Uint8Array;
  private view: DataView;
  private at = 0;

  constructor(capacityBytes = 256) {
    this.buffer = new Uint8Array(capacityBytes);
    this.view = new DataView(this.buffer.buffer);
  }

  get sizeBytes(): number {
    return this.at;
  }

  /**
   * Makes room for `count` bytes and returns where they begin. It may replace the buffer: callers
   * take the position first and name `buffer` or `view` only afterwards.
   */
  private reserve(count: number): number {
    const start = this.at;
    const end = start + count;
    if (end > this.buffer.length) {
      const larger = new Uint8Array(Math.max(end, this.buffer.length * 2));
      larger.set(this.buffer.subarray(0, start));
      this.buffer = larger;
      this.view = new DataView(larger.buffer);
    }
    this.at = end;
    return start;
  }

  uint8(value: number): this {
    const at = this.reserve(1);
    this.buffer[at] = value;
    return this;
  }

  boolean(value: boolean): this {
    return this.uint8(value ? 1 : 0);
  }

  uint32(value: number): this {
    const at = this.reserve(4);
    this.view.setUint32(at, value, true);
    return this;
  }

  int32(value: number): this {
    const at = this.reserve(4);
    this.view.setInt32(at, value, true);
    return this;
  }

  /** A safe integer ≥ 0 in 8 bytes. */
  uint53(value: number): this {
    assert(Number.isSafeInteger(value) && value >= 0, "a uint53 is a safe integer of at least 0");
    const at = this.reserve(8);
    this.view.setUint32(at, value, true);
    this.view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
    return this;
  }

  /** A safe integer of either sign in 8 bytes (two's complement). */
  int53(value: number): this {
    assert(Number.isSafeInteger(value), "an int53 is a safe integer");
    const at = this.reserve(8);
    this.view.setUint32(at, value, true);
    this.view.setInt32(at + 4, Math.floor(value / 0x1_0000_0000), true);
    return this;
  }

  int64(value: bigint): this {
    const at = this.reserve(8);
    this.view.setBigInt64(at, value, true);
    return this;
  }

  /** Unsigned LEB128 of a value below 2^32. */
  length(value: number): this {
    assert(Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff, "a length is a uint32");
    let rest = value;
    while (rest >= 0x80) {
      this.uint8((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    return this.uint8(rest);
  }

  /** Bytes as they are, without a length. */
  raw(bytes: Uint8Array): this {
    const at = this.reserve(bytes.length);
    this.buffer.set(bytes, at);
    return this;
  }

  bytes(bytes: Uint8Array): this {
    return this.length(bytes.length).raw(bytes);
  }

  /** Puts `text` to `start` while it is ASCII; true when all of it is. */
  private ascii(text: string, start: number): boolean {
    const { buffer } = this;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit >= 0x80) return false;
      buffer[start + at] = unit;
    }
    return true;
  }

  /** Well-formed text as counted UTF-8. */
  text(text: string): this {
    // Short text is the rule, and ASCII: encode behind a one-byte length and move only when it does
    // not fit one.
    if (text.length <= 42) {
      const start = this.reserve(1 + text.length * 3);
      if (this.ascii(text, start + 1)) {
        this.buffer[start] = text.length;
        this.at = start + 1 + text.length;
        return this;
      }
      const { written } = textEncoder.encodeInto(text, this.buffer.subarray(start + 1));
      if (written < 0x80) {
        this.buffer[start] = written;
        this.at = start + 1 + written;
        return this;
      }
      this.at = start;
    }
    return this.bytes(textEncoder.encode(text));
  }

  /** The bytes written so far, copied; the writer can be used again after `reset`. */
  finish(): Uint8Array {
    return this.buffer.slice(0, this.at);
  }

  /** The bytes written so far, not copied: the last thing that is asked of this writer. */
  handOver(): Uint8Array {
    const written = this.buffer.subarray(0, this.at);
    this.buffer = EMPTY_BYTES;
    this.at = 0;
    return written;
  }

  /** Copies the bytes written so far to the start of `target`, which must have room for them. */
  copyTo(target: Uint8Array): void {
    const size = this.at;
    assert(target.length >= size, "the target has room");
    if (size > 64) {
      target.set(this.buffer.subarray(0, size));
      return;
    }
    for (let at = 0; at < size; at++) target[at] = this.buffer[at] as number;
  }

  reset(): this {
    this.at = 0;
    return this;
  }
}

export class ByteReader {
  private readonly buffer: Uint8Array;
  private readonly end: number;
  private at: number;
  private broken = false;

  constructor(buffer: Uint8Array, start = 0, end = buffer.length) {
    assert(start >= 0 && start <= end && end <= buffer.length, "a reader stays inside its buffer");
    this.buffer = buffer;
    this.at = start;
    this.end = end;
  }

  get failed(): boolean {
    return this.broken;
  }

  get remainingBytes(): number {
    return this.end - this.at;
  }

  get position(): number {
    return this.at;
  }

  /** True when nothing failed and everything was read. */
  isComplete(): boolean {
    return !this.broken && this.at === this.end;
  }

  /** Marks the input as malformed, for checks that the caller makes itself. */
  fail(): void {
    this.broken = true;
  }

  private take(count: number): number {
    if (this.broken || this.end - this.at < count) {
      this.broken = true;
      return -1;
    }
    const start = this.at;
    this.at += count;
    return start;
  }

  // Readers are made by the thousand and read little: a view would cost more than it saves.
  private word(at: number): number {
    const { buffer } = this;
    const low = (buffer[at] as number) | ((buffer[at + 1] as number) << 8);
    return low | ((buffer[at + 2] as number) << 16) | ((buffer[at + 3] as number) << 24);
  }

  uint8(): number {
    const at = this.take(1);
    return at < 0 ? 0 : (this.buffer[at] as number);
  }

  boolean(): boolean {
    const value = this.uint8();
    if (value > 1) this.broken = true;
    return value === 1;
  }

  uint32(): number {
    const at = this.take(4);
    return at < 0 ? 0 : this.word(at) >>> 0;
  }

  int32(): number {
    const at = this.take(4);
    return at < 0 ? 0 : this.word(at);
  }

  uint53(): number {
    const at = this.take(8);
    if (at < 0) return 0;
    const high = this.word(at + 4) >>> 0;
    if (high >= 0x20_0000) {
      this.broken = true;
      return 0;
    }
    return high * 0x1_0000_0000 + (this.word(at) >>> 0);
  }

  int53(): number {
    const at = this.take(8);
    if (at < 0) return 0;
    const value = this.word(at + 4) * 0x1_0000_0000 + (this.word(at) >>> 0);
    if (!Number.isSafeInteger(value)) {
      this.broken = true;
      return 0;
    }
    return value;
  }

  int64(): bigint {
    const at = this.take(8);
    if (at < 0) return 0n;
    scratch.setInt32(0, this.word(at), true);
    scratch.setInt32(4, this.word(at + 4), true);
    return scratch.getBigInt64(0, true);
  }

  length(): number {
    // One byte is the rule.
    let value = this.uint8();
    if (value < 0x80) return value;
    value &= 0x7f;
    for (let shift = 7; shift < 35; shift += 7) {
      const byte = this.uint8();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (byte === 0 || value > 0xffff_ffff) break;
        return value;
      }
    }
    this.broken = true;
    return 0;
  }

  /** A copy of the next `count` bytes. */
  raw(count: number): Uint8Array {
    const at = this.take(count);
    return at < 0 ? EMPTY_BYTES : this.buffer.slice(at, at + count);
  }

  /** Passes over the next `count` bytes; false when there are not so many. */
  skip(count: number): boolean {
    return this.take(count) >= 0;
  }

  /** A counted byte string, copied. */
  bytes(): Uint8Array {
    return this.raw(this.length());
  }

  /** A counted byte string, as a view of what is read. */
  bytesView(): Uint8Array {
    const count = this.length();
    const at = this.take(count);
    return at < 0 ? EMPTY_BYTES : this.buffer.subarray(at, at + count);
  }

  /** Counted UTF-8; invalid UTF-8 fails. */
  text(): string {
    const count = this.length();
    const at = this.take(count);
    if (at < 0) return "";
    const text = decodeText(this.buffer.subarray(at, at + count));
    if (text === null) {
      this.broken = true;
      return "";
    }
    return text;
  }
}
