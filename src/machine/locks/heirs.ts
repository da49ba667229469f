/**
 * Locks that heirs or repeatable waits are known of (Q14 to Q16): what each command makes of such a
 * row, decided by the rules of succession.ts, and written.
 *
 * Pure decisions over the rows of the context. Invariants: 1. What the rules leave of a row is what
 * is stored, and nothing is written where they leave it as it was. 2. No token beyond the ceiling
 * is granted or named, and no list is longer than may be: a command that would do so does nothing.
 * 3. Between two commands the end of a list that is gone is kept only until it is over.
 */
import { present } from "../../base/assert.js";
import { EMPTY_BYTES, equalBytes } from "../../base/bytes.js";
import {
  HEIRS_MAX,
  HEIRS_MAX_BYTES,
  HEIR_LEASE_MAX_MS,
  LOCK_NOTE_MAX_BYTES,
} from "../../base/limits.js";
import {
  LockType,
  type AppendHeirsCommand,
  type Handover,
  type HeirListCommand,
  type HeirsOutcome,
  type LockGrant,
  type LockOutcome,
  type NewHeir,
  type SetHeirsCommand,
} from "../commands/command.js";
import type { DecisionContext, Rules } from "../decision/context.js";
import { ended, leaseEnd } from "../decision/lease.js";
import { RowKind, type ByteKey } from "../store/keys.js";
import { isOwner, resourceKey } from "../store/names.js";
import type { ReadableRows } from "../store/rows.js";
import {
  type LockRow,
  LockState,
  type Succession,
  decodeLockRow,
  successionLockRow,
} from "./lock-row.js";
import {
  type Ask,
  type Grant,
  type LockDecided,
  type ListDecided,
  type Values,
  type When,
  type Word,
  appendHeirs,
  extend,
  forceUnlock,
  setHeirs,
  tryLock,
  unlock,
} from "./succession.js";

type LockValues = Values<Uint8Array, bigint>;
type LockWord = Word<Uint8Array, bigint>;
type Stored = Readonly<Succession>;

const TYPES: Readonly<Record<LockDecided, number>> = {
  locked: LockType.locked,
  extended: LockType.extended,
  unlocked: LockType.unlocked,
  busy: LockType.busy,
  "must-retry": LockType.mustRetry,
  "invalid-owner": LockType.invalidOwner,
  "not-held": LockType.doesNotExist,
};

/** Of a lock that was never granted, below all tokens. */
const NEVER: Stored = {
  isHeld: false,
  base: { token: -1n, owner: EMPTY_BYTES, waitId: 0n, attempt: 0n, note: null },
  endMs: 0,
  heirs: [],
  listTerm: 0,
  untilMs: 0,
  top: -1n,
};

export function loadLock(rows: ReadableRows, key: ByteKey): LockRow | null {
  const bytes = rows.get(RowKind.lock, key);
  return bytes === null ? null : present(decodeLockRow(bytes), "a stored lock row is whole");
}

/** The row as the rules see it: for them to change. Its bytes are views. */
export function successionOf(row: LockRow | null): Succession {
  if (row === null) return { ...NEVER };
  const { state, token, owner, note, endMs, succession } = row;
  const isHeld = state === LockState.held;
  if (succession === null) {
    const base = { token, owner, waitId: 0n, attempt: 0n, note };
    return { ...NEVER, isHeld, base, endMs, top: token };
  }
  const { waitId, attempt, heirs, listTerm, untilMs, top } = succession;
  const base = { token, owner, waitId, attempt, note };
  return { isHeld, base, endMs, heirs, listTerm, untilMs, top };
}

/** What the rules made of a lock. */
interface Ruled<Decided> {
  readonly decided: Decided;
  readonly before: Stored;
  readonly after: Stored;
}

/** Lets a rule decide over a row, and stores what it leaves; null: that may not be. */
function rule<Decided>(
  context: DecisionContext,
  key: ByteKey,
  row: LockRow | null,
  decide: (values: LockValues, row: Succession, when: When) => Decided,
): Ruled<Decided> | null {
  const { tokenFloor, nowMs, term } = context;
  const next = (token: bigint): bigint => (token < tokenFloor ? tokenFloor : token + 1n);
  const before = successionOf(row);
  const after = { ...before };
  const decided = decide({ same: equalBytes, next }, after, { term, nowMs });
  // Lists grow by what is named anew alone.
  const isListed = after.top === before.top || isListOfSize(after);
  if (after.top > context.tokenCeiling || !isListed) return null;
  if (isChanged(before, after)) {
    noteLapse(context, before, after);
    if (!after.isHeld) after.endMs = Math.min(before.endMs, nowMs);
    after.endMs = leaseEnd(after.endMs, 0);
    after.untilMs = leaseEnd(after.untilMs, 0);
    if (after.heirs.length === 0 && ended(after.untilMs, nowMs)) after.untilMs = 0;
    const bytes = successionLockRow(after);
    if (row === null) context.rows.insert(RowKind.lock, key, bytes);
    else context.rows.put(RowKind.lock, key, bytes);
  }
  return { decided, before, after };
}

/** The rules replace what they change. */
function isChanged(before: Stored, after: Stored): boolean {
  return (
    before.isHeld !== after.isHeld ||
    before.base !== after.base ||
    before.endMs !== after.endMs ||
    before.heirs !== after.heirs ||
    before.untilMs !== after.untilMs ||
    before.top !== after.top
  );
}

/** Whether the grant that was the holder's is so no more. */
function isOver(before: Stored, after: Stored): boolean {
  return before.isHeld && (!after.isHeld || after.base.token !== before.base.token);
}

/** As of rows without heirs: counts a lease that ended by itself, once for each grant. */
function noteLapse(context: DecisionContext, before: Stored, after: Stored): void {
  if (isOver(before, after) && ended(before.endMs, context.nowMs)) context.lapsedLocks++;
}

