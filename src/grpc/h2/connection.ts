/**
 * One HTTP/2 connection of the cleartext port (RFC 9113), as a server of gRPC needs it.
 *
 * Owns its streams, its windows and what its peer has set. Invariants: 1. What breaks the protocol
 * ends the stream or the connection with the code that the standard names. 2. What is written in a
 * turn leaves with one write at its end. 3. A client that does not read is not read from, and gets
 * no data; one that only keeps the server busy is ended with ENHANCE_YOUR_CALM. 4. When the
 * connection ends, each of its calls is told.
 */
import type { Socket } from "node:net";
import { HEADERS_MAX_BYTES, STREAMS_PER_CONNECTION_MAX } from "../../base/limits.js";
import { ResetAllowance } from "../../base/resets.js";
import type { CallDesk, Route } from "./call.js";
import { ControlFrames } from "./control.js";
import {
  ErrorCode,
  Flag,
  Frame,
  Setting,
  Status,
  WINDOW_INITIAL_BYTES,
  WINDOW_MAX_BYTES,
} from "./constants.js";
import { type Failure, failureOf } from "./failure.js";
import { RequestHead, TrailingFields } from "./fields.js";
import { HeaderBlock } from "./header-block.js";
import { HpackDecoder } from "./hpack.js";
import type { ConnectionOwner } from "./owner.js";
import { Output } from "./output.js";
import { FrameReader, type FrameSink } from "./reader.js";
import { Sending } from "./sending.js";
import { StoppedStreams } from "./stopped.js";
import { endsStream, Stream, STREAM_WINDOW_BYTES, type StreamCarrier } from "./stream.js";

/**
 * Receive window of a whole connection (bytes): several streams' worth, so that one does not starve
 * the others.
 */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
/** Kept for messages that are not whole, and for streams that are not read (bytes). */
const KEPT_MAX_BYTES = 64 * 1024 * 1024;
/** At the end, a socket gets this long for its last bytes (ms). */
const LAST_BYTES_MS = 500;

export class Connection implements FrameSink, StreamCarrier {
  readonly output: Output;
  readonly messageMaxBytes: number;
  readonly peer: string;
  private readonly reader = new FrameReader(this);
  private readonly decoder = new HpackDecoder();
  private readonly block = new HeaderBlock();
  private readonly sending: Sending;
  private readonly streams = new Map<number, Stream>();
  private readonly stopped = new StoppedStreams();
  private readonly resets: ResetAllowance;
  private readonly control: ControlFrames;
  /** The highest that came; the highest that was not refused. */
  private lastStream = 0;
  private lastTaken = 0;
  private windowLeft = CONNECTION_WINDOW_BYTES;
  private uncredited = 0;
  private keptBytes = 0;
  private streamSendWindow = WINDOW_INITIAL_BYTES;
  private hasSettings = false;
  private isDraining = false;
  isOver = false;

