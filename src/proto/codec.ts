/**
 * Protocol Buffers at the border: a writer that fills one buffer in one pass, a strict reader, and exact 64-bit numbers.
 *
 * Owns the way in which the generated codec (protobufjs, static) is called; shared by the gRPC server and the client.
 * Invariants: 1. Text that is not valid UTF-8 is refused, unknown fields are skipped. 2. A 64-bit number never passes
 * through a double unless it is a safe integer. 3. What a writer hands out was written completely (no old memory).
 */
import protobuf from "protobufjs/minimal.js";
import { assert } from "../base/assert.js";
import { INT64_MAX, INT64_MIN } from "../base/int64.js";

/** A 64-bit number as two lanes of 32 bits; what the codec reads and writes. `Int64` has this shape. */
export interface Int64Lanes {
  readonly low: number;
  readonly high: number;
  readonly unsigned: boolean;
}

type EncodableField<F> = F extends Int64Lanes
  ? Int64Lanes | number
  : F extends Uint8Array
    ? Uint8Array
    : F extends readonly (infer Element)[]
      ? readonly Encodable<Element>[]
      : F extends object
        ? Encodable<F>
        : F;
/** What `encode` takes for a message: any fields, 64-bit ones also as safe integers. null = absent. */
export type Encodable<T> = { readonly [K in keyof T]?: EncodableField<T[K]> };

/** What the generated code offers for one message. */
export interface MessageCodec<T> {
  encode(message: Encodable<T>, writer: ProtoWriter): ProtoWriter;
  decode(reader: ProtoReader, lengthBytes?: number): T;
}

/** One .proto file as the reflection service hands it out. */
export interface FileDescription {
  readonly path: string;
  readonly dependency: readonly string[];
  readonly services: readonly string[];
  readonly symbols: readonly string[];
  /** The FileDescriptorProto. */
  readonly base64: string;
}

/** The reader of the codec, over one received message. */
export type ProtoReader = InstanceType<typeof protobuf.BufferReader>;

/** A reader over `bytes` that skips unknown fields and does not keep them. */
export function protoReader(bytes: Buffer): ProtoReader {
  const reader = new protobuf.BufferReader(bytes);
  reader.discardUnknown = true;
  return reader;
}

/** Decodes one whole message, or null when `bytes` is not one (malformed, truncated, text not valid UTF-8). */
export function decodeMessage<T>(codec: MessageCodec<T>, bytes: Buffer): T | null {
  try {
    return codec.decode(protoReader(bytes));
  } catch {
    return null;
  }
}

/** Encodes one message on its own. */
export function encodeMessage<T>(codec: MessageCodec<T>, message: Encodable<T>): Buffer {
  const writer = new ProtoWriter(128);
  codec.encode(message, writer);
  return writer.view(0);
}

/** The exact value of a signed 64-bit field. */
export function lanesToBigInt(lanes: Int64Lanes): bigint {
  if (lanes.high === 0) return BigInt(lanes.low >>> 0);
  return (BigInt(lanes.high | 0) << 32n) | BigInt(lanes.low >>> 0);
}

/** The lanes of a value in the int64 range (asserted). */
export function bigIntToLanes(value: bigint): Int64Lanes {
  assert(value >= INT64_MIN && value <= INT64_MAX, "a 64-bit field takes an int64");
  const low = Number(BigInt.asIntN(32, value));
  return { low, high: Number(BigInt.asIntN(32, value >> 32n)), unsigned: false };
}

export function isZeroLanes(lanes: Int64Lanes): boolean {
  return lanes.low === 0 && lanes.high === 0;
}

const TWO_POWER_32 = 0x1_0000_0000;
/** Text up to this many units certainly has a length that fits one byte (three bytes a unit). */
const SHORT_TEXT_UNITS = 42;

/**
 * Writes messages into one growing buffer. Has the methods that the generated code calls; lengths of nested messages
 * are put in front of them when they are complete (one byte is kept free, the rare longer length moves the bytes).
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

  /** Moves the bytes from `start` on down to `target`, dropping what was between. */
  moveDown(start: number, target: number): this {
    assert(target <= start && this.starts.length === 0, "whole messages move down");
    this.buffer.copyWithin(target, start, this.at);
    this.at = target + (this.at - start);
    return this;
  }

  /** Writes the varint `value` so that it ends just before `end`, within bytes that were kept free. Returns its start. */
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

  bool(value: boolean): this {
    this.reserve(1);
    this.buffer[this.at++] = value ? 1 : 0;
    return this;
  }

  int64(value: Int64Lanes | number): this {
    this.reserve(10);
    if (typeof value !== "number") return this.longVarint(value.low, value.high);
    assert(Number.isSafeInteger(value), "a number in a 64-bit field is a safe integer");
    return this.longVarint(value % TWO_POWER_32, Math.floor(value / TWO_POWER_32));
  }

  uint64(value: Int64Lanes | number): this {
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
