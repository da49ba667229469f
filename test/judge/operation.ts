/**
 * What clients ask and what they are answered, as a history records it: operations and results of locks, sequences, keys
 * and key ranges. Types, and the name of the object that an operation belongs to.
 *
 * Invariants: 1. int64 values are bigint. 2. A call for many keys is one operation per item, but a read of a bucket, range
 * or prefix is one.
 */
import type {
  CreateSequenceRequest,
  RequestOf,
  UpdateSequenceRequest,
} from "../../src/operations/api/requests.js";

export interface LockOperation {
  readonly kind: "try-lock" | "try-extend" | "try-unlock" | "get-lock";
  readonly resource: string;
  readonly ephemeral: boolean;
  /** "" for get-lock. */
  readonly owner: string;
  /** 0 for try-unlock and get-lock. */
  readonly expiresMs: number;
  /** Of a try-lock that waits. */
  readonly waitMs?: number;
  /** Of an extend or unlock that is meant for one grant alone (Q13), in decimal digits. */
  readonly fencingToken?: string;
  /** Of a try-lock: what it was granted, if it was, as is known from what was applied or told. */
  readonly knownToken?: string;
  /** An unlock that nobody asked for: the service may give a grant back by itself (Q9). */
  readonly isGiveBack?: boolean;
  /** A grant or an extend of the service's own, which no limit of what clients may ask binds (Q15). */
  readonly isPresumed?: boolean;
  /** An unlock by force, of the grant that it names (F3, F4). */
  readonly isForced?: boolean;
}
export type CreateOperation = Omit<CreateSequenceRequest, "durability">;
export type UpdateOperation = Omit<UpdateSequenceRequest, "durability">;
export interface SequenceOperation {
  readonly kind: "get-sequence" | "delete-sequence";
  readonly name: string;
}
export interface AllocateOperation {
  /** next is reserve with count 1. */
  readonly kind: "allocate";
  readonly name: string;
  readonly count: number;
  /** null = none. */
  readonly idempotencyKey: string | null;
}
export interface KvSetOperation {
  readonly kind: "kv-set";
  readonly key: string;
  readonly ephemeral: boolean;
  /** null = "exists, holds nothing". */
  readonly value: string | null;
  readonly compareValue: string | null;
  readonly compareRevision: bigint;
  /** 0 = none. */
  readonly expiresMs: number;
  /** Bits of the contract (FLAG in models/kv.ts); 0 = unconditional. */
  readonly flags: number;
}
/** Whatever one asks about a key and that is no set. */
export interface KvKeyOperation {
  readonly kind: Exclude<RequestOf<"key">["kind"], "kv-set">;
  readonly key: string;
  readonly ephemeral: boolean;
  /** Of extend, else 0. */
  readonly expiresMs: number;
  /** Of get and exists: -1 latest; else -1. */
  readonly revision: bigint;
}
/** One page of a scan or range that goes on. */
export interface PageOperation {
  /** The same for all pages of one scan. */
  readonly scan: number;
  /** From 0. */
  readonly number: number;
  /** Items at most; 0 = as many as fit. */
  readonly limit: number;
  /** Of a range; null = open. */
  readonly startKey: string | null;
  readonly startInclusive: boolean;
  readonly endKey: string | null;
  readonly endInclusive: boolean;
}
/** A bucket, prefix or range read of persistent or ephemeral keys. */
export interface KvManyReadOperation {
  /** "kv-scan-local": of the partitions that the asked node leads, whichever those are. */
  readonly kind: "kv-bucket" | "kv-scan" | "kv-scan-local" | "kv-range";
  /** The bucket or the prefix. */
  readonly prefix: string;
  readonly ephemeral: boolean;
  /** Absent when the answer is whole. */
  readonly page?: PageOperation;
}
/** A change of the key ranges. */
export interface RangeOperation {
  readonly kind: "register-range" | "unregister-range" | "split-range" | "merge-ranges";
  /** "" for merge-ranges. */
  readonly keySpace: string;
}
export type Operation =
  | LockOperation
  | CreateOperation
  | UpdateOperation
  | SequenceOperation
  | AllocateOperation
  | KvSetOperation
  | KvKeyOperation
  | KvManyReadOperation
  | RangeOperation;
