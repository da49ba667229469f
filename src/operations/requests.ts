/**
 * Requests and answers of all operations: what the front ends hand down and get back, also over a forward.
 *
 * Types only, plain data. Invariants: 1. One type per request and answer serves REST, gRPC, batch streams and forwards.
 * 2. Text is well-formed but otherwise unchecked (trimming, emptiness, length are the operation's business). 3. Numbers
 * that came from outside are in their wire range (int32, int64) and otherwise unchecked. 4. Absent and zero differ.
 */
import type { Hlc } from "../base/hlc.js";
import type { Int64 } from "../base/int64.js";
import type { MemberRole, RangeDescriptor } from "../machine/command.js";

/** What accompanies every request. */
export interface RequestContext {
  /** When the answer must have been given, on the monotonic clock (ms); never later than the server's own bound. */
  readonly deadlineMs: number;
  /** Number of forwards so far; at 1 or more the request is not forwarded again. */
  readonly forwardHops: number;
  /** Echoed in logs. */
  readonly requestId: string;
}

export const Durability = { ephemeral: 0, persistent: 1 } as const;

// Data requests ----------------------------------------------------------------------------------------------------

export interface TryLockRequest {
  readonly kind: "try-lock";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  /** 0 ephemeral, 1 persistent, anything else is InvalidInput; so in every request. */
  readonly durability: number;
}
export interface TryExtendLockRequest {
  readonly kind: "try-extend";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  readonly durability: number;
}
export interface TryUnlockRequest {
  readonly kind: "try-unlock";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly durability: number;
}
export interface GetLockRequest {
  readonly kind: "get-lock";
  readonly resource: string;
  readonly durability: number;
}

export interface CreateSequenceRequest {
  readonly kind: "create-sequence";
  readonly name: string;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  readonly durability: number;
}
export interface UpdateSequenceRequest {
  readonly kind: "update-sequence";
  readonly name: string;
  readonly currentValue: bigint | null;
  readonly increment: bigint | null;
  readonly initialValue: bigint | null;
  readonly maxValue: bigint | null;
  readonly removeMaxValue: boolean;
  readonly blockSize: number | null;
  readonly removeBlockSize: boolean;
  readonly durability: number;
}
export interface GetSequenceRequest {
  readonly kind: "get-sequence";
  readonly name: string;
  readonly durability: number;
}
export interface DeleteSequenceRequest {
  readonly kind: "delete-sequence";
  readonly name: string;
  readonly durability: number;
}
export interface NextSequenceRequest {
  readonly kind: "next-sequence";
  readonly name: string;
  /** null or blank = none. */
  readonly idempotencyKey: string | null;
  readonly durability: number;
}
export interface ReserveSequenceRequest {
  readonly kind: "reserve-sequence";
  readonly name: string;
  readonly count: number;
  readonly idempotencyKey: string | null;
  readonly durability: number;
}

export interface KvSetRequest {
  readonly kind: "kv-set";
  readonly key: string;
  readonly value: Uint8Array | null;
  readonly compareValue: Uint8Array | null;
  readonly compareRevision: bigint;
  readonly expiresMs: number;
  readonly flags: number;
  readonly durability: number;
  /** True when every transactional field is zero, empty or absent; false makes it InvalidInput. So in every request. */
  readonly plain: boolean;
}
export interface KvExtendRequest {
  readonly kind: "kv-extend";
  readonly key: string;
  readonly expiresMs: number;
  readonly durability: number;
  readonly plain: boolean;
}
export interface KvDeleteRequest {
  readonly kind: "kv-delete";
  readonly key: string;
  readonly durability: number;
  readonly plain: boolean;
}
export interface KvGetRequest {
  readonly kind: "kv-get" | "kv-exists";
  readonly key: string;
  /** -1 latest, 0 and more exactly that revision. */
  readonly revision: bigint;
  readonly durability: number;
  readonly plain: boolean;
}
export interface KvSetManyRequest {
  readonly kind: "kv-set-many";
  readonly items: readonly KvSetRequest[];
}
export interface KvDeleteManyRequest {
  readonly kind: "kv-delete-many";
  readonly items: readonly KvDeleteRequest[];
  readonly plain: boolean;
}
export interface KvGetManyRequest {
  readonly kind: "kv-get-many" | "kv-exists-many";
  readonly items: readonly KvGetRequest[];
  readonly plain: boolean;
}
export interface KvBucketRequest {
  readonly kind: "kv-bucket";
  readonly bucket: string;
  readonly durability: number;
  readonly plain: boolean;
}
export interface KvScanRequest {
  /** "kv-scan-all": the whole cluster. "kv-scan-local": only the partitions that the answering node leads. */
  readonly kind: "kv-scan-all" | "kv-scan-local";
  readonly prefix: string;
  readonly includeTombstones: boolean;
  readonly limit: number;
  readonly cursor: string | null;
  readonly durability: number;
  readonly plain: boolean;
}
export interface KvRangeRequest {
  readonly kind: "kv-range";
  /** The bucket. */
  readonly prefix: string;
  readonly startKey: string | null;
  readonly startInclusive: boolean;
  readonly endKey: string | null;
  readonly endInclusive: boolean;
  readonly limit: number;
  readonly cursor: string | null;
  readonly durability: number;
  readonly plain: boolean;
}

