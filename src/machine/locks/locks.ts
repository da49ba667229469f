/**
 * Locks, rules L1 to L19: try-lock, extend, unlock and reading, for persistent rows and ephemeral
 * tables alike.
 *
 * Pure decisions over the rows of the context. Invariants: 1. A lock is one of: never granted (no
 * row), held, ended (held row whose lease is over), released. 2. A grant takes max(row token + 1,
 * floor); nothing else changes a token. 3. An ended row keeps its owner until the next grant. 4. A
 * refusal changes nothing. 5. A row that knows of heirs or of a repeatable wait is decided by the
 * rules of these (heirs.ts), whatever the command.
 */
import { present } from "../../base/assert.js";
import { equalBytes } from "../../base/bytes.js";
import { LOCK_NOTE_MAX_BYTES } from "../../base/limits.js";
import {
  LockType,
  type ExtendGrantCommand,
  type Handover,
  type LockCommand,
  type LockHeirCommand,
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
import { extendListed, forceListed, loadLock, tryListed, unlockListed } from "./heirs.js";
import {
  type HeirsOfRow,
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
/** Of a try that no other one repeats. */
const NO_WAIT = { waitId: 0n, attempt: 0n } as const;

function outcome(type: number, token: bigint): LockOutcome {
  return { kind: "lock", type, token };
}

function refusal(type: number): LockOutcome {
  return outcome(type, 0n);
}

/** True when heirs or a repeatable wait are known of the lock. */
function isListed(row: LockRow | null): row is LockRow & { readonly succession: HeirsOfRow } {
  return row !== null && row.succession !== null;
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

/** L1, L2, L3, L12, L13, Q14, Q17. */
export function tryLock(
  context: DecisionContext,
  command: TryLockCommand | LockWithNoteCommand | LockHeirCommand,
): LockOutcome {
  const key = resourceKey(command.resource);
  if (key === null || !isOwner(command.owner) || !isLeaseDuration(command.expiresMs)) {
    return refusal(LockType.invalidInput);
  }
  const note = command.kind === "try-lock" ? null : command.note;
  if (!isNote(note)) return refusal(LockType.invalidInput);
  const row = loadLock(context.rows, key);
  const isOfWait = command.kind === "lock-heir";
  if (isOfWait || isListed(row)) {
    const { owner, expiresMs: leaseMs } = command;
    const { waitId, attempt } = isOfWait ? command : NO_WAIT;
    return tryListed(context, key, row, { owner, waitId, attempt, leaseMs, note });
  }
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
  const row = loadLock(context.rows, key);
  if (isListed(row)) {
    const { owner, expiresMs: leaseMs } = command;
    return extendListed(context, key, row, { owner, token, leaseMs, note });
  }
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
  const row = loadLock(context.rows, key);
  if (isListed(row)) {
    const token = command.kind === "unlock-grant" ? command.token : null;
    return unlockListed(context, key, row, { owner: command.owner, token });
  }
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

/** What a forced release ended. */
interface ReleasedGrant {
  readonly owner: Uint8Array;
  /** Where heirs or repeatable waits are known of the lock. */
  readonly handover: Handover | null;
}

/**
 * Ends the grant with that token, whoever has it, while its lease runs (F3), or while its list is
 * orphaned. Returns what it was, or the type of a refusal.
 */
export function releaseGrant(
  context: DecisionContext,
  key: ByteKey,
  token: bigint,
): ReleasedGrant | number {
  const { rows, nowMs } = context;
  const row = loadLock(rows, key);
  if (isListed(row)) {
    const { type, handover = null } = forceListed(context, key, row, token);
    return type === LockType.unlocked ? { owner: row.owner.slice(), handover } : type;
  }
  if (!isHeld(row, nowMs)) return LockType.doesNotExist;
  if (row.token !== token) return LockType.invalidOwner;
  const owner = row.owner.slice();
  rows.put(RowKind.lock, key, releasedLockRow(token, nowMs));
  return { owner, handover: null };
}

/** L10, L11 at the lease time given. */
export function readLock(rows: ReadableRows, resource: string, nowMs: number): LockReading {
  const key = resourceKey(resource);
  const row = key === null ? null : loadLock(rows, key);
  if (isHeld(row, nowMs)) {
    const { owner, note, token, endMs: leaseEndMs } = row;
    return { type: LockType.got, owner, note, token, leaseEndMs };
  }
  const type = key === null ? LockType.invalidInput : LockType.doesNotExist;
  return { type, owner: null, note: null, token: 0n, leaseEndMs: 0 };
}

/**
 * Drops the row of a lock that is free and past retention, lifting the floor above all its tokens
 * in the same entry (L17). Returns whether it was dropped. One whose heirs may hold it is not free.
 */
export function dropIdleLock(
  context: DecisionContext,
  key: ByteKey,
  bytes: Uint8Array,
  retentionMs: number,
): boolean {
  const row = present(decodeLockRow(bytes), "a stored lock row is whole");
  if (isHeld(row, context.nowMs)) return false;
  const { heirs, untilMs, top } = row.succession ?? { heirs: [], untilMs: 0, top: row.token };
  const freeMs = heirs.length > 0 ? Math.max(row.endMs, untilMs) : row.endMs;
  if (!ended(leaseEnd(freeMs, retentionMs), context.nowMs)) return false;
  noteLapse(context, row);
  if (top >= context.tokenFloor) context.tokenFloor = top + 1n;
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
