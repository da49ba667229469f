/**
 * The calls of the KeyValuer service on many keys: messages to requests, answers to messages.
 *
 * Invariants: 1. Every item of a request has an item in
 * the response, in the request's order; where the answer has none (a refusal), the item repeats key
 * and durability with the type of the whole. 2. LastUsed is LastModified.
 */
import { assert } from "../../base/assert.js";
import { NO_STAMP } from "../../base/hlc.js";
import {
  type DataAnswer,
  type DataRequest,
  type KvGetManyRequest,
  type KvManyItem,
  isOf,
} from "../../operations/api/requests.js";
import { isZeroHalves, halvesToBigInt, type Encodable } from "../../proto/codec.js";
import * as proto from "../../proto/generated/keyvalues.js";
import { dataMethod, elapsedField, ownBytesOrNull, routeOf } from "../calls/method.js";
import { noOperation, noReadTimestamp, noTransaction, normalPolicy } from "./transactional.js";

/**
 * The items of an answer, or those that a refusal of the whole gives to each item of the request.
 */
function itemsOf(answer: DataAnswer, request: DataRequest | null): readonly KvManyItem[] {
  assert(answer.kind === "kv-many", "a many-call gets a many-answer");
  if (answer.items.length > 0 || request === null || !isOf(request, "many")) return answer.items;
  return request.items.map((item) => ({
    key: item.key,
    durability: item.durability,
    type: answer.type,
    servedFrom: answer.servedFrom,
    value: null,
    revision: refusedRevision(request),
    expires: NO_STAMP,
    lastModified: NO_STAMP,
    state: 0,
    routeIndex: 0,
  }));
}

/** K10: nothing is described, and the number that says so differs between writes and reads. */
function refusedRevision(request: DataRequest): number {
  return request.kind === "kv-set-many" ? -1 : 0;
}

function routesOf(answer: DataAnswer): readonly NonNullable<ReturnType<typeof routeOf>>[] {
  assert(answer.kind === "kv-many", "a many-call gets a many-answer");
  const routes = [];
  for (const route of answer.routes) {
    const hint = routeOf(route);
    if (hint !== null) routes.push(hint);
  }
  return routes;
}

function writtenResponse(
  answer: DataAnswer,
  elapsedMs: number,
  request: DataRequest | null,
): Encodable<proto.GrpcTrySetManyKeyValueResponse> {
  const items = itemsOf(answer, request).map((item) => ({
    ServedFrom: item.servedFrom,
    Type: item.type,
    Key: item.key,
    Revision: item.revision,
    LastModifiedNode: item.lastModified.n,
    LastModifiedPhysical: item.lastModified.l,
    LastModifiedCounter: item.lastModified.c,
    Durability: item.durability,
    RouteIndex: item.routeIndex,
  }));
  return { Items: items, Routes: routesOf(answer), TimeElapsedMs: elapsedField(elapsedMs) };
}

/** Of get and of exists, which encodes all but the value. */
function readItem(item: KvManyItem): Encodable<proto.GrpcTryGetManyValuesResponseItem> {
  return {
    Type: item.type,
    Key: item.key,
    Durability: item.durability,
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
    Value: item.value,
    State: item.state,
    RouteIndex: item.routeIndex,
  };
}

function readManyResponse(
  answer: DataAnswer,
  _elapsedMs: number,
  request: DataRequest | null,
): Encodable<proto.GrpcTryGetManyValuesResponse> {
  return {
    ServedFrom: answer.servedFrom,
    Items: itemsOf(answer, request).map(readItem),
    Routes: routesOf(answer),
  };
}

function readManyRequest(
  kind: KvGetManyRequest["kind"],
  message: proto.GrpcTryGetManyValuesRequest,
): KvGetManyRequest {
  const plain = noTransaction(message) && noReadTimestamp(message);
  const itemKind = kind === "kv-get-many" ? "kv-get" : "kv-exists";
  return {
    kind,
    items: message.Items.map((item) => ({
      kind: itemKind,
      key: item.Key,
      revision: halvesToBigInt(item.Revision),
      durability: item.Durability,
      plain,
    })),
    plain,
  };
}

export const setManyMethod = dataMethod({
  path: "/KeyValuer/TrySetManyKeyValue",
  role: "writer",
  kind: "kv-set-many",
  request: proto.GrpcTrySetManyKeyValueRequest,
  response: proto.GrpcTrySetManyKeyValueResponse,
  toRequest: (message) => ({
    kind: "kv-set-many",
    items: message.Items.map((item) => ({
      kind: "kv-set",
      key: item.Key,
      value: ownBytesOrNull(item.Value),
      compareValue: ownBytesOrNull(item.CompareValue),
      compareRevision: halvesToBigInt(item.CompareRevision),
      expiresMs: item.ExpiresMs,
      flags: item.Flags,
      durability: item.Durability,
      plain: noTransaction(item) && normalPolicy(item) && isZeroHalves(item.RoutedGeneration),
    })),
  }),
  toResponse: writtenResponse,
});

export const deleteManyMethod = dataMethod({
  path: "/KeyValuer/TryDeleteManyKeyValue",
  role: "writer",
  kind: "kv-delete-many",
  request: proto.GrpcTryDeleteManyKeyValueRequest,
  response: proto.GrpcTryDeleteManyKeyValueResponse,
  toRequest: (message) => ({
    kind: "kv-delete-many",
    items: message.Items.map((item) => ({
      kind: "kv-delete",
      key: item.Key,
      durability: item.Durability,
      plain: noTransaction(item) && normalPolicy(item),
    })),
    plain: noOperation(message),
  }),
  toResponse: writtenResponse,
});

export const getManyMethod = dataMethod({
  path: "/KeyValuer/TryGetManyValues",
  role: "reader",
  kind: "kv-get-many",
  request: proto.GrpcTryGetManyValuesRequest,
  response: proto.GrpcTryGetManyValuesResponse,
  toRequest: (message) => readManyRequest("kv-get-many", message),
  toResponse: readManyResponse,
});

export const existsManyMethod = dataMethod({
  path: "/KeyValuer/TryExistsManyValues",
  role: "reader",
  kind: "kv-exists-many",
  request: proto.GrpcTryExistsManyValuesRequest,
  response: proto.GrpcTryExistsManyValuesResponse,
  toRequest: (message) => readManyRequest("kv-exists-many", message),
  toResponse: readManyResponse,
});
