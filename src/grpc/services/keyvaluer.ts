/**
 * The KeyValuer service: bucket, scan and range reads, and the tables of all its data calls and of
 * its batch stream.
 *
 * Invariants: 1. An absent bound and an empty one stay
 * different. 2. A bucket that is too large is never cut: the caller of `write` refuses it, a batch
 * item carries TYPE_ERRORED.
 */
import { assert } from "../../base/assert.js";
import type {
  DataAnswer,
  KvPageAnswer,
  KvPageItem,
  KvRangeRequest,
  KvScanRequest,
} from "../../operations/api/requests.js";
import type { Encodable } from "../../proto/codec.js";
import * as proto from "../../proto/generated/keyvalues.js";
import {
  deleteManyMethod,
  existsManyMethod,
  getManyMethod,
  setManyMethod,
} from "./keyvaluer-many.js";
import { SINGLE_ITEMS, SINGLE_METHODS } from "./keyvaluer-single.js";
import type { BatchOperation, BatchStreamKind, DataMethod } from "../calls/method.js";
import { dataMethod } from "../calls/method.js";
import { noOperation, noReadTimestamp, noTransaction } from "./transactional.js";

function pageAnswer(answer: DataAnswer): KvPageAnswer {
  assert(answer.kind === "kv-page", "a read of many keys gets a page");
  return answer;
}

function pageItem(item: KvPageItem): Encodable<proto.GrpcKeyValueByPrefixItemResponse> {
  return {
    Key: item.key,
    Value: item.value,
    Revision: item.revision,
    ExpiresNode: item.expires.n,
    ExpiresPhysical: item.expires.l,
    ExpiresCounter: item.expires.c,
    LastUsedNode: item.lastModified.n,
    LastUsedPhysical: item.lastModified.l,
    LastUsedCounter: item.lastModified.c,
    LastModifiedNode: item.lastModified.n,
    LastModifiedPhysical: item.lastModified.l,
    LastModifiedCounter: item.lastModified.c,
    State: item.state,
  };
}

/**
 * Type that stands for "too large" inside a batch; the unary call ends with RESOURCE_EXHAUSTED
 * before this is used.
 */
function pageType(answer: KvPageAnswer): number {
  return answer.tooLarge ? proto.GrpcKeyValueResponseType.TYPE_ERRORED : answer.type;
}

/** A page without ServedFrom: of the cluster-wide scan and of the range stream. */
export function plainPage(answer: DataAnswer): Encodable<proto.GrpcScanAllByPrefixResponse> {
  const page = pageAnswer(answer);
  return {
    Type: pageType(page),
    Items: page.items.map(pageItem),
    NextCursor: page.nextCursor,
    HasMore: page.hasMore,
  };
}

function servedPage(answer: DataAnswer): Encodable<proto.GrpcScanByPrefixResponse> {
  return { ServedFrom: answer.servedFrom, ...plainPage(answer) };
}

/** The request of GetByRange and of the first page of GetByRangeStream. */
export function rangeRequest(message: proto.GrpcGetByRangeRequest): KvRangeRequest {
  return {
    kind: "kv-range",
    prefix: message.Prefix,
    startKey: message.StartKey,
    startInclusive: message.StartKey === null ? true : message.StartInclusive,
    endKey: message.EndKey,
    endInclusive: message.EndInclusive,
    limit: message.Limit,
    cursor: null,
    durability: message.Durability,
    plain:
      noTransaction(message) &&
      noReadTimestamp(message) &&
      noOperation(message) &&
      !message.SnapshotAtLeader,
  };
}

const bucketMethod = dataMethod({
  path: "/KeyValuer/GetByBucket",
  role: "reader",
  kind: "kv-bucket",
  request: proto.GrpcGetByBucketRequest,
  response: proto.GrpcGetByBucketResponse,
  toRequest: (message) => ({
    kind: "kv-bucket",
    bucket: message.PrefixKey,
    durability: message.Durability,
    plain: noTransaction(message) && noReadTimestamp(message) && noOperation(message),
  }),
  toResponse: (answer) => {
    const page = pageAnswer(answer);
    return {
      ServedFrom: page.servedFrom,
      Type: pageType(page),
      Items: page.items.map(pageItem),
    };
  },
});

const scanAllMethod = dataMethod({
  path: "/KeyValuer/ScanAllByPrefix",
  role: "reader",
  kind: "kv-scan-all",
  request: proto.GrpcScanAllByPrefixRequest,
  response: proto.GrpcScanAllByPrefixResponse,
  toRequest: (message): KvScanRequest => ({
    kind: "kv-scan-all",
    prefix: message.PrefixKey,
    includeTombstones: false,
    limit: message.Limit,
    cursor: message.Cursor,
    durability: message.Durability,
    plain: noReadTimestamp(message),
  }),
  toResponse: plainPage,
});

const scanMethod = dataMethod({
  path: "/KeyValuer/ScanByPrefix",
  role: "reader",
  kind: "kv-scan-local",
  request: proto.GrpcScanByPrefixRequest,
  response: proto.GrpcScanByPrefixResponse,
  toRequest: (message): KvScanRequest => ({
    kind: "kv-scan-local",
    prefix: message.PrefixKey,
    includeTombstones: message.IncludeTombstones,
    limit: message.Limit,
    cursor: message.Cursor,
    durability: message.Durability,
    plain: noReadTimestamp(message),
  }),
  toResponse: servedPage,
});

const rangeMethod = dataMethod({
  path: "/KeyValuer/GetByRange",
  role: "reader",
  kind: "kv-range",
  request: proto.GrpcGetByRangeRequest,
  response: proto.GrpcGetByRangeResponse,
  toRequest: rangeRequest,
  toResponse: servedPage,
});

/** The unary data calls of the service. */
export const KEYVALUER_METHODS: readonly DataMethod[] = [
  ...SINGLE_METHODS,
  setManyMethod,
  deleteManyMethod,
  getManyMethod,
  existsManyMethod,
  bucketMethod,
  scanAllMethod,
  scanMethod,
  rangeMethod,
];

const Types = proto.GrpcClientBatchType;

/** The batch stream of the service. TRY_SCAN_BY_PREFIX is the cluster-wide scan. */
export const KEYVALUER_STREAM: BatchStreamKind = {
  path: "/KeyValuer/BatchClientKeyValueRequests",
  frames: true,
  forwarded: false,
  operations: new Map<number, BatchOperation>(
    (
      [
        ...SINGLE_ITEMS,
        [Types.TRY_SET_MANY_KEY_VALUE, 4, setManyMethod],
        [Types.TRY_GET_BY_BUCKET, 11, bucketMethod],
        [Types.TRY_SCAN_BY_PREFIX, 12, scanAllMethod],
        [Types.TRY_DELETE_MANY_KEY_VALUE, 16, deleteManyMethod],
      ] as const
    ).map(([type, field, method]) => [type, { requestField: field, responseField: field, method }]),
  ),
  cancel: null,
};
