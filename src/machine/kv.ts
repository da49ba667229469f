/**
 * Key/value writes, rules K1, K2 and K5 to K10: set, extend, delete, for persistent rows and ephemeral tables alike.
 *
 * Pure decisions over the rows of the context. Invariants: 1. A key's revisions go on through delete and expiry as long
 * as its row is there. 2. A revision becomes a history row only when it was live, not expired and not set with
 * SET_NO_REVISION. 3. A refusal changes nothing. 4. One command drops at most DROPS_MAX history rows.
 */
import { present } from "../base/assert.js";
import { EMPTY_BYTES, equalBytes } from "../base/bytes.js";
import { NO_STAMP, type Hlc } from "../base/hlc.js";
import { LEASE_MAX_MS, VALUE_CONFIGURABLE_MAX_BYTES } from "../base/limits.js";
import {
  KvFlag,
  KvType,
  type KvDeleteCommand,
  type KvExtendCommand,
  type KvOutcome,
  type KvSetCommand,
} from "./command.js";
import type { DecisionContext } from "./context.js";
import { RowKind, historyKey, type ByteKey } from "./keys.js";
import { decodeKvRow, encodeKvRow, NO_RUNS, type KvRow, type RevisionRun } from "./kv-row.js";
import { keepRevision, trimRevisions } from "./kept-revisions.js";
import { ended, isLeaseDuration, leaseEnd } from "./lease.js";
import { kvKey } from "./names.js";

/** History rows that one command drops at most when the number to keep was lowered. */
export const DROPS_MAX = 256;

const FLAGS_ALL =
  KvFlag.set |
  KvFlag.noRevision |
  KvFlag.ifExists |
  KvFlag.ifNotExists |
  KvFlag.ifEqualToValue |
  KvFlag.ifEqualToRevision;

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

/**
 * Turns the row into history where it is to be kept and drops what is too old. Returns the runs of kept revisions for
 * the row that takes its place.
 */
function supersede(
  context: DecisionContext,
  key: ByteKey,
  row: KvRow,
  bytes: Uint8Array,
  revisionsRetained: number,
): readonly RevisionRun[] {
  let kept = row.kept;
  if (isLive(row, context.nowMs) && !row.passing && revisionsRetained > 1) {
    context.rows.insert(RowKind.history, historyKey(key, row.revision), bytes);
    kept = keepRevision(kept, row.revision);
  }
  if (kept.length === 0) return NO_RUNS;
  const trimmed = trimRevisions(kept, revisionsRetained - 1, DROPS_MAX);
  for (const revision of trimmed.dropped) {
    context.rows.delete(RowKind.history, historyKey(key, revision));
  }
  return trimmed.kept;
}

export function kvSet(context: DecisionContext, command: KvSetCommand): KvOutcome {
  const key = kvKey(command.key);
  if (key === null || !isSettable(command)) return bare(KvType.invalidInput);
  const { rows, nowMs } = context;
  const bytes = rows.get(RowKind.value, key);
  const row = bytes === null ? null : wholeKvRow(bytes);
  if (!conditionsHold(command, row, nowMs)) {
    return outcome(KvType.notSet, row?.revision ?? -1, row?.stamp ?? NO_STAMP);
  }
  const revision = row === null ? 0 : row.revision + 1;
  const next = encodeKvRow({
    deleted: false,
    value: command.value,
    passing: (command.flags & KvFlag.noRevision) !== 0,
    revision,
    stamp: context.stamp,
    endMs: command.expiresMs === 0 ? null : leaseEnd(nowMs, command.expiresMs),
    kept:
      row === null || bytes === null
        ? NO_RUNS
        : supersede(context, key, row, bytes, command.revisionsRetained),
  });
  if (row === null) rows.insert(RowKind.value, key, next);
  else rows.put(RowKind.value, key, next);
  return outcome(KvType.set, revision, context.stamp);
}

/** K8. The revision stays; the time of the last change is that of the extension. */
export function kvExtend(context: DecisionContext, command: KvExtendCommand): KvOutcome {
  const key = kvKey(command.key);
  if (key === null || !isLeaseDuration(command.expiresMs)) return bare(KvType.invalidInput);
  const { rows, nowMs, stamp } = context;
  const bytes = rows.get(RowKind.value, key);
  const row = bytes === null ? null : wholeKvRow(bytes);
  if (!isLive(row, nowMs)) return bare(KvType.doesNotExist);
  const endMs = leaseEnd(nowMs, command.expiresMs);
  rows.put(RowKind.value, key, encodeKvRow({ ...row, stamp, endMs }));
  return outcome(KvType.extended, row.revision, stamp);
}

/** K9, K10. */
export function kvDelete(context: DecisionContext, command: KvDeleteCommand): KvOutcome {
  const key = kvKey(command.key);
  if (key === null || !isRetained(command.revisionsRetained)) return bare(KvType.invalidInput);
  const { rows, nowMs, stamp } = context;
  const bytes = rows.get(RowKind.value, key);
  if (bytes === null) return bare(KvType.doesNotExist);
  const row = wholeKvRow(bytes);
  if (row.deleted) return outcome(KvType.doesNotExist, row.revision, row.stamp);
  if (!isLive(row, nowMs)) return bare(KvType.doesNotExist);
  const kept = supersede(context, key, row, bytes, command.revisionsRetained);
  const revision = row.revision + 1;
  const tombstone = { deleted: true, value: null, passing: true, revision, stamp, endMs: nowMs };
  rows.put(RowKind.value, key, encodeKvRow({ ...tombstone, kept }));
  return outcome(KvType.deleted, revision, stamp);
}
