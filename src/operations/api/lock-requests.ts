/**
 * The requests about locks: types, and all that is told of each kind.
 *
 * Pure.
 */
import type { Int64 } from "../../base/int64.js";
import { textSizeBytes } from "../../base/bytes.js";
import { LOCK_NOTE_MAX_BYTES, NAME_MAX_BYTES, PAGE_LIMIT_MAX } from "../../base/limits.js";
import { boolean, bytes, int32, lanes64, nullable, text } from "../../base/shape.js";
import type { KindRows } from "./kind.js";
import { isDurability, isName } from "./names.js";
import type { OperationsSettings } from "./settings.js";

/** What every program knows of the requests: so they go to nodes of a cluster of level 1. */
export interface PlainTryLock {
  readonly kind: "try-lock";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  /** 0 ephemeral, 1 persistent, anything else is InvalidInput; so in every request. */
  readonly durability: number;
}
export interface PlainTryExtend extends Omit<PlainTryLock, "kind"> {
  readonly kind: "try-extend";
}
export interface PlainTryUnlock extends Omit<PlainTryLock, "kind" | "expiresMs"> {
  readonly kind: "try-unlock";
}
export interface PlainGetLock {
  readonly kind: "get-lock";
  readonly resource: string;
  readonly durability: number;
}
export type PlainLockRequest = PlainTryLock | PlainTryExtend | PlainTryUnlock | PlainGetLock;

export interface TryLockRequest extends PlainTryLock {
  /** How long it waits instead of being told that the lock is busy (ms); absent: not. */
  readonly waitMs?: number;
  /** Names the acquire that it is a try of, and the try (uint64); absent: 0. */
  readonly waitId?: Int64;
  readonly tryNumber?: Int64;
  /** Absent: none. */
  readonly note?: Uint8Array | null;
}
export interface TryExtendLockRequest extends PlainTryExtend {
  /** Of the one grant that it is about; absent: whichever it is. */
  readonly fencingToken?: Int64 | null;
  /** Absent: that of the grant stays. */
  readonly note?: Uint8Array | null;
}
export interface TryUnlockRequest extends PlainTryUnlock {
  /** Of the one grant that it is about; absent: whichever it is. */
  readonly fencingToken?: Int64 | null;
}
export interface GetLockRequest extends PlainGetLock {
  /** Whose place among those who wait is wanted; absent: nobody's. */
  readonly owner?: Uint8Array | null;
}

export type LockRequest = TryLockRequest | TryExtendLockRequest | TryUnlockRequest | GetLockRequest;

/** Ends the grant with this token, whoever has it. */
export interface ForceUnlockRequest {
  readonly kind: "force-unlock";
  readonly resource: string;
  readonly durability: number;
  readonly fencingToken: Int64;
  readonly reason: string;
  /** Whoever waits gets nothing, and the lock is free. */
  readonly dropWaiters: boolean;
  /** Who asks, and the node that took it in, which fills them in: "" and 0 before. */
  readonly actor: string;
  readonly nodeId: number;
}
/** Locks of the cluster whose resources begin so, page by page. */
export interface ListLocksRequest {
  readonly kind: "list-locks";
  readonly prefix: string;
  readonly durability: number;
  readonly heldOnly: boolean;
  /** 0: as many as a page has by itself. */
  readonly limit: number;
  readonly cursor: string | null;
}
/** Who released locks of such resources by force, the newest first. */
export interface ListLockAuditRequest {
  readonly kind: "list-lock-audit";
  readonly prefix: string;
  readonly limit: number;
  readonly cursor: string | null;
}
export type LockListRequest = ListLocksRequest | ListLockAuditRequest;
export type LockAdminRequest = ForceUnlockRequest | LockListRequest;

/** True for a request that may wait. */
export function isWaiting<R extends { readonly kind: string }>(
  request: R,
): request is R & TryLockRequest {
  return request.kind === "try-lock" && "waitMs" in request && Number(request.waitMs) > 0;
}

/**
 * True for a request that tells what a group of level 1 cannot carry out: which grant it is about,
 * or a note.
 */
export function tellsOfGrant(request: LockRequest | ForceUnlockRequest): boolean {
  if (request.kind === "get-lock" || request.kind === "force-unlock") return false;
  if (request.kind !== "try-unlock" && (request.note ?? null) !== null) return true;
  return request.kind !== "try-lock" && (request.fencingToken ?? null) !== null;
}

export function isLockAcceptable(
  request: LockRequest | ForceUnlockRequest,
  settings: OperationsSettings,
): boolean {
  if (!isName(request.resource) || !isDurability(request.durability)) return false;
  if (request.kind === "get-lock") return true;
  if (request.kind === "force-unlock") return isReason(request.reason);
  if ("note" in request && (request.note?.length ?? 0) > LOCK_NOTE_MAX_BYTES) return false;
  if (request.kind === "try-lock" && !isWait(request.waitMs ?? 0, settings)) return false;
  if (request.owner.length < 1 || request.owner.length > NAME_MAX_BYTES) return false;
  if (request.kind === "try-unlock") return true;
  return request.expiresMs >= 1 && request.expiresMs <= settings.lockMaxLeaseMs;
}

function isReason(reason: string): boolean {
  return reason !== "" && textSizeBytes(reason) <= LOCK_NOTE_MAX_BYTES;
}

export function isListAcceptable(request: LockListRequest): boolean {
  const { prefix, limit } = request;
  if (prefix !== "" && !isName(prefix)) return false;
  if (request.kind === "list-locks" && !isDurability(request.durability)) return false;
  return limit >= 0 && limit <= PAGE_LIMIT_MAX;
}

function isWait(waitMs: number, { lockMaxWaitMs }: OperationsSettings): boolean {
  return waitMs >= 0 && waitMs <= lockMaxWaitMs;
}

const lease = { resource: text, owner: bytes, expiresMs: int32, durability: int32 };
const lock = { family: "lock", answer: "lock", api: "locks" } as const;

export const LOCK_KINDS = {
  "try-lock": { ...lock, wire: 1, reads: false, operation: "try-lock", members: lease },
  "try-extend": { ...lock, wire: 2, reads: false, operation: "try-extend", members: lease },
  "try-unlock": {
    ...lock,
    wire: 3,
    reads: false,
    operation: "try-unlock",
    members: { resource: text, owner: bytes, durability: int32 },
  },
  "get-lock": {
    ...lock,
    wire: 4,
    reads: true,
    operation: "get-info",
    members: { resource: text, durability: int32 },
  },
} as const satisfies KindRows<PlainLockRequest>;

const page = { limit: int32, cursor: nullable(text) };

/** What nodes of a cluster of level 2 know beside those. */
export const LOCK_ADMIN_KINDS = {
  "force-unlock": {
    family: "lock",
    answer: "forced",
    api: "locks",
    wire: 5,
    reads: false,
    operation: "force-unlock",
    members: {
      resource: text,
      durability: int32,
      fencingToken: lanes64,
      reason: text,
      dropWaiters: boolean,
      actor: text,
      nodeId: int32,
    },
  },
  "list-locks": {
    family: "list",
    answer: "lock-page",
    api: "locks",
    wire: 6,
    reads: true,
    operation: "list",
    members: { prefix: text, durability: int32, heldOnly: boolean, ...page },
  },
  "list-lock-audit": {
    family: "list",
    answer: "lock-audit",
    api: "locks",
    wire: 7,
    reads: true,
    operation: "audit",
    members: { prefix: text, ...page },
  },
} as const satisfies KindRows<LockAdminRequest>;
