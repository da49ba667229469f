/**
 * What the records of the log say, beyond the frame of `wasm/`: kinds, and the bodies that are not
 * entries.
 *
 * | Kind | index | term | incarnation field | payload |
 * |---|---|---|---|---|
 * | entry, restated | index | term | entry kind | as it came |
 * | state | commit | term | vote | floor: index, term (uint53 each) |
 * | install | commit | term | vote | floor: index, term |
 * | drop | 0 | 0 | 0 | none |
 * | header | sequence of the segment | 0 | 0 | version, identity |
 * | link | sequence before | 0 | 0 | end and last checksum of the segment before (uint32 each) |
 * | close | 0 | 0 | 0 | none |
 *
 * Group ids are never used twice, so the frame's incarnation field is free for what the table says.
 * Invariants: 1. A header is sealed without salt, so that its identity can be read before it is
 * believed; everything else carries the identity in its checksum.
 */
import { assert } from "../../base/assert.js";
import { decodeText, encodeText } from "../../base/bytes.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type { HardState, LogPosition } from "../../ports.js";
import { crc32c, recordKind } from "../../wasm/kernels.js";

export const logKind = {
  entry: recordKind.entry,
  state: recordKind.hardState,
  drop: recordKind.drop,
  install: recordKind.install,
  restated: recordKind.restated,
  header: recordKind.firstOfCaller,
  link: recordKind.firstOfCaller + 1,
  close: recordKind.firstOfCaller + 2,
} as const;

export const LOG_FORMAT_VERSION = 1;
/** Disk writes start and end at multiples of this, so that a torn one spoils nothing before it. */
export const SECTOR_BYTES = 4096;

/** Whose log it is. */
export interface LogIdentity {
  /** Random, drawn when the data directory was made. */
  readonly storageId: string;
  readonly clusterId: string;
  readonly nodeId: number;
}

/** The 32 bits of an identity that go into every checksum. */
export function saltOf(identity: LogIdentity): number {
  const { storageId, clusterId, nodeId } = identity;
  return crc32c(encodeText(`${storageId}\n${clusterId}\n${String(nodeId)}`));
}

export interface SegmentHeader {
  readonly version: number;
  readonly identity: LogIdentity;
}

export function encodeHeader(identity: LogIdentity): Uint8Array {
  return new ByteWriter()
    .uint32(LOG_FORMAT_VERSION)
    .uint32(identity.nodeId)
    .bytes(encodeText(identity.storageId))
    .bytes(encodeText(identity.clusterId))
    .finish();
}

/** Null: not a header of any version. A newer version has only its number, the rest is unknown. */
export function decodeHeader(payload: Uint8Array): SegmentHeader | null {
  const reader = new ByteReader(payload);
  const version = reader.uint32();
  if (reader.failed || version === 0) return null;
  const unknown = { storageId: "", clusterId: "", nodeId: 0 };
  if (version > LOG_FORMAT_VERSION) return { version, identity: unknown };
  const nodeId = reader.uint32();
  const storageId = decodeText(reader.bytes());
  const clusterId = decodeText(reader.bytes());
  if (!reader.isComplete() || storageId === null || clusterId === null) return null;
  return { version, identity: { storageId, clusterId, nodeId } };
}

/** Bytes of the payload of a state or install record. */
export const FLOOR_BYTES = 16;

export function encodeFloor(floor: LogPosition): Uint8Array {
  return new ByteWriter(FLOOR_BYTES).uint53(floor.index).uint53(floor.term).finish();
}

export function decodeFloor(payload: Uint8Array): LogPosition | null {
  const reader = new ByteReader(payload);
  const index = reader.uint53();
  const term = reader.uint53();
  return reader.isComplete() ? { index, term } : null;
}

export interface SegmentLink {
  readonly endOffset: number;
  readonly checksum: number;
}

export function encodeLink(link: SegmentLink): Uint8Array {
  return new ByteWriter(8).uint32(link.endOffset).uint32(link.checksum).finish();
}

export function decodeLink(payload: Uint8Array): SegmentLink | null {
  const reader = new ByteReader(payload);
  const endOffset = reader.uint32();
  const checksum = reader.uint32();
  return reader.isComplete() ? { endOffset, checksum } : null;
}

const SUFFIX = ".segment";
/** A segment under construction; found at start, it is removed. */
export const UNFINISHED_SUFFIX = ".unfinished";

export function segmentName(sequence: number): string {
  assert(Number.isSafeInteger(sequence) && sequence > 0, "segments are numbered from 1");
  return `${String(sequence).padStart(12, "0")}${SUFFIX}`;
}

/** The sequence in a file name, or null when it is no segment's name. */
export function segmentSequence(name: string): number | null {
  if (!/^[0-9]{12}\.segment$/.test(name)) return null;
  const sequence = Number.parseInt(name, 10);
  return sequence > 0 ? sequence : null;
}

export const NO_HARD_STATE: HardState = { term: 0, vote: 0, commit: 0 };
export const NO_FLOOR: LogPosition = { index: 0, term: 0 };
