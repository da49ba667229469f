/**
 * Header blocks of one connection, decoded (HPACK, RFC 7541).
 *
 * Owns the dynamic table. Invariants: 1. The table never holds more than TABLE_MAX_BYTES. 2. A
 * block that is no such code is refused as a whole, and the connection with it: the table is then
 * not what the peer believes. 3. Nothing outside the block is read.
 */
import { Field, type FieldSink } from "./fields.js";
import { decodeHuffman } from "./huffman.js";
import { STATIC_TABLE } from "./static-table.js";

/** What every peer may use without a word, and what we leave it at. */
const TABLE_MAX_BYTES = 4096;
/** Numbers are lengths and places: more than this is none. */
const NUMBER_MAX = 1 << 24;

const STATIC_FIELDS = STATIC_TABLE.map(([name, value]) => new Field(name, value));

export class HpackDecoder {
  /** Oldest first. */
  private table: Field[] = [];
  private tableBytes = 0;
  private maxBytes = TABLE_MAX_BYTES;
  private at = 0;

  /** Hands the fields of bytes[start, end) to `sink`. False: the block is malformed. */
  decode(bytes: Buffer, start: number, end: number, sink: FieldSink): boolean {
    this.at = start;
    let mayResize = true;
    while (this.at < end) {
      const first = bytes[this.at] ?? 0;
      if ((first & 0xe0) === 0x20) {
        const size = this.number(bytes, end, 5);
        if (!mayResize || size < 0 || size > TABLE_MAX_BYTES) return false;
        this.maxBytes = size;
        this.evict();
        continue;
      }
      mayResize = false;
      const field = this.field(first, bytes, end);
      if (field === null) return false;
      sink.take(field);
    }
    return true;
  }

  private field(first: number, bytes: Buffer, end: number): Field | null {
    if (first & 0x80) return this.known(this.number(bytes, end, 7));
    const entersTable = (first & 0x40) !== 0;
    const place = this.number(bytes, end, entersTable ? 6 : 4);
    if (place < 0) return null;
    const name = place === 0 ? this.text(bytes, end) : (this.known(place)?.name ?? null);
    if (name === null) return null;
    const value = this.text(bytes, end);
    if (value === null) return null;
    const field = new Field(name, value);
    if (entersTable) this.add(field);
    return field;
  }

  private known(place: number): Field | null {
    if (place <= 0) return null;
    if (place <= STATIC_FIELDS.length) return STATIC_FIELDS[place - 1] ?? null;
    return this.table[this.table.length - (place - STATIC_FIELDS.length)] ?? null;
  }

  /** A number whose first bits are in the byte at `at`; -1 when it is none. */
  private number(bytes: Buffer, end: number, prefixBits: number): number {
    if (this.at >= end) return -1;
    const mask = (1 << prefixBits) - 1;
    let value = (bytes[this.at++] ?? 0) & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      if (this.at >= end) return -1;
      const byte = bytes[this.at++] ?? 0;
      value += (byte & 127) << shift;
      if (byte < 128) return value > NUMBER_MAX ? -1 : value;
    }
    return -1;
  }

  private text(bytes: Buffer, end: number): string | null {
    const isCoded = ((bytes[this.at] ?? 0) & 0x80) !== 0;
    const size = this.number(bytes, end, 7);
    const start = this.at;
    if (size < 0 || size > end - start) return null;
    this.at += size;
    if (isCoded) return decodeHuffman(bytes, start, this.at);
    return bytes.toString("latin1", start, this.at);
  }

  private add(field: Field): void {
    this.table.push(field);
    this.tableBytes += field.sizeBytes;
    this.evict();
  }

  private evict(): void {
    let gone = 0;
    while (this.tableBytes > this.maxBytes) {
      this.tableBytes -= this.table[gone]?.sizeBytes ?? 0;
      gone += 1;
    }
    if (gone > 0) this.table.splice(0, gone);
  }
}
