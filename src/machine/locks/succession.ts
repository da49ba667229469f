/**
 * Heirs of a lock, rules Q14 to Q16: the holder, the committed list of those who follow, and what
 * each command makes of them. Decided in apply, from the row, the term and the lease time of the
 * entry; `heirAfter` and `isInTime` are for the leader that hands over in memory along the list.
 *
 * Pure: no clock, no memory of its own. `Bytes` and `Int` are what owners and numbers are written
 * in. Invariants: 1. No token is named for two: whoever is granted or named gets one above `top`.
 * 2. The base, the holder of the row, moves forward along the list only. 3. In the term of the list
 * it moves upon its own release, or to the first heir when its lease is over. 4. In a later term
 * the list is orphaned until `untilMs`: a leader that was deposed may still hand over along it. No
 * one but its members is granted then, and who is a member is taken at its word, as it cannot know
 * its token otherwise; one that names no token is told to come again. 5. An heir that was told ends
 * its lease before `untilMs`. 6. An heir that asks again was not told, and nobody behind it can be.
 */

/** What a row knows of one grant, made or to come. */
export interface Grant<Bytes, Int> {
  readonly token: Int;
  readonly owner: Bytes;
  readonly waitId: Int;
  /** Of the request that is told, and no other one of that wait. */
  readonly attempt: Int;
  readonly note: Bytes | null;
}

export interface Heir<Bytes, Int> extends Grant<Bytes, Int> {
  readonly leaseMs: number;
}

/** A lock as its row has it; changed in place by the rules. */
export interface SuccessionRow<Bytes, Int> {
  isHeld: boolean;
  /** The base: the last grant that the row knows of. */
  base: Grant<Bytes, Int>;
  endMs: number;
  /** The next holders, in order. */
  heirs: readonly Heir<Bytes, Int>[];
  /** The term in which the list was written; 0: there is none. */
  listTerm: number;
  /** No heir of the list believes beyond this (lease time). */
  untilMs: number;
  /** The highest token that was ever granted or named. */
  top: Int;
}

/** The entry that is applied. */
export interface When {
  readonly term: number;
  readonly nowMs: number;
}

/** A try-lock. `waitId` 0: it is no part of a wait that may be repeated. */
export interface Ask<Bytes, Int> {
  readonly owner: Bytes;
  readonly waitId: Int;
  readonly attempt: Int;
  readonly leaseMs: number;
  readonly note: Bytes | null;
}

/** Of a holder. `token` null: it does not say of which grant. */
export interface Word<Bytes, Int> {
  readonly owner: Bytes;
  readonly token: Int | null;
}

/** How the values are compared and counted. */
export interface Values<Bytes, Int> {
  readonly same: (one: Bytes, other: Bytes) => boolean;
  readonly next: (token: Int) => Int;
}

export type LockDecided =
  "locked" | "extended" | "unlocked" | "busy" | "must-retry" | "invalid-owner" | "not-held";
/** Of a list. */
export type ListDecided = "written" | "stale";

type Row<Bytes, Int> = SuccessionRow<Bytes, Int>;

function drop<Bytes, Int>(row: Row<Bytes, Int>): void {
  row.heirs = [];
  row.listTerm = 0;
}

/** Before each command: a list that is used up, or over by time in a later term, is none. */
function settle<Bytes, Int>(row: Row<Bytes, Int>, { term, nowMs }: When): void {
  if (row.listTerm === 0) return;
  const isOver = row.listTerm !== term && nowMs >= row.untilMs;
  if (isOver || row.heirs.length === 0) drop(row);
}

/** The list is of an earlier term: others may have been told along it. */
export function isOrphaned<Bytes, Int>(row: Row<Bytes, Int>, { term, nowMs }: When): boolean {
  const isListed = row.isHeld && row.heirs.length > 0;
  return isListed && row.listTerm !== term && nowMs < row.untilMs;
}

/** The first heir is the base from now on, until `endMs`. */
function advance<Bytes, Int>(row: Row<Bytes, Int>, endMs: number): void {
  const [first, ...behind] = row.heirs;
  if (first === undefined) return;
  row.base = first;
  row.heirs = behind;
  row.endMs = endMs;
}

