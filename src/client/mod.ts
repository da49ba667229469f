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
export { Locks, type ExtendStep, type LockStep, type TryStep } from "./locks/locks.js";
export type {
  AcquireOptions,
  ExtendOptions,
  ForcedRelease,
  ForceStep,
  ListedLock,
  LockAuditOptions,
  LockAuditRecord,
  LockCallOptions,
  LockExtension,
  LockGrant,
  LockInfo,
  LockInfoOptions,
  LockListOptions,
  UnlockAnswer,
} from "./locks/lock-shapes.js";
export type { LockHandle } from "./locks/lock-handle.js";
export {
  Election,
  type CampaignOptions,
  type Leader,
  type Leadership,
  type ObserveOptions,
} from "./elections/election.js";
export { Watches } from "./watching/watches.js";
export type { Watch } from "./watching/watch.js";
export type {
  KeyWatchOptions,
  WatchBatch,
  WatchEvent,
  WatchEventType,
  WatchOptions,
} from "./watching/watch-shapes.js";
export { PrefixCache, type CachedEntry } from "./watching/cache.js";
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
export * from "./admin/cluster.js";
export * from "./admin/ranges.js";
export * from "./admin/backups.js";
export type * from "./metadata/results.js";
export {
  AccessError,
  NotAtLevelError,
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
