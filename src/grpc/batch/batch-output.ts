/**
 * The answers of one batch stream on their way out: encoded as they come, sent at the end of the
 * turn.
 *
 * Owns the stream's writer. Invariants: 1. In frame mode a message holds at most 256 items and 1
 * MiB, a single larger item excepted. 2. What is handed to the call is in the writer, which is used
 * again: the call copies what it cannot send at once. 3. Bytes that the transport has not taken yet
 * are counted, for this stream and for the node, so that a reader that stops reading stops being
 * read from. 4. A large answer waits as it is, and is encoded when the transport has taken what
 * came before (P-200).
 */
import { FRAME_ITEMS_MAX, FRAME_MAX_BYTES, HTTP_SILENCE_MS } from "../../base/limits.js";
import type { LargeAnswers } from "../calls/large-answers.js";
import type { Call } from "../h2/call.js";
import { ProtoWriter } from "../../proto/codec.js";
import type { DataAnswer, DataRequest } from "../../operations/api/requests.js";
import { GrpcCancelWaitResponse } from "../../proto/generated/locks.js";
import type { BatchOperation } from "../calls/method.js";

/** Every batch stream has its frames under this type and field. */
export const FRAME_TYPE = 15;
export const FRAME_FIELD = 17;

const ITEM_TAG = (1 << 3) | 2;
const TYPE_TAG = 1 << 3;
const REQUEST_ID_TAG = 2 << 3;
const FRAME_TAG = (FRAME_FIELD << 3) | 2;
/** Room for a frame's own header: its type (2 bytes), tag (2) and length (at most 5). */
const HEADER_BYTES = 9;
const WRITER_KEPT_BYTES = 256 * 1024;
/** Encoded answers beyond which no large one is encoded, and the stream is not read (bytes). */
const UNSENT_MAX_BYTES = 1024 * 1024;
/** Large answers that may wait as they are (bytes). */
const HELD_MAX_BYTES = 32 * 1024 * 1024;

/** A large answer to one item. */
export interface ItemAnswer {
  readonly type: number;
  readonly requestId: number;
  readonly operation: BatchOperation;
  readonly answer: DataAnswer;
  readonly request: DataRequest;
  readonly elapsedMs: number;
}

interface HeldAnswer {
  readonly item: ItemAnswer;
  readonly sizeBytes: number;
}

export class BatchOutput {
  private readonly call: Call;
  private readonly large: LargeAnswers;
  private readonly onSent: () => void;
  private writer = new ProtoWriter(1024).skip(HEADER_BYTES);
  private items = 0;
  private frames = false;
  private closed = false;
  /** Large answers that are not encoded, oldest first. */
  private held: HeldAnswer[] = [];
  private heldBytes = 0;
  private encoding = false;
  /** Bytes given to the stream that the transport has not taken. */
  private unsentBytes = 0;
  /** Runs out when large answers wait and nothing moves. */
  private silence: NodeJS.Timeout | null = null;

  /** `onSent`: called when the transport took something, and when a held answer was encoded. */
  constructor(call: Call, large: LargeAnswers, onSent: () => void) {
    this.call = call;
    this.large = large;
    this.onSent = onSent;
  }

  /** Bytes of answers that wait for the peer. */
  get waitingBytes(): number {
    return this.unsentBytes + this.heldBytes;
  }

  /** True when the peer is so far behind that nothing more is to be begun for it. */
  get isBehind(): boolean {
    return this.waitingBytes > UNSENT_MAX_BYTES;
  }

  get holds(): boolean {
    return this.held.length > 0;
  }

  /** From now on answers travel in frames. */
  useFrames(): void {
    this.frames = true;
  }

  /** True when answers wait for `flush`. */
  get waiting(): boolean {
    return this.items > 0;
  }

  /**
   * Takes a large answer, to be encoded when there is room. False: too many wait already, and it is
   * not to be sent.
   */
  hold(item: ItemAnswer, sizeBytes: number): boolean {
    const { unsent } = this.large;
    if (this.heldBytes > 0 && this.heldBytes + sizeBytes > HELD_MAX_BYTES) return false;
    if (!unsent.admits(sizeBytes)) return false;
    unsent.take(sizeBytes);
    this.heldBytes += sizeBytes;
    this.held.push({ item, sizeBytes });
    this.silence ??= setTimeout(() => this.call.cut(), HTTP_SILENCE_MS);
    this.encodeHeld();
    return true;
  }

