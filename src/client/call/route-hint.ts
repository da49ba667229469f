/**
 * Route hints as answers carry them (contract 2.6).
 *
 * Owns the hints that were read last, so that an answer with a usual hint costs one comparison of
 * bytes. Invariants: 1. A hint is read exactly or not at all. 2. Equal hints of one reader are one
 * object, as long as they are kept.
 */
import { halvesToBigInt, type Int64Halves, type ProtoReader } from "../../proto/codec.js";
import { asObject, bigintOf, intOf, textOf, type JsonObject } from "../values/json.js";

export const Provenance = { unknown: 0, executed: 1, forwarded: 2 } as const;

export interface RouteHint {
  readonly partitionId: number;
  /** Base URL of the node that executed, or that it was forwarded to; "" = it advertises none. */
  readonly endpoint: string;
  readonly provenance: number;
  /** Of the range descriptor; 0 = routed by hash. */
  readonly generation: number;
}

const SLOTS = 256;
const PARTITION_TAG = 8;
const ENDPOINT_TAG = 18;
const PROVENANCE_TAG = 24;
const GENERATION_TAG = 32;
const BYTES = 2;

interface Kept {
  readonly bytes: Buffer;
  readonly hint: RouteHint;
}

export class HintReader {
  private readonly kept: (Kept | undefined)[] = [];

  /**
   * The hint in field `field` of the message from `reader.pos` to `end`, or null. Moves the reader.
   */
  find(reader: ProtoReader, end: number, field: number): RouteHint | null {
    const wanted = (field << 3) | BYTES;
    while (reader.pos < end) {
      const tag = reader.uint32();
      if (tag === wanted) {
        const sizeBytes = reader.uint32();
        return this.read(reader, reader.pos + sizeBytes);
      }
      reader.skipType(tag & 7);
    }
    return null;
  }

  private read(reader: ProtoReader, end: number): RouteHint {
    const start = reader.pos;
    const bytes = reader.buf;
    // The partition comes first: its low bits choose the slot.
    const slot = (bytes[start + 1] ?? 0) % SLOTS;
    const kept = this.kept[slot];
    if (kept !== undefined && same(kept.bytes, bytes, start, end)) return kept.hint;
    const hint = readHint(reader, end);
    this.kept[slot] = { bytes: Buffer.from(bytes.subarray(start, end)), hint };
    return hint;
  }
}

function same(kept: Buffer, bytes: Uint8Array, start: number, end: number): boolean {
  if (kept.length !== end - start) return false;
  for (let at = 0; at < kept.length; at++) if (kept[at] !== bytes[start + at]) return false;
  return true;
}

function readHint(reader: ProtoReader, end: number): RouteHint {
  const hint = { partitionId: 0, endpoint: "", provenance: 0, generation: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === PARTITION_TAG) hint.partitionId = reader.int32();
    else if (tag === ENDPOINT_TAG) hint.endpoint = reader.string();
    else if (tag === PROVENANCE_TAG) hint.provenance = reader.int32();
    else if (tag === GENERATION_TAG) {
      hint.generation = Number(halvesToBigInt(reader.int64() as Int64Halves));
    } else reader.skipType(tag & 7);
  }
  return hint;
}

/** The hint of an answer of the REST interface. */
export function hintFromRest(body: JsonObject): RouteHint | null {
  const { route } = body;
  if (route === null || route === undefined) return null;
  const hint = asObject(route, "route");
  return {
    partitionId: intOf(hint, "partitionId"),
    endpoint: textOf(hint, "endpoint"),
    provenance: intOf(hint, "provenance"),
    generation: Number(bigintOf(hint, "generation")),
  };
}
