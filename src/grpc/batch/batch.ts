/**
 * One batch stream: items in, exactly one answer each out, in any order.
 *
 * Owns the items of its stream that are being read or in flight. Invariants: 1. At most
 * `maxInflightPerStream` items are in flight, and of reads only as many as their answers leave room
 * for; beyond that, and while the peer does not take the answers, the stream is not read. 2. A
 * frame is read item by item, never decoded as a whole, and never more than ITEMS_PER_TURN items
 * without giving others a turn. 3. After half-close the stream ends when the last answer is out. 4.
 * An item that is malformed inside gets InvalidInput; only an unreadable envelope ends the stream.
 */
import { assert } from "../../base/assert.js";
import { FRAME_ITEMS_MAX, FRAME_MAX_BYTES, LOCK_STREAM_WAITS_MAX } from "../../base/limits.js";
import {
  type DataAnswer,
  type DataRequest,
  ItemContext,
  type RequestContext,
  type WaitControl,
  isWaiting,
} from "../../operations/api/requests.js";
import { type TraceParent, traceOf } from "../../operations/api/tracing.js";
import { protoReader, type ProtoReader } from "../../proto/codec.js";
import { GrpcCancelWaitRequest } from "../../proto/generated/locks.js";
import { allows } from "../h2/access.js";
import type { Call, CallHandler } from "../h2/call.js";
import { Status } from "../h2/constants.js";
import { failureOf } from "../h2/failure.js";
import { answerSizeBytes, LARGE_ANSWER_BYTES } from "../calls/answer-size.js";
import { BatchOutput, FRAME_FIELD, FRAME_TYPE } from "./batch-output.js";
import { EnvelopeScanner, NOT_A_FRAME, NO_ITEM } from "./envelope.js";
import type { BatchOperation, BatchStreamKind } from "../calls/method.js";
import { ReadAhead } from "./read-ahead.js";
import { malformedRequest, type Flushable, type GrpcRuntime } from "../calls/runtime.js";

const ITEMS_PER_TURN = 1024;

/** Payload fields of a stream as bits, for the scanner. */
function payloadFields(kind: BatchStreamKind): number {
  let bits = kind.frames ? 1 << FRAME_FIELD : 0;
  if (kind.cancel !== null) bits |= 1 << kind.cancel.field;
  for (const operation of kind.operations.values()) bits |= 1 << operation.requestField;
  return bits;
}

export class BatchStream implements Flushable, CallHandler {
  private readonly runtime: GrpcRuntime;
  private readonly kind: BatchStreamKind;
  private readonly call: Call;
  private readonly output: BatchOutput;
  private readonly ahead = new ReadAhead();
  private readonly scanner: EnvelopeScanner;
  private readonly streamHops: number;
  private readonly streamRequestId: string;
  /** Of all its items. */
  private readonly trace: TraceParent | null;
  private readonly onClosed: (stream: BatchStream) => void;

  /** The message being read; null = none. */
  private reader: ProtoReader | null = null;
  /** Inside a frame: where it began and ends, and how many of its items were read. */
  private frameStart = 0;
  private frameEnd = 0;
  private frameItems = 0;
  private inFrame = false;

  private inflight = 0;
  /** Items that may wait: the newest of each request id, and those whose id a newer one has. */
  private readonly waitsById = new Map<number, WaitControl>();
  private readonly olderWaits = new Set<WaitControl>();
  private waiting = 0;
  /** Items taken so far: an item is named by the id of its stream and its number. */
  private items = 0;
  private flushAsked = false;
  /** When the first answer of this turn came (-1: none yet): one look at the clock times all. */
  private answeredMs = -1;
  private isHalfClosed = false;
  private closed = false;

  constructor(
    runtime: GrpcRuntime,
    kind: BatchStreamKind,
    call: Call,
    onClosed: (stream: BatchStream) => void,
  ) {
    this.runtime = runtime;
    this.kind = kind;
    this.call = call;
    this.onClosed = onClosed;
    this.scanner = new EnvelopeScanner(payloadFields(kind));
    this.streamHops = call.head.forwardHops;
    this.streamRequestId = runtime.requestId(call.head);
    this.trace = traceOf(call.head.traceparent)?.parent ?? null;
    this.output = new BatchOutput(call, runtime.large, () => {
      if (this.reader !== null || this.isHalfClosed) this.askFlush();
    });
  }

  message(bytes: Buffer): void {
    assert(this.reader === null, "the next message is read when the last one is done");
    if (this.closed) return;
    this.reader = protoReader(bytes);
    this.inFrame = false;
    this.pump();
  }

  halfClosed(): void {
    this.isHalfClosed = true;
    this.endWhenDone();
  }

  taken(sizeBytes: number): void {
    this.output.taken(sizeBytes);
  }

  gone(): void {
    this.output.close();
    this.close();
  }

  /** Reads no further message; what was read is answered, then the stream ends with OK. */
  drain(): void {
    this.isHalfClosed = true;
    this.call.pause();
    this.endWhenDone();
  }

