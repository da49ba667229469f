/**
 * Which data requests are acceptable as sent: the checks behind InvalidInput that need no state.
 *
 * Pure. Invariants: 1. These checks come before routing, admission and everything else. 2. Lengths
 * count UTF-8 bytes. 3. Only sequence names and idempotency keys are trimmed, by Unicode
 * White_Space. 4. Whatever depends on state (a merged record, a revision) is checked in apply, not
 * here.
 */
import { textSizeBytes } from "../../base/bytes.js";
import {
  BLOCK_SIZE_MAX,
  ENTRY_PAYLOAD_MAX_BYTES,
  LEASE_MAX_MS,
  MANY_ITEMS_MAX,
  NAME_MAX_BYTES,
  PAGE_LIMIT_MAX,
  RESERVED_PREFIX,
} from "../../base/limits.js";
import { KvFlag } from "../../machine/commands/command.js";
import { trimWhiteSpace } from "../../machine/store/names.js";
import {
  type CreateSequenceRequest,
  type DataRequest,
  Durability,
  type KvRangeRequest,
  type KvScanRequest,
  type KvSetRequest,
  type LockRequest,
  type SequenceRequest,
  type UpdateSequenceRequest,
  isOf,
} from "../api/requests.js";
import type { OperationsSettings } from "../api/settings.js";

const KNOWN_FLAGS = Object.values(KvFlag).reduce((all, flag) => all | flag, 0);
/** Room that a set command needs beside its value and compare value: key, numbers, envelope. */
const SET_ENVELOPE_BYTES = 16 * NAME_MAX_BYTES;

/** The idempotency key as trimmed; null when there is none or it is blank. */
export function trimKey(key: string | null): string | null {
  const trimmed = key === null ? "" : trimWhiteSpace(key);
  return trimmed === "" ? null : trimmed;
}

/** True for a text of 1 to NAME_MAX_BYTES bytes. */
function isName(text: string): boolean {
  if (text.length === 0) return false;
  if (text.length * 3 <= NAME_MAX_BYTES) return true;
  return text.length <= NAME_MAX_BYTES && textSizeBytes(text) <= NAME_MAX_BYTES;
}

/** True for a key, bucket or sequence name: a name outside the reserved prefix. */
export function isOpenName(text: string): boolean {
  return isName(text) && !text.startsWith(RESERVED_PREFIX);
}

function isDurability(durability: number): boolean {
  return durability === Durability.ephemeral || durability === Durability.persistent;
}

function isBound(text: string | null): boolean {
  return text === null || text === "" || isName(text);
}

function isLockAcceptable(request: LockRequest, settings: OperationsSettings): boolean {
  if (!isName(request.resource) || !isDurability(request.durability)) return false;
  if (request.kind === "get-lock") return true;
  if (request.owner.length < 1 || request.owner.length > NAME_MAX_BYTES) return false;
  if (request.kind === "try-unlock") return true;
  return request.expiresMs >= 1 && request.expiresMs <= settings.lockMaxLeaseMs;
}

function isBlockSize(blockSize: number | null): boolean {
  return blockSize === null || (blockSize >= 1 && blockSize <= BLOCK_SIZE_MAX);
}

function isCreateAcceptable(request: CreateSequenceRequest): boolean {
  if (request.increment < 1n || !isBlockSize(request.blockSize)) return false;
  return request.maxValue === null || request.maxValue >= request.initialValue;
}

function isUpdateAcceptable(request: UpdateSequenceRequest): boolean {
  const { currentValue, increment, initialValue, maxValue, blockSize } = request;
  const given = [currentValue, increment, initialValue, maxValue, blockSize];
  const removes = request.removeMaxValue || request.removeBlockSize;
  if (!removes && given.every((value) => value === null)) return false;
  if (request.removeMaxValue && maxValue !== null) return false;
  if (request.removeBlockSize && blockSize !== null) return false;
  return (increment === null || increment >= 1n) && isBlockSize(blockSize);
}

function isSequenceAcceptable(request: SequenceRequest): boolean {
  if (request.durability !== Durability.persistent) return false;
  if (!isOpenName(trimWhiteSpace(request.name))) return false;
  switch (request.kind) {
    case "create-sequence":
      return isCreateAcceptable(request);
    case "update-sequence":
      return isUpdateAcceptable(request);
    case "next-sequence":
      return isKeyAcceptable(request.idempotencyKey);
    case "reserve-sequence":
      return request.count >= 1 && isKeyAcceptable(request.idempotencyKey);
    default:
      return true;
  }
}

function isKeyAcceptable(key: string | null): boolean {
  const trimmed = trimKey(key);
  return trimmed === null || isName(trimmed);
}

function isSetAcceptable(request: KvSetRequest, settings: OperationsSettings): boolean {
  const { flags, expiresMs } = request;
  if ((flags & ~KNOWN_FLAGS) !== 0) return false;
  if ((flags & KvFlag.ifExists) !== 0 && (flags & KvFlag.ifNotExists) !== 0) return false;
  if (expiresMs < 0 || expiresMs > LEASE_MAX_MS) return false;
  const valueBytes = request.value === null ? 0 : request.value.length;
  const compareBytes = request.compareValue === null ? 0 : request.compareValue.length;
  if (valueBytes > settings.valueMaxBytes || compareBytes > settings.valueMaxBytes) return false;
  return valueBytes + compareBytes <= ENTRY_PAYLOAD_MAX_BYTES - SET_ENVELOPE_BYTES;
}

function isScanAcceptable(request: KvScanRequest | KvRangeRequest): boolean {
  if (!isOpenName(request.prefix)) return false;
  if (request.limit < 0 || request.limit > PAGE_LIMIT_MAX) return false;
  return request.kind !== "kv-range" || (isBound(request.startKey) && isBound(request.endKey));
}

/** True unless the many-call is refused as a whole; its items are judged one by one. */
function isManyAcceptable(items: readonly { readonly plain: boolean }[], plain: boolean): boolean {
  if (!plain || items.length === 0 || items.length > MANY_ITEMS_MAX) return false;
  return items.every((item) => item.plain);
}

/** True unless the answer is InvalidInput. Cursors are checked where they are opened. */
export function isAcceptable(request: DataRequest, settings: OperationsSettings): boolean {
  if (isOf(request, "sequence")) return isSequenceAcceptable(request);
  if (isOf(request, "lock")) return isLockAcceptable(request, settings);
  if (isOf(request, "many")) {
    return isManyAcceptable(request.items, request.kind === "kv-set-many" || request.plain);
  }
  if (!request.plain || !isDurability(request.durability)) return false;
  switch (request.kind) {
    case "kv-set":
      return isOpenName(request.key) && isSetAcceptable(request, settings);
    case "kv-extend":
      return isOpenName(request.key) && request.expiresMs >= 1 && request.expiresMs <= LEASE_MAX_MS;
    case "kv-delete":
      return isOpenName(request.key);
    case "kv-get":
    case "kv-exists":
      return isOpenName(request.key) && request.revision >= -1n;
    case "kv-bucket":
      return isOpenName(request.bucket);
    case "kv-scan-all":
    case "kv-scan-local":
    case "kv-range":
      return isScanAcceptable(request);
  }
}
