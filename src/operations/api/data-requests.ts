/**
 * Data requests: what the front ends hand down, also over a forward. Answers, administration and
 * the port that carries them are in the files beside this one and come with it.
 *
 * Types only, plain data. Invariants: 1. One type per request and answer serves REST, gRPC, batch
 * streams and forwards. 2. Text is well-formed but otherwise unchecked (trimming, emptiness, length
 * are the operation's business). 3. Numbers that came from outside are in their wire range (int32,
 * int64) and otherwise unchecked. 4. Absent and zero differ.
 */

export const Durability = { ephemeral: 0, persistent: 1 } as const;

// Data requests ----------------------------------------------------------------------------------

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
  /**
   * True when every transactional field is zero, empty or absent; false makes it InvalidInput. So
   * in every request.
   */
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
  /**
   * "kv-scan-all": the whole cluster. "kv-scan-local": only the partitions that the answering node
   * leads.
   */
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
