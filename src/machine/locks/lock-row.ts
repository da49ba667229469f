/**
 * The row of one lock. Layout: version u8, state u8 (1 held, 2 released), token i64, end u53, then
 * the owner as the rest; in version 2 the owner with its size, and the note as the rest; in version
 * 3 what its heirs and its wait are (`writeSuccession`).
 *
 * Pure codec. Invariants: 1. `endMs` is the lease end of a held lock and the lease time at which a
 * released one became free. 2. A released row keeps neither owner nor note nor wait nor heirs, a
 * held one has an owner. 3. A row is of the oldest version that says all of it, whoever writes it.
 * 4. Tokens of heirs ascend, from above that of the grant up to `top`.
 */
import { EMPTY_BYTES, int64At, uint53At } from "../../base/bytes.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { HEIRS_MAX } from "../../base/limits.js";
import { optionalBytes, readOptionalBytesView, readUint64, uint64 } from "../commands/fields.js";
import { finishRow } from "../store/row-memory.js";
import { RecentRows } from "./recent-rows.js";
import type { Heir, SuccessionRow } from "./succession.js";

/** With heirs, or of a wait that may be repeated. */
const VERSION = 3;
/** With a note. */
const NOTED = 2;
const PLAIN = 1;
const TOKEN_AT = 2;
const END_AT = 10;
const OWNER_AT = 18;

export const LockState = { held: 1, released: 2 } as const;

/** The term of a list that no leader of this cluster wrote: it is orphaned whatever the term. */
export const FOREIGN_TERM = Number.MAX_SAFE_INTEGER;

export type LockHeir = Heir<Uint8Array, bigint>;
/** A lock as the rules of heirs see it. */
export type Succession = SuccessionRow<Uint8Array, bigint>;

/** What a row of version 3 tells beside the others. */
export interface HeirsOfRow {
  /** Of the grant; 0 each: it is of no wait that may be repeated. */
  readonly waitId: bigint;
  readonly attempt: bigint;
  readonly heirs: readonly LockHeir[];
  /** 0: there is no list. */
  readonly listTerm: number;
  /** Lease time (ms); 0: there was no list, or that is over. */
  readonly untilMs: number;
  /** Highest token that was granted or named. */
  readonly top: bigint;
}

export interface LockRow {
  readonly state: number;
  readonly token: bigint;
  readonly endMs: number;
  /** A view on the row. */
  readonly owner: Uint8Array;
  /** Likewise; null: the grant has none. */
  readonly note: Uint8Array | null;
  /** Likewise; null: the row is of an older version, and knows nothing of heirs. */
  readonly succession: HeirsOfRow | null;
}

const writer = new ByteWriter(2048);
const recent = new RecentRows<LockRow>();

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
  else begin(NOTED, LockState.held, token, endMs).bytes(owner).raw(note);
  return finishRow(writer);
}

export function releasedLockRow(token: bigint, freeMs: number): Uint8Array {
  begin(PLAIN, LockState.released, token, freeMs);
  return finishRow(writer);
}

/**
 * `row`, of which the rules made what it is. A list without heirs is none. With heirs, its owners and
 * notes are to be bytes of its own.
 */
export function successionLockRow(row: Succession): Uint8Array {
  const { isHeld, base, endMs, heirs, untilMs, top } = row;
  const { token, owner, note, waitId, attempt } = base;
  const isOfWait = isHeld && (waitId !== 0n || attempt !== 0n);
  if (!isOfWait && heirs.length === 0 && untilMs === 0 && top === token) {
    return isHeld ? heldLockRow(token, endMs, owner, note) : releasedLockRow(token, endMs);
  }
  begin(VERSION, isHeld ? LockState.held : LockState.released, token, endMs);
  writeSuccession(row);
  const bytes = finishRow(writer);
  if (heirs.length > 0) {
    const succession = { waitId, attempt, heirs, listTerm: row.listTerm, untilMs, top };
    recent.note(bytes, { state: LockState.held, token, endMs, owner, note, succession });
  }
  return bytes;
}

