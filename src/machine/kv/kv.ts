/**
 * Key/value writes, rules K1, K2 and K5 to K10: set, extend, delete, for persistent rows and
 * ephemeral tables alike.
 *
 * Pure decisions over the rows of the context. Invariants: 1. A key's revisions go on through
 * delete and expiry as long as its row is there. 2. A revision becomes a history row only when it
 * was live, not expired and not set with SET_NO_REVISION. 3. A refusal changes nothing. 4. One
 * command drops at most DROPS_MAX history rows. 5. A key that the group does not own is not
 * touched, however old the map was that led here (P-100).
 */
import { present } from "../../base/assert.js";
import { EMPTY_BYTES, equalBytes } from "../../base/bytes.js";
import { NO_STAMP, type Hlc } from "../../base/hlc.js";
import { LEASE_MAX_MS, VALUE_CONFIGURABLE_MAX_BYTES } from "../../base/limits.js";
import {
  KvFlag,
  KvType,
  type KvCommand,
  type KvDeleteCommand,
  type KvExtendCommand,
  type KvOutcome,
  type KvSetCommand,
  type MovedOutcome,
} from "../commands/command.js";
import type { DecisionContext, Rules } from "../decision/context.js";
import { RowKind, historyKey, type ByteKey } from "../store/keys.js";
import {
  decodeKvRow,
  encodeKvRow,
  NO_RUNS,
  rowWith,
  type KvRow,
  type RevisionRun,
} from "./kv-row.js";
import { keepRevision, trimRevisions } from "./kept-revisions.js";
import { ended, isLeaseDuration, leaseEnd } from "../decision/lease.js";
import { kvKey } from "../store/names.js";
import type { Rows } from "../store/rows.js";

/** History rows that one command drops at most when the number to keep was lowered. */
const DROPS_MAX = 256;

const FLAGS_ALL =
  KvFlag.set |
  KvFlag.noRevision |
  KvFlag.ifExists |
  KvFlag.ifNotExists |
  KvFlag.ifEqualToValue |
  KvFlag.ifEqualToRevision;

const MOVED: MovedOutcome = { kind: "moved" };

function outcome(type: number, revision: number, lastModified: Hlc): KvOutcome {
  return { kind: "kv", type, revision, lastModified };
}

function bare(type: number): KvOutcome {
  return outcome(type, 0, NO_STAMP);
}

/** True when the row is a value that exists at `nowMs`. */
export function isLive(
  row: KvRow | null,
  nowMs: number,
): row is KvRow & { readonly deleted: false } {
  return row !== null && !row.deleted && (row.endMs === null || !ended(row.endMs, nowMs));
}

export function wholeKvRow(bytes: Uint8Array): KvRow {
  return present(decodeKvRow(bytes), "a stored value row is whole");
}

function isSettable(command: KvSetCommand): boolean {
  const { flags, expiresMs, revisionsRetained } = command;
  if (!Number.isInteger(flags) || (flags & ~FLAGS_ALL) !== 0) return false;
  if ((flags & KvFlag.ifExists) !== 0 && (flags & KvFlag.ifNotExists) !== 0) return false;
  if (!Number.isInteger(expiresMs) || expiresMs < 0 || expiresMs > LEASE_MAX_MS) return false;
  if (!isRetained(revisionsRetained)) return false;
  return isValue(command.value) && isValue(command.compareValue);
}

function isValue(value: Uint8Array | null): boolean {
  return value === null || value.length <= VALUE_CONFIGURABLE_MAX_BYTES;
}

function isRetained(revisions: number): boolean {
  return Number.isSafeInteger(revisions) && revisions >= 1;
}

/** K5. */
function conditionsHold(command: KvSetCommand, row: KvRow | null, nowMs: number): boolean {
  const { flags } = command;
  const live = isLive(row, nowMs);
  if ((flags & KvFlag.ifExists) !== 0 && !live) return false;
  if ((flags & KvFlag.ifNotExists) !== 0 && live) return false;
  if ((flags & KvFlag.ifEqualToRevision) !== 0) {
    const revision = row === null ? -1 : row.revision;
    if (command.compareRevision !== BigInt(revision)) return false;
  }
  if ((flags & KvFlag.ifEqualToValue) === 0) return true;
  const stored = live ? (row.value ?? EMPTY_BYTES) : EMPTY_BYTES;
  return equalBytes(stored, command.compareValue ?? EMPTY_BYTES);
}

/** What becomes of a row and its history when another row takes its place. */
interface Supersession {
  /** The row becomes a history row. */
  readonly keep: boolean;
  /** Kept revisions, for the row that takes its place. */
  readonly kept: readonly RevisionRun[];
  /** Revisions whose history rows go. */
  readonly dropped: readonly number[];
}

