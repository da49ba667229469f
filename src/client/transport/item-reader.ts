/**
 * Reads messages of a batch stream item by item, framed or not.
 *
 * Owns the fields of the item that it read last. Invariants: 1. What is no valid message throws. 2.
 * An item without payload has the payload field 0.
 */
import { protoReader, type ProtoReader } from "../../proto/codec.js";

const FRAME_TYPE = 15;
const FRAME_FIELD = 17;
const TYPE_TAG = 8;
const REQUEST_ID_TAG = 16;
const ITEM_TAG = 10;
const DATA = 2;

export class ItemReader {
  requestId = 0;
  /** Field number of the payload; 0 = there is none. */
  payloadField = 0;
  payloadStart = 0;
  payloadEnd = 0;
  private type = 0;

  /** Calls `deliver` for each item of `message`; the fields here describe it. */
  read(message: Buffer, deliver: (reader: ProtoReader) => void): void {
    const reader = protoReader(message);
    this.scan(reader, message.length);
    if (this.type !== FRAME_TYPE || this.payloadField !== FRAME_FIELD) return deliver(reader);
    const frameEnd = this.payloadEnd;
    reader.pos = this.payloadStart;
    while (reader.pos < frameEnd) {
      const tag = reader.uint32();
      if (tag !== ITEM_TAG) {
        reader.skipType(tag & 7);
        continue;
      }
      const sizeBytes = reader.uint32();
      const itemEnd = reader.pos + sizeBytes;
      this.scan(reader, itemEnd);
      deliver(reader);
      reader.pos = itemEnd;
    }
  }

  /** Reads type, request id and place of the payload of one item. */
  private scan(reader: ProtoReader, end: number): void {
    this.type = 0;
    this.requestId = 0;
    this.payloadField = 0;
    while (reader.pos < end) {
      const tag = reader.uint32();
      if (tag === TYPE_TAG) {
        this.type = reader.int32();
      } else if (tag === REQUEST_ID_TAG) {
        this.requestId = reader.int32();
      } else if ((tag & 7) === DATA) {
        const sizeBytes = reader.uint32();
        this.payloadField = tag >>> 3;
        this.payloadStart = reader.pos;
        reader.pos += sizeBytes;
        this.payloadEnd = reader.pos;
      } else {
        reader.skipType(tag & 7);
      }
    }
  }
}
