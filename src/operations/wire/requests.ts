/**
 * The shapes of all data requests, as they are forwarded to the node that leads.
 *
 * Pure. Invariants: 1. One line per member of every kind; the compiler refuses a kind or a member
 * that is missing. 2. The numbers of the kinds stand in the table of kinds.
 */
import { MANY_ITEMS_MAX } from "../../base/limits.js";
import {
  type DataRequest,
  KINDS,
  type KvDeleteRequest,
  type KvGetRequest,
  type KvSetRequest,
} from "../api/requests.js";
import {
  type KindMembers,
  type Kinds,
  type Members,
  bigint64,
  boolean,
  bytes,
  int32,
  list,
  nullable,
  numbered,
  oneOf,
  record,
  text,
} from "./shape.js";

const nullableInt64 = nullable(bigint64);
const nullableInt32 = nullable(int32);
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
const scan = {
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

const locks = {
  "try-lock": { resource: text, owner: bytes, expiresMs: int32, durability: int32 },
  "try-extend": { resource: text, owner: bytes, expiresMs: int32, durability: int32 },
  "try-unlock": { resource: text, owner: bytes, durability: int32 },
  "get-lock": { resource: text, durability: int32 },
} as const;

const sequences = {
  "create-sequence": {
    name: text,
    initialValue: bigint64,
    increment: bigint64,
    maxValue: nullableInt64,
    blockSize: nullableInt32,
    durability: int32,
  },
  "update-sequence": {
    name: text,
    currentValue: nullableInt64,
    increment: nullableInt64,
    initialValue: nullableInt64,
    maxValue: nullableInt64,
    removeMaxValue: boolean,
    blockSize: nullableInt32,
    removeBlockSize: boolean,
    durability: int32,
  },
  "get-sequence": { name: text, durability: int32 },
  "delete-sequence": { name: text, durability: int32 },
  "next-sequence": { name: text, idempotencyKey: nullableText, durability: int32 },
  "reserve-sequence": { name: text, count: int32, idempotencyKey: nullableText, durability: int32 },
} as const;

const members: KindMembers<DataRequest> = {
  ...locks,
  ...sequences,
  "kv-set": kvSet,
  "kv-extend": { key: text, expiresMs: int32, durability: int32, plain: boolean },
  "kv-delete": kvDelete,
  "kv-get": kvGet,
  "kv-exists": kvGet,
  "kv-set-many": {
    items: list(record<KvSetRequest>({ kind: oneOf("kv-set"), ...kvSet }), MANY_ITEMS_MAX),
  },
  "kv-delete-many": {
    items: list(record<KvDeleteRequest>({ kind: oneOf("kv-delete"), ...kvDelete }), MANY_ITEMS_MAX),
    plain: boolean,
  },
  "kv-get-many": getMany,
  "kv-exists-many": getMany,
  "kv-bucket": { bucket: text, durability: int32, plain: boolean },
  "kv-scan-all": scan,
  "kv-scan-local": scan,
  "kv-range": {
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
};

/** The kinds of data requests, with their numbers. */
export const DATA_REQUEST_KINDS: Kinds<DataRequest> = numbered(members, KINDS);