const NOTHING_KEPT: Supersession = { keep: false, kept: NO_RUNS, dropped: [] };

function supersede(row: KvRow, nowMs: number, revisionsRetained: number): Supersession {
  const keep = isLive(row, nowMs) && !row.passing && revisionsRetained > 1;
  const kept = keep ? keepRevision(row.kept, row.revision) : row.kept;
  if (kept.length === 0) return NOTHING_KEPT;
  const trimmed = trimRevisions(kept, revisionsRetained - 1, DROPS_MAX);
  return { keep, kept: trimmed.kept, dropped: trimmed.dropped };
}

/**
 * Writes and drops history rows. After the write of the row itself, whose key is then still at
 * hand.
 */
function moveHistory(
  rows: Rows,
  key: ByteKey,
  revision: number,
  bytes: Uint8Array,
  change: Supersession,
): void {
  if (change.keep) rows.insert(RowKind.history, historyKey(key, revision), bytes);
  for (const dropped of change.dropped) rows.delete(RowKind.history, historyKey(key, dropped));
}

function kvSet(context: DecisionContext, command: KvSetCommand): KvOutcome | MovedOutcome {
  const key = kvKey(command.key);
  if (key === null || !isSettable(command)) return bare(KvType.invalidInput);
  if (!context.ownership.owns(key)) return MOVED;
  const { rows, nowMs } = context;
  const bytes = rows.get(RowKind.value, key);
  const row = bytes === null ? null : wholeKvRow(bytes);
  if (!conditionsHold(command, row, nowMs)) {
    return outcome(KvType.notSet, row?.revision ?? -1, row?.stamp ?? NO_STAMP);
  }
  const revision = row === null ? 0 : row.revision + 1;
  const change = row === null ? NOTHING_KEPT : supersede(row, nowMs, command.revisionsRetained);
  const next = encodeKvRow({
    deleted: false,
    value: command.value,
    passing: (command.flags & KvFlag.noRevision) !== 0,
    revision,
    stamp: context.stamp,
    endMs: command.expiresMs === 0 ? null : leaseEnd(nowMs, command.expiresMs),
    kept: change.kept,
  });
  if (row === null || bytes === null) rows.insert(RowKind.value, key, next);
  else {
    rows.put(RowKind.value, key, next);
    moveHistory(rows, key, row.revision, bytes, change);
  }
  return outcome(KvType.set, revision, context.stamp);
}

/** K8. The revision stays; the time of the last change is that of the extension. */
function kvExtend(context: DecisionContext, command: KvExtendCommand): KvOutcome | MovedOutcome {
  const key = kvKey(command.key);
  if (key === null || !isLeaseDuration(command.expiresMs)) return bare(KvType.invalidInput);
  if (!context.ownership.owns(key)) return MOVED;
  const { rows, nowMs, stamp } = context;
  const bytes = rows.get(RowKind.value, key);
  const row = bytes === null ? null : wholeKvRow(bytes);
  if (!isLive(row, nowMs)) return bare(KvType.doesNotExist);
  const endMs = leaseEnd(nowMs, command.expiresMs);
  rows.put(RowKind.value, key, encodeKvRow(rowWith(row, { stamp, endMs })));
  return outcome(KvType.extended, row.revision, stamp);
}

/** K9, K10. */
function kvDelete(context: DecisionContext, command: KvDeleteCommand): KvOutcome | MovedOutcome {
  const key = kvKey(command.key);
  if (key === null || !isRetained(command.revisionsRetained)) return bare(KvType.invalidInput);
  if (!context.ownership.owns(key)) return MOVED;
  const { rows, nowMs, stamp } = context;
  const bytes = rows.get(RowKind.value, key);
  if (bytes === null) return bare(KvType.doesNotExist);
  const row = wholeKvRow(bytes);
  if (row.deleted) return outcome(KvType.doesNotExist, row.revision, row.stamp);
  if (!isLive(row, nowMs)) return bare(KvType.doesNotExist);
  const change = supersede(row, nowMs, command.revisionsRetained);
  const revision = row.revision + 1;
  const tombstone = { deleted: true, value: null, passing: true, revision, stamp, endMs: nowMs };
  rows.put(RowKind.value, key, encodeKvRow({ ...tombstone, kept: change.kept }));
  moveHistory(rows, key, row.revision, bytes, change);
  return outcome(KvType.deleted, revision, stamp);
}

export const KV_RULES: Rules<KvCommand, KvOutcome | MovedOutcome> = {
  "kv-set": kvSet,
  "kv-extend": kvExtend,
  "kv-delete": kvDelete,
};
