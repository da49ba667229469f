/**
 * Locks, rules L1 to L19: try-lock, extend, unlock and reading, for persistent rows and ephemeral
 * tables alike.
 *
 * Pure decisions over the rows of the context. Invariants: 1. A lock is one of: never granted (no
 * row), held, ended (held row whose lease is over), released. 2. A grant takes max(row token + 1,
 * floor); nothing else changes a token. 3. An ended row keeps its owner until the next grant. 4. A
 * refusal changes nothing.
 */
import { present } from "../../base/assert.js";
import { equalBytes } from "../../base/bytes.js";
import { LOCK_NOTE_MAX_BYTES } from "../../base/limits.js";
import {
  LockType,
  type ExtendGrantCommand,
  type LockCommand,
  type LockOutcome,
  type LockWithNoteCommand,
  type TryExtendCommand,
  type TryLockCommand,
  type TryUnlockCommand,
  type UnlockGrantCommand,
} from "../commands/command.js";
import type { DecisionContext, Rules } from "../decision/context.js";
import { RowKind, type ByteKey } from "../store/keys.js";
import { ended, isLeaseDuration, leaseEnd } from "../decision/lease.js";
import {
  LockState,
  decodeLockRow,
  heldLockRow,
  releasedLockRow,
  type LockRow,
} from "./lock-row.js";
import { isOwner, resourceKey } from "../store/names.js";
import type { LockReading } from "../decision/reading.js";
import type { ReadableRows } from "../store/rows.js";

/** What the commands that name no grant are about. */
const ANY_GRANT = { token: null, note: null } as const;

function outcome(type: number, token: bigint): LockOutcome {
  return { kind: "lock", type, token };
}

function refusal(type: number): LockOutcome {
  return outcome(type, 0n);
}

function load(rows: ReadableRows, key: ByteKey): LockRow | null {
  const bytes = rows.get(RowKind.lock, key);
  return bytes === null ? null : present(decodeLockRow(bytes), "a stored lock row is whole");
}

/** True when the row is a lease that runs at `nowMs`. */
function isHeld(
  row: LockRow | null,
  nowMs: number,
): row is LockRow & { readonly state: typeof LockState.held } {
  return row !== null && row.state === LockState.held && !ended(row.endMs, nowMs);
}

/** Counts a lease that ended by itself, before the row says otherwise: once for each grant. */
function noteLapse(context: DecisionContext, row: LockRow | null): void {
  if (row?.state === LockState.held && ended(row.endMs, context.nowMs)) context.lapsedLocks++;
}

function isNote(note: Uint8Array | null): boolean {
  return note === null || note.length <= LOCK_NOTE_MAX_BYTES;
}

/** L1, L2, L3, L12, L13, Q17. */
function tryLock(
  context: DecisionContext,
  command: TryLockCommand | LockWithNoteCommand,
): LockOutcome {
  const key = resourceKey(command.resource);
  if (key === null || !isOwner(command.owner) || !isLeaseDuration(command.expiresMs)) {
    return refusal(LockType.invalidInput);
  }
  const note = command.kind === "try-lock" ? null : command.note;
  if (!isNote(note)) return refusal(LockType.invalidInput);
  const row = load(context.rows, key);
  if (isHeld(row, context.nowMs)) {
    if (equalBytes(row.owner, command.owner)) return outcome(LockType.locked, row.token);
    return refusal(LockType.busy);
  }
  const next = row === null ? context.tokenFloor : row.token + 1n;
  const token = next > context.tokenFloor ? next : context.tokenFloor;
  if (token > context.tokenCeiling) return refusal(LockType.errored);
  noteLapse(context, row);
  const untilMs = leaseEnd(context.nowMs, command.expiresMs);
  const bytes = heldLockRow(token, untilMs, command.owner, note);
  if (row === null) context.rows.insert(RowKind.lock, key, bytes);
  else context.rows.put(RowKind.lock, key, bytes);
  return outcome(LockType.locked, token);
}

