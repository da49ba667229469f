/**
 * The requests about keys: types, all that is told of each kind, and what changes are in the log.
 *
 * Pure. Invariants: 1. Whatever depends on the entry (a condition, a revision) is checked in apply,
 * not here.
 */
import { textSizeBytes } from "../../base/bytes.js";
import {
  ENTRY_PAYLOAD_MAX_BYTES,
  LEASE_MAX_MS,
  MANY_ITEMS_MAX,
  NAME_MAX_BYTES,
  PAGE_LIMIT_MAX,
} from "../../base/limits.js";
import {
  type Members,
  bigint64,
  boolean,
  bytes,
  int32,
  list,
  nullable,
  oneOf,
  record,
  text,
} from "../../base/shape.js";
import { type KvCommand, KvFlag } from "../../machine/commands/command.js";
import type { KindRows } from "./kind.js";
import { isBound, isDurability, isOpenName } from "./names.js";
import type { OperationsSettings } from "./settings.js";

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

type KvManyRequest = KvSetManyRequest | KvDeleteManyRequest | KvGetManyRequest;
export type KvRequest =
  | KvSetRequest
  | KvExtendRequest
  | KvDeleteRequest
  | KvGetRequest
  | KvManyRequest
  | KvBucketRequest
  | KvScanRequest
  | KvRangeRequest;

const KNOWN_FLAGS = Object.values(KvFlag).reduce((all, flag) => all | flag, 0);
/** Room that a set command needs beside its value and compare value: key, numbers, envelope. */
const SET_ENVELOPE_BYTES = 16 * NAME_MAX_BYTES;

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
export function isManyAcceptable(request: KvManyRequest): boolean {
  const { items } = request;
  const plain = request.kind === "kv-set-many" || request.plain;
  if (!plain || items.length === 0 || items.length > MANY_ITEMS_MAX) return false;
  return items.every((item) => item.plain);
}

/** Cursors are checked where they are opened. */
export function isKvAcceptable(
  request: Exclude<KvRequest, KvManyRequest>,
  settings: OperationsSettings,
): boolean {
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

const nullableBytes = nullable(bytes);
const nullableText = nullable(text);

const kvSet: Members<Omit<KvSetRequest, "kind">> = {
  key: text,
  value: nullableBytes,
  compareValue: nullableBytes,
  compareRevision: bigint64,
  expiresMs: int32,
  flags: int32,
  durability: int32,
  plain: boolean,
};
const kvDelete: Members<Omit<KvDeleteRequest, "kind">> = {
  key: text,
  durability: int32,
  plain: boolean,
};
const kvGet: Members<Omit<KvGetRequest, "kind">> = {
  key: text,
  revision: bigint64,
  durability: int32,
  plain: boolean,
};
const scanned = {
  prefix: text,
  includeTombstones: boolean,
  limit: int32,
  cursor: nullableText,
  durability: int32,
  plain: boolean,
};
const getMany = {
  items: list(
    record<KvGetRequest>({ kind: oneOf("kv-get", "kv-exists"), ...kvGet }),
    MANY_ITEMS_MAX,
  ),
  plain: boolean,
};

const key = { family: "key", answer: "kv", api: "kv" } as const;
const many = { family: "many", answer: "kv-many", api: "kv" } as const;
const bucket = { family: "bucket", answer: "kv-page", api: "kv" } as const;
const scan = { family: "scan", answer: "kv-page", api: "kv" } as const;

export const KV_KINDS = {
  "kv-set": { ...key, wire: 20, reads: false, operation: "try-set", members: kvSet },
  "kv-extend": {
    ...key,
    wire: 21,
    reads: false,
    operation: "try-extend",
    members: { key: text, expiresMs: int32, durability: int32, plain: boolean },
  },
  "kv-delete": { ...key, wire: 22, reads: false, operation: "try-delete", members: kvDelete },
  "kv-get": { ...key, wire: 23, reads: true, operation: "try-get", members: kvGet },
  "kv-exists": { ...key, wire: 24, reads: true, operation: "try-exists", members: kvGet },
  "kv-set-many": {
    ...many,
    wire: 30,
    reads: false,
    operation: "try-set-many",
    members: {
      items: list(record<KvSetRequest>({ kind: oneOf("kv-set"), ...kvSet }), MANY_ITEMS_MAX),
    },
  },
  "kv-delete-many": {
    ...many,
    wire: 31,
    reads: false,
    operation: "try-delete-many",
    members: {
      items: list(
        record<KvDeleteRequest>({ kind: oneOf("kv-delete"), ...kvDelete }),
        MANY_ITEMS_MAX,
      ),
      plain: boolean,
    },
  },
  "kv-get-many": { ...many, wire: 32, reads: true, operation: "try-get-many", members: getMany },
  "kv-exists-many": {
    ...many,
    wire: 33,
    reads: true,
    operation: "try-exists-many",
    members: getMany,
  },
  "kv-bucket": {
    ...bucket,
    wire: 40,
    reads: true,
    operation: "get-by-bucket",
    members: { bucket: text, durability: int32, plain: boolean },
  },
  "kv-scan-all": {
    ...scan,
    wire: 41,
    reads: true,
    operation: "scan-all-by-prefix",
    members: scanned,
  },
  "kv-scan-local": {
    ...scan,
    wire: 42,
    reads: true,
    operation: "scan-by-prefix",
    members: scanned,
  },
  "kv-range": {
    ...bucket,
    wire: 43,
    reads: true,
    operation: "get-by-range",
    members: {
      prefix: text,
      startKey: nullableText,
      startInclusive: boolean,
      endKey: nullableText,
      endInclusive: boolean,
      limit: int32,
      cursor: nullableText,
      durability: int32,
      plain: boolean,
    },
  },
} as const satisfies KindRows<KvRequest>;

/** What changes one key. */
export type KvChangeRequest = KvSetRequest | KvExtendRequest | KvDeleteRequest;

export function isKvChange(request: KvChangeRequest | KvGetRequest): request is KvChangeRequest {
  return !KV_KINDS[request.kind].reads;
}

/** Bytes of a command beside its key and values, at most. */
const COMMAND_BYTES = 64;

/** The change as it goes into the log. */
export function kvCommandOf(request: KvChangeRequest, revisionsRetained: number): KvCommand {
  const { key } = request;
  if (request.kind === "kv-extend") {
    return { kind: "kv-extend", key, expiresMs: request.expiresMs };
  }
  if (request.kind === "kv-delete") return { kind: "kv-delete", key, revisionsRetained };
  const { value, compareValue, compareRevision, flags, expiresMs } = request;
  return {
    kind: "kv-set",
    key,
    value,
    compareValue,
    compareRevision,
    flags,
    expiresMs,
    revisionsRetained,
  };
}

/** About what it takes there. */
export function kvCommandSizeBytes(command: KvCommand): number {
  const sizeBytes = COMMAND_BYTES + textSizeBytes(command.key);
  if (command.kind !== "kv-set") return sizeBytes;
  return sizeBytes + (command.value?.length ?? 0) + (command.compareValue?.length ?? 0);
}
