/**
 * The three implementations that every test here holds against each other, and the slow oracles.
 */
import fc from "fast-check";
import { binary as checkedBinary } from "../../../src/wasm/generated/checked.js";
import { createKernels, frameBytes, type Kernels } from "../../../src/wasm/kernels.js";

export interface NamedSet {
  readonly name: string;
  readonly kernels: Kernels;
}

/** Fresh kernels: the release build, the build with assertions, the twin (with its checks on). */
export function makeSets(): NamedSet[] {
  return [
    { name: "release", kernels: createKernels({ mode: "wasm" }) },
    { name: "checked", kernels: createKernels({ mode: "wasm", binary: checkedBinary }) },
    { name: "twin", kernels: createKernels({ mode: "twin", checked: true }) },
  ];
}

/** CRC-32C bit by bit, as the definition has it. */
export function slowCrc32c(bytes: Iterable<number>, seed = 0): number {
  let crc = ~seed;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0);
  }
  return ~crc >>> 0;
}

export interface PlainRecord {
  readonly kind: number;
  readonly group: number;
  readonly incarnation: number;
  readonly index: number;
  readonly term: number;
  readonly payload: Uint8Array;
}

export interface PlainPlace {
  readonly segmentId: number;
  readonly salt: number;
  readonly offset: number;
  readonly previousChecksum: number;
  readonly durableOffset: number;
  readonly sectorBytes: number;
}

/** The salt as bytes: what a checksum begins with. */
function saltBytes(place: PlainPlace, offset: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(16));
  view.setUint32(0, place.salt, true);
  view.setBigUint64(4, BigInt(place.segmentId), true);
  view.setUint32(12, offset, true);
  return new Uint8Array(view.buffer);
}

function nextMultiple(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}

/** The bytes of a sealed batch, built naively from the description of the frame. */
export function slowBatch(records: readonly PlainRecord[], place: PlainPlace): Uint8Array {
  const parts: Uint8Array[] = [];
  let length = 0;
  let previous = place.previousChecksum;
  for (const [at, record] of records.entries()) {
    const size = 48 + record.payload.length;
    const aligned = nextMultiple(size, 8);
    const end = place.offset + length + aligned;
    const last = at === records.length - 1 && place.sectorBytes > 0;
    const padding = last ? nextMultiple(end, place.sectorBytes) - end : 0;
    const bytes = new Uint8Array(aligned + padding);
    const view = new DataView(bytes.buffer);
    bytes.set([0x53, 0x56, 0x52, 0x31]);
    view.setUint32(8, size, true);
    view.setUint8(12, record.kind);
    view.setUint8(13, 1);
    view.setUint16(14, padding / 8, true);
    view.setUint32(16, previous, true);
    view.setUint32(20, place.durableOffset, true);
    view.setUint32(24, record.group, true);
    view.setUint32(28, record.incarnation, true);
    view.setBigUint64(32, BigInt(record.index), true);
    view.setBigUint64(40, BigInt(record.term), true);
    bytes.set(record.payload, 48);
    const salt = saltBytes(place, place.offset + length);
    previous = slowCrc32c([...salt, ...bytes.subarray(8)]);
    view.setUint32(4, previous, true);
    parts.push(bytes);
    length += bytes.length;
  }
  const all = new Uint8Array(length);
  let to = 0;
  for (const part of parts) {
    all.set(part, to);
    to += part.length;
  }
  return all;
}

/** Appends and seals through the bridge; a copy of the bytes, and the region released. */
export function batchOf(
  { record }: Kernels,
  records: readonly PlainRecord[],
  place: PlainPlace,
): Uint8Array {
  const region = record.acquire();
  if (region === undefined) throw new Error("no region is free");
  for (const { kind, group, incarnation, index, term, payload } of records) {
    if (!region.append(kind, group, incarnation, index, term, payload)) {
      throw new Error("the records do not fit");
    }
  }
  const expected = region.bytesAt(place.offset, place.sectorBytes);
  const sealed = region.seal(place);
  if (sealed.bytes.length !== expected) throw new Error("bytesAt does not tell the sealed size");
  const bytes = sealed.bytes.slice();
  region.release();
  return bytes;
}

const edges53 = [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 2, 2 ** 53 - 1];
const safe = fc.oneof(fc.constantFrom(...edges53), fc.maxSafeNat());
const uint32 = fc.oneof(fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1), fc.nat(2 ** 32 - 1));
/** Any record with at most `maxLength` bytes of payload. */
export const recordOf = (maxLength: number): fc.Arbitrary<PlainRecord> =>
  fc.record({
    kind: fc.integer({ min: 1, max: 255 }),
    group: uint32,
    incarnation: uint32,
    index: safe,
    term: safe,
    payload: fc.uint8Array({ maxLength }),
  });
/** Any place, far beyond 32 bits where it may be. */
export const placeOf = fc.record({
  segmentId: safe,
  salt: uint32,
  offset: fc.nat(60 * 1024 * 1024).map((value) => value - (value % 8)),
  previousChecksum: uint32,
  durableOffset: uint32,
  sectorBytes: fc.constantFrom(0, 8, 512, 4096),
});

/** The rows that a scan of a sealed batch must show. */
export function rowsOf(records: readonly PlainRecord[], place: PlainPlace): unknown[] {
  let offset = place.offset;
  return records.map((record) => {
    const row = {
      ...record,
      payload: record.payload,
      offset,
      payloadBytes: record.payload.length,
      durableOffset: place.durableOffset,
    };
    offset += frameBytes(record.payload.length);
    return row;
  });
}
