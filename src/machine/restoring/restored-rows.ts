/**
 * What becomes of each row when its cluster is restored, or made anew by the last node that is
 * left.
 *
 * Pure. Invariants: 1. Keys, revisions, tombstones, locks, idempotency entries, ranges and who has
 * which keys stay as they are. 2. Nothing of who the old cluster was is kept: its id, members and
 * former members, replicas, and holds of its planners (P-138). 3. No value of a block that somebody
 * may still have open is handed out again, nor under the incarnation of before (S6).
 */
import { assert, present } from "../../base/assert.js";
import { NOT_BORN, NO_CONFIG, membershipVersion, topologyVersion } from "../../base/ids.js";
import { INT64_MAX } from "../../base/int64.js";
import { successionOf } from "../locks/heirs.js";
import { FOREIGN_TERM, decodeLockRow, successionLockRow } from "../locks/lock-row.js";
import {
  decodeCluster,
  decodePartition,
  encodeCluster,
  encodePartition,
} from "../meta/meta-rows.js";
import {
  type SequenceRow,
  decodeSequenceRow,
  encodeSequenceRow,
} from "../sequences/sequence-row.js";
import { RowKind } from "../store/keys.js";
import { type ChainEnd, type RestoredFloors, liftedIncarnation } from "./lifted.js";

/** Topology versions that a cluster may go through before the next restore of its catalogue. */
const TOPOLOGY_STEP = 2 ** 20;

/** What a restore is about. */
export interface RestoreOrder {
  /** Of the cluster that comes out of it. */
  readonly clusterId: string;
  /** The how-manieth restore of the catalogue it is, from 1. */
  readonly ordinal: number;
  /** What earlier ones set. */
  readonly earlier: RestoredFloors;
  /** Of the partition at hand. */
  readonly end: ChainEnd;
  /** Increments by which every sequence moves on. */
  readonly sequenceSkip: bigint;
}

/** Kinds of rows that `restoredRow` may change. */
export const CHANGED_KINDS: readonly number[] = [
  RowKind.lock,
  RowKind.sequence,
  RowKind.cluster,
  RowKind.member,
  RowKind.partition,
  RowKind.formerMember,
  RowKind.plannerHold,
];

/** "gone": the row is deleted. "overflow": the restore is refused. */
export type RestoredRow = Uint8Array | "gone" | "overflow";

/** The row of `kind` in the restored cluster; `bytes` itself where it stays as it is. */
export function restoredRow(kind: number, bytes: Uint8Array, order: RestoreOrder): RestoredRow {
  switch (kind) {
    case RowKind.lock:
      return restoredLock(bytes);
    case RowKind.sequence:
      return restoredSequence(present(decodeSequenceRow(bytes), "a whole row"), order);
    case RowKind.cluster:
      return restoredCluster(bytes, order);
    case RowKind.partition:
      return restoredPartition(bytes);
    case RowKind.member:
    case RowKind.formerMember:
    case RowKind.plannerHold:
      return "gone";
    default:
      return bytes;
  }
}

/** Its list is orphaned, in whichever term: what of it was told, nobody here knows. */
function restoredLock(bytes: Uint8Array): Uint8Array {
  const row = present(decodeLockRow(bytes), "a whole row");
  if (row.succession === null || row.succession.heirs.length === 0) return bytes;
  return successionLockRow({ ...successionOf(row), listTerm: FOREIGN_TERM });
}

function restoredSequence(row: SequenceRow, order: RestoreOrder): RestoredRow {
  const incarnation = liftedIncarnation(row.incarnation, order.end, order.earlier);
  if (incarnation === null) return "overflow";
  const currentValue = skipped(row, order.sequenceSkip);
  return encodeSequenceRow({ ...row, incarnation, currentValue, before: currentValue });
}

/** Where a sequence stands after `count` increments; its largest value is the end. */
function skipped({ currentValue, increment, maxValue }: SequenceRow, count: bigint): bigint {
  assert(count >= 0n, "a sequence is moved on, not back");
  const end = maxValue ?? INT64_MAX;
  const moved = currentValue + count * increment;
  if (moved <= end) return moved;
  return currentValue > end ? currentValue : end;
}

function restoredCluster(bytes: Uint8Array, { clusterId, ordinal }: RestoreOrder): RestoredRow {
  assert(Number.isSafeInteger(ordinal) && ordinal >= 1, "restores are counted from 1");
  const record = present(decodeCluster(bytes), "a whole row");
  assert(clusterId !== record.clusterId, "a restored cluster is another one");
  const topology = record.topologyVersion + ordinal * TOPOLOGY_STEP;
  if (!Number.isSafeInteger(topology)) return "overflow";
  return encodeCluster({
    ...record,
    clusterId,
    membershipVersion: membershipVersion(0),
    topologyVersion: topologyVersion(topology),
  });
}

function restoredPartition(bytes: Uint8Array): Uint8Array {
  const record = present(decodePartition(bytes), "a whole row");
  const nobody = { founders: [], replicas: [], configIndex: NO_CONFIG, bornVersion: NOT_BORN };
  return encodePartition({ ...record, ...nobody });
}
