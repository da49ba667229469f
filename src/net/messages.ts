/**
 * How packets lie in a lane, and in a gRPC stream: each message is one byte of compression flag
 * (0), four bytes of length, then the packet.
 *
 * Owns the bytes of the message that is coming in. Invariants: 1. Nothing is allocated for a length
 * above the bound. 2. A packet that is handed out never changes: no byte of its memory is used
 * again. 3. After a fault nothing more is handed out.
 */
import { PEER_FRAME_MAX_BYTES } from "../base/limits.js";
import { assert } from "../base/assert.js";
import { ByteSlabs } from "../base/byte-slabs.js";

const MESSAGE_HEADER_BYTES = 5;
/** The kind of a packet stands before its body. */
const PACKET_KIND_BYTES = 1;

/**
 * A body of at most so many bytes is copied behind its header: cheaper than a write of its own.
 */
export const COPIED_BODY_MAX_BYTES = 16 * 1024;

/** Small messages that come in share buffers: one of its own costs more to make than to fill. */
const SHARED_BYTES = 64 * 1024;
const OWN_BYTES = 4 * 1024;
const cameIn = new ByteSlabs(SHARED_BYTES, OWN_BYTES);

function writeHead(bytes: Uint8Array, at: number, kind: number, bodyBytes: number): void {
  assert(bodyBytes <= PEER_FRAME_MAX_BYTES, "a frame is at most PEER_FRAME_MAX_BYTES long");
  const size = PACKET_KIND_BYTES + bodyBytes;
  bytes[at] = 0;
  bytes[at + 1] = size >>> 24;
  bytes[at + 2] = (size >>> 16) & 0xff;
  bytes[at + 3] = (size >>> 8) & 0xff;
  bytes[at + 4] = size & 0xff;
  bytes[at + MESSAGE_HEADER_BYTES] = kind;
}

/** Writes the message of a packet whose body is copied, at `at`; returns where it ends. */
export function putPacket(bytes: Uint8Array, at: number, kind: number, body: Uint8Array): number {
  writeHead(bytes, at, kind, body.length);
  bytes.set(body, at + MESSAGE_HEADER_BYTES + PACKET_KIND_BYTES);
  return at + packetSizeBytes(body.length);
}

/** Hands the message of one packet to `write`, in one or two pieces. */
export function writePacket(
  kind: number,
  body: Uint8Array,
  write: (bytes: Uint8Array) => unknown,
): void {
  const isCopied = body.length <= COPIED_BODY_MAX_BYTES;
  const bytes = Buffer.allocUnsafe(packetSizeBytes(isCopied ? body.length : 0));
  if (isCopied) putPacket(bytes, 0, kind, body);
  else writeHead(bytes, 0, kind, body.length);
  write(bytes);
  if (!isCopied) write(body);
}

/** Hands a small message without a kind to `write`, for calls with one message each way. */
export function writeMessage(message: Uint8Array, write: (bytes: Uint8Array) => unknown): void {
  const bytes = Buffer.alloc(MESSAGE_HEADER_BYTES + message.length);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, MESSAGE_HEADER_BYTES);
  write(bytes);
}

/** Bytes on the wire of a packet whose body has `bodyBytes`. */
export function packetSizeBytes(bodyBytes: number): number {
  return MESSAGE_HEADER_BYTES + PACKET_KIND_BYTES + bodyBytes;
}

/** Puts the messages of a stream together again. */
export class MessageReader {
  private readonly head = new Uint8Array(MESSAGE_HEADER_BYTES);
  private readonly headView = new DataView(this.head.buffer);
  private headBytes = 0;
  private body: Uint8Array | null = null;
  private bodyBytes = 0;
  private broken = false;

  /**
   * `maxBytes`: of one message, read at each. `take` gets each message; false from it stops the
   * reader.
   */
  constructor(
    private readonly maxBytes: () => number,
    private readonly take: (message: Uint8Array) => boolean,
  ) {}

  /** True while all that came are whole messages, each of them taken. */
  get isBetweenMessages(): boolean {
    return !this.broken && this.headBytes === 0 && this.body === null;
  }

  /** False: what came is malformed, or `take` refused it; nothing more is read. */
  push(chunk: Uint8Array): boolean {
    let at = 0;
    while (at < chunk.length && !this.broken) {
      at = this.body === null ? this.readHead(chunk, at) : this.readBody(chunk, at, this.body);
    }
    return !this.broken;
  }

  private readHead(chunk: Uint8Array, from: number): number {
    const count = Math.min(MESSAGE_HEADER_BYTES - this.headBytes, chunk.length - from);
    this.head.set(chunk.subarray(from, from + count), this.headBytes);
    this.headBytes += count;
    if (this.headBytes < MESSAGE_HEADER_BYTES) return from + count;
    this.headBytes = 0;
    const size = this.headView.getUint32(1);
    if (this.head[0] !== 0 || size === 0 || size > this.maxBytes()) {
      this.broken = true;
      return chunk.length;
    }
    this.body = cameIn.take(size);
    this.bodyBytes = 0;
    return from + count;
  }

  private readBody(chunk: Uint8Array, from: number, body: Uint8Array): number {
    const count = Math.min(body.length - this.bodyBytes, chunk.length - from);
    body.set(chunk.subarray(from, from + count), this.bodyBytes);
    this.bodyBytes += count;
    if (this.bodyBytes === body.length) {
      this.body = null;
      if (!this.take(body)) this.broken = true;
    }
    return from + count;
  }
}
