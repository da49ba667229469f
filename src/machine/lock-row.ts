/**
 * The row of one lock. Layout: version u8, state u8 (1 held, 2 released), token i64, end u53, counted owner.
 *
 * Pure codec. Invariants: 1. `endMs` is the lease end of a held lock and the lease time of the release of a released
 * one. 2. A released row keeps no owner.
 */
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

/** Null when the bytes are not a lock row of this version. */
export function decodeLockRow(bytes: Uint8Array): LockRow | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  const state = reader.uint8();
  const token = reader.int64();
  const endMs = reader.uint53();
  const owner = reader.bytes();
  if (version !== VERSION || !reader.isComplete()) return null;
  if (state !== LockState.held && state !== LockState.released) return null;
  return { state, token, endMs, owner };
}
