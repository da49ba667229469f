/**
 * The shapes of all data requests, as they are forwarded to the node that leads.
 *
 * Pure. May call base and the vocabulary. Invariants: 1. One line per member of every kind; the
 * compiler refuses a kind or a member that is missing. 2. Numbers of kinds are never used again for
 * something else: nodes of two versions talk to each other during an update.
 */
import { MANY_ITEMS_MAX } from "../../base/limits.js";
import type { DataRequest, KvDeleteRequest, KvGetRequest, KvSetRequest } from "../api/requests.js";
import {
  type Kinds,
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
  "try-lock": [1, { resource: text, owner: bytes, expiresMs: int32, durability: int32 }],
  "try-extend": [2, { resource: text, owner: bytes, expiresMs: int32, durability: int32 }],
  "try-unlock": [3, { resource: text, owner: bytes, durability: int32 }],
  "get-lock": [4, { resource: text, durability: int32 }],
} as const;

const sequences = {
  "create-sequence": [
    10,
    {
      name: text,
      initialValue: bigint64,
      increment: bigint64,
      maxValue: nullableInt64,
      blockSize: nullableInt32,
      durability: int32,
    },
  ],
  "update-sequence": [
    11,
    {
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
  ],
  "get-sequence": [12, { name: text, durability: int32 }],
  "delete-sequence": [13, { name: text, durability: int32 }],
  "next-sequence": [14, { name: text, idempotencyKey: nullableText, durability: int32 }],
  "reserve-sequence": [
    15,
    { name: text, count: int32, idempotencyKey: nullableText, durability: int32 },
  ],
} as const;

/** The kinds of data requests, numbers 1 to 99. */
export const DATA_REQUEST_KINDS: Kinds<DataRequest> = {
  ...locks,
  ...sequences,
  "kv-set": [20, kvSet],
  "kv-extend": [21, { key: text, expiresMs: int32, durability: int32, plain: boolean }],
  "kv-delete": [22, kvDelete],
  "kv-get": [23, kvGet],
  "kv-exists": [24, kvGet],
  "kv-set-many": [
    30,
    { items: list(record<KvSetRequest>({ kind: oneOf("kv-set"), ...kvSet }), MANY_ITEMS_MAX) },
  ],
  "kv-delete-many": [
    31,
    {
      items: list(
        record<KvDeleteRequest>({ kind: oneOf("kv-delete"), ...kvDelete }),
        MANY_ITEMS_MAX,
      ),
      plain: boolean,
    },
  ],
  "kv-get-many": [32, getMany],
  "kv-exists-many": [33, getMany],
  "kv-bucket": [40, { bucket: text, durability: int32, plain: boolean }],
  "kv-scan-all": [41, scan],
  "kv-scan-local": [42, scan],
  "kv-range": [
    43,
    {
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
  ],
};