export type LockRequest = TryLockRequest | TryExtendLockRequest | TryUnlockRequest | GetLockRequest;
export type SequenceRequest =
  | CreateSequenceRequest
  | UpdateSequenceRequest
  | GetSequenceRequest
  | DeleteSequenceRequest
  | NextSequenceRequest
  | ReserveSequenceRequest;
export type KvRequest =
  | KvSetRequest
  | KvExtendRequest
  | KvDeleteRequest
  | KvGetRequest
  | KvSetManyRequest
  | KvDeleteManyRequest
  | KvGetManyRequest
  | KvBucketRequest
  | KvScanRequest
  | KvRangeRequest;
export type DataRequest = LockRequest | SequenceRequest | KvRequest;
export type DataRequestKind = DataRequest["kind"];

// Data answers -----------------------------------------------------------------------------------------------------

export const RouteProvenance = { unknown: 0, executed: 1, forwarded: 2 } as const;
export interface RouteHint {
  readonly partitionId: number;
  readonly endpoint: string;
  readonly provenance: number;
  readonly generation: number;
}
/** Why a request was refused before anything was done: REST answers 503 with this code, gRPC MustRetry. */
export type Refusal = "overloaded" | "not-initialized" | "shutting-down";

interface AnswerBase {
  /** The numeric `type` of the API; on a refusal that API's MustRetry. */
  readonly type: number;
  /** Advertised client endpoint of the node that executed; "" when it advertises none; null when refused before that. */
  readonly servedFrom: string | null;
  readonly route: RouteHint | null;
  readonly refusal: Refusal | null;
}

export interface LockAnswer extends AnswerBase {
  readonly kind: "lock";
  readonly fencingToken: Int64;
  /** Only after get-lock that found one. */
  readonly owner: Uint8Array | null;
  readonly expires: Hlc;
  readonly expiresInMs: number;
}

export interface SequenceView {
  readonly name: string;
  readonly currentValue: Int64;
  readonly initialValue: Int64;
  readonly increment: Int64;
  readonly maxValue: Int64 | null;
  readonly blockSize: number | null;
  readonly incarnation: number;
  readonly revision: number;
  readonly createdAt: Hlc;
  readonly updatedAt: Hlc;
}
export interface SequenceAnswer extends AnswerBase {
  readonly kind: "sequence";
  readonly sequence: SequenceView | null;
  readonly revision: number;
}
export interface AllocationAnswer extends AnswerBase {
  readonly kind: "allocation";
  /** null when nothing was allocated. */
  readonly allocation: {
    readonly name: string;
    readonly start: Int64;
    readonly end: Int64;
    readonly count: number;
    readonly revision: number;
  } | null;
}

