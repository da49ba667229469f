/**
 * The answers of one batch stream on their way out: encoded as they come, sent at the end of the
 * turn.
 *
 * Owns the stream's writer. Invariants: 1. In frame mode a message holds at most 256 items and 1
 * MiB, a single larger item excepted. 2. What is handed to the stream is a copy; the writer is used
 * again. 3. Bytes that the transport has not taken yet are counted, so that a reader that stops
 * reading stops being read from.
 */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { FRAME_ITEMS_MAX, FRAME_MAX_BYTES } from "../base/limits.js";
import { ProtoWriter } from "../proto/codec.js";
import type { DataAnswer, DataRequest } from "../operations/requests.js";
import type { BatchOperation } from "./method.js";

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

export class BatchOutput {
  private readonly call: ServerDuplexStream<Buffer, Buffer>;
  private readonly onSent: () => void;
  private writer = new ProtoWriter(1024).skip(HEADER_BYTES);
  private items = 0;
  private frames = false;
  private closed = false;
  /** Bytes given to the stream that the transport has not taken. */
  unsentBytes = 0;

  constructor(call: ServerDuplexStream<Buffer, Buffer>, onSent: () => void) {
    this.call = call;
    this.onSent = onSent;
  }

  /** From now on answers travel in frames. */
  useFrames(): void {
    this.frames = true;
  }

  /** True when answers wait for `flush`. */
  get waiting(): boolean {
    return this.items > 0;
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

  private begin(type: number, requestId: number): number {
    const start = this.writer.sizeBytes;
    if (this.frames) this.writer.uint32(ITEM_TAG).fork();
    if (type !== 0) this.writer.uint32(TYPE_TAG).int32(type);
    if (requestId !== 0) this.writer.uint32(REQUEST_ID_TAG).int32(requestId);
    return start;
  }

  private complete(start: number): void {
    if (!this.frames) {
      this.send(this.writer.copy(start, this.writer.sizeBytes));
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
    this.send(this.writer.copy(start, end));
  }

  private send(message: Buffer): void {
    if (this.closed) return;
    this.unsentBytes += message.length;
    this.call.write(message, () => {
      this.unsentBytes -= message.length;
      this.onSent();
    });
  }

  /** Nothing is sent any more. */
  close(): void {
    this.closed = true;
  }
}
