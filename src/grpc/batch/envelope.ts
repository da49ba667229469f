/**
 * Reads the outer layer of a batch item: type, request id, and where its payload lies. The payload
 * is not decoded here.
 *
 * One scanner serves all items of a stream, so that an item costs
 * no allocation. Invariants: 1. Reading an item never goes beyond its end. 2. Of several payloads
 * the last counts, as with any oneof. 3. A frame is a payload like any other: what is inside is
 * read item by item, never as a whole.
 */
import type { ProtoReader } from "../../proto/codec.js";

const VARINT = 0;
const LENGTH_DELIMITED = 2;
const TYPE_FIELD = 1;
const REQUEST_ID_FIELD = 2;
const HOPS_FIELD = 7;
/** Field number of the items inside a frame. */
const ITEMS_FIELD = 1;
export const NO_ITEM = -1;
export const NOT_A_FRAME = -2;

export class EnvelopeScanner {
  type = 0;
  requestId = 0;
  /** Field 7 as a number: the hops of an item between servers. */
  hops = 0;
  /** Field number of the payload, 0 = none. */
  payloadField = 0;
  payloadStart = 0;
  payloadEnd = 0;
  private readonly payloadFields: number;

  /**
   * `payloadFields`: bit n is set when field n is a payload of this stream; other fields are
   * unknown and skipped.
   */
  constructor(payloadFields: number) {
    this.payloadFields = payloadFields;
  }

  /**
   * Reads one item in [reader.pos, end). Leaves the reader at `end`. False when the bytes are not
   * such a message.
   */
  scan(reader: ProtoReader, end: number): boolean {
    this.type = 0;
    this.requestId = 0;
    this.hops = 0;
    this.payloadField = 0;
    const whole = reader.len;
    reader.len = end;
    try {
      while (reader.pos < end) this.field(reader, end);
    } catch {
      return false;
    } finally {
      reader.len = whole;
    }
    return reader.pos === end;
  }

  private field(reader: ProtoReader, end: number): void {
    const tag = reader.tag();
    const number = tag >>> 3;
    const wireType = tag & 7;
    if (wireType === LENGTH_DELIMITED && number < 32 && (this.payloadFields >>> number) & 1) {
      const size = reader.size();
      if (size > end - reader.pos) throw new RangeError("a payload ends inside its item");
      this.payloadField = number;
      this.payloadStart = reader.pos;
      reader.pos += size;
      this.payloadEnd = reader.pos;
    } else if (wireType === VARINT && number === TYPE_FIELD) {
      this.type = reader.int32();
    } else if (wireType === VARINT && number === REQUEST_ID_FIELD) {
      this.requestId = reader.int32();
    } else if (wireType === VARINT && number === HOPS_FIELD) {
      this.hops = reader.int32();
    } else {
      reader.skipType(wireType, 0, number);
    }
  }

  /**
   * Moves the reader from inside a frame that ends at `frameEnd` to the next item and returns the
   * item's end, or NO_ITEM when none is left, or NOT_A_FRAME.
   */
  nextItem(reader: ProtoReader, frameEnd: number): number {
    const whole = reader.len;
    reader.len = frameEnd;
    try {
      while (reader.pos < frameEnd) {
        const tag = reader.tag();
        if (tag !== ((ITEMS_FIELD << 3) | LENGTH_DELIMITED)) {
          reader.skipType(tag & 7, 0, tag >>> 3);
          continue;
        }
        const size = reader.size();
        return size > frameEnd - reader.pos ? NOT_A_FRAME : reader.pos + size;
      }
    } catch {
      return NOT_A_FRAME;
    } finally {
      reader.len = whole;
    }
    return reader.pos === frameEnd ? NO_ITEM : NOT_A_FRAME;
  }
}
