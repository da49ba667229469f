/**
 * The bytes of a snapshot: chunks in order, each with its own checksum, and one digest over
 * everything.
 *
 * Pure codec. Layout of a chunk: version u8, group u32, sequence u32, last u8, body, xxh32 u32 of
 * all before. The body of chunk 0 begins with the counted group record. Then rows, each as mark 1,
 * kind u8, counted name, counted value; the last body ends with mark 0, number of rows u53 and the
 * two halves of the digest. Invariants: 1. Rows ascend strictly by kind and name. 2. The digest
 * covers the record and all rows and no transport detail: equal states give equal digests.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { xxh32Of } from "../../base/xxhash.js";
import { StateDigest, keyHashOf, xxh32 } from "../store/digest.js";
import {
  decodeGroupRecord,
  encodeGroupRecord,
  type GroupRecord,
} from "../commands/group-record.js";
import type { ByteKey } from "../store/keys.js";
import { ChunkRow } from "./chunk-row.js";

const VERSION = 1;
const SEED = 0x53564331;
const CHECKSUM_BYTES = 4;
const MARK_END = 0;
const MARK_ROW = 1;

/**
 * The part of a group record that belongs to the state; generations, installs and sizes are the
 * node's own affair.
 */
export function snapshotRecord(record: GroupRecord): Uint8Array {
  const own = {
    generation: 0,
    lastGeneration: 0,
    installedIndex: 0,
    installedTerm: 0,
    dataBytes: null,
  };
  return encodeGroupRecord({ ...record, ...own });
}

/** Digest over a record and rows in order. */
export class SnapshotDigest {
  private readonly digest = new StateDigest();
  rows = 0;

  record(bytes: Uint8Array): void {
    this.digest.number(xxh32(bytes, SEED) | 0);
  }

  row(kind: number, name: ByteKey, value: Uint8Array): void {
    this.rows++;
    this.digest.row(kind, name, null);
    this.digest.number(value.length);
    this.digest.number(xxh32(value, kind) | 0);
  }

  /** The same as `row`, of a row in a chunk. */
  chunkRow(row: ChunkRow): void {
    const { kind, bytes, view, nameAt, nameEnd, valueAt, valueEnd } = row;
    this.rows++;
    this.digest.number(keyHashOf(kind, bytes, nameAt, nameEnd));
    this.digest.number(-1);
    this.digest.number(valueEnd - valueAt);
    this.digest.number(xxh32Of(view, kind, valueAt, valueEnd) | 0);
  }

  get low(): number {
    return this.digest.low;
  }

  get high(): number {
    return this.digest.high;
  }
}

export class ChunkWriter {
  private readonly writer = new ByteWriter(64 * 1024);
  private readonly group: number;
  private sequence = 0;

  constructor(group: number) {
    this.group = group;
  }

  begin(): void {
    this.writer.reset().uint8(VERSION).uint32(this.group).uint32(this.sequence++);
    // Rewritten by `finish` when the chunk turns out to be the last.
    this.writer.uint8(0);
  }

  get sizeBytes(): number {
    return this.writer.sizeBytes;
  }

  record(bytes: Uint8Array): void {
    this.writer.bytes(bytes);
  }

  row(kind: number, name: Uint8Array, value: Uint8Array): void {
    this.writer.uint8(MARK_ROW).uint8(kind).bytes(name).bytes(value);
  }

  end(digest: SnapshotDigest): void {
    this.writer.uint8(MARK_END).uint53(digest.rows).int32(digest.low).int32(digest.high);
  }

  finish(last: boolean): Uint8Array {
    const bytes = this.writer.uint32(0).finish();
    bytes[LAST_AT] = last ? 1 : 0;
    const end = bytes.length - CHECKSUM_BYTES;
    const checksum = xxh32(bytes, SEED, 0, end);
    for (let at = 0; at < CHECKSUM_BYTES; at++) bytes[end + at] = (checksum >>> (8 * at)) & 0xff;
    return bytes;
  }
}

const LAST_AT = 9;

/**
 * What a chunk's bytes hold, visited in order. Everything is checked; the visitor decides about
 * rows.
 */
export interface ChunkVisitor {
  record(record: GroupRecord, bytes: Uint8Array): void;
  /** False refuses the row: the chunk is then damaged. */
  row(row: ChunkRow): boolean;
  end(rows: number, low: number, high: number): void;
}

/**
 * True when `bytes` is chunk number `sequence` of a snapshot of `group` and whole. `visitor` sees
 * what is in it.
 */
export function readChunk(
  bytes: Uint8Array,
  group: number,
  sequence: number,
  visitor: ChunkVisitor,
): boolean {
  const end = bytes.length - CHECKSUM_BYTES;
  if (end < LAST_AT + 1) return false;
  const tail = new ByteReader(bytes, end);
  if (tail.uint32() !== xxh32(bytes, SEED, 0, end)) return false;
  const reader = new ByteReader(bytes, 0, end);
  if (reader.uint8() !== VERSION || reader.uint32() !== group) return false;
  if (reader.uint32() !== sequence) return false;
  const last = reader.boolean();
  if (sequence === 0) {
    const recordBytes = reader.bytes();
    const record = reader.failed ? null : decodeGroupRecord(recordBytes);
    if (record === null) return false;
    visitor.record(record, recordBytes);
  }
  return readBody(reader, new ChunkRow(bytes), last, visitor);
}

function readBody(
  reader: ByteReader,
  row: ChunkRow,
  last: boolean,
  visitor: ChunkVisitor,
): boolean {
  while (reader.remainingBytes > 0 && !reader.failed) {
    const mark = reader.uint8();
    if (mark === MARK_END) {
      const rows = reader.uint53();
      const low = reader.int32();
      const high = reader.int32();
      if (!last || !reader.isComplete()) return false;
      visitor.end(rows, low, high);
      return true;
    }
    if (mark !== MARK_ROW) return false;
    row.kind = reader.uint8();
    const nameBytes = reader.length();
    row.nameAt = reader.position;
    reader.skip(nameBytes);
    row.nameEnd = reader.position;
    const valueBytes = reader.length();
    row.valueAt = reader.position;
    reader.skip(valueBytes);
    row.valueEnd = reader.position;
    if (reader.failed || !visitor.row(row)) return false;
  }
  return !last && reader.isComplete();
}
