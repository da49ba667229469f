/**
 * The key/value paths (contract 3.4).
 *
 * Invariants: 1. An empty or missing list of items is InvalidInput here (over gRPC it is an empty
 * answer). 2. A bucket that is too large for one answer is refused, never cut.
 */
import type {
  KvBucketRequest,
  KvDeleteManyRequest,
  KvDeleteRequest,
  KvExtendRequest,
  KvGetManyRequest,
  KvGetRequest,
  KvPageAnswer,
  KvRangeRequest,
  KvScanRequest,
  KvSetManyRequest,
  KvSetRequest,
} from "../../operations/api/requests.js";
import { dataRoute } from "./data-route.js";
import type { Exchange } from "../http/exchange.js";
import * as answers from "./kv-answers.js";
import {
  deleteManyTable,
  deleteTable,
  existsManyTable,
  getManyTable,
  getTable,
  setManyTable,
  setTable,
  key,
} from "./kv-tables.js";
import {
  bool,
  durability,
  int32,
  optionalText,
  text,
  transactionalTableOf,
} from "../json/members.js";
import type { Route } from "../http/route.js";

const limit = int32("limit", "largest number of items; 0 or omitted = the default");
const cursor = optionalText("cursor", "`nextCursor` of the page before");

const extendTable = transactionalTableOf(key, int32("expiresMs", "new lease, ms"), durability());
const bucketTable = transactionalTableOf(text("prefixKey", "name of the bucket"), durability());
const scanTable = transactionalTableOf(
  text("prefixKey", "text that the keys begin with"),
  durability(),
  limit,
  cursor,
);
const rangeTable = transactionalTableOf(
  text("prefix", "name of the bucket"),
  optionalText("startKey", "null = from the first"),
  bool("startInclusive", "whether startKey itself belongs to the range"),
  optionalText("endKey", "null = to the last"),
  bool("endInclusive", "whether endKey itself belongs to the range"),
  limit,
  cursor,
  durability(),
);

const write = { tag: "kv", access: "writer" } as const;
const read = { tag: "kv", access: "reader" } as const;

/** K14, K15: what is not paged is never cut silently. */
function divertLarge(detail: string): (answer: KvPageAnswer, exchange: Exchange) => boolean {
  return (answer, exchange) => {
    if (!answer.tooLarge) return false;
    exchange.problem(422, "response-too-large", detail);
    return true;
  };
}

const WRITE_ROUTES: readonly Route[] = [
  dataRoute<KvSetRequest, typeof setTable.members>({
    ...write,
    path: "/v1/kv/try-set",
    kind: "kv-set",
    summary: "Set a key, also on conditions",
    table: setTable,
    answer: answers.WRITTEN,
    build: (values, { plain }) => ({
      kind: "kv-set",
      key: values[0],
      value: values[1],
      compareValue: values[2],
      compareRevision: values[3],
      expiresMs: values[4],
      flags: values[5],
      durability: values[6],
      plain,
    }),
    write: answers.writtenText,
  }),
  dataRoute<KvExtendRequest, typeof extendTable.members>({
    ...write,
    path: "/v1/kv/try-extend",
    kind: "kv-extend",
    summary: "Give a key a new lease",
    table: extendTable,
    answer: answers.WRITTEN,
    build: ([key, expiresMs, durability], { plain }) => {
      return { kind: "kv-extend", key, expiresMs, durability, plain };
    },
    write: answers.writtenText,
  }),
  dataRoute<KvDeleteRequest, typeof deleteTable.members>({
    ...write,
    path: "/v1/kv/try-delete",
    kind: "kv-delete",
    summary: "Delete a key",
    table: deleteTable,
    answer: answers.WRITTEN,
    build: ([key, durability], { plain }) => ({ kind: "kv-delete", key, durability, plain }),
    write: answers.writtenText,
  }),
  dataRoute<KvSetManyRequest, typeof setManyTable.members>({
    ...write,
    path: "/v1/kv/try-set-many",
    kind: "kv-set-many",
    summary: "Set many keys, each for itself",
    table: setManyTable,
    answer: answers.MANY_WRITTEN,
    build: ([items]) => {
      return items === null || items.length === 0 ? null : { kind: "kv-set-many", items };
    },
    write: answers.manyWrittenText,
  }),
  dataRoute<KvDeleteManyRequest, typeof deleteManyTable.members>({
    ...write,
    path: "/v1/kv/try-delete-many",
    kind: "kv-delete-many",
    summary: "Delete many keys, each for itself",
    table: deleteManyTable,
    answer: answers.MANY_WRITTEN,
    build: ([items], { plain }) => {
      if (items === null || items.length === 0) return null;
      return { kind: "kv-delete-many", items, plain };
    },
    write: answers.manyWrittenText,
  }),
];

