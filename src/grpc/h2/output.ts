/**
 * The frames of one connection on their way out: written into one buffer per turn, handed to the
 * socket as one piece.
 *
 * Owns the buffer of the turn and what the peer's header table holds. Buffers are borrowed for a
 * turn, so that resting connections have none. Invariants: 1. Frames leave in the order in which
 * they were written. 2. What is handed to the socket is a copy; the buffer is used again. 3. Fields
 * enter the peer's table only while it has the size that we take it to have.
 */
import { Flag, Frame, FRAME_HEAD_BYTES, FRAME_PAYLOAD_MAX_BYTES } from "./constants.js";
import type { Failure } from "./failure.js";

const BUFFER_BYTES = 64 * 1024;
const SPARE_MAX = 64;
const spare: Buffer[] = [];
const NONE: Buffer = Buffer.alloc(0);

const STATIC_ENTRIES = 61;
const STATUS_200 = 0x88;
/** Number of content-type in the static table. */
const CONTENT_TYPE = 31;
const TABLE_BYTES = 4096;
const MESSAGE_PREFIX_BYTES = 5;
/** A grpc-message is cut here, so that trailers fit one frame (characters). */
const DETAILS_MAX_CHARACTERS = 2048;

function lengthPrefix(size: number): number[] {
  if (size < 127) return [size];
  const bytes = [127];
  let rest = size - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return bytes;
}

/** A text of a header block, not Huffman coded. */
function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([Buffer.from(lengthPrefix(bytes.length)), bytes]);
}

/** A field that enters no table. */
function plainField(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), literal(name), literal(value)]);
}

const TYPE_VALUE = literal("application/grpc+proto");
const TYPE_ENTERS = Buffer.concat([Buffer.from([0x40 | CONTENT_TYPE]), TYPE_VALUE]);
const TYPE_PLAIN = Buffer.concat([Buffer.from([0x0f, CONTENT_TYPE - 0x0f]), TYPE_VALUE]);
const OK_FIELD = Buffer.concat([literal("grpc-status"), literal("0")]);
const OK_ENTERS = Buffer.concat([Buffer.from([0x40]), OK_FIELD]);
const OK_PLAIN = Buffer.concat([Buffer.from([0]), OK_FIELD]);
const ENCODINGS = plainField("grpc-accept-encoding", "identity,deflate,gzip");

