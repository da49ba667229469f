/**
 * Bucket reads, scans and range reads, page by page, as the client sends and reads them.
 *
 * Invariants: 1. A page is a read: it may always be repeated.
 */
import * as messages from "../../proto/generated/keyvalues.js";
import { kvFailure, KvType } from "./kv-answers.js";
import { entryFields, entryOf, readFromRest } from "./kv-operations.js";
import type { KvEntry, KvPage } from "./kv-shapes.js";
import {
  boolOf,
  intOf,
  jsonText,
  listOf,
  textOf,
  textOrNull,
  type JsonObject,
} from "../values/json.js";
import type { Operation } from "../call/operation.js";

export interface BucketRequest {
  readonly prefixKey: string;
  readonly durability: 0 | 1;
}
export interface ScanRequest extends BucketRequest {
  readonly limit: number;
  readonly cursor: string | null;
}
export interface RangeRequest {
  readonly prefix: string;
  readonly startKey: string | null;
  readonly startInclusive: boolean;
  readonly endKey: string | null;
  readonly endInclusive: boolean;
  readonly limit: number;
  readonly durability: 0 | 1;
}

interface PageAnswer extends KvPage {
  readonly type: number;
}

function itemFromGrpc(item: messages.GrpcKeyValueByPrefixItemResponse): KvEntry {
  return entryOf(item.Key, entryFields(item));
}

function itemsFromRest(body: JsonObject): KvEntry[] {
  const empty = body["items"] === null || body["items"] === undefined;
  if (empty) return [];
  return listOf(body, "items").map((item) => {
    const fields = readFromRest({ ...item, type: KvType.got });
    return entryOf(textOf(item, "key"), fields);
  });
}

function pageFromRest(body: JsonObject): PageAnswer {
  return {
    type: intOf(body, "type"),
    items: itemsFromRest(body),
    hasMore: boolOf(body, "hasMore"),
    nextCursor: textOrNull(body, "nextCursor"),
  };
}

function settlePage(answer: PageAnswer, about: string): KvPage {
  if (answer.type !== KvType.got) throw kvFailure(answer.type, about, false);
  const { items, hasMore, nextCursor } = answer;
  return { items, hasMore, nextCursor };
}

export const readBucket: Operation<BucketRequest, PageAnswer, readonly KvEntry[]> = {
  name: "kv.bucket",
  reads: true,
  path: "/KeyValuer/GetByBucket",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/kv/get-by-bucket",
    body: (request) => jsonText(request),
  },
  write({ prefixKey, durability }, writer) {
    messages.GrpcGetByBucketRequest.encode(
      { PrefixKey: prefixKey, Durability: durability },
      writer,
    );
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcGetByBucketResponse.decode(reader, lengthBytes);
    const items = message.Items.map(itemFromGrpc);
    return { type: message.Type, items, hasMore: false, nextCursor: null };
  },
  fromRest(body) {
    return {
      type: intOf(body, "type"),
      items: itemsFromRest(body),
      hasMore: false,
      nextCursor: null,
    };
  },
  repeat: () => true,
  settle: (answer, { prefixKey }) => settlePage(answer, prefixKey).items,
};

export const scanPage: Operation<ScanRequest, PageAnswer, KvPage> = {
  name: "kv.scan",
  reads: true,
  path: "/KeyValuer/ScanAllByPrefix",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/kv/scan-all-by-prefix",
    body: (request) => jsonText(request),
  },
  write({ prefixKey, durability, limit, cursor }, writer) {
    messages.GrpcScanAllByPrefixRequest.encode(
      { PrefixKey: prefixKey, Durability: durability, Limit: limit, Cursor: cursor },
      writer,
    );
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcScanAllByPrefixResponse.decode(reader, lengthBytes);
    return {
      type: message.Type,
      items: message.Items.map(itemFromGrpc),
      hasMore: message.HasMore,
      nextCursor: message.NextCursor,
    };
  },
  fromRest: pageFromRest,
  repeat: () => true,
  settle: (answer, { prefixKey }) => settlePage(answer, prefixKey),
};

export const rangePage: Operation<RangeRequest, PageAnswer, KvPage> = {
  name: "kv.range",
  reads: true,
  path: "/KeyValuer/GetByRange",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/kv/get-by-range",
    body: (request) => jsonText(request),
  },
  write(request, writer) {
    messages.GrpcGetByRangeRequest.encode(
      {
        Prefix: request.prefix,
        StartKey: request.startKey,
        StartInclusive: request.startInclusive,
        EndKey: request.endKey,
        EndInclusive: request.endInclusive,
        Limit: request.limit,
        Durability: request.durability,
      },
      writer,
    );
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcGetByRangeResponse.decode(reader, lengthBytes);
    return {
      type: message.Type,
      items: message.Items.map(itemFromGrpc),
      hasMore: message.HasMore,
      nextCursor: message.NextCursor,
    };
  },
  fromRest: pageFromRest,
  repeat: () => true,
  settle: (answer, { prefix }) => settlePage(answer, prefix),
};
