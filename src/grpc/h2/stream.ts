/**
 * A call on a stream of our own HTTP/2 connection.
 *
 * Owns what waits to be sent on the stream, and its windows. Invariants: 1. Nothing is sent beyond
 * the windows, nor while the socket is behind. 2. A client gets credit for what was read, not for
 * what waits to be read. 3. A stream that was answered to its end is over, whether or not the
 * client had finished: it is told to stop.
 */
import { Call, type CallDesk, type CallerOf, NOTHING_SPOKEN, type Route } from "./call.js";
import { ErrorCode, Flag, Frame, FRAME_PAYLOAD_MAX_BYTES, Status } from "./constants.js";
import { type Failure, failureOf } from "./failure.js";
import type { RequestHead } from "./fields.js";
import { ONE_FRAME_MAX_BYTES, type Output } from "./output.js";

/** Receive window of a stream (bytes). */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
const MESSAGE_PREFIX_BYTES = 5;

/** What a stream asks of its connection. */
export interface StreamCarrier {
  readonly output: Output;
  readonly messageMaxBytes: number;
  readonly socket: unknown;
  /** The connection has ended. */
  readonly isOver: boolean;
  /** Bytes that may be sent now: the peer's window, as long as the socket takes them. */
  readonly sendableBytes: number;
  sent(sizeBytes: number): void;
  /** What was written leaves at the end of the turn. */
  soon(): void;
  /** The stream has something to send when it may. */
  wait(stream: Stream): void;
  /** So many bytes of the connection's window were read. */
  credit(sizeBytes: number): void;
  /** More (or less) is kept for messages that are not whole; false: it is too much. */
  keep(sizeBytes: number): boolean;
  /** The stream is over. `stopped`: the client was told so before it had finished. */
  over(stream: Stream, stopped: boolean): void;
}

interface Waiting {
  readonly bytes: Buffer;
  at: number;
}

export class Stream extends Call {
  private windowLeft = STREAM_WINDOW_BYTES;
  /** Received, and not yet credited to the connection; to the stream. */
  private unread = 0;
  private uncredited = 0;
  private received = 0;
  private kept = 0;
  private waiting: Waiting[] = [];
  /** How it ends when all is sent; undefined: it does not end yet. */
  private ending: Failure | null | undefined = undefined;
  private hasHead = false;
  private isOver = false;

  constructor(
    private readonly carrier: StreamCarrier,
    readonly id: number,
    head: RequestHead,
    route: Route,
    caller: CallerOf,
    peer: string,
    desk: CallDesk,
    /** What the peer lets us send on the stream (bytes). */
    public sendWindow: number,
  ) {
    super(head, route, caller, peer, desk);
  }

  /** The client has said its last word. */
  get isHalfClosed(): boolean {
    return this.hasEnded;
  }

  protected get socket(): unknown {
    return this.carrier.socket;
  }

  get isLost(): boolean {
    return this.carrier.isOver;
  }

  /** Something waits for a window, or for the socket. */
  get hasWaiting(): boolean {
    return this.waiting.length > 0;
  }

  /**
   * Data of the request, bytes[start, end), that took `flowBytes` of the windows. Returns what is
   * wrong with it.
   */
  receive(bytes: Buffer, start: number, end: number, flowBytes: number, isLast: boolean): number {
    this.windowLeft -= flowBytes;
    this.received += end - start;
    if (this.windowLeft < 0) return ErrorCode.flowControl;
    if (isLast) {
      const fault = this.lastWord();
      if (fault !== ErrorCode.none) return fault;
    }
    if (!this.isOpen) {
      this.carrier.credit(flowBytes);
      return ErrorCode.none;
    }
    const { serve } = this.route;
    if (isLast && serve !== null && this.isWhole(bytes, start, end)) {
      this.carrier.credit(flowBytes);
      serve(this, bytes.subarray(start + MESSAGE_PREFIX_BYTES, end));
      return ErrorCode.none;
    }
    this.unread += flowBytes;
    this.intake.push(bytes, start, end);
    if (isLast) this.intake.end();
    this.settle();
    return ErrorCode.none;
  }

  /** The request came to its end. Returns what is wrong with that. */
  lastWord(): number {
    this.hasEnded = true;
    const { contentLength } = this.head;
    const isWrong = contentLength >= 0 && contentLength !== this.received;
    return isWrong ? ErrorCode.protocol : ErrorCode.none;
  }

  /** The request came to its end without data, or with trailers. */
  endOfRequest(): void {
    this.intake.end();
    this.settle();
  }

  /** Whether the data is the one message of the request. */
  private isWhole(bytes: Buffer, start: number, end: number): boolean {
    const size = end - start - MESSAGE_PREFIX_BYTES;
    if (size < 0 || this.received !== end - start) return false;
    if (bytes[start] !== 0 || size > this.carrier.messageMaxBytes) return false;
    return bytes.readUInt32BE(start + 1) === size;
  }

  pause(): void {
    this.intake.pause();
  }

  resume(): void {
    this.intake.resume();
    this.settle();
  }

  protected moved(): void {
    this.settle();
  }

