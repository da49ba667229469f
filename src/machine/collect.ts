/**
 * Collection: drops rows that are past their retention by lease time, in resumable slices (L17, K1,
 * S11).
 *
 * Pure decision over the rows of the context. Visits locks, idempotency entries and values, in this
 * order. Invariants: 1. Held locks and live values are never touched, however long idle. 2.
 * Dropping a lock lifts the floor above it; what is dropped is behind the time that is told (W7).
 * 3. A value leaves together with its history: when the slice is used up in between, the row stays
 * with what is left. 4. One slice drops at most `limit` rows and looks at VISITS_PER_DROP times as
 * many, or SLICE_BYTES of rows. 5. Keys that the group does not own are passed over.
 */
import type { CollectCommand, CollectOutcome } from "./commands/command.js";
import type { DecisionContext } from "./decision/context.js";
import { RowKind, fromByteKey, historyKey, toByteKey, type ByteKey } from "./store/keys.js";
import { trimRevisions } from "./kv/kept-revisions.js";
import { isLive, wholeKvRow } from "./kv/kv.js";
import { encodeKvRow, rowWith } from "./kv/kv-row.js";
import { ended, leaseEnd } from "./decision/lease.js";
import { dropIdleLock } from "./locks/locks.js";
import { dropRemembered } from "./sequences/idempotency.js";

const VISITS_PER_DROP = 4;
const SLICE_BYTES = 1024 * 1024;
const kinds = [RowKind.lock, RowKind.sequenceKey, RowKind.value] as const;

interface Candidate {
  readonly kind: number;
  readonly name: ByteKey;
  readonly value: Uint8Array;
}

interface Gathered {
  readonly candidates: readonly Candidate[];
  /**
   * Kind and name of the last row looked at when the slice ended early; null at the end of all
   * rows.
   */
  readonly last: ByteKey | null;
}

/**
 * Reads the rows of one slice: nothing may change while a scan runs, so changes come afterwards.
 */
function gather(context: DecisionContext, after: ByteKey, visitsMax: number): Gathered {
  const candidates: Candidate[] = [];
  let bytes = 0;
  let full = false;
  const afterKind = after === "" ? 0 : after.charCodeAt(0);
  for (const kind of kinds) {
    if (kind < afterKind || full) continue;
    const first = kind === afterKind ? `${after.slice(1)}\0` : "";
    context.rows.scan(kind, first, null, (name, value) => {
      full = candidates.length >= visitsMax || bytes >= SLICE_BYTES;
      if (full) return false;
      candidates.push({ kind, name, value });
      bytes += name.length + value.length;
      return true;
    });
  }
  const last = candidates[candidates.length - 1];
  if (!full || last === undefined) return { candidates, last: null };
  return { candidates, last: String.fromCharCode(last.kind) + last.name };
}

/**
 * Drops a tombstone or an expired value past retention with its history, at most `limit` rows; an
 * expired value within retention gives up its bytes. Returns rows dropped, and whether the row is
 * dealt with.
 */
function collectValue(
  context: DecisionContext,
  candidate: Candidate,
  command: CollectCommand,
  limit: number,
): { readonly dropped: number; readonly finished: boolean } {
  const { rows, nowMs } = context;
  const row = wholeKvRow(candidate.value);
  if (isLive(row, nowMs) || row.endMs === null) return { dropped: 0, finished: true };
  const retentionMs = command.tombstoneRetentionMs;
  if (retentionMs <= 0 || !ended(leaseEnd(row.endMs, retentionMs), nowMs)) {
    if (row.value === null) return { dropped: 0, finished: true };
    rows.put(RowKind.value, candidate.name, encodeKvRow(rowWith(row, { value: null })));
    return { dropped: 1, finished: true };
  }
  const trimmed = trimRevisions(row.kept, 0, limit);
  for (const revision of trimmed.dropped) {
    rows.delete(RowKind.history, historyKey(candidate.name, revision));
  }
  const dropped = trimmed.dropped.length;
  if (trimmed.kept.length === 0 && dropped < limit) {
    rows.delete(RowKind.value, candidate.name);
    // A deletion and the clock of whoever knows nothing of it can have the same time.
    const aboveMs = leaseEnd(row.endMs, 1);
    context.collectedKeysMs = Math.max(context.collectedKeysMs, aboveMs);
    return { dropped: dropped + 1, finished: true };
  }
  rows.put(
    RowKind.value,
    candidate.name,
    encodeKvRow(rowWith(row, { value: null, kept: trimmed.kept })),
  );
  return { dropped, finished: false };
}

function collectCandidate(
  context: DecisionContext,
  candidate: Candidate,
  command: CollectCommand,
  limit: number,
): { readonly dropped: number; readonly finished: boolean } {
  const { kind, name, value } = candidate;
  if (kind === RowKind.value) {
    // What a move fills or takes away is for the move alone: it counts what it has there.
    if (!context.ownership.owns(name)) return { dropped: 0, finished: true };
    return collectValue(context, candidate, command, limit);
  }
  const drop =
    kind === RowKind.lock
      ? dropIdleLock(context, name, value, Math.max(0, command.lockRetentionMs))
      : dropRemembered(context, name, value);
  return { dropped: drop ? 1 : 0, finished: true };
}

/** Largest number of rows that one command may drop. */
const COLLECT_LIMIT_MAX = 10_000;

export function collectRows(context: DecisionContext, command: CollectCommand): CollectOutcome {
  const { limit } = command;
  if (!isCollectable(command)) return { kind: "collected", dropped: 0, next: null };
  const after = command.after === null ? "" : toByteKey(command.after);
  const { candidates, last } = gather(context, after, limit * VISITS_PER_DROP);
  let dropped = 0;
  let before: ByteKey = after;
  for (const candidate of candidates) {
    if (dropped >= limit) return sliceEnd(dropped, before);
    const result = collectCandidate(context, candidate, command, limit - dropped);
    dropped += result.dropped;
    if (!result.finished) return sliceEnd(dropped, before);
    before = String.fromCharCode(candidate.kind) + candidate.name;
  }
  return { kind: "collected", dropped, next: last === null ? null : fromByteKey(last) };
}

function sliceEnd(dropped: number, before: ByteKey): CollectOutcome {
  return { kind: "collected", dropped, next: fromByteKey(before) };
}

function isCollectable(command: CollectCommand): boolean {
  const { limit, lockRetentionMs, tombstoneRetentionMs } = command;
  if (!Number.isInteger(limit) || limit < 1 || limit > COLLECT_LIMIT_MAX) return false;
  return Number.isSafeInteger(lockRetentionMs) && Number.isSafeInteger(tombstoneRetentionMs);
}