  /** At the end of a turn: sends the answers of the turn and goes on reading. */
  flush(): void {
    this.flushAsked = false;
    this.answeredMs = -1;
    if (this.closed) return;
    this.output.flush();
    this.pump();
    this.endWhenDone();
  }

  private askFlush(): void {
    if (this.flushAsked) return;
    this.flushAsked = true;
    this.runtime.flushSoon(this);
  }

  /** Reads items of the current message until it is done or a bound is reached. */
  private pump(): void {
    const nowMs = this.runtime.nowMs();
    let count = 0;
    while (this.reader !== null && !this.closed && count < ITEMS_PER_TURN && this.hasRoom()) {
      if (!this.readItem(this.reader, nowMs)) break;
      count += 1;
    }
    if (this.closed) return;
    if (this.output.waiting || count === ITEMS_PER_TURN) this.askFlush();
    // With room used up, an answer, or the transport taking one, has this read on.
    if (this.reader !== null) this.call.pause();
    else if (!this.isHalfClosed) this.call.resume();
  }

  private hasRoom(): boolean {
    const { maxInflightPerStream } = this.runtime.options;
    return this.inflight < maxInflightPerStream && !this.output.isBehind;
  }

  /**
   * Reads one item: the message itself, or the next one of the frame that it holds. False: the item
   * is to be read again, when there is room for its answer.
   */
  private readItem(reader: ProtoReader, nowMs: number): boolean {
    const start = reader.pos;
    if (!this.inFrame) {
      const readable = this.scanner.scan(reader, reader.len);
      if (!readable) return this.fail();
      if (this.kind.frames && this.scanner.type === FRAME_TYPE) return this.enterFrame(reader);
      if (!this.hasRoomForAnswer()) {
        reader.pos = start;
        return false;
      }
      this.reader = null;
      this.take(reader, nowMs, false);
      return true;
    }
    const end = this.scanner.nextItem(reader, this.frameEnd);
    if (end === NOT_A_FRAME) return this.fail();
    if (end === NO_ITEM) {
      this.reader = null;
      return true;
    }
    if (!this.scanner.scan(reader, end)) return this.fail();
    if (!this.hasRoomForAnswer()) {
      reader.pos = start;
      return false;
    }
    this.frameItems += 1;
    const beyond = this.frameItems > FRAME_ITEMS_MAX || end - this.frameStart > FRAME_MAX_BYTES;
    this.take(reader, nowMs, beyond);
    reader.pos = end;
    return true;
  }

  /** Whether the scanned item may begin now: for what it may be answered with there is room. */
  private hasRoomForAnswer(): boolean {
    const operation = this.kind.operations.get(this.scanner.type);
    if (operation === undefined || operation.method.extent === "small") return true;
    const expectedBytes = this.ahead.expectedBytes(operation.method.extent);
    return this.ahead.admits(expectedBytes, this.output.waitingBytes);
  }

  private enterFrame(reader: ProtoReader): boolean {
    const { payloadField, payloadStart, payloadEnd, type, requestId } = this.scanner;
    if (payloadField !== FRAME_FIELD) {
      this.reader = null;
      this.output.echo(type, requestId);
      return true;
    }
    this.output.useFrames();
    this.inFrame = true;
    this.frameItems = 0;
    this.frameStart = payloadStart;
    this.frameEnd = payloadEnd;
    reader.pos = payloadStart;
    return true;
  }

  /** Answers or begins the scanned item. `beyond`: outside the bounds of its frame. */
  private take(reader: ProtoReader, nowMs: number, beyond: boolean): void {
    const { type, requestId, payloadField, payloadStart, payloadEnd, hops } = this.scanner;
    this.items += 1;
    const operation = this.kind.operations.get(type);
    const { cancel } = this.kind;
    if (cancel?.type === type && cancel.field === payloadField) {
      return this.cancelWait(reader, payloadStart, payloadEnd, beyond);
    }
    if (operation === undefined || operation.requestField !== payloadField) {
      this.output.echo(type, requestId);
      return;
    }
    if (!allows(this.call.caller.role, operation.method.role)) {
      this.refuse(Status.PERMISSION_DENIED, "the role of the caller does not allow this item");
      return;
    }
    const request = readRequest(operation, reader, payloadStart, payloadEnd);
    const { kind } = operation.method;
    const { operations, large } = this.runtime;
    if (request === null) {
      const answer = operations.invalidInput(kind);
      this.output.answer(type, requestId, operation, answer, null, 0);
    } else if (beyond || large.unsent.isFull || !this.hasPlace(request)) {
      const answer = operations.mustRetry(kind, beyond ? null : "overloaded");
      this.output.answer(type, requestId, operation, answer, request, 0);
    } else {
      const context = this.contextOf(nowMs, hops, isWaiting(request) ? (request.waitMs ?? 0) : 0);
      this.execute(type, requestId, operation, request, context, nowMs);
    }
  }

  /** Those that wait are counted apart: the holder's release comes by this very stream (P-181). */
  private hasPlace(request: DataRequest): boolean {
    return !isWaiting(request) || this.waiting < LOCK_STREAM_WAITS_MAX;
  }

