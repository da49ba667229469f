/**
 * The requests about locks: types, and all that is told of each kind.
 *
 * Pure.
 */
import { NAME_MAX_BYTES } from "../../base/limits.js";
import { bytes, int32, text } from "../../base/shape.js";
import type { KindRows } from "./kind.js";
import { isDurability, isName } from "./names.js";
import type { OperationsSettings } from "./settings.js";

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

export type LockRequest = TryLockRequest | TryExtendLockRequest | TryUnlockRequest | GetLockRequest;

export function isLockAcceptable(request: LockRequest, settings: OperationsSettings): boolean {
  if (!isName(request.resource) || !isDurability(request.durability)) return false;
  if (request.kind === "get-lock") return true;
  if (request.owner.length < 1 || request.owner.length > NAME_MAX_BYTES) return false;
  if (request.kind === "try-unlock") return true;
  return request.expiresMs >= 1 && request.expiresMs <= settings.lockMaxLeaseMs;
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
} as const satisfies KindRows<LockRequest>;