/**
 * 0: the base, above: an heir; -1: neither. Who names a token of the list was told of it; without
 * one (`token` null) it may be a late word about an earlier grant, and counts for the base only.
 */
function memberAt<Bytes, Int>(
  { same }: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  owner: Bytes,
  token: Int | null,
): number {
  if (token === null) return same(row.base.owner, owner) ? 0 : -1;
  if (row.base.token === token) return same(row.base.owner, owner) ? 0 : -1;
  const at = row.heirs.findIndex((heir) => heir.token === token);
  return at >= 0 && same((row.heirs[at] as Heir<Bytes, Int>).owner, owner) ? at + 1 : -1;
}

/**
 * What a member says proves that all before it are done: it is the base from now on. Returns
 * whether it is one whose word counts.
 */
function claim<Bytes, Int>(
  values: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  owner: Bytes,
  token: Int | null,
): boolean {
  let at = memberAt(values, row, owner, token);
  if (at < 0 || (at > 0 && !isOrphaned(row, when))) return false;
  for (; at > 0; at--) advance(row, row.untilMs);
  return true;
}

/** An heir of an orphaned list, maybe told, that does not say of which grant it speaks. */
function isVague<Bytes, Int>(
  { same }: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  { owner, token }: Word<Bytes, Int>,
): boolean {
  if (token !== null || !isOrphaned(row, when) || same(row.base.owner, owner)) return false;
  return row.heirs.some((heir) => same(heir.owner, owner));
}

export function extend<Bytes, Int>(
  values: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  word: Word<Bytes, Int> & Pick<Heir<Bytes, Int>, "leaseMs" | "note">,
): LockDecided {
  const { owner, token, leaseMs, note } = word;
  settle(row, when);
  if (!row.isHeld) return "not-held";
  if (isVague(values, row, when, word)) return "must-retry";
  const isOther = token !== null && token !== row.base.token;
  // The lease that is over says nothing of an heir's that was told by a leader of before.
  if (row.endMs <= when.nowMs && !(isOther && isOrphaned(row, when))) return "not-held";
  if (!claim(values, row, when, owner, token)) return "invalid-owner";
  if (note !== null) row.base = { ...row.base, note };
  row.endMs = when.nowMs + leaseMs;
  return "extended";
}

/** The base is done; of an orphaned list the next one may believe since whenever. */
function release<Bytes, Int>(row: Row<Bytes, Int>, when: When): void {
  const [first] = row.heirs;
  if (first === undefined) {
    row.isHeld = false;
    drop(row);
  } else {
    advance(row, isOrphaned(row, when) ? row.untilMs : when.nowMs + first.leaseMs);
  }
}

export function unlock<Bytes, Int>(
  values: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  word: Word<Bytes, Int>,
): LockDecided {
  const { owner, token } = word;
  settle(row, when);
  if (!row.isHeld) return "not-held";
  if (isVague(values, row, when, word)) return "must-retry";
  if (!claim(values, row, when, owner, token)) return "invalid-owner";
  release(row, when);
  return "unlocked";
}

/** F3, F4: in the term of the list the heirs are void, as none of them can have been told. */
export function forceUnlock<Bytes, Int>(row: Row<Bytes, Int>, when: When, token: Int): LockDecided {
  settle(row, when);
  const isOld = isOrphaned(row, when);
  if (!row.isHeld || (!isOld && row.endMs <= when.nowMs)) return "not-held";
  if (row.base.token !== token) return "invalid-owner";
  if (!isOld) drop(row);
  release(row, when);
  return "unlocked";
}

function tryOrphaned<Bytes, Int>(
  { same }: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  ask: Ask<Bytes, Int>,
): LockDecided {
  const { base } = row;
  if (same(base.owner, ask.owner)) {
    if (base.waitId !== ask.waitId || ask.attempt <= base.attempt) return "must-retry";
    // Its heirs stay: its release may still reach the leader that was deposed.
    row.base = { ...base, attempt: ask.attempt };
    row.endMs = Math.max(row.endMs, when.nowMs + ask.leaseMs);
    return "locked";
  }
  const isAgain = ({ owner, waitId, attempt }: Heir<Bytes, Int>): boolean =>
    same(owner, ask.owner) && waitId === ask.waitId && attempt < ask.attempt;
  const at = row.heirs.findIndex(isAgain);
  if (at >= 0) row.heirs = row.heirs.slice(0, at);
  return "busy";
}

