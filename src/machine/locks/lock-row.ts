/**
 * The row of one lock. Layout: version u8, state u8 (1 held, 2 released), token i64, end u53, then
 * the owner as the rest; in version 2 the owner with its size, and the note as the rest.
 *
 * Pure codec. Invariants: 1. `endMs` is the lease end of a held lock and the lease time at which a
 * released one became free. 2. A released row keeps neither owner nor note, a held one has an
 * owner. 3. A row without a note is of version 1, whoever writes it.
 */
import { EMPTY_BYTES, int64At, uint53At } from "../../base/bytes.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { finishRow } from "../store/row-memory.js";

/** With a note. */
const VERSION = 2;
const PLAIN = VERSION - 1;
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
  /** Likewise; null: the grant has none. */
  readonly note: Uint8Array | null;
}

const writer = new ByteWriter(2048);

function begin(version: number, state: number, token: bigint, endMs: number): ByteWriter {
  return writer.reset().uint8(version).uint8(state).int64(token).uint53(endMs);
}

export function heldLockRow(
  token: bigint,
  endMs: number,
  owner: Uint8Array,
  note: Uint8Array | null,
): Uint8Array {
  if (note === null) begin(PLAIN, LockState.held, token, endMs).raw(owner);
  else begin(VERSION, LockState.held, token, endMs).bytes(owner).raw(note);
  return finishRow(writer);
}

export function releasedLockRow(token: bigint, freeMs: number): Uint8Array {
  begin(PLAIN, LockState.released, token, freeMs);
  return finishRow(writer);
}

/** Null when the bytes are not a lock row of a known version. */
export function decodeLockRow(bytes: Uint8Array): LockRow | null {
  if (bytes.length < OWNER_AT) return null;
  if (bytes[0] === VERSION) return decodeNoted(bytes);
  if (bytes[0] !== PLAIN) return null;
  const state = bytes[1] as number;
  const hasOwner = bytes.length > OWNER_AT;
  if (state !== (hasOwner ? LockState.held : LockState.released)) return null;
  const endMs = uint53At(bytes, END_AT);
  if (endMs < 0) return null;
  const owner = hasOwner ? bytes.subarray(OWNER_AT) : EMPTY_BYTES;
  return { state, token: int64At(bytes, TOKEN_AT), endMs, owner, note: null };
}

function decodeNoted(bytes: Uint8Array): LockRow | null {
  const state = bytes[1] as number;
  const endMs = uint53At(bytes, END_AT);
  if (state !== LockState.held || endMs < 0) return null;
  const reader = new ByteReader(bytes, OWNER_AT);
  const size = reader.length();
  if (reader.failed || size < 1 || size > reader.remainingBytes) return null;
  const noteAt = bytes.length - (reader.remainingBytes - size);
  const owner = bytes.subarray(noteAt - size, noteAt);
  return { state, token: int64At(bytes, TOKEN_AT), endMs, owner, note: bytes.subarray(noteAt) };
}