export type OperationKind = Operation["kind"];

export type LockResultType =
  | "Locked"
  | "Busy"
  | "Extended"
  | "Unlocked"
  | "Got"
  | "LockDoesNotExist"
  | "InvalidOwner"
  | "InvalidInput";
export interface LockResult {
  readonly type: LockResultType;
  /** null: the front end does not show it (unlock over gRPC). */
  readonly token: bigint | null;
  /** Of get-lock that found one. */
  readonly owner: string | null;
  /** null: the front end does not show it. */
  readonly expiresInMs: number | null;
  /** More of its lease may be left than `expiresInMs`, never less. */
  readonly isAtLeast?: boolean;
  /** Of a try-lock that could wait; absent where that is not known. */
  readonly waitedMs?: number | null;
  readonly leaseLeftMs?: number | null;
}
export type SequenceResultType =
  "Success" | "NotFound" | "AlreadyExists" | "InvalidInput" | "MaxValueExceeded";
export interface SequenceSeen {
  readonly currentValue: bigint;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  readonly incarnation: bigint;
  readonly revision: bigint;
}
export interface SequenceResult {
  readonly type: SequenceResultType;
  readonly sequence: SequenceSeen | null;
  readonly revision: bigint;
}
export interface AllocationResult {
  readonly type: SequenceResultType;
  /** Zeros when nothing was allocated. */
  readonly start: bigint;
  readonly end: bigint;
  readonly count: number;
  readonly revision: bigint;
}
/** Longer values are told by their beginning, their length and their end: histories stay small. */
const TOLD_MAX = 16_384;

/** A value as histories tell it. */
export function toldValue(value: string | null): string | null {
  if (value === null || value.length <= TOLD_MAX) return value;
  return `${value.slice(0, 24)}... ${value.length} ...${value.slice(-8)}`;
}

export type KvResultType =
  "Set" | "NotSet" | "Extended" | "Got" | "Deleted" | "Exists" | "DoesNotExist" | "InvalidInput";
export interface KvResult {
  readonly type: KvResultType;
  /** Of get; null elsewhere and for the null value. */
  readonly value: string | null;
  readonly revision: bigint;
}
export interface KvManyReadResult {
  readonly type: "Got" | "InvalidInput";
  readonly items: readonly {
    readonly key: string;
    readonly value: string | null;
    readonly revision: bigint;
    /** Shown only by scans that ask for it. */
    readonly isTombstone?: boolean;
  }[];
  /** Where a page goes on; null = nowhere. */
  readonly nextCursor?: string | null;
}
export interface RangeResult {
  /** The status of the answer. */
  readonly type: string;
  readonly descriptorCount: number;
}
export type OperationResult =
  LockResult | SequenceResult | AllocationResult | KvResult | KvManyReadResult | RangeResult;

/** The object whose history an attempt belongs to; null for what concerns many. */
export function objectOf(operation: Operation): string | null {
  if ("key" in operation) {
    return `${operation.ephemeral ? "ephemeral-key" : "key"} ${operation.key}`;
  }
  switch (operation.kind) {
    case "try-lock":
    case "try-extend":
    case "try-unlock":
    case "get-lock":
      return `${operation.ephemeral ? "ephemeral-lock" : "lock"} ${operation.resource}`;
    case "create-sequence":
    case "update-sequence":
    case "get-sequence":
    case "delete-sequence":
    case "allocate":
      return `sequence ${operation.name.trim()}`;
    case "kv-bucket":
    case "kv-scan":
    case "kv-scan-local":
    case "kv-range":
    case "split-range":
    case "merge-ranges":
      return null;
    case "register-range":
    case "unregister-range":
      return `key-space ${operation.keySpace}`;
  }
}