/** What heirs take of a row, about (bytes). */
export function heirsBytes(heirs: readonly Pick<NewHeir, "owner" | "note">[]): number {
  let sizeBytes = 0;
  for (const { owner, note } of heirs) {
    sizeBytes += HEIR_BYTES + owner.length + (note?.length ?? 0);
  }
  return sizeBytes;
}

/** One of them, beside owner and note. */
const HEIR_BYTES = 33;

function isListOfSize({ heirs }: Stored): boolean {
  return heirs.length <= HEIRS_MAX && heirsBytes(heirs) <= HEIRS_MAX_BYTES;
}

/** With bytes of its own: neither entry nor row is kept for what is known or told of them. */
export function own<Told extends { readonly owner: Uint8Array; readonly note: Uint8Array | null }>(
  told: Told,
): Told {
  return { ...told, owner: told.owner.slice(), note: told.note?.slice() ?? null };
}

function grantOf({ token, owner, waitId, attempt, note }: Grant<Uint8Array, bigint>): LockGrant {
  return own({ token, owner, waitId, attempt, note });
}

const NOTHING: Handover = { from: null, to: [], isFree: false };

function handoverOf({ before, after }: Ruled<unknown>, nowMs: number): Handover {
  const hasMoved = after.base.token !== before.base.token;
  const wasOver = isOver(before, after);
  if (!hasMoved && !wasOver) return NOTHING;
  const at = before.heirs.findIndex(({ token }) => token === after.base.token);
  const passed = at < 0 ? [] : before.heirs.slice(0, at);
  return {
    from: wasOver && !ended(before.endMs, nowMs) ? grantOf(before.base) : null,
    to: hasMoved ? [...passed, after.base].map(grantOf) : [],
    isFree: before.isHeld && !after.isHeld,
  };
}

function outcomeOf(
  { nowMs }: DecisionContext,
  ruled: Ruled<LockDecided> | null,
  released: bigint | null,
): LockOutcome {
  if (ruled === null) return { kind: "lock", type: LockType.errored, token: 0n };
  const { decided, before, after } = ruled;
  const type = TYPES[decided];
  const handover = handoverOf(ruled, nowMs);
  switch (decided) {
    case "locked":
    case "extended":
      return { kind: "lock", type, token: after.base.token, handover };
    case "unlocked":
      return { kind: "lock", type, token: released ?? before.base.token, handover };
    default:
      return { kind: "lock", type, token: 0n, handover };
  }
}

/** Lets a rule of the lock's commands decide over a row. */
function decideListed(
  context: DecisionContext,
  key: ByteKey,
  row: LockRow | null,
  decide: (values: LockValues, row: Succession, when: When) => LockDecided,
  released: bigint | null = null,
): LockOutcome {
  return outcomeOf(context, rule(context, key, row, decide), released);
}

/** L1 to L3, Q14, Q15. */
export function tryListed(
  context: DecisionContext,
  key: ByteKey,
  row: LockRow | null,
  ask: Ask<Uint8Array, bigint>,
): LockOutcome {
  return decideListed(context, key, row, (values, at, when) => tryLock(values, at, when, own(ask)));
}

/** L4 to L6, Q13, Q17. */
export function extendListed(
  context: DecisionContext,
  key: ByteKey,
  row: LockRow,
  word: LockWord & { readonly leaseMs: number; readonly note: Uint8Array | null },
): LockOutcome {
  return decideListed(context, key, row, (values, at, when) => extend(values, at, when, own(word)));
}

/** L7 to L9, Q13. */
export function unlockListed(
  context: DecisionContext,
  key: ByteKey,
  row: LockRow,
  word: LockWord,
): LockOutcome {
  const decide = (values: LockValues, at: Succession, when: When): LockDecided =>
    unlock(values, at, when, word);
  return decideListed(context, key, row, decide, word.token);
}

/** F3, F4. */
export function forceListed(
  context: DecisionContext,
  key: ByteKey,
  row: LockRow,
  token: bigint,
): LockOutcome {
  return decideListed(context, key, row, (_values, at, when) => forceUnlock(at, when, token));
}

function isHeir({ owner, waitId, leaseMs, note }: NewHeir): boolean {
  if (!isOwner(owner) || waitId < 1n || (note?.length ?? 0) > LOCK_NOTE_MAX_BYTES) return false;
  return leaseMs >= 1 && leaseMs <= HEIR_LEASE_MAX_MS;
}

function changeList(
  context: DecisionContext,
  { resource, added }: HeirListCommand,
  decide: (values: LockValues, row: Succession, when: When) => ListDecided,
): HeirsOutcome {
  const key = resourceKey(resource);
  if (key === null || added.length > HEIRS_MAX || !added.every(isHeir)) {
    return { kind: "heirs", status: "invalid" };
  }
  const ruled = rule(context, key, loadLock(context.rows, key), decide);
  return { kind: "heirs", status: ruled?.decided ?? "stale" };
}

function setList(context: DecisionContext, command: SetHeirsCommand): HeirsOutcome {
  const { token, kept, added, horizonMs } = command;
  return changeList(context, command, (values, row, when) =>
    setHeirs(values, row, when, token, kept, added.map(own), horizonMs),
  );
}

function appendList(context: DecisionContext, command: AppendHeirsCommand): HeirsOutcome {
  const { token, added, horizonMs } = command;
  return changeList(context, command, (values, row, when) =>
    appendHeirs(values, row, when, token, added.map(own), horizonMs),
  );
}

export const HEIR_LIST_RULES: Rules<HeirListCommand, HeirsOutcome> = {
  "set-heirs": setList,
  "append-heirs": appendList,
};
