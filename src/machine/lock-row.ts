/**
 * The row of one lock. Layout: version u8, state u8 (1 held, 2 released), token i64, end u53, counted owner.
 *
 * Pure codec. Invariants: 1. `endMs` is the lease end of a held lock and the lease time of the release of a released
 * one. 2. A released row keeps no owner.
 */
import { assert } from "../base/assert.js";
import { EMPTY_BYTES } from "../base/bytes.js";
import { ByteReader, ByteWriter } from "../base/codec.js";

const VERSION = 1;

export const LockState = { held: 1, released: 2 } as const;

export interface LockRow {
  readonly state: number;
  readonly token: bigint;
  readonly endMs: number;
  readonly owner: Uint8Array;
}

const writer = new ByteWriter(2048);

export function heldLockRow(token: bigint, endMs: number, owner: Uint8Array): Uint8Array {
  return writer
    .reset()
    .uint8(VERSION)
    .uint8(LockState.held)
    .int64(token)
    .uint53(endMs)
    .bytes(owner)
    .finish();
}

export function releasedLockRow(token: bigint, releasedMs: number): Uint8Array {
  return writer
    .reset()
    .uint8(VERSION)
    .uint8(LockState.released)
    .int64(token)
    .uint53(releasedMs)
    .bytes(EMPTY_BYTES)
    .finish();
}

/** Asserts that the row is whole: the store checks its pages, and nobody else writes rows. */
export function decodeLockRow(bytes: Uint8Array): LockRow {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  const row = {
    state: reader.uint8(),
    token: reader.int64(),
    endMs: reader.uint53(),
    owner: reader.bytes(),
  };
  assert(version === VERSION && reader.isComplete(), "a lock row is whole and of a known version");
  return row;
}

/** The token of a row of unknown origin; -1 when it is too short to have one. */
export function lockRowToken(bytes: Uint8Array): bigint {
  const reader = new ByteReader(bytes);
  reader.uint8();
  reader.uint8();
  const token = reader.int64();
  return reader.failed ? -1n : token;
}
