/**
 * The row of one interval of a key space that moved, or moves, from one group to another: where
 * that stands here.
 *
 * Pure codec. Layout: version u8, key space, bounds, state u8, generation u53, move u53, attempt
 * u32, next import u53, keys u53, digest 2 × u32, stamp, bound of what is purged, purged u8.
 * Invariants: 1. Bounds are in byte order, and no interval is empty. 2. States are stored as
 * numbers that never change their meaning.
 */
import { compareText } from "../../base/bytes.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { type Hlc, NO_STAMP } from "../../base/hlc.js";
import {
  attempt,
  moveId,
  rangeGeneration,
  type Attempt,
  type MoveId,
  type RangeGeneration,
} from "../../base/ids.js";
import { optionalText, readOptionalText } from "../commands/fields.js";
import { readStamp, writeStamp } from "../commands/group-record.js";

const VERSION = 1;

/**
 * "leaving": of this group, and frozen. "left": not of this group any more, or never; rows of it
 * may be left. "arriving": filled by a move; "closed": it has all, and awaits the cut. "here": of
 * this group.
 */
export type OwnershipState = "leaving" | "left" | "arriving" | "closed" | "here";

const STATES: readonly OwnershipState[] = ["leaving", "left", "arriving", "closed", "here"];

/** An interval of the keys of one key space; null = open on that side. */
export interface KeyInterval {
  readonly keySpace: string;
  readonly startKey: string | null;
  readonly endKey: string | null;
}

export type KeyBounds = Pick<KeyInterval, "startKey" | "endKey">;

export interface OwnershipRow extends KeyInterval {
  readonly state: OwnershipState;
  /** Of the descriptor, as of the move. */
  readonly generation: RangeGeneration;
  readonly moveId: MoveId;
  readonly attempt: Attempt;
  /** Of an interval that is filled: the number of the import that comes next. */
  readonly nextImport: number;
  /** Keys that it was filled with, tombstones included, */
  readonly keys: number;
  /** the digest over them: two unsigned halves of a sum modulo 2^64, */
  readonly digestLow: number;
  readonly digestHigh: number;
  /** and the largest of their stamps. */
  readonly stamp: Hlc;
  /** Of an interval that left: no key up to this one has a row here; null = nothing was deleted. */
  readonly purgedTo: string | null;
  /** Of an interval that left: nothing of it has a row here. */
  readonly isPurged: boolean;
}

/** All of `inner` lies in `outer`; both are of one key space. */
export function isWithin(inner: KeyBounds, { startKey, endKey }: KeyBounds): boolean {
  const beginsBefore =
    startKey === null || (inner.startKey !== null && compareText(startKey, inner.startKey) <= 0);
  const endsBehind =
    endKey === null || (inner.endKey !== null && compareText(inner.endKey, endKey) <= 0);
  return beginsBefore && endsBehind;
}

/** What an interval holds that nothing was filled into. */
export const NOTHING_FILLED = {
  nextImport: 1,
  keys: 0,
  digestLow: 0,
  digestHigh: 0,
  stamp: NO_STAMP,
} as const;

/** Keys of such an interval are served here. */
export function isOwned({ state }: OwnershipRow): boolean {
  return state === "here";
}

/** Nothing is left to do about the row: such neighbours are one row. */
export function isSettled({ state, isPurged }: OwnershipRow): boolean {
  return state === "here" || (state === "left" && isPurged);
}

const writer = new ByteWriter(4096);

export function encodeOwnership(row: OwnershipRow): Uint8Array {
  writer.reset().uint8(VERSION).text(row.keySpace);
  optionalText(writer, row.startKey);
  optionalText(writer, row.endKey);
  writer.uint8(STATES.indexOf(row.state)).uint53(row.generation);
  writer.uint53(row.moveId).uint32(row.attempt).uint53(row.nextImport).uint53(row.keys);
  writer.uint32(row.digestLow).uint32(row.digestHigh);
  writeStamp(writer, row.stamp);
  optionalText(writer, row.purgedTo);
  return writer.boolean(row.isPurged).finish();
}

/** Null when the bytes are not such a row of a known version. */
export function decodeOwnership(bytes: Uint8Array): OwnershipRow | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const keySpace = reader.text();
  const startKey = readOptionalText(reader);
  const endKey = readOptionalText(reader);
  const state = STATES[reader.uint8()];
  const row = {
    generation: rangeGeneration(reader.uint53()),
    moveId: moveId(reader.uint53()),
    attempt: attempt(reader.uint32()),
    nextImport: reader.uint53(),
    keys: reader.uint53(),
    digestLow: reader.uint32(),
    digestHigh: reader.uint32(),
    stamp: readStamp(reader),
    purgedTo: readOptionalText(reader),
    isPurged: reader.boolean(),
  };
  if (state === undefined || !reader.isComplete() || keySpace === "") return null;
  if (startKey !== null && endKey !== null && compareText(startKey, endKey) >= 0) return null;
  return { keySpace, startKey, endKey, state, ...row };
}