  /** Has the oldest held answer encoded, unless the transport still has enough. */
  private encodeHeld(): void {
    const [first] = this.held;
    if (first === undefined || this.encoding || this.unsentBytes > UNSENT_MAX_BYTES) return;
    this.encoding = true;
    this.large.encodeLater(first.sizeBytes, () => {
      this.encoding = false;
      if (this.closed) return;
      this.held.shift();
      this.heldBytes -= first.sizeBytes;
      this.large.unsent.give(first.sizeBytes);
      const { type, requestId, operation, answer, request, elapsedMs } = first.item;
      this.answer(type, requestId, operation, answer, request, elapsedMs);
      this.flush();
      this.encodeHeld();
      this.onSent();
    });
  }

  /** The answer to an item. */
  answer(
    type: number,
    requestId: number,
    operation: BatchOperation,
    answer: DataAnswer,
    request: DataRequest | null,
    elapsedMs: number,
  ): void {
    const start = this.begin(type, requestId);
    this.writer.uint32((operation.responseField << 3) | 2).fork();
    operation.method.write(answer, request, elapsedMs, this.writer);
    this.writer.ldelim();
    this.complete(start);
  }

  /** The answer to an item that is not served: same type and request id, no payload. */
  echo(type: number, requestId: number): void {
    this.complete(this.begin(type, requestId));
  }

  /** The answer to an item that ends the wait of another one. */
  cancelled(type: number, requestId: number, field: number, isCancelled: boolean): void {
    const start = this.begin(type, requestId);
    this.writer.uint32((field << 3) | 2).fork();
    GrpcCancelWaitResponse.encode({ Cancelled: isCancelled }, this.writer);
    this.writer.ldelim();
    this.complete(start);
  }

  private begin(type: number, requestId: number): number {
    const start = this.writer.sizeBytes;
    if (this.frames) this.writer.uint32(ITEM_TAG).fork();
    if (type !== 0) this.writer.uint32(TYPE_TAG).int32(type);
    if (requestId !== 0) this.writer.uint32(REQUEST_ID_TAG).int32(requestId);
    return start;
  }

  private complete(start: number): void {
    if (!this.frames) {
      this.send(this.writer.view(start));
      this.restart();
      return;
    }
    this.writer.ldelim();
    if (this.items > 0 && this.writer.sizeBytes - HEADER_BYTES > FRAME_MAX_BYTES) {
      this.sendFrame(start);
      this.writer.moveDown(start, HEADER_BYTES);
      this.items = 0;
    }
    this.items += 1;
    if (this.items === FRAME_ITEMS_MAX) this.flush();
  }

  /** Sends what waits. */
  flush(): void {
    if (this.items === 0) return;
    this.sendFrame(this.writer.sizeBytes);
    this.restart();
  }

  private restart(): void {
    this.items = 0;
    if (this.writer.capacityBytes > WRITER_KEPT_BYTES) {
      this.writer = new ProtoWriter(1024).skip(HEADER_BYTES);
    } else {
      this.writer.truncate(HEADER_BYTES);
    }
  }

  /**
   * Sends the items before `end` as one frame. Its header is written backwards, into the room
   * before the items.
   */
  private sendFrame(end: number): void {
    let start = this.writer.prependVarint(end - HEADER_BYTES, HEADER_BYTES);
    start = this.writer.prependVarint(FRAME_TAG, start);
    start = this.writer.prependVarint(FRAME_TYPE, start);
    start = this.writer.prependVarint(TYPE_TAG, start);
    this.send(this.writer.view(start).subarray(0, end - start));
  }

  private send(message: Uint8Array): void {
    if (this.closed || this.call.send(message)) return;
    this.unsentBytes += message.length;
    this.large.unsent.take(message.length);
  }

  /** The transport took so many bytes that it could not take when they were sent. */
  taken(sizeBytes: number): void {
    if (this.closed) return;
    this.unsentBytes -= sizeBytes;
    this.large.unsent.give(sizeBytes);
    if (this.waitingBytes > 0) this.silence?.refresh();
    else this.endSilence();
    this.encodeHeld();
    this.onSent();
  }

  private endSilence(): void {
    if (this.silence !== null) clearTimeout(this.silence);
    this.silence = null;
  }

  /** The stream is gone: nothing waits for it any more. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.endSilence();
    this.large.unsent.give(this.waitingBytes);
    this.held = [];
    this.heldBytes = this.unsentBytes = 0;
  }
}