  private cancelWait(reader: ProtoReader, start: number, end: number, beyond: boolean): void {
    const { type, requestId } = this.scanner;
    const { cancel } = this.kind;
    assert(cancel !== null, "the stream has items that wait");
    const named = readCancelled(reader, start, end);
    if (named === null || beyond) return this.output.echo(type, requestId);
    const isCancelled = this.waitsById.get(named)?.leave("cancelled") === true;
    this.output.cancelled(type, requestId, cancel.field, isCancelled);
    this.askFlush();
  }

  private contextOf(nowMs: number, itemHops: number, waitMs: number): RequestContext {
    const boundMs = this.runtime.options.requestTimeoutMs + waitMs;
    const deadlineMs = Math.min(this.call.deadlineMs, nowMs + boundMs);
    const hops = this.kind.forwarded ? Math.max(1, itemHops, this.streamHops) : this.streamHops;
    const { limited } = this.call.caller;
    return new ItemContext(deadlineMs, hops, this.streamRequestId, this.items, limited, this.trace);
  }

  private execute(
    type: number,
    requestId: number,
    operation: BatchOperation,
    request: DataRequest,
    context: RequestContext,
    startedMs: number,
  ): void {
    const { extent } = operation.method;
    const isSmall = extent === "small";
    const expectedBytes = isSmall ? 0 : this.ahead.expectedBytes(extent);
    if (!isSmall) this.ahead.reserve(expectedBytes);
    const waits = isWaiting(request);
    if (waits) this.waiting += 1;
    else this.inflight += 1;
    const wait = this.runtime.operations.execute(request, context, (answer: DataAnswer) => {
      const { kind, path } = operation.method;
      if (waits) this.waiting -= 1;
      else this.inflight -= 1;
      if (wait !== null) this.forgetWait(requestId, wait);
      const sizeBytes = isSmall ? 0 : answerSizeBytes(answer);
      if (!isSmall) this.ahead.settle(extent, expectedBytes, sizeBytes);
      if (this.answeredMs < 0) this.answeredMs = this.runtime.nowMs();
      const elapsedMs = Math.max(0, this.answeredMs - startedMs);
      this.runtime.options.onAnswer?.(path, answer.type, elapsedMs);
      if (this.closed) return;
      if (answer.refusal === "not-available-at-level") {
        this.output.echo(type, requestId);
      } else if (sizeBytes < LARGE_ANSWER_BYTES) {
        this.output.answer(type, requestId, operation, answer, request, elapsedMs);
      } else if (
        !this.output.hold({ type, requestId, operation, answer, request, elapsedMs }, sizeBytes)
      ) {
        // Only reads have large answers, so nothing was done that this refusal denies.
        const refused = this.runtime.operations.mustRetry(kind, "overloaded");
        this.output.answer(type, requestId, operation, refused, request, elapsedMs);
      }
      this.askFlush();
    });
    if (wait === null) return;
    const older = this.waitsById.get(requestId);
    if (older !== undefined) this.olderWaits.add(older);
    this.waitsById.set(requestId, wait);
  }

  private forgetWait(requestId: number, wait: WaitControl): void {
    if (this.waitsById.get(requestId) === wait) this.waitsById.delete(requestId);
    else this.olderWaits.delete(wait);
  }

  private endWhenDone(): void {
    if (!this.isHalfClosed || this.closed || this.reader !== null) return;
    if (this.inflight + this.waiting > 0 || this.output.holds) return;
    this.output.flush();
    this.close();
    this.call.end();
  }

  private fail(): true {
    this.output.flush();
    this.close();
    this.call.fail(malformedRequest());
    return true;
  }

  private refuse(code: number, details: string): void {
    this.output.flush();
    this.close();
    this.call.fail(failureOf(code, details));
  }

  private close(): void {
    if (this.closed) return;
    this.closed = true;
    this.reader = null;
    this.leaveWaits();
    this.onClosed(this);
  }

  /** Nobody hears of them any more. Whose connection broke may come back by another (Q8). */
  private leaveWaits(): void {
    const waits = [...this.olderWaits, ...this.waitsById.values()];
    if (waits.length === 0) return;
    const isLost = this.call.isLost;
    for (const wait of waits) wait.leave(isLost ? "left" : "cancelled");
    this.olderWaits.clear();
    this.waitsById.clear();
  }
}

/** The request id that a cancel item names; null when the payload is no such message. */
function readCancelled(reader: ProtoReader, start: number, end: number): number | null {
  const whole = reader.len;
  reader.pos = start;
  try {
    return GrpcCancelWaitRequest.decode(reader, end - start).RequestId;
  } catch {
    return null;
  } finally {
    reader.len = whole;
  }
}

/** The request of an item's payload, or null when the payload is not such a message. */
function readRequest(
  operation: BatchOperation,
  reader: ProtoReader,
  start: number,
  end: number,
): DataRequest | null {
  const whole = reader.len;
  reader.pos = start;
  try {
    return operation.method.read(reader, end - start);
  } catch {
    return null;
  } finally {
    // A decoder that fails midway leaves its own bounds behind.
    reader.len = whole;
  }
}
