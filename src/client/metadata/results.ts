/**
 * What administrative calls answer. Member names and texts are those of the REST interface; the
 * members themselves are described in `api/`.
 *
 * Types only. Invariants: 1. 64-bit numbers are bigint. 2. A refusal is data (`success` or `left`
 * false), but for backups, whose refusals are errors. 3. What does not apply is null.
 */
import type {
  BACKUP_COLLECTION,
  BACKUP_DELETION,
  BACKUP_INFO,
  BACKUP_ORPHAN,
  RESTORED,
} from "../../api/backups.js";
import type {
  HEALTH,
  LEAVE,
  MEMBER,
  MEMBERSHIP,
  PARTITION,
  PLACEMENT,
  REPLICA,
  REPLICATION_FACTOR,
  ROUTING,
  ROUTING_KEY_SPACE,
  ROUTING_RANGE,
} from "../../api/cluster.js";
import type { ReadOf } from "../../api/members.js";
import type {
  KEY_SPACE_RANGES,
  MERGED,
  RANGE,
  RANGES,
  REGISTERED,
  SPLIT,
  UNREGISTERED,
} from "../../api/ranges.js";

/** Readiness of the node that answered. */
export interface Health {
  readonly ready: boolean;
  /** The full body of the health path; null over gRPC, whose health service has none. */
  readonly details: HealthDetails | null;
}
export type HealthDetails = ReadOf<typeof HEALTH>;

export type ClusterMember = ReadOf<typeof MEMBER>;
export type Membership = ReadOf<typeof MEMBERSHIP>;
export type LeaveResult = ReadOf<typeof LEAVE>;
export type PartitionReplica = ReadOf<typeof REPLICA>;
export type PartitionPlacement = ReadOf<typeof PARTITION>;
export type Placement = ReadOf<typeof PLACEMENT>;
export type ReplicationFactorResult = ReadOf<typeof REPLICATION_FACTOR>;
export type RoutingRange = ReadOf<typeof ROUTING_RANGE>;
export type RoutingKeySpace = ReadOf<typeof ROUTING_KEY_SPACE>;
export type RoutingMetadata = ReadOf<typeof ROUTING>;

export type RangeDescriptor = ReadOf<typeof RANGE>;
export type KeySpaceRanges = ReadOf<typeof KEY_SPACE_RANGES>;
export type RangeMap = ReadOf<typeof RANGES>;
export type RegisterResult = ReadOf<typeof REGISTERED>;
export type UnregisterResult = ReadOf<typeof UNREGISTERED>;
export type SplitResult = ReadOf<typeof SPLIT>;
export type MergeResult = ReadOf<typeof MERGED>;

export type BackupInfo = ReadOf<typeof BACKUP_INFO>;
export type BackupDeletion = ReadOf<typeof BACKUP_DELETION>;
export type BackupOrphan = ReadOf<typeof BACKUP_ORPHAN>;
export type BackupCollection = ReadOf<typeof BACKUP_COLLECTION>;
export type RestoreResult = ReadOf<typeof RESTORED>;
