/**
 * Frames out of the chunks of a socket, read where they lie; only one that is cut in two is copied.
 *
 * Owns the beginning of a frame whose end has not come. Invariants: 1. A frame is handed out once
 * and whole, in order, and none after the reader was stopped. 2. Never more than one frame of the
 * largest permitted size is kept.
 */
import { FRAME_HEAD_BYTES, FRAME_PAYLOAD_MAX_BYTES, PREFACE } from "./constants.js";

/** What takes the frames: the payload is bytes[start, end). */
export interface FrameSink {
  frame(
    type: number,
    flags: number,
    stream: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void;
  /** A frame that is larger than permitted: nothing can be read behind it. */
  frameTooLarge(): void;
  /** What came first is not how HTTP/2 begins. */
  notHttp2(): void;
}

export class FrameReader {
  private prefaceLeft = PREFACE.length;
  private readonly kept = Buffer.allocUnsafe(FRAME_HEAD_BYTES);
  private frame: Buffer | null = null;
  private size = 0;
  private stopped = false;

  constructor(private readonly sink: FrameSink) {}

  /** Nothing more is handed out. */
  stop(): void {
    this.stopped = true;
    this.frame = null;
  }

  read(chunk: Buffer): void {
    if (this.stopped) return;
    let at = this.prefaceLeft > 0 ? this.readPreface(chunk) : 0;
    if (this.size > 0 && !this.isStopped()) at = this.complete(chunk, at);
    while (!this.stopped && chunk.length - at >= FRAME_HEAD_BYTES) {
      const length = lengthAt(chunk, at);
      if (length > FRAME_PAYLOAD_MAX_BYTES) {
        this.sink.frameTooLarge();
        return;
      }
      const end = at + FRAME_HEAD_BYTES + length;
      if (end > chunk.length) break;
      this.hand(chunk, at, end);
      at = end;
    }
    if (!this.stopped && at < chunk.length) this.keep(chunk, at);
  }

  /** Stopped meanwhile, by what was handed out. */
  private isStopped(): boolean {
    return this.stopped;
  }

  private readPreface(chunk: Buffer): number {
    const from = PREFACE.length - this.prefaceLeft;
    const size = Math.min(this.prefaceLeft, chunk.length);
    this.prefaceLeft -= size;
    if (PREFACE.compare(chunk, 0, size, from, from + size) !== 0) {
      this.stop();
      this.sink.notHttp2();
    }
    return size;
  }

  private hand(bytes: Buffer, at: number, end: number): void {
    const stream = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    const [type, flags] = [bytes[at + 3] ?? 0, bytes[at + 4] ?? 0];
    this.sink.frame(type, flags, stream, bytes, at + FRAME_HEAD_BYTES, end);
  }

  /** Adds to the frame that is cut in two, and hands it out when it is whole. */
  private complete(chunk: Buffer, start: number): number {
    let at = start;
    if (this.frame === null) {
      const size = Math.min(FRAME_HEAD_BYTES - this.size, chunk.length - at);
      chunk.copy(this.kept, this.size, at, at + size);
      this.size += size;
      at += size;
      if (this.size < FRAME_HEAD_BYTES || !this.begin(this.kept, 0)) return at;
    }
    const frame = this.frame as Buffer | null;
    if (frame === null) return at;
    const size = Math.min(frame.length - this.size, chunk.length - at);
    chunk.copy(frame, this.size, at, at + size);
    this.size += size;
    if (this.size < frame.length) return at + size;
    this.frame = null;
    this.size = 0;
    this.hand(frame, 0, frame.length);
    return at + size;
  }

  /** Makes room for the frame whose head is at `at`. */
  private begin(head: Buffer, at: number): boolean {
    const length = lengthAt(head, at);
    if (length > FRAME_PAYLOAD_MAX_BYTES) {
      this.stop();
      this.sink.frameTooLarge();
      return false;
    }
    this.frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
    head.copy(this.frame, 0, at, at + FRAME_HEAD_BYTES);
    return true;
  }

  private keep(chunk: Buffer, at: number): void {
    const size = chunk.length - at;
    if (size < FRAME_HEAD_BYTES) {
      this.size = chunk.copy(this.kept, 0, at);
      return;
    }
    if (this.begin(chunk, at)) this.size = chunk.copy(this.frame as unknown as Buffer, 0, at);
  }
}

function lengthAt(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
}