function writeSuccession({ isHeld, base, heirs, listTerm, untilMs, top }: Succession): void {
  writer.int64(top).uint53(untilMs);
  if (!isHeld) return;
  writeWait(base.waitId, base.attempt);
  optionalBytes(writer.bytes(base.owner), base.note);
  writer.length(heirs.length);
  if (heirs.length === 0) return;
  writer.uint53(listTerm);
  for (const { token, owner, waitId, attempt, leaseMs, note } of heirs) {
    writer.int64(token);
    writeWait(waitId, attempt);
    optionalBytes(writer.uint32(leaseMs).bytes(owner), note);
  }
}

function writeWait(waitId: bigint, attempt: bigint): void {
  uint64(writer, waitId);
  uint64(writer, attempt);
}

/** Null when the bytes are not a lock row of a known version. */
export function decodeLockRow(bytes: Uint8Array): LockRow | null {
  if (bytes.length < OWNER_AT) return null;
  if (bytes[0] === NOTED) return decodeNoted(bytes);
  if (bytes[0] === VERSION) return recent.find(bytes) ?? decodeSuccession(bytes);
  if (bytes[0] !== PLAIN) return null;
  const state = bytes[1] as number;
  const hasOwner = bytes.length > OWNER_AT;
  if (state !== (hasOwner ? LockState.held : LockState.released)) return null;
  const endMs = uint53At(bytes, END_AT);
  if (endMs < 0) return null;
  const owner = hasOwner ? bytes.subarray(OWNER_AT) : EMPTY_BYTES;
  const token = int64At(bytes, TOKEN_AT);
  return { state, token, endMs, owner, note: null, succession: null };
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
  const token = int64At(bytes, TOKEN_AT);
  return { state, token, endMs, owner, note: bytes.subarray(noteAt), succession: null };
}

function decodeSuccession(bytes: Uint8Array): LockRow | null {
  const state = bytes[1] as number;
  const token = int64At(bytes, TOKEN_AT);
  const endMs = uint53At(bytes, END_AT);
  const isHeld = state === LockState.held;
  if (endMs < 0 || (!isHeld && state !== LockState.released)) return null;
  const reader = new ByteReader(bytes, OWNER_AT);
  const top = reader.int64();
  const untilMs = reader.uint53();
  let succession: HeirsOfRow = { ...NO_LIST, waitId: 0n, attempt: 0n, untilMs, top };
  let owner: Uint8Array = EMPTY_BYTES;
  let note: Uint8Array | null = null;
  if (isHeld) {
    const waitId = readUint64(reader);
    const attempt = readUint64(reader);
    owner = reader.bytesView();
    note = readOptionalBytesView(reader);
    if (owner.length === 0) return null;
    succession = { ...readHeirs(reader, token, top), waitId, attempt, untilMs, top };
  }
  const row = { state, token, endMs, owner, note, succession };
  return reader.isComplete() && token <= top && saysMore(row) ? row : null;
}

const NO_LIST = { heirs: [], listTerm: 0 } as const;

/** Than an older version would. */
function saysMore({ token, succession }: { token: bigint; succession: HeirsOfRow }): boolean {
  const { waitId, attempt, heirs, untilMs, top } = succession;
  return waitId !== 0n || attempt !== 0n || heirs.length > 0 || untilMs !== 0 || top !== token;
}

function readHeirs(
  reader: ByteReader,
  token: bigint,
  top: bigint,
): Pick<HeirsOfRow, "heirs" | "listTerm"> {
  const count = reader.length();
  if (count === 0 || reader.failed) return NO_LIST;
  const listTerm = reader.uint53();
  if (count > HEIRS_MAX || listTerm === 0) reader.fail();
  const heirs: LockHeir[] = [];
  let last = token;
  while (heirs.length < count && !reader.failed) {
    const heir = readHeir(reader);
    if (heir.token <= last || heir.token > top || heir.owner.length === 0) reader.fail();
    last = heir.token;
    heirs.push(heir);
  }
  return { heirs, listTerm };
}

function readHeir(reader: ByteReader): LockHeir {
  const token = reader.int64();
  const waitId = readUint64(reader);
  const attempt = readUint64(reader);
  const leaseMs = reader.uint32();
  const owner = reader.bytesView();
  return { token, owner, waitId, attempt, leaseMs, note: readOptionalBytesView(reader) };
}

/** The highest token that a row knows of, granted or named; -1: the bytes are no row. */
export function topToken(bytes: Uint8Array): bigint {
  const row = decodeLockRow(bytes);
  return row === null ? -1n : (row.succession?.top ?? row.token);
}