export function tryLock<Bytes, Int>(
  values: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  ask: Ask<Bytes, Int>,
): LockDecided {
  settle(row, when);
  if (isOrphaned(row, when)) return tryOrphaned(values, row, when, ask);
  if (row.isHeld && row.endMs > when.nowMs) {
    return values.same(row.base.owner, ask.owner) ? "locked" : "busy";
  }
  const { owner, waitId, attempt, leaseMs, note } = ask;
  const [first] = row.heirs;
  if (row.isHeld && first !== undefined) {
    if (first.waitId !== waitId || !values.same(first.owner, owner)) return "busy";
    advance(row, when.nowMs + leaseMs);
    row.base = { ...row.base, attempt };
    return "locked";
  }
  row.top = values.next(row.top);
  row.isHeld = true;
  row.base = { token: row.top, owner, waitId, attempt, note };
  row.endMs = when.nowMs + leaseMs;
  return "locked";
}

/** Writes `kept` and, behind them, those of `added` whose owners the row does not name yet. */
function write<Bytes, Int>(
  { same, next }: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  { term, nowMs }: When,
  list: Heir<Bytes, Int>[],
  added: readonly Ask<Bytes, Int>[],
  horizonMs: number,
): ListDecided {
  for (const ask of added) {
    const isOwn = ({ owner }: Grant<Bytes, Int>): boolean => same(owner, ask.owner);
    if (isOwn(row.base) || list.some(isOwn)) continue;
    row.top = next(row.top);
    list.push({ ...ask, token: row.top });
  }
  row.heirs = list;
  row.listTerm = list.length > 0 ? term : 0;
  let longestMs = 0;
  for (const { leaseMs } of list) longestMs = Math.max(longestMs, leaseMs);
  row.untilMs = Math.max(row.untilMs, nowMs + horizonMs + longestMs);
  return "written";
}

/** The list of the grant `base`: of what it is the first `kept`, and then `added`. */
export function setHeirs<Bytes, Int>(
  values: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  base: Int,
  kept: number,
  added: readonly Ask<Bytes, Int>[],
  horizonMs: number,
): ListDecided {
  settle(row, when);
  if (!row.isHeld || row.base.token !== base || isOrphaned(row, when)) return "stale";
  if (kept > row.heirs.length) return "stale";
  return write(values, row, when, row.heirs.slice(0, kept), added, horizonMs);
}

/** Lengthens the list whose last token is `last`: of the base while there is no heir. */
export function appendHeirs<Bytes, Int>(
  values: Values<Bytes, Int>,
  row: Row<Bytes, Int>,
  when: When,
  last: Int,
  added: readonly Ask<Bytes, Int>[],
  horizonMs: number,
): ListDecided {
  settle(row, when);
  const end = row.heirs[row.heirs.length - 1] ?? row.base;
  if (!row.isHeld || end.token !== last || isOrphaned(row, when)) return "stale";
  return write(values, row, when, row.heirs.slice(), added, horizonMs);
}

/** The heir behind the grant `token` of the row; null: there is none. */
export function heirAfter<Bytes, Int>(row: Row<Bytes, Int>, token: Int): Heir<Bytes, Int> | null {
  if (row.base.token === token) return row.heirs[0] ?? null;
  const at = row.heirs.findIndex((heir) => heir.token === token);
  return at < 0 ? null : (row.heirs[at + 1] ?? null);
}

/** Told at `nowMs`, the lease of `heir` ends before the list does, clocks that drift included. */
export function isInTime<Bytes, Int>(
  row: Row<Bytes, Int>,
  heir: Heir<Bytes, Int>,
  nowMs: number,
  marginMs: number,
): boolean {
  return nowMs + heir.leaseMs + marginMs <= row.untilMs;
}
