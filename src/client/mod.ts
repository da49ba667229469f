/**
 * The public surface of the client library: everything that a program may import, and nothing else.
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
} from "./values/options.js";
export { toSafeNumber, type Int64Input, type Timestamp } from "./values/numbers.js";
export { Sequence, Sequences, type AllocateOptions } from "./sequences/sequences.js";
export type {
  SequenceDelete,
  SequenceInfo,
  SequenceParameters,
  SequenceRange,
  SequenceUpdate,
} from "./sequences/sequence-shapes.js";
export { SequencePrefetch, type PrefetchOptions } from "./sequences/prefetch.js";
export { Locks, type LockStep } from "./locks/locks.js";
export type {
  AcquireOptions,
  LockCallOptions,
  LockExtension,
  LockGrant,
  LockInfo,
  UnlockAnswer,
} from "./locks/lock-shapes.js";
export type { LockHandle } from "./locks/lock-handle.js";
export { KeyValues } from "./kv/kv.js";
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
} from "./kv/kv-shapes.js";
export { ClusterAdmin } from "./admin/cluster.js";
export { RangesAdmin } from "./admin/ranges.js";
export { BackupsAdmin, type RestoreOptions } from "./admin/backups.js";
export type {
  BackupCollection,
  BackupDeletion,
  BackupInfo,
  BackupOrphan,
  ClusterMember,
  Health,
  HealthDetails,
  KeySpaceRanges,
  LeaveResult,
  Membership,
  MergeResult,
  PartitionPlacement,
  PartitionReplica,
  Placement,
  RangeDescriptor,
  RangeMap,
  RegisterResult,
  ReplicationFactorResult,
  RestoreResult,
  RoutingKeySpace,
  RoutingMetadata,
  RoutingRange,
  SplitResult,
  UnregisterResult,
} from "./metadata/results.js";
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
} from "./values/errors.js";