/** L4, L5, L6, Q13, Q17. */
function tryExtend(
  context: DecisionContext,
  command: TryExtendCommand | ExtendGrantCommand,
): LockOutcome {
  const key = resourceKey(command.resource);
  if (key === null || !isOwner(command.owner) || !isLeaseDuration(command.expiresMs)) {
    return refusal(LockType.invalidInput);
  }
  const { token, note } = command.kind === "try-extend" ? ANY_GRANT : command;
  if (!isNote(note)) return refusal(LockType.invalidInput);
  const row = load(context.rows, key);
  if (!isHeld(row, context.nowMs)) return refusal(LockType.doesNotExist);
  if (!equalBytes(row.owner, command.owner)) return refusal(LockType.invalidOwner);
  if (token !== null && token !== row.token) return refusal(LockType.invalidOwner);
  const endMs = leaseEnd(context.nowMs, command.expiresMs);
  context.rows.put(RowKind.lock, key, heldLockRow(row.token, endMs, row.owner, note ?? row.note));
  return outcome(LockType.extended, row.token);
}

/** L7, L8, L9, Q13: the lease end plays no part, only whether the last grant was released. */
function tryUnlock(
  context: DecisionContext,
  command: TryUnlockCommand | UnlockGrantCommand,
): LockOutcome {
  const key = resourceKey(command.resource);
  if (key === null || !isOwner(command.owner)) return refusal(LockType.invalidInput);
  const row = load(context.rows, key);
  if (row === null || row.state === LockState.released) return refusal(LockType.doesNotExist);
  if (!equalBytes(row.owner, command.owner)) return refusal(LockType.invalidOwner);
  if (command.kind === "unlock-grant" && command.token !== row.token) {
    return refusal(LockType.invalidOwner);
  }
  noteLapse(context, row);
  // An ended lease keeps its end: retention counts from when the lock became free.
  const freeMs = Math.min(row.endMs, context.nowMs);
  context.rows.put(RowKind.lock, key, releasedLockRow(row.token, freeMs));
  return outcome(LockType.unlocked, row.token);
}

/**
 * Ends the grant with that token, whoever has it, while its lease runs (F3). Returns the owner, or
 * the type of a refusal.
 */
export function releaseGrant(
  { rows, nowMs }: DecisionContext,
  key: ByteKey,
  token: bigint,
): Uint8Array | number {
  const row = load(rows, key);
  if (!isHeld(row, nowMs)) return LockType.doesNotExist;
  if (row.token !== token) return LockType.invalidOwner;
  const owner = row.owner.slice();
  rows.put(RowKind.lock, key, releasedLockRow(token, nowMs));
  return owner;
}

/** L10, L11 at the lease time given. */
export function readLock(rows: ReadableRows, resource: string, nowMs: number): LockReading {
  const key = resourceKey(resource);
  const row = key === null ? null : load(rows, key);
  if (isHeld(row, nowMs)) {
    const { owner, note, token, endMs: leaseEndMs } = row;
    return { type: LockType.got, owner, note, token, leaseEndMs };
  }
  const type = key === null ? LockType.invalidInput : LockType.doesNotExist;
  return { type, owner: null, note: null, token: 0n, leaseEndMs: 0 };
}

/**
 * Drops the row of a lock that is free and past retention, lifting the floor above its token in the
 * same entry (L17). Returns whether it was dropped.
 */
export function dropIdleLock(
  context: DecisionContext,
  key: ByteKey,
  bytes: Uint8Array,
  retentionMs: number,
): boolean {
  const row = present(decodeLockRow(bytes), "a stored lock row is whole");
  if (isHeld(row, context.nowMs)) return false;
  if (!ended(leaseEnd(row.endMs, retentionMs), context.nowMs)) return false;
  noteLapse(context, row);
  if (row.token >= context.tokenFloor) context.tokenFloor = row.token + 1n;
  context.collectedLocksMs = Math.max(context.collectedLocksMs, row.endMs);
  context.rows.delete(RowKind.lock, key);
  return true;
}

export const LOCK_RULES: Rules<LockCommand, LockOutcome> = {
  "try-lock": tryLock,
  "try-extend": tryExtend,
  "try-unlock": tryUnlock,
  "lock-with-note": tryLock,
  "extend-grant": tryExtend,
  "unlock-grant": tryUnlock,
};