  constructor(
    readonly socket: Socket,
    private readonly desk: CallDesk,
    private readonly owner: ConnectionOwner,
  ) {
    this.messageMaxBytes = desk.messageMaxBytes;
    this.peer = `${socket.remoteAddress ?? ""}:${socket.remotePort ?? 0}`;
    this.sending = new Sending(socket, () => this.soon());
    this.output = new Output((bytes) => this.sending.write(bytes));
    const nowMs = (): number => desk.nowMs();
    this.resets = new ResetAllowance(nowMs);
    this.control = new ControlFrames(this.output, (size) => this.peerWindow(size), nowMs);
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.reader.read(chunk));
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.closed());
    this.output.settings([
      [Setting.maxConcurrentStreams, STREAMS_PER_CONNECTION_MAX],
      [Setting.initialWindowSize, STREAM_WINDOW_BYTES],
      [Setting.maxHeaderListSize, HEADERS_MAX_BYTES],
    ]);
    this.output.number(Frame.windowUpdate, 0, CONNECTION_WINDOW_BYTES - WINDOW_INITIAL_BYTES);
    this.soon();
  }

  /** Open calls. */
  get calls(): Iterable<Stream> {
    return this.streams.values();
  }

  get callCount(): number {
    return this.streams.size;
  }

  get sendableBytes(): number {
    return this.sending.sendableBytes(this.output.waitingBytes);
  }

  sent(sizeBytes: number): void {
    this.sending.window -= sizeBytes;
  }

  soon(): void {
    this.sending.flushSoon(this);
  }

  wait(stream: Stream): void {
    this.sending.wait(stream);
    this.soon();
  }

  /** At the end of the turn. */
  flush(): void {
    if (this.isOver) return;
    this.sending.pump();
    this.output.flush();
    this.sending.pauseOrResume();
  }

  credit(sizeBytes: number): void {
    this.uncredited += sizeBytes;
    if (this.uncredited < CONNECTION_WINDOW_BYTES / 4 || this.isOver) return;
    this.output.number(Frame.windowUpdate, 0, this.uncredited);
    this.windowLeft += this.uncredited;
    this.uncredited = 0;
    this.soon();
  }

  keep(sizeBytes: number): boolean {
    this.keptBytes += sizeBytes;
    return sizeBytes < 0 || this.keptBytes <= KEPT_MAX_BYTES;
  }

  over(stream: Stream, stopped: boolean): void {
    this.streams.delete(stream.id);
    this.sending.forget(stream);
    if (stopped) this.stopped.add(stream.id);
    if (this.streams.size === 0) this.owner.rests();
  }

  frame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    if (this.block.stream !== 0 && (type !== Frame.continuation || id !== this.block.stream)) {
      return this.fail(ErrorCode.protocol);
    }
    if (!this.hasSettings) {
      if (type !== Frame.settings || (flags & Flag.ack) !== 0) return this.fail(ErrorCode.protocol);
      this.hasSettings = true;
    }
    switch (type) {
      case Frame.data:
        return this.takeData(flags, id, bytes, start, end);
      case Frame.headers:
        return this.takeHeaders(flags, id, bytes, start, end);
      case Frame.continuation:
        return this.takeContinuation(flags, bytes, start, end);
      case Frame.reset:
        return this.takeReset(id, end - start);
      case Frame.windowUpdate:
        return this.takeCredit(id, bytes, start, end);
      case Frame.pushPromise:
        return this.fail(ErrorCode.protocol);
      default:
        this.takeControl(type, flags, id, bytes, start, end);
    }
  }

  private takeControl(
    type: number,
    flags: number,
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    const fault = this.control.take(type, flags, id, bytes, start, end);
    if (fault !== ErrorCode.none) return this.fail(fault);
    this.soon();
  }

  /** The peer's window for new streams is another one, which counts for the open ones, too. */
  private peerWindow(sizeBytes: number): boolean {
    const more = sizeBytes - this.streamSendWindow;
    this.streamSendWindow = sizeBytes;
    let isLawful = true;
    for (const stream of this.streams.values()) {
      stream.sendWindow += more;
      if (stream.sendWindow > WINDOW_MAX_BYTES) isLawful = false;
    }
    return isLawful;
  }

  /** Sends the probe that is due; without an answer to the last one in time it is over. */
  probe(nowMs: number, intervalMs: number, timeoutMs: number): void {
    if (this.control.probe(nowMs, intervalMs, timeoutMs)) this.soon();
    else this.socket.destroy();
  }

  private takeData(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const last = unpadded(flags, bytes, start, end);
    if (id === 0 || id > this.lastStream || last < 0) return this.fail(ErrorCode.protocol);
    const first = flags & Flag.padded ? start + 1 : start;
    const flowBytes = end - start;
    this.windowLeft -= flowBytes;
    if (this.windowLeft < 0) return this.fail(ErrorCode.flowControl);
    const isLast = endsStream(flags);
    if (last > first || isLast) this.control.idle.worked();
    else if (!this.control.idle.take()) return this.fail(ErrorCode.enhanceYourCalm);
    const stream = this.streams.get(id);
    if (stream === undefined) {
      this.credit(flowBytes);
      if (!this.stopped.has(id)) this.resetUnknown(id, ErrorCode.streamClosed);
      else if (isLast) this.stopped.delete(id);
      return;
    }
    if (stream.isHalfClosed) {
      this.credit(flowBytes);
      return this.failStream(id, ErrorCode.streamClosed);
    }
    const fault = stream.receive(bytes, first, last, flowBytes, isLast);
    if (fault !== ErrorCode.none) this.failStream(id, fault);
  }

  private takeHeaders(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const last = unpadded(flags, bytes, start, end);
    if (id === 0 || last < 0) return this.fail(ErrorCode.protocol);
    let first = flags & Flag.padded ? start + 1 : start;
    if (flags & Flag.priority) {
      if (last - first < 5) return this.fail(ErrorCode.frameSize);
      first += 5;
    }
    const isLast = endsStream(flags);
    if (flags & Flag.endHeaders) return this.headers(id, bytes, first, last, isLast);
    this.block.begin(id, isLast);
    if (!this.block.add(bytes, first, last)) this.fail(ErrorCode.enhanceYourCalm);
  }

  private takeContinuation(flags: number, bytes: Buffer, start: number, end: number): void {
    const { stream, endsStream: isLast } = this.block;
    if (stream === 0) return this.fail(ErrorCode.protocol);
    if (!this.block.add(bytes, start, end)) return this.fail(ErrorCode.enhanceYourCalm);
    if ((flags & Flag.endHeaders) === 0) return;
    const whole = this.block.take();
    this.headers(stream, whole, 0, whole.length, isLast);
  }

  /** A whole header block. */
  private headers(id: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (id <= this.lastStream) return this.trailers(id, bytes, start, end, isLast);
    if (id % 2 === 0) return this.fail(ErrorCode.protocol);
    const head = new RequestHead();
    if (!this.decoder.decode(bytes, start, end, head)) return this.fail(ErrorCode.compression);
    this.lastStream = id;
    if (this.isDraining) return this.refuseStream(id);
    this.lastTaken = id;
    if (this.streams.size >= STREAMS_PER_CONNECTION_MAX) return this.refuseStream(id);
    if (head.isMalformed) return this.resetUnknown(id, ErrorCode.protocol);
    this.control.idle.worked();
    this.open(id, head, isLast);
  }

  private refuseStream(id: number): void {
    this.stopped.add(id);
    this.output.number(Frame.reset, id, ErrorCode.refusedStream);
    this.soon();
    if (!this.control.idle.take()) this.fail(ErrorCode.enhanceYourCalm);
  }

  private trailers(id: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const fields = new TrailingFields();
    if (!this.decoder.decode(bytes, start, end, fields)) return this.fail(ErrorCode.compression);
    const stream = this.streams.get(id);
    if (stream === undefined) {
      if (!this.stopped.delete(id)) this.fail(ErrorCode.streamClosed);
      return;
    }
    if (stream.isHalfClosed) return this.failStream(id, ErrorCode.streamClosed);
    if (!isLast || fields.isMalformed) return this.failStream(id, ErrorCode.protocol);
    const fault = stream.lastWord();
    if (fault === ErrorCode.none) stream.endOfRequest();
    else this.failStream(id, fault);
  }

  /** Begins a call, or says why it is none. */
  private open(id: number, head: RequestHead, isLast: boolean): void {
    const { desk } = this;
    if (!head.isGrpc || head.method?.number !== 1) {
      this.output.httpStatus(id, head.isGrpc ? 405 : 415);
      return this.stop(id, isLast);
    }
    if (head.sizeBytes > HEADERS_MAX_BYTES) {
      const text = `the headers are larger than ${HEADERS_MAX_BYTES} bytes`;
      return this.refuse(id, isLast, null, failureOf(Status.RESOURCE_EXHAUSTED, text));
    }
    const route = desk.route(head.path?.value ?? "");
    if (route === null) {
      return this.refuse(
        id,
        isLast,
        null,
        failureOf(Status.UNIMPLEMENTED, "there is no such method"),
      );
    }
    if (Number.isNaN(head.timeoutMs)) {
      return this.refuse(
        id,
        isLast,
        route,
        failureOf(Status.INTERNAL, "grpc-timeout is malformed"),
      );
    }
    const judged = desk.gate(route, head, this.socket, this.socket.remoteAddress ?? "");
    if ("code" in judged) return this.refuse(id, isLast, route, judged);
    const window = this.streamSendWindow;
    const stream = new Stream(this, id, head, route, judged, this.peer, desk, window);
    this.streams.set(id, stream);
    stream.begin();
    if (!isLast) return;
    if (stream.lastWord() !== ErrorCode.none) this.failStream(id, ErrorCode.protocol);
    else stream.endOfRequest();
  }

  private refuse(id: number, isLast: boolean, route: Route | null, failure: Failure): void {
    this.desk.refused(route, failure.code);
    this.output.failure(id, failure, true);
    this.stop(id, isLast);
  }

  /** A request that was answered before it came whole is to stop. */
  private stop(id: number, isLast: boolean): void {
    if (!isLast) {
      this.output.number(Frame.reset, id, ErrorCode.none);
      this.stopped.add(id);
    }
    this.soon();
  }

  private takeReset(id: number, size: number): void {
    if (id === 0 || id > this.lastStream) return this.fail(ErrorCode.protocol);
    if (size !== 4) return this.fail(ErrorCode.frameSize);
    // Who was told to stop may say so; one who takes back what was answered already costs as much
    // as one who takes back what was not.
    if (this.stopped.delete(id)) {
      if (!this.control.idle.take()) this.fail(ErrorCode.enhanceYourCalm);
    } else if (this.countReset()) this.streams.get(id)?.cancelled();
  }

  /** Counts a call that was taken back, or broken; false: the connection is over. */
  private countReset(): boolean {
    if (this.resets.take()) return true;
    this.owner.endedForResets();
    this.fail(ErrorCode.enhanceYourCalm);
    return false;
  }

  private takeCredit(id: number, bytes: Buffer, start: number, end: number): void {
    if (end - start !== 4) return this.fail(ErrorCode.frameSize);
    if (id > this.lastStream) return this.fail(ErrorCode.protocol);
    const size = bytes.readUInt32BE(start) & WINDOW_MAX_BYTES;
    const { sending } = this;
    if (id === 0) {
      if (size === 0) return this.fail(ErrorCode.protocol);
      sending.window += size;
      if (sending.window > WINDOW_MAX_BYTES) return this.fail(ErrorCode.flowControl);
    } else {
      if (size === 0) return this.failStream(id, ErrorCode.protocol);
      const stream = this.streams.get(id);
      if (stream === undefined) {
        if (!this.control.idle.take()) this.fail(ErrorCode.enhanceYourCalm);
        return;
      }
      stream.sendWindow += size;
      if (stream.sendWindow > WINDOW_MAX_BYTES) return this.failStream(id, ErrorCode.flowControl);
    }
    if (sending.hasWaiting) this.soon();
  }

  /** A stream breaks the protocol. */
  private failStream(id: number, code: number): void {
    const stream = this.streams.get(id);
    if (stream === undefined) return this.resetUnknown(id, code);
    if (this.countReset()) stream.reset(code);
  }

  private resetUnknown(id: number, code: number): void {
    if (!this.countReset()) return;
    this.stopped.add(id);
    this.output.number(Frame.reset, id, code);
    this.soon();
  }

  frameTooLarge(): void {
    this.fail(ErrorCode.frameSize);
  }

  notHttp2(): void {
    this.fail(ErrorCode.protocol);
  }

  /** The connection breaks the protocol. */
  private fail(code: number): void {
    if (this.isOver) return;
    this.output.goaway(this.lastTaken, code);
    this.output.flush();
    this.end();
  }

  /** Takes no new call; those that are open go on. */
  drain(): void {
    if (this.isDraining || this.isOver) return;
    this.isDraining = true;
    this.output.goaway(this.lastTaken, ErrorCode.none);
    this.soon();
  }

  /** Ends it; what was written still leaves. */
  end(): void {
    if (this.isOver) return;
    this.output.flush();
    this.reader.stop();
    this.closed();
    // What still comes is read and dropped, or the last bytes would be lost with it.
    this.socket.resume();
    this.socket.destroySoon();
    setTimeout(() => this.socket.destroy(), LAST_BYTES_MS).unref();
  }

  private closed(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.reader.stop();
    for (const stream of [...this.streams.values()]) stream.cancelled();
    this.owner.gone(this);
  }
}

/** Where the payload of a padded frame ends; -1: there is more padding than frame. */
function unpadded(flags: number, bytes: Buffer, start: number, end: number): number {
  if ((flags & Flag.padded) === 0) return end;
  const last = end - (bytes[start] ?? 0);
  return end === start || last < start + 1 ? -1 : last;
}
