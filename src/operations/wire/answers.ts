/**
 * The shapes of all data answers, as they come back from the node that executed.
 *
 * Pure. Invariants: 1. One line per member of every kind; the compiler refuses a kind or a member
 * that is missing. 2. Numbers of kinds are never used again for something else.
 */
import { MANY_ITEMS_MAX, PAGE_LIMIT_MAX } from "../../base/limits.js";
import type {
  AllocationAnswer,
  DataAnswer,
  KvManyItem,
  KvPageItem,
  LockAnswer,
  LockAuditEntry,
  LockListItem,
  Refusal,
  RouteHint,
  SequenceView,
} from "../api/answers.js";
import {
  type Kinds,
  type Members,
  boolean,
  bytes,
  hlc,
  int32,
  int53,
  lanes64,
  list,
  nullable,
  oneOf,
  record,
  text,
  uint32,
} from "../../base/shape.js";

/** Items of one page or bucket: what fits the largest response at a byte each would be more. */
const PAGE_ITEMS_MAX = 4_194_304;

export const refusal = nullable(
  oneOf<Refusal>("overloaded", "not-initialized", "shutting-down", "not-available-at-level"),
);

const route = record<RouteHint>({
  partitionId: int32,
  endpoint: text,
  provenance: int32,
  generation: int53,
});

export const base: Members<Pick<LockAnswer, "type" | "servedFrom" | "route" | "refusal">> = {
  type: int32,
  servedFrom: nullable(text),
  route: nullable(route),
  refusal,
};

const view = record<SequenceView>({
  name: text,
  currentValue: lanes64,
  initialValue: lanes64,
  increment: lanes64,
  maxValue: nullable(lanes64),
  blockSize: nullable(int32),
  incarnation: int53,
  revision: int53,
  createdAt: hlc,
  updatedAt: hlc,
});

const allocation = record<NonNullable<AllocationAnswer["allocation"]>>({
  name: text,
  start: lanes64,
  end: lanes64,
  count: int32,
  revision: int53,
});

const manyItem = record<KvManyItem>({
  key: text,
  durability: int32,
  type: int32,
  servedFrom: nullable(text),
  value: nullable(bytes),
  revision: int53,
  expires: hlc,
  lastModified: hlc,
  state: int32,
  routeIndex: uint32,
});

const pageItem = record<KvPageItem>({
  key: text,
  value: nullable(bytes),
  revision: int53,
  expires: hlc,
  lastModified: hlc,
  state: int32,
});

const lockItem = record<LockListItem>({
  resource: text,
  owner: nullable(bytes),
  fencingToken: lanes64,
  held: boolean,
  expires: hlc,
  expiresInMs: int53,
  waiters: int32,
  note: nullable(bytes),
});

export const lockItems = list(lockItem, PAGE_LIMIT_MAX);

const auditItem = record<LockAuditEntry>({
  auditId: int53,
  partitionId: uint32,
  resource: text,
  durability: int32,
  owner: bytes,
  fencingToken: lanes64,
  stamp: hlc,
  actor: text,
  reason: text,
  requestId: text,
  nodeId: uint32,
  waitersDropped: uint32,
});

export const auditItems = list(auditItem, PAGE_LIMIT_MAX);

export const pageItems = list(pageItem, PAGE_ITEMS_MAX);

/** An answer about a lock as every program knows it. */
export type PlainLockAnswer = Pick<
  LockAnswer,
  | "kind"
  | "type"
  | "servedFrom"
  | "route"
  | "refusal"
  | "fencingToken"
  | "owner"
  | "expires"
  | "expiresInMs"
>;
/** The answers as every program knows them. */
export type PlainAnswer = Exclude<DataAnswer, LockAnswer> | PlainLockAnswer;

/** The kinds of data answers, numbers 1 to 99. */
export const DATA_ANSWER_KINDS: Kinds<PlainAnswer> = {
  lock: [
    1,
    { ...base, fencingToken: lanes64, owner: nullable(bytes), expires: hlc, expiresInMs: int53 },
  ],
  sequence: [2, { ...base, sequence: nullable(view), revision: int53 }],
  allocation: [3, { ...base, allocation: nullable(allocation) }],
  kv: [
    4,
    {
      ...base,
      value: nullable(bytes),
      revision: int53,
      expires: hlc,
      lastModified: hlc,
      state: int32,
    },
  ],
  "kv-many": [
    5,
    {
      ...base,
      items: list(manyItem, MANY_ITEMS_MAX),
      routes: list(route, MANY_ITEMS_MAX),
    },
  ],
  "kv-page": [
    6,
    {
      ...base,
      items: pageItems,
      nextCursor: nullable(text),
      hasMore: boolean,
      tooLarge: boolean,
    },
  ],
  forced: [7, { ...base, fencingToken: lanes64, owner: nullable(bytes), auditId: int53 }],
  "lock-page": [8, { ...base, items: lockItems, nextCursor: nullable(text), hasMore: boolean }],
  "lock-audit": [9, { ...base, items: auditItems, nextCursor: nullable(text), hasMore: boolean }],
};