/** One key's result: of set, extend, delete, get and exists. */
export interface KvAnswer extends AnswerBase {
  readonly kind: "kv";
  readonly value: Uint8Array | null;
  readonly revision: number;
  readonly expires: Hlc;
  readonly lastModified: Hlc;
  /** KvState: 0 undefined, 1 set, 2 deleted. */
  readonly state: number;
}
export interface KvManyItem {
  readonly key: string;
  readonly durability: number;
  readonly type: number;
  readonly servedFrom: string | null;
  readonly value: Uint8Array | null;
  readonly revision: number;
  readonly expires: Hlc;
  readonly lastModified: Hlc;
  readonly state: number;
  /** 1-based into `routes`; 0 = none. */
  readonly routeIndex: number;
}
export interface KvManyAnswer extends AnswerBase {
  readonly kind: "kv-many";
  readonly items: readonly KvManyItem[];
  readonly routes: readonly RouteHint[];
}
export interface KvPageItem {
  readonly key: string;
  readonly value: Uint8Array | null;
  readonly revision: number;
  readonly expires: Hlc;
  readonly lastModified: Hlc;
  readonly state: number;
}
export interface KvPageAnswer extends AnswerBase {
  readonly kind: "kv-page";
  readonly items: readonly KvPageItem[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
  /** A bucket beyond the response limit (K14): no items, and the front end answers as the contract says. */
  readonly tooLarge: boolean;
}
export type DataAnswer =
  LockAnswer | SequenceAnswer | AllocationAnswer | KvAnswer | KvManyAnswer | KvPageAnswer;

/** The answer that belongs to a request. */
export type AnswerOf<R extends DataRequest> = R extends LockRequest
  ? LockAnswer
  : R extends NextSequenceRequest | ReserveSequenceRequest
    ? AllocationAnswer
    : R extends SequenceRequest
      ? SequenceAnswer
      : R extends KvSetManyRequest | KvDeleteManyRequest | KvGetManyRequest
        ? KvManyAnswer
        : R extends KvBucketRequest | KvScanRequest | KvRangeRequest
          ? KvPageAnswer
          : KvAnswer;

// Cluster ----------------------------------------------------------------------------------------------------------

export type LocalRole = MemberRole | "not-member";

export interface HealthAnswer {
  readonly ready: boolean;
  readonly initialized: boolean;
  readonly reason: string | null;
  readonly localRole: LocalRole;
  readonly hostedPartitions: number;
  readonly partitionsWithoutLeader: number;
  readonly version: string;
  readonly uptimeMs: number;
}
export interface HealthCheck {
  readonly name: "initialized" | "membership" | "leaders" | "applied" | "storage" | "shutdown";
  readonly failure: string | null;
}
export interface MembershipAnswer {
  readonly membershipVersion: number;
  readonly members: readonly {
    readonly endpoint: string;
    readonly nodeId: number;
    readonly role: MemberRole;
    readonly joinedVersion: number;
  }[];
  readonly localRole: LocalRole;
  readonly initialized: boolean;
}
/** Index = number on gRPC. */
export const LEAVE_OUTCOMES = [
  "Committed",
  "NotAMember",
  "RefusedInsufficientVoters",
  "NotInitialized",
  "NoLeader",
  "Timeout",
  "RefusedDrainInProgress",
  "DrainTimedOut",
] as const;
export interface LeaveAnswer {
  readonly left: boolean;
  readonly drained: boolean;
  readonly outcome: (typeof LEAVE_OUTCOMES)[number];
  readonly membershipVersion: number;
  readonly retryable: boolean;
  readonly reason: string;
}
export interface PlacementAnswer {
  readonly replicationFactor: number;
  readonly rebalancerEnabled: boolean;
  readonly initialized: boolean;
  readonly localEndpoint: string;
  readonly hostedPartitionCount: number;
  readonly partitions: readonly {
    readonly partitionId: number;
    readonly state: "Active" | "Splitting" | "Draining" | "Removed";
    readonly generation: number;
    readonly effectiveReplicationFactor: number;
    readonly hostedLocally: boolean;
    readonly replicas: readonly {
      readonly endpoint: string;
      readonly role: "Voter" | "Learner" | "Removing";
    }[];
  }[];
}
export interface ReplicationFactorAnswer {
  readonly success: boolean;
  readonly status: "Success" | "InvalidInput" | "Refused";
  readonly generation: number;
  readonly reason: string;
}
export interface RoutingAnswer {
  readonly initialized: boolean;
  readonly schemaVersion: number;
  readonly hashAlgorithm: string;
  readonly prefixSeparator: string;
  readonly groupSeparator: string;
  readonly hashPoolSize: number;
  readonly hashPartitionOffset: number;
  readonly sequenceStorageKeyFormat: string;
  readonly reservedKeyPrefix: string;
  readonly localEndpoint: string;
  readonly snapshotVersion: number;
  readonly coherent: boolean;
  readonly keySpaces: readonly KeySpaceView[];
  readonly leaders: readonly { readonly partitionId: number; readonly endpoint: string }[];
}
export interface KeySpaceView {
  readonly keySpace: string;
  readonly routingMode: "Hash" | "KeyRange";
  readonly ranges: readonly RangeDescriptor[];
}
export interface RangesAnswer {
  readonly initialized: boolean;
  readonly localEndpoint: string;
  readonly keySpaces: readonly KeySpaceView[];
}
export interface RegisterRangeAnswer {
  readonly success: boolean;
  readonly status: string;
  readonly seeded: boolean;
  readonly routingMode: "Hash" | "KeyRange";
  readonly descriptorCount: number;
  readonly reason: string;
}
export interface SplitRangeAnswer {
  readonly success: boolean;
  readonly status: string;
  readonly determinate: boolean;
  readonly newPartitionId: number;
  readonly newGeneration: number;
  readonly leaderHint: string;
  readonly reason: string;
}
export interface MergeRangesAnswer {
  readonly success: boolean;
  readonly status: string;
  readonly determinate: boolean;
  readonly merges: number;
  readonly leaderHint: string;
  readonly reason: string;
}
/** Index = number on REST restore answers. */
export const BACKUP_OUTCOMES = [
  "Ok",
  "NotConfigured",
  "ParentMissing",
  "NeedsFull",
  "CorruptChain",
  "CorruptArtifact",
  "TargetConflict",
  "TargetOutsideCoverage",
  "Cancelled",
  "IoError",
  "RetryableLeadershipLoss",
  "ExactCheckpointUnavailable",
  "UnsupportedFormat",
  "TopologyChanged",
  "NotBackupCoordinator",
  "InsecureRoot",
  "RestrictedCoverage",
] as const;
export type BackupOutcome = (typeof BACKUP_OUTCOMES)[number];
export interface BackupRefusal {
  readonly outcome: BackupOutcome | null;
  /** null outcome only: a malformed id or an empty target directory. */
  readonly message: string;
}

/** An administrative call that was not carried out because the node is not able to serve at all. */
export interface AdminRefusal {
  readonly refusal: Refusal;
}

/**
 * What the front ends see of a node. Every `done` is called exactly once, within the context's deadline, never in the
 * turn of the call (so also every refusal).
 */
export interface OperationsPort {
  /** Executes one data request. */
  execute<R extends DataRequest>(
    request: R,
    context: RequestContext,
    done: (answer: AnswerOf<R>) => void,
  ): void;
  /** The answer of type InvalidInput for a request of this kind that could not even be expressed (REST numbers). */
  invalidInput(kind: DataRequestKind): DataAnswer;
  /** The MustRetry answer, for what a front end itself must turn away: frame items beyond the bound, refusals. */
  mustRetry(kind: DataRequestKind, refusal: Refusal | null): DataAnswer;

