/**
 * Writes items of a batch stream, alone or as one frame, into one reused buffer.
 *
 * Owns its writer. Invariants: 1. What is handed out is a copy of complete items. 2. A large buffer
 * is not kept.
 */
import { ProtoWriter } from "../../proto/codec.js";
import type { Operation, StreamPlace } from "../call/operation.js";

const ITEM_TAG = 10;
const TYPE_TAG = 8;
const REQUEST_ID_TAG = 16;
const FRAME_TYPE = 15;
const FRAME_TAG = (17 << 3) | 2;
/** Room for a frame's own header: its type (2 bytes), tag (2) and length (at most 5). */
const HEADER_BYTES = 9;
const WRITER_KEPT_BYTES = 256 * 1024;
const WRITER_FIRST_BYTES = 4096;

export class FrameWriter {
  private writer = new ProtoWriter(WRITER_FIRST_BYTES).skip(HEADER_BYTES);
  private lastStart = HEADER_BYTES;
  /** Items since the last take. */
  items = 0;

  /** Bytes of the items since the last take. */
  get sizeBytes(): number {
    return this.writer.sizeBytes - HEADER_BYTES;
  }

  /**
   * Adds an item; returns its size in bytes. Throws what the operation throws while it is written;
   * the items before it are kept.
   */
  add(
    requestId: number,
    operation: Operation<unknown, unknown, unknown>,
    request: unknown,
  ): number {
    const { type, field } = operation.stream as StreamPlace;
    return this.addRaw(requestId, type, field, (writer) => operation.write(request, writer));
  }

  /** As `add`, with a payload that `write` writes. */
  addRaw(
    requestId: number,
    type: number,
    field: number,
    write: (writer: ProtoWriter) => void,
  ): number {
    const { writer } = this;
    const start = writer.sizeBytes;
    try {
      writer.uint32(ITEM_TAG).fork();
      writer.uint32(TYPE_TAG).int32(type).uint32(REQUEST_ID_TAG).int32(requestId);
      writer.uint32((field << 3) | 2).fork();
      write(writer);
      writer.ldelim().ldelim();
    } catch (error) {
      writer.abandon(start);
      throw error;
    }
    this.lastStart = start;
    this.items += 1;
    return writer.sizeBytes - this.lastStart;
  }

  /** Takes the last item back. */
  dropLast(): void {
    this.writer.truncate(this.lastStart);
    this.items -= 1;
  }

  /** The only item, as a message of its own. */
  takeItem(): Buffer {
    // Its tag and length are those of a list element: the message is what they enclose.
    const bytes = this.writer.view(this.lastStart);
    let start = 1;
    while (((bytes[start] as number) & 0x80) !== 0) start += 1;
    const message = Buffer.from(bytes.subarray(start + 1));
    this.restart();
    return message;
  }

  /** All items as one frame. Its header is written backwards, into the room before them. */
  takeFrame(): Buffer {
    const { writer } = this;
    let start = writer.prependVarint(this.sizeBytes, HEADER_BYTES);
    start = writer.prependVarint(FRAME_TAG, start);
    start = writer.prependVarint(FRAME_TYPE, start);
    start = writer.prependVarint(TYPE_TAG, start);
    const frame = writer.copy(start, writer.sizeBytes);
    this.restart();
    return frame;
  }

  private restart(): void {
    this.items = 0;
    if (this.writer.capacityBytes > WRITER_KEPT_BYTES) {
      this.writer = new ProtoWriter(WRITER_FIRST_BYTES).skip(HEADER_BYTES);
    } else {
      this.writer.truncate(HEADER_BYTES);
    }
  }
}
