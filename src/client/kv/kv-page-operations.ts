/**
 * Bucket reads, scans and range reads, page by page, as the client sends and reads them.
 *
 * Invariants: 1. A page is a read: it may always be repeated.
 */
import type { ProtoReader, ProtoWriter } from "../../proto/codec.js";
import * as messages from "../../proto/generated/keyvalues.js";
import { KvType } from "../../base/result-types.js";
import { kvFailure } from "./kv-answers.js";
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

/** The message of a page; a whole bucket comes as one. */
interface PageMessage {
  readonly Type: number;
  readonly Items: readonly messages.GrpcKeyValueByPrefixItemResponse[];
  readonly HasMore: boolean;
  readonly NextCursor: string | null;
}

/** What the reads of pages differ in. `about`: what they were asked about, for messages. */
interface PageCall<Request> {
  readonly name: string;
  readonly path: string;
  readonly restPath: string;
  write(request: Request, writer: ProtoWriter): void;
  read(reader: ProtoReader, lengthBytes: number): PageMessage;
  about(request: Request): string;
}

function pageOperation<Request>(call: PageCall<Request>): Operation<Request, PageAnswer, KvPage> {
  return {
    name: call.name,
    reads: true,
    path: call.path,
    stream: null,
    rest: { method: "POST", path: () => call.restPath, body: (request) => jsonText(request) },
    write: (request, writer) => call.write(request, writer),
    fromGrpc(reader, lengthBytes) {
      const message = call.read(reader, lengthBytes);
      return {
        type: message.Type,
        items: message.Items.map(itemFromGrpc),
        hasMore: message.HasMore,
        nextCursor: message.NextCursor,
      };
    },
    fromRest: pageFromRest,
    repeat: () => true,
    settle: (answer, request) => settlePage(answer, call.about(request)),
  };
}

const bucketPage = pageOperation<BucketRequest>({
  name: "kv.bucket",
  path: "/KeyValuer/GetByBucket",
  restPath: "/v1/kv/get-by-bucket",
  write({ prefixKey, durability }, writer) {
    const message = { PrefixKey: prefixKey, Durability: durability };
    messages.GrpcGetByBucketRequest.encode(message, writer);
  },
  read(reader, lengthBytes) {
    const { Type, Items } = messages.GrpcGetByBucketResponse.decode(reader, lengthBytes);
    return { Type, Items, HasMore: false, NextCursor: null };
  },
  about: ({ prefixKey }) => prefixKey,
});

export const readBucket: Operation<BucketRequest, PageAnswer, readonly KvEntry[]> = {
  ...bucketPage,
  fromRest: (body) => ({
    type: intOf(body, "type"),
    items: itemsFromRest(body),
    hasMore: false,
    nextCursor: null,
  }),
  settle: (answer, request, doubtful) => bucketPage.settle(answer, request, doubtful).items,
};

export const scanPage = pageOperation<ScanRequest>({
  name: "kv.scan",
  path: "/KeyValuer/ScanAllByPrefix",
  restPath: "/v1/kv/scan-all-by-prefix",
  write({ prefixKey, durability, limit, cursor }, writer) {
    messages.GrpcScanAllByPrefixRequest.encode(
      { PrefixKey: prefixKey, Durability: durability, Limit: limit, Cursor: cursor },
      writer,
    );
  },
  read: (reader, lengthBytes) => messages.GrpcScanAllByPrefixResponse.decode(reader, lengthBytes),
  about: ({ prefixKey }) => prefixKey,
});

export const rangePage = pageOperation<RangeRequest>({
  name: "kv.range",
  path: "/KeyValuer/GetByRange",
  restPath: "/v1/kv/get-by-range",
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
  read: (reader, lengthBytes) => messages.GrpcGetByRangeResponse.decode(reader, lengthBytes),
  about: ({ prefix }) => prefix,
});
