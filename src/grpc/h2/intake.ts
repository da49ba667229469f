/**
 * The messages of one request, cut out of its data: prefix, length, bytes.
 *
 * Owns what has come of a message that is not whole, and what came while nobody wanted to read.
 * Invariants: 1. Messages are handed out whole, in order, and never while paused. 2. Memory grows
 * with what came, not with what a prefix announces. 3. Bytes that were handed out are not written
 * again. 4. After `close` nothing is handed out.
 */
import { gunzip, inflate } from "node:zlib";
import { Status } from "./constants.js";
import { type Failure, failureOf } from "./failure.js";

const PREFIX_BYTES = 5;
const GROWN_FROM_BYTES = 1024;
const EMPTY = Buffer.alloc(0);

/** What takes the messages. */
export interface IntakeSink {
  readonly encoding: string;
  /** Whole messages; the bytes stay as they are. */
  message(bytes: Buffer): void;
  /** All messages were handed out, and the request is at its end. */
  halfClosed(): void;
  /** The request cannot be understood. */
  broken(failure: Failure): void;
  /** What was compressed was handed out, and what came after it may be. */
  moved(): void;
}

export class Intake {
  private held = EMPTY;
  private from = 0;
  private to = 0;
  private busy = false;
  private paused = false;
  private inflating = false;
  private ended = false;
  private told = false;
  private closed = false;

  constructor(
    private readonly sink: IntakeSink,
    private readonly messageMaxBytes: number,
  ) {}

  /** Bytes that wait to become messages, or to be read. */
  get heldBytes(): number {
    return this.to - this.from;
  }

  /** True while what comes is only kept. */
  get isPaused(): boolean {
    return this.paused || this.inflating;
  }

  /** More data. */
  push(bytes: Buffer, start: number, end: number): void {
    if (this.closed) return;
    let at = start;
    if (this.heldBytes === 0 && !this.isPaused) at = this.cut(bytes, start, end);
    if (this.closed || at === end) return;
    this.keep(bytes, at, end);
    this.drain();
  }

  /** The request is at its end. */
  end(): void {
    this.ended = true;
    this.drain();
  }

  pause(): void {
    this.paused = true;
  }

  /** Hands out what has waited, too. */
  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.drain();
  }

  close(): void {
    this.closed = true;
    this.held = EMPTY;
    this.from = this.to = 0;
  }

  private drain(): void {
    if (this.closed || this.isPaused || this.busy) return;
    if (this.heldBytes > 0) this.from = this.cut(this.held, this.from, this.to);
    if (this.isClosed()) return;
    if (this.from === this.to && this.to > 0) {
      this.held = EMPTY;
      this.from = this.to = 0;
    }
    if (!this.ended || this.told || this.isPaused) return;
    this.told = true;
    if (this.heldBytes > 0) {
      this.sink.broken(failureOf(Status.INTERNAL, "the request ends within a message"));
    } else this.sink.halfClosed();
  }

  /** Closed meanwhile, by whoever was handed a message. */
  private isClosed(): boolean {
    return this.closed;
  }

  /** Hands out the whole messages in bytes[start, end); returns where the rest begins. */
  private cut(bytes: Buffer, start: number, end: number): number {
    let at = start;
    this.busy = true;
    while (end - at >= PREFIX_BYTES && !this.closed && !this.isPaused) {
      const isCompressed = bytes[at] ?? 0;
      const size = bytes.readUInt32BE(at + 1);
      if (isCompressed > 1) {
        this.sink.broken(failureOf(Status.INTERNAL, "the prefix of a message is not gRPC's"));
        break;
      }
      if (size > this.messageMaxBytes) {
        this.sink.broken(tooLarge(this.messageMaxBytes));
        break;
      }
      const next = at + PREFIX_BYTES + size;
      if (next > end) break;
      const message = bytes.subarray(at + PREFIX_BYTES, next);
      at = next;
      if (isCompressed === 1) this.inflate(message);
      else this.sink.message(message);
    }
    this.busy = false;
    return at;
  }

  private keep(bytes: Buffer, start: number, end: number): void {
    const size = end - start;
    const needed = this.heldBytes + size;
    if (this.to + size > this.held.length) {
      // Always a new one: messages that were handed out may still be read in the old one.
      const most = Math.max(needed, this.messageMaxBytes + PREFIX_BYTES);
      const size = Math.max(GROWN_FROM_BYTES, Math.min(needed * 2, most));
      const grown = Buffer.allocUnsafeSlow(size);
      this.held.copy(grown, 0, this.from, this.to);
      this.to -= this.from;
      this.from = 0;
      this.held = grown;
    }
    bytes.copy(this.held, this.to, start, end);
    this.to += size;
  }

  private inflate(message: Buffer): void {
    const { encoding } = this.sink;
    const open = encoding === "gzip" ? gunzip : encoding === "deflate" ? inflate : null;
    if (open === null) {
      const [code, text] =
        encoding === "identity"
          ? [Status.INTERNAL, "a message is compressed, and no header says how"]
          : [Status.UNIMPLEMENTED, "the compression of the messages is not known here"];
      this.sink.broken(failureOf(code, text));
      return;
    }
    this.inflating = true;
    open(message, { maxOutputLength: this.messageMaxBytes }, (error, bytes) => {
      this.inflating = false;
      if (this.closed) return;
      if (error === null) this.sink.message(bytes);
      else if (Reflect.get(error, "code") === "ERR_BUFFER_TOO_LARGE") {
        this.sink.broken(tooLarge(this.messageMaxBytes));
      } else this.sink.broken(failureOf(Status.INTERNAL, "a message cannot be decompressed"));
      this.drain();
      this.sink.moved();
    });
  }
}

function tooLarge(maxBytes: number): Failure {
  return failureOf(Status.RESOURCE_EXHAUSTED, `a message is larger than ${maxBytes} bytes`);
}
