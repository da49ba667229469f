/**
 * Rows of sequences: the sequence itself and its idempotency entries.
 *
 * Pure codec. Layout of a sequence: version u8, flags u8 (1 maxValue, 2 blockSize), current i64,
 * before i64, initial i64, increment i64, [maxValue i64], [blockSize u32], incarnation u53,
 * revision u53, created and updated stamps, life u53, first ordinal u53, next ordinal u53, entries
 * u53. Layout of an entry: version u8, counted sequence name, count u32, before i64, increment i64,
 * incarnation u53, revision u53, ordinal u53, end u53 (0 = none). Invariants: 1. `before` ≤
 * `current`: the last reservation is (before, current]. 2. Ordinals of live entries are in [first,
 * next), and `entries` counts them.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type { Hlc } from "../../base/hlc.js";
import { readStamp, writeStamp } from "../commands/group-record.js";
import { toByteKey, type ByteKey } from "../store/keys.js";

const VERSION = 1;

export interface SequenceRow {
  currentValue: bigint;
  /** The value below the last reservation: a block cursor lies in [before, currentValue]. */
  before: bigint;
  initialValue: bigint;
  increment: bigint;
  maxValue: bigint | null;
  blockSize: number | null;
  incarnation: number;
  revision: number;
  createdAt: Hlc;
  updatedAt: Hlc;
  /** Names the idempotency entries of this incarnation of this sequence, and no others ever. */
  life: number;
  firstOrdinal: number;
  nextOrdinal: number;
  entries: number;
}

const writer = new ByteWriter(2048);

export function encodeSequenceRow(row: SequenceRow): Uint8Array {
  const flags = (row.maxValue === null ? 0 : 1) | (row.blockSize === null ? 0 : 2);
  writer.reset().uint8(VERSION).uint8(flags).int64(row.currentValue).int64(row.before);
  writer.int64(row.initialValue).int64(row.increment);
  if (row.maxValue !== null) writer.int64(row.maxValue);
  if (row.blockSize !== null) writer.uint32(row.blockSize);
  writer.uint53(row.incarnation).uint53(row.revision);
  writeStamp(writer, row.createdAt);
  writeStamp(writer, row.updatedAt);
  writer.uint53(row.life).uint53(row.firstOrdinal).uint53(row.nextOrdinal).uint53(row.entries);
  return writer.finish();
}

/** Null when the bytes are not a sequence row of this version. */
export function decodeSequenceRow(bytes: Uint8Array): SequenceRow | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  const flags = reader.uint8();
  const row: SequenceRow = {
    currentValue: reader.int64(),
    before: reader.int64(),
    initialValue: reader.int64(),
    increment: reader.int64(),
    maxValue: (flags & 1) === 0 ? null : reader.int64(),
    blockSize: (flags & 2) === 0 ? null : reader.uint32(),
    incarnation: reader.uint53(),
    revision: reader.uint53(),
    createdAt: readStamp(reader),
    updatedAt: readStamp(reader),
    life: reader.uint53(),
    firstOrdinal: reader.uint53(),
    nextOrdinal: reader.uint53(),
    entries: reader.uint53(),
  };
  return version === VERSION && flags <= 3 && reader.isComplete() ? row : null;
}

/** One remembered allocation. */
export interface AllocationRow {
  /** The sequence it belongs to: lets a collector find out whether that life goes on. */
  readonly name: ByteKey;
  readonly count: number;
  readonly before: bigint;
  readonly increment: bigint;
  readonly incarnation: number;
  readonly revision: number;
  readonly ordinal: number;
  /** Lease time at which it is forgotten; 0 = never by time. */
  readonly endMs: number;
}

export function encodeAllocationRow(row: AllocationRow): Uint8Array {
  writer.reset().uint8(VERSION).length(row.name.length);
  for (let at = 0; at < row.name.length; at++) writer.uint8(row.name.charCodeAt(at));
  writer.uint32(row.count).int64(row.before).int64(row.increment);
  writer.uint53(row.incarnation).uint53(row.revision).uint53(row.ordinal).uint53(row.endMs);
  return writer.finish();
}

/** Null when the bytes are not an allocation row of this version. */
export function decodeAllocationRow(bytes: Uint8Array): AllocationRow | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  const row: AllocationRow = {
    name: toByteKey(reader.bytes()),
    count: reader.uint32(),
    before: reader.int64(),
    increment: reader.int64(),
    incarnation: reader.uint53(),
    revision: reader.uint53(),
    ordinal: reader.uint53(),
    endMs: reader.uint53(),
  };
  return version === VERSION && reader.isComplete() ? row : null;
}

/** The value of an order row: the idempotency key with that ordinal. */
export function encodeOrderRow(key: ByteKey): Uint8Array {
  writer.reset();
  for (let at = 0; at < key.length; at++) writer.uint8(key.charCodeAt(at));
  return writer.finish();
}
