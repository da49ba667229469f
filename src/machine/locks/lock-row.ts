/**
 * The row of one lock. Layout: version u8, state u8 (1 held, 2 released), token i64, end u53, owner
 * as the rest.
 *
 * Pure codec. Invariants: 1. `endMs` is the lease end of a held lock and the lease time at which a
 * released one became free. 2. A released row keeps no owner, a held one has one.
 */
import { EMPTY_BYTES, int64At, uint53At } from "../../base/bytes.js";
import { ByteWriter } from "../../base/codec.js";
import { finishRow } from "../store/row-memory.js";

const VERSION = 1;
const TOKEN_AT = 2;
const END_AT = 10;
const OWNER_AT = 18;

export const LockState = { held: 1, released: 2 } as const;

export interface LockRow {
  readonly state: number;
  readonly token: bigint;
  readonly endMs: number;
  /** A view on the row. */
  readonly owner: Uint8Array;
}

const writer = new ByteWriter(2048);

function encode(state: number, token: bigint, endMs: number, owner: Uint8Array): Uint8Array {
  writer.reset().uint8(VERSION).uint8(state).int64(token).uint53(endMs).raw(owner);
  return finishRow(writer);
}

export function heldLockRow(token: bigint, endMs: number, owner: Uint8Array): Uint8Array {
  return encode(LockState.held, token, endMs, owner);
}

export function releasedLockRow(token: bigint, freeMs: number): Uint8Array {
  return encode(LockState.released, token, freeMs, EMPTY_BYTES);
}

/** Null when the bytes are not a lock row of this version. */
export function decodeLockRow(bytes: Uint8Array): LockRow | null {
  if (bytes.length < OWNER_AT || bytes[0] !== VERSION) return null;
  const state = bytes[1] as number;
  const hasOwner = bytes.length > OWNER_AT;
  if (state !== (hasOwner ? LockState.held : LockState.released)) return null;
  const endMs = uint53At(bytes, END_AT);
  if (endMs < 0) return null;
  const owner = hasOwner ? bytes.subarray(OWNER_AT) : EMPTY_BYTES;
  return { state, token: int64At(bytes, TOKEN_AT), endMs, owner };
}
