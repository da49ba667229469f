/**
 * The public surface of the client library: everything that a program may import, and nothing else.
 *
 * Owns no state.
 *
 * @example
 * import { SvcClient } from "svc";
 *
 * await using client = new SvcClient({ endpoints: "http://127.0.0.1:8083" });
 * const id = await client.sequence("orders").next();
 */
export { SvcClient, type CloseOptions } from "./client.js";
export type {
  CallOptions,
  Durability,
  Idempotency,
  MonotonicClock,
  SvcClientOptions,
  TlsOptions,
} from "./options.js";
export { toSafeNumber, type Int64Input, type Timestamp } from "./numbers.js";
export { Sequence, Sequences, type AllocateOptions } from "./sequences.js";
export type {
  SequenceDelete,
  SequenceInfo,
  SequenceParameters,
  SequenceRange,
  SequenceUpdate,
} from "./sequence-shapes.js";
export { SequencePrefetch, type PrefetchOptions } from "./prefetch.js";
export { Locks, type LockStep } from "./locks.js";
export type {
  AcquireOptions,
  LockCallOptions,
  LockExtension,
  LockGrant,
  LockInfo,
  UnlockAnswer,
} from "./lock-shapes.js";
export type { LockHandle } from "./lock-handle.js";
export { KeyValues } from "./kv.js";
export type {
  BucketRange,
  KvCallOptions,
  KvDelete,
  KvEntry,
  KvExistence,
  KvGetOptions,
  KvItem,
  KvItemKey,
  KvIterateOptions,
  KvManyResult,
  KvPage,
  KvPageOptions,
  KvRangeOptions,
  KvSetItem,
  KvSetOptions,
  KvWrite,
} from "./kv-shapes.js";
export { ClusterAdmin } from "./cluster.js";
export type {
  ClusterMember,
  Health,
  HealthDetails,
  LeaveResult,
  Membership,
  Placement,
  PartitionPlacement,
  PartitionReplica,
  ReplicationFactorResult,
  RoutingKeySpace,
  RoutingMetadata,
  RoutingRange,
} from "./cluster-shapes.js";
export { RangesAdmin } from "./ranges.js";
export type {
  KeySpaceRanges,
  MergeResult,
  RangeDescriptor,
  RangeMap,
  RegisterResult,
  SplitResult,
  UnregisterResult,
} from "./range-shapes.js";
export { BackupsAdmin, type RestoreOptions } from "./backups.js";
export type {
  BackupCollection,
  BackupDeletion,
  BackupInfo,
  BackupOrphan,
  RestoreResult,
} from "./backup-shapes.js";
export {
  AccessError,
  AlreadyExistsError,
  BackupError,
  CancelledError,
  ClosedError,
  InvalidInputError,
  LockLostError,
  LockNotAcquiredError,
  MaxValueExceededError,
  NotFoundError,
  SequenceMismatchError,
  ServerError,
  SvcError,
  SvcRangeError,
  TimeoutError,
  TooLargeError,
  UnavailableError,
  UnknownOutcomeError,
  type BackupOutcome,
  type CallOutcome,
} from "./errors.js";