  /** Gives credit for what was read, and counts what is kept. */
  private settle(): void {
    const { carrier, intake } = this;
    if (!intake.isPaused || this.isOver) {
      carrier.credit(this.unread);
      this.uncredited += this.unread;
      this.unread = 0;
      if (this.uncredited >= STREAM_WINDOW_BYTES / 2 && !this.hasEnded && !this.isOver) {
        carrier.output.number(Frame.windowUpdate, this.id, this.uncredited);
        this.windowLeft += this.uncredited;
        this.uncredited = 0;
        carrier.soon();
      }
    }
    const more = intake.heldBytes - this.kept;
    this.kept = intake.heldBytes;
    if (more === 0 || carrier.keep(more) || !this.isOpen) return;
    this.fail(failureOf(Status.RESOURCE_EXHAUSTED, "too many messages that are not whole"));
  }

  respond(spoken: readonly string[]): void {
    if (this.hasHead || this.isOver) return;
    this.hasHead = true;
    this.carrier.output.responseHead(this.id, spoken);
    this.carrier.soon();
  }

  /** Writes a message when it may leave at once. */
  private sendAtOnce(message: Uint8Array): boolean {
    const size = message.length + MESSAGE_PREFIX_BYTES;
    const { carrier } = this;
    if (message.length > ONE_FRAME_MAX_BYTES || this.waiting.length > 0) return false;
    if (size > this.sendWindow || size > carrier.sendableBytes) return false;
    this.sendWindow -= size;
    carrier.sent(size);
    carrier.output.message(this.id, message);
    return true;
  }

  private sendLater(message: Uint8Array): void {
    const bytes = Buffer.allocUnsafe(message.length + MESSAGE_PREFIX_BYTES);
    bytes[0] = 0;
    bytes.writeUInt32BE(message.length, 1);
    bytes.set(message, MESSAGE_PREFIX_BYTES);
    this.waiting.push({ bytes, at: 0 });
    this.carrier.wait(this);
  }

  send(message: Uint8Array): boolean {
    if (!this.isOpen) return true;
    this.respond(NOTHING_SPOKEN);
    this.carrier.soon();
    if (this.sendAtOnce(message)) return true;
    this.sendLater(message);
    return false;
  }

  answer(message: Uint8Array): void {
    if (!this.isOpen) return;
    this.respond(NOTHING_SPOKEN);
    if (this.sendAtOnce(message)) {
      this.isOpen = false;
      this.finish(null);
      return;
    }
    this.sendLater(message);
    this.end();
  }

  end(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.respond(NOTHING_SPOKEN);
    this.endWith(null);
  }

  fail(failure: Failure): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.endWith(failure);
  }

  private endWith(ending: Failure | null): void {
    if (this.waiting.length > 0) this.ending = ending;
    else this.finish(ending);
  }

  /** Its time is over: what waits is not waited for. */
  expire(failure: Failure): void {
    if (!this.isOpen) return;
    this.waiting = [];
    this.fail(failure);
  }

  refuseHalfSent(failure: Failure): void {
    if (this.hasEnded || this.route.drains) return;
    if (this.isOpen && !this.hasHead) this.fail(failure);
    else this.cut();
  }

  /** Sends of what waits as much as may leave, at most `budgetBytes`; returns how much it was. */
  pump(budgetBytes: number): number {
    const { carrier } = this;
    let sentBytes = 0;
    for (let first = this.waiting[0]; first !== undefined; first = this.waiting[0]) {
      const { bytes, at } = first;
      const size = Math.min(
        bytes.length - at,
        FRAME_PAYLOAD_MAX_BYTES,
        this.sendWindow,
        carrier.sendableBytes,
        budgetBytes - sentBytes,
      );
      if (size <= 0) return sentBytes;
      carrier.output.data(this.id, bytes, at, at + size);
      this.sendWindow -= size;
      carrier.sent(size);
      sentBytes += size;
      first.at += size;
      if (first.at < bytes.length) continue;
      this.waiting.shift();
      this.handler.taken(bytes.length - MESSAGE_PREFIX_BYTES);
      if (this.isOver) return sentBytes;
    }
    if (this.ending !== undefined) this.finish(this.ending);
    return sentBytes;
  }

  private finish(ending: Failure | null): void {
    const { carrier, id } = this;
    this.code = ending?.code ?? Status.OK;
    if (ending === null) carrier.output.okTrailers(id);
    else carrier.output.failure(id, ending, !this.hasHead);
    if (!this.hasEnded) carrier.output.number(Frame.reset, id, ErrorCode.none);
    carrier.soon();
    this.close(!this.hasEnded);
  }

  cut(): void {
    this.reset(ErrorCode.cancel);
  }

  /** Ends it at once, with a code of HTTP/2. */
  reset(code: number): void {
    if (this.isOver) return;
    this.carrier.output.number(Frame.reset, this.id, code);
    this.carrier.soon();
    this.close(!this.hasEnded);
  }

  /** The client took it back, or its connection is gone. */
  cancelled(): void {
    this.close(false);
  }

  private close(stopped: boolean): void {
    if (this.isOver) return;
    this.isOver = true;
    this.waiting = [];
    this.ending = undefined;
    this.carrier.over(this, stopped);
    this.leave();
    this.settle();
  }
}

/** Whether the flags of a frame say that nothing follows on its stream. */
export function endsStream(flags: number): boolean {
  return (flags & Flag.endStream) !== 0;
}