/** A grpc-message: everything but visible ASCII and spaces, and the percent sign, by its bytes. */
export function percentEncoded(text: string): string {
  let encoded = "";
  for (const byte of Buffer.from(text.slice(0, DETAILS_MAX_CHARACTERS), "utf8")) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

export class Output {
  private buffer: Buffer = NONE;
  private size = 0;
  /** Fields that entered the peer's table; the place of each, counted from the first. */
  private entered = 0;
  private typePlace = 0;
  private okPlace = 0;
  private isPlain = false;
  private mustShrink = false;

  /** `write`: hands bytes to the socket. */
  constructor(private readonly write: (bytes: Buffer) => void) {}

  /** Bytes that wait for the end of the turn. */
  get waitingBytes(): number {
    return this.size;
  }

  /** The peer's table is to hold at most so many bytes. */
  tableSize(sizeBytes: number): void {
    // What we put there is little; with a smaller table than the usual one nothing enters it.
    if (this.isPlain || sizeBytes >= TABLE_BYTES) return;
    this.isPlain = this.mustShrink = true;
  }

  /** Hands what was written to the socket. */
  flush(): void {
    if (this.size > 0) {
      const bytes = Buffer.allocUnsafe(this.size);
      this.buffer.copy(bytes, 0, 0, this.size);
      this.size = 0;
      this.write(bytes);
    }
    if (this.buffer === NONE) return;
    if (spare.length < SPARE_MAX) spare.push(this.buffer);
    this.buffer = NONE;
  }

  private room(sizeBytes: number): void {
    if (this.size + sizeBytes > this.buffer.length) this.flush();
    if (this.buffer === NONE) this.buffer = spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
  }

  /** The head of a frame; its payload of so many bytes is written next. */
  head(length: number, type: number, flags: number, stream: number): void {
    this.room(FRAME_HEAD_BYTES + length);
    const { buffer } = this;
    let at = this.size;
    buffer[at++] = length >> 16;
    buffer[at++] = length >> 8;
    buffer[at++] = length;
    buffer[at++] = type;
    buffer[at++] = flags;
    this.size = at;
    this.uint32(stream);
  }

  private uint32(value: number): void {
    const { buffer } = this;
    let at = this.size;
    buffer[at++] = value >>> 24;
    buffer[at++] = value >> 16;
    buffer[at++] = value >> 8;
    buffer[at++] = value;
    this.size = at;
  }

  private put(bytes: Buffer): void {
    this.size += bytes.copy(this.buffer, this.size);
  }

  settings(pairs: readonly (readonly [number, number])[]): void {
    this.head(pairs.length * 6, Frame.settings, 0, 0);
    for (const [name, value] of pairs) {
      this.size = this.buffer.writeUInt16BE(name, this.size);
      this.uint32(value);
    }
  }

  settingsAck(): void {
    this.head(0, Frame.settings, Flag.ack, 0);
  }

  /** `bytes`: at `start` the eight bytes of the ping; null: one of our own. */
  ping(bytes: Buffer | null, start: number): void {
    this.head(8, Frame.ping, bytes === null ? 0 : Flag.ack, 0);
    if (bytes === null) this.buffer.fill(0, this.size, this.size + 8);
    else bytes.copy(this.buffer, this.size, start, start + 8);
    this.size += 8;
  }

  /** A frame with one number: a reset, or credit. */
  number(type: number, stream: number, value: number): void {
    this.head(4, type, 0, stream);
    this.uint32(value);
  }

  goaway(lastStream: number, code: number): void {
    this.head(8, Frame.goaway, 0, 0);
    this.uint32(lastStream);
    this.uint32(code);
  }

  /** What is due before anything else in the next header block. */
  private shrunk(): Buffer {
    if (!this.mustShrink) return NONE;
    this.mustShrink = false;
    return Buffer.from([0x20]);
  }

  /** The head of a response that messages follow; each of `spoken` is a field of value 1. */
  responseHead(stream: number, spoken: readonly string[]): void {
    if (this.typePlace > 0 && !this.isPlain && spoken.length === 0) {
      this.head(2, Frame.headers, Flag.endHeaders, stream);
      this.buffer[this.size++] = STATUS_200;
      this.buffer[this.size++] = 0x80 | (STATIC_ENTRIES + 1 + this.entered - this.typePlace);
      return;
    }
    const parts = [this.shrunk(), Buffer.from([STATUS_200]), this.typeField()];
    for (const name of spoken) parts.push(plainField(name, "1"));
    this.block(stream, parts, Flag.endHeaders);
  }

  private typeField(): Buffer {
    if (this.isPlain) return TYPE_PLAIN;
    if (this.typePlace > 0) {
      return Buffer.from([0x80 | (STATIC_ENTRIES + 1 + this.entered - this.typePlace)]);
    }
    this.typePlace = ++this.entered;
    return TYPE_ENTERS;
  }

  private block(stream: number, parts: readonly Buffer[], flags: number): void {
    let length = 0;
    for (const part of parts) length += part.length;
    this.head(length, Frame.headers, flags, stream);
    for (const part of parts) this.put(part);
  }

  /** Trailers that say OK. */
  okTrailers(stream: number): void {
    const flags = Flag.endHeaders | Flag.endStream;
    if (this.okPlace > 0 && !this.isPlain) {
      this.head(1, Frame.headers, flags, stream);
      this.buffer[this.size++] = 0x80 | (STATIC_ENTRIES + 1 + this.entered - this.okPlace);
      return;
    }
    const shrunk = this.shrunk();
    if (!this.isPlain) this.okPlace = ++this.entered;
    this.block(stream, [shrunk, this.isPlain ? OK_PLAIN : OK_ENTERS], flags);
  }

  /** Trailers that say how the call failed; `alone`: nothing of the response went before. */
  failure(stream: number, failure: Failure, alone: boolean): void {
    const parts = [this.shrunk()];
    if (alone) parts.push(Buffer.from([STATUS_200]), this.typeField(), ENCODINGS);
    parts.push(plainField("grpc-status", String(failure.code)));
    parts.push(plainField("grpc-message", percentEncoded(failure.details)));
    for (const [name, value] of Object.entries(failure.trailers ?? {})) {
      parts.push(plainField(name, value));
    }
    this.block(stream, parts, Flag.endHeaders | Flag.endStream);
  }

  /** A response to what is no call: its status of HTTP, and nothing else. */
  httpStatus(stream: number, code: number): void {
    const field = Buffer.concat([Buffer.from([0x08]), literal(String(code))]);
    this.block(stream, [this.shrunk(), field], Flag.endHeaders | Flag.endStream);
  }

  /** A whole message in one frame. */
  message(stream: number, bytes: Uint8Array): void {
    const size = bytes.length;
    this.head(size + MESSAGE_PREFIX_BYTES, Frame.data, 0, stream);
    this.buffer[this.size++] = 0;
    this.uint32(size);
    this.buffer.set(bytes, this.size);
    this.size += size;
  }

  /** A part of what is sent on a stream: at most FRAME_PAYLOAD_MAX_BYTES. */
  data(stream: number, bytes: Buffer, start: number, end: number): void {
    this.head(end - start, Frame.data, 0, stream);
    this.size += bytes.copy(this.buffer, this.size, start, end);
  }
}

/** Largest message that `message` takes (bytes). */
export const ONE_FRAME_MAX_BYTES = FRAME_PAYLOAD_MAX_BYTES - MESSAGE_PREFIX_BYTES;