  /** Local and immediate. */
  health(): HealthAnswer;
  healthChecks(): readonly HealthCheck[];
  /** null while the process works, else the fatal fault. */
  fatalFault(): string | null;
  membership(): MembershipAnswer;
  placement(): PlacementAnswer;
  /** `keySpace` "" = all. */
  routing(keySpace: string): RoutingAnswer;
  ranges(keySpace: string): RangesAnswer;

  leave(context: RequestContext, done: (answer: LeaveAnswer) => void): void;
  setReplicationFactor(
    request: { readonly partitionId: number; readonly replicationFactor: number },
    context: RequestContext,
    done: (answer: ReplicationFactorAnswer) => void,
  ): void;
  registerRange(
    keySpace: string,
    context: RequestContext,
    done: (answer: RegisterRangeAnswer) => void,
  ): void;
  unregisterRange(
    keySpace: string,
    context: RequestContext,
    done: (answer: RegisterRangeAnswer) => void,
  ): void;
  splitRange(
    request: { readonly keySpace: string; readonly splitKey: string },
    context: RequestContext,
    done: (answer: SplitRangeAnswer) => void,
  ): void;
  mergeRanges(context: RequestContext, done: (answer: MergeRangesAnswer) => void): void;

  /** Every backup and restore call of this version ends in a refusal. */
  backup(
    request: BackupRequest,
    context: RequestContext,
    done: (answer: BackupRefusal) => void,
  ): void;
}

export type BackupRequest =
  | { readonly kind: "full" | "coordinated" | "list" }
  | { readonly kind: "incremental"; readonly parentBackupId: string }
  | { readonly kind: "chain" | "validate-chain"; readonly leafBackupId: string }
  | { readonly kind: "gc"; readonly dryRun: boolean }
  | {
      readonly kind: "restore";
      readonly leafBackupId: string;
      readonly targetDir: string;
      readonly targetTimeMs: bigint;
    };
