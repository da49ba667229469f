/**
 * Whether the bytes of a row are a row of its kind: asked before rows of foreign origin enter the
 * state.
 *
 * Pure. Invariant: a row that passes here is one that no decision and no read will stumble over.
 */
import { RowKind } from "../store/keys.js";
import { decodeKvRow, isKvRow } from "../kv/kv-row.js";
import { decodeAuditHead, decodeLockAudit } from "../locks/lock-audit-row.js";
import { decodeLockRow } from "../locks/lock-row.js";
import {
  decodeCluster,
  decodeFormerMember,
  decodeMember,
  decodePartition,
  decodeRange,
} from "../meta/meta-rows.js";
import { decodePlannerHold } from "../meta/planner-holds.js";
import { decodeLeaving, decodeMove } from "../meta/range-rows.js";
import { decodeOwnership } from "../ownership/ownership-row.js";
import { decodeAllocationRow, decodeSequenceRow } from "../sequences/sequence-row.js";
import type { ChunkRow } from "./chunk-row.js";

const decoders = new Map<number, (bytes: Uint8Array) => unknown>([
  [RowKind.lock, decodeLockRow],
  [RowKind.lockAudit, decodeLockAudit],
  [RowKind.lockAuditHead, decodeAuditHead],
  [RowKind.sequence, decodeSequenceRow],
  [RowKind.sequenceKey, decodeAllocationRow],
  [RowKind.sequenceOrder, (bytes) => bytes],
  [RowKind.value, decodeKvRow],
  [RowKind.history, decodeKvRow],
  [RowKind.ownership, decodeOwnership],
  [RowKind.cluster, decodeCluster],
  [RowKind.member, decodeMember],
  [RowKind.partition, decodePartition],
  [RowKind.range, decodeRange],
  [RowKind.formerMember, decodeFormerMember],
  [RowKind.leavingKeySpace, decodeLeaving],
  [RowKind.rangeMove, decodeMove],
  [RowKind.plannerHold, decodePlannerHold],
]);

/** False for an unknown kind and for bytes that are no row of this kind and of a known version. */
export function isWholeRow(kind: number, bytes: Uint8Array): boolean {
  const decode = decoders.get(kind);
  return decode !== undefined && decode(bytes) !== null;
}

/** The same of a row in a chunk; the rows that there are most of cost no memory. */
export function isWholeChunkRow(row: ChunkRow): boolean {
  const { kind, bytes, valueAt, valueEnd } = row;
  if (kind === RowKind.value || kind === RowKind.history) return isKvRow(bytes, valueAt, valueEnd);
  return isWholeRow(kind, row.value);
}
