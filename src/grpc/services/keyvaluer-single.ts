/**
 * The calls of the KeyValuer service on one key: messages to requests, answers to messages.
 *
 * Invariants: 1. An absent value and empty bytes stay
 * different. 2. An unset revision is revision 0, an unset durability Ephemeral, as the contract has
 * it for gRPC. 3. LastUsed is LastModified.
 */
import { assert } from "../../base/assert.js";
import type { DataAnswer, KvAnswer, KvGetRequest } from "../../operations/api/requests.js";
import { isZeroHalves, halvesToBigInt, type Encodable } from "../../proto/codec.js";
import * as proto from "../../proto/generated/keyvalues.js";
import {
  type DataMethod,
  dataMethod,
  elapsedField,
  ownBytesOrNull,
  routeOf,
} from "../calls/method.js";
import { noOperation, noReadTimestamp, noTransaction, normalPolicy } from "./transactional.js";

function kvAnswer(answer: DataAnswer): KvAnswer {
  assert(answer.kind === "kv", "a key/value call gets a key/value answer");
  return answer;
}

function writeResponse(
  answer: DataAnswer,
  elapsedMs: number,
): Encodable<proto.GrpcTrySetKeyValueResponse> {
  const { servedFrom, type, revision, lastModified, route } = kvAnswer(answer);
  return {
    ServedFrom: servedFrom,
    Type: type,
    Revision: revision,
    LastModifiedNode: lastModified.n,
    LastModifiedPhysical: lastModified.l,
    LastModifiedCounter: lastModified.c,
    TimeElapsedMs: elapsedField(elapsedMs),
    Route: routeOf(route),
  };
}

function readRequest(
  kind: KvGetRequest["kind"],
  message: proto.GrpcTryGetKeyValueRequest,
): KvGetRequest {
  return {
    kind,
    key: message.Key,
    revision: halvesToBigInt(message.Revision),
    durability: message.Durability,
    plain: noTransaction(message) && noReadTimestamp(message) && noOperation(message),
  };
}

/**
 * Of get and of exists, which encodes all but the value. One literal: the codec takes five times as
 * long for an object that was spread.
 */
function readResponse(
  answer: DataAnswer,
  elapsedMs: number,
): Encodable<proto.GrpcTryGetKeyValueResponse> {
  const { servedFrom, type, value, revision, expires, lastModified, state, route } =
    kvAnswer(answer);
  return {
    ServedFrom: servedFrom,
    Type: type,
    Value: value,
    Revision: revision,
    ExpiresNode: expires.n,
    ExpiresPhysical: expires.l,
    ExpiresCounter: expires.c,
    LastUsedNode: lastModified.n,
    LastUsedPhysical: lastModified.l,
    LastUsedCounter: lastModified.c,
    LastModifiedNode: lastModified.n,
    LastModifiedPhysical: lastModified.l,
    LastModifiedCounter: lastModified.c,
    State: state,
    TimeElapsedMs: elapsedField(elapsedMs),
    Route: routeOf(route),
  };
}

const setMethod = dataMethod({
  path: "/KeyValuer/TrySetKeyValue",
  role: "writer",
  kind: "kv-set",
  request: proto.GrpcTrySetKeyValueRequest,
  response: proto.GrpcTrySetKeyValueResponse,
  toRequest: (message) => ({
    kind: "kv-set",
    key: message.Key,
    value: ownBytesOrNull(message.Value),
    compareValue: ownBytesOrNull(message.CompareValue),
    compareRevision: halvesToBigInt(message.CompareRevision),
    expiresMs: message.ExpiresMs,
    flags: message.Flags,
    durability: message.Durability,
    plain:
      noTransaction(message) &&
      noOperation(message) &&
      normalPolicy(message) &&
      isZeroHalves(message.RoutedGeneration),
  }),
  toResponse: writeResponse,
});

const extendMethod = dataMethod({
  path: "/KeyValuer/TryExtendKeyValue",
  role: "writer",
  kind: "kv-extend",
  request: proto.GrpcTryExtendKeyValueRequest,
  response: proto.GrpcTryExtendKeyValueResponse,
  toRequest: (message) => ({
    kind: "kv-extend",
    key: message.Key,
    expiresMs: message.ExpiresMs,
    durability: message.Durability,
    plain: noTransaction(message) && noOperation(message) && normalPolicy(message),
  }),
  toResponse: writeResponse,
});

const deleteMethod = dataMethod({
  path: "/KeyValuer/TryDeleteKeyValue",
  role: "writer",
  kind: "kv-delete",
  request: proto.GrpcTryDeleteKeyValueRequest,
  response: proto.GrpcTryDeleteKeyValueResponse,
  toRequest: (message) => ({
    kind: "kv-delete",
    key: message.Key,
    durability: message.Durability,
    plain: noTransaction(message) && noOperation(message) && normalPolicy(message),
  }),
  toResponse: writeResponse,
});

const getMethod = dataMethod({
  path: "/KeyValuer/TryGetKeyValue",
  role: "reader",
  kind: "kv-get",
  request: proto.GrpcTryGetKeyValueRequest,
  response: proto.GrpcTryGetKeyValueResponse,
  toRequest: (message) => readRequest("kv-get", message),
  toResponse: readResponse,
});

const existsMethod = dataMethod({
  path: "/KeyValuer/TryExistsKeyValue",
  role: "reader",
  kind: "kv-exists",
  request: proto.GrpcTryExistsKeyValueRequest,
  response: proto.GrpcTryExistsKeyValueResponse,
  toRequest: (message) => readRequest("kv-exists", message),
  toResponse: readResponse,
});

export const SINGLE_METHODS: readonly DataMethod[] = [
  setMethod,
  extendMethod,
  deleteMethod,
  getMethod,
  existsMethod,
];

const Types = proto.GrpcClientBatchType;

/** As items of the batch stream: type, number of the field, method. */
export const SINGLE_ITEMS: readonly (readonly [number, number, DataMethod])[] = [
  [Types.TRY_SET_KEY_VALUE, 3, setMethod],
  [Types.TRY_EXTEND_KEY_VALUE, 7, extendMethod],
  [Types.TRY_DELETE_KEY_VALUE, 6, deleteMethod],
  [Types.TRY_GET_KEY_VALUE, 5, getMethod],
  [Types.TRY_EXISTS_KEY_VALUE, 8, existsMethod],
];