const READ_ROUTES: readonly Route[] = [
  dataRoute<KvGetRequest, typeof getTable.members>({
    ...read,
    path: "/v1/kv/try-get",
    kind: "kv-get",
    summary: "Read a key",
    table: getTable,
    answer: answers.GOT,
    build: ([key, revision, durability], { plain }) => {
      return { kind: "kv-get", key, revision, durability, plain };
    },
    write: answers.gotText,
  }),
  dataRoute<KvGetRequest, typeof getTable.members>({
    ...read,
    path: "/v1/kv/try-exists",
    kind: "kv-exists",
    summary: "Ask whether a key exists",
    table: getTable,
    answer: answers.FOUND,
    build: ([key, revision, durability], { plain }) => {
      return { kind: "kv-exists", key, revision, durability, plain };
    },
    write: answers.foundText,
  }),
  dataRoute<KvGetManyRequest, typeof getManyTable.members>({
    ...read,
    path: "/v1/kv/try-get-many",
    kind: "kv-get-many",
    summary: "Read many keys",
    table: getManyTable,
    answer: answers.MANY_GOT,
    build: ([items], { plain }) => {
      if (items === null || items.length === 0) return null;
      return { kind: "kv-get-many", items, plain };
    },
    write: answers.manyGotText,
  }),
  dataRoute<KvGetManyRequest, typeof existsManyTable.members>({
    ...read,
    path: "/v1/kv/try-exists-many",
    kind: "kv-exists-many",
    summary: "Ask whether many keys exist",
    table: existsManyTable,
    answer: answers.MANY_GOT,
    build: ([items], { plain }) => {
      if (items === null || items.length === 0) return null;
      return { kind: "kv-exists-many", items, plain };
    },
    write: answers.manyFoundText,
  }),
  dataRoute<KvBucketRequest, typeof bucketTable.members>({
    ...read,
    path: "/v1/kv/get-by-bucket",
    kind: "kv-bucket",
    summary: "Read all keys of a bucket in one view",
    table: bucketTable,
    answer: answers.BUCKET,
    statuses: [422],
    build: ([bucket, durability], { plain }) => ({ kind: "kv-bucket", bucket, durability, plain }),
    write: answers.bucketText,
    writeLater: answers.bucketTextLater,
    divert: divertLarge("the bucket does not fit one answer; read it with get-by-range"),
  }),
  dataRoute<KvScanRequest, typeof scanTable.members>({
    ...read,
    path: "/v1/kv/scan-all-by-prefix",
    kind: "kv-scan-all",
    summary: "Read the keys of the whole cluster that begin with a text, whole or page by page",
    table: scanTable,
    answer: answers.PAGE,
    statuses: [422],
    build: ([prefix, durability, limit, cursor], { plain }) => {
      const page = { includeTombstones: false, limit, cursor };
      return { kind: "kv-scan-all", prefix, ...page, durability, plain };
    },
    write: answers.pageText,
    writeLater: answers.pageTextLater,
    divert: divertLarge("the scan does not fit one answer; read it page by page, with limit"),
  }),
  dataRoute<KvRangeRequest, typeof rangeTable.members>({
    ...read,
    path: "/v1/kv/get-by-range",
    kind: "kv-range",
    summary: "Read the keys of a bucket between two keys, page by page",
    table: rangeTable,
    answer: answers.PAGE,
    build: (values, { plain }) => ({
      kind: "kv-range",
      prefix: values[0],
      startKey: values[1],
      startInclusive: values[2],
      endKey: values[3],
      endInclusive: values[4],
      limit: values[5],
      cursor: values[6],
      durability: values[7],
      plain,
    }),
    write: answers.pageText,
    writeLater: answers.pageTextLater,
  }),
];

export const KV_ROUTES: readonly Route[] = [...WRITE_ROUTES, ...READ_ROUTES];
