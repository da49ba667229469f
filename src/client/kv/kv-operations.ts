/**
 * Operations on single keys, as the client sends and reads them.
 *
 * Invariants: 1. A failed condition and a missing key are results. 2. "Not set" after a lost answer
 * is doubt, never a result.
 */
import { decodeText } from "../../base/bytes.js";
import type { ProtoReader } from "../../proto/codec.js";
import * as messages from "../../proto/generated/keyvalues.js";
import { KvType } from "../../base/result-types.js";
import { kvFailure } from "./kv-answers.js";
import { UnknownOutcomeError } from "../values/errors.js";
import type { KvDelete, KvEntry, KvExistence, KvWrite } from "./kv-shapes.js";
import { bigintOf, bytesOrNull, intOf, jsonText, type JsonObject } from "../values/json.js";
import { fromHalves, stampFromJson, stampOf, toHalves, type Timestamp } from "../values/numbers.js";
import type { Operation } from "../call/operation.js";

export interface KvSetRequest {
  readonly key: string;
  readonly value: Uint8Array | null;
  readonly compareValue: Uint8Array | null;
  readonly compareRevision: bigint;
  readonly expiresMs: number;
  readonly flags: number;
  readonly durability: 0 | 1;
}
export interface KvKeyRequest {
  readonly key: string;
  readonly durability: 0 | 1;
}
export interface KvExtendRequest extends KvKeyRequest {
  readonly expiresMs: number;
}
export interface KvReadRequest extends KvKeyRequest {
  readonly revision: bigint;
}

export interface KvWriteAnswer {
  readonly type: number;
  readonly revision: bigint;
  readonly lastModified: Timestamp;
}
export interface KvReadAnswer extends KvWriteAnswer {
  readonly value: Uint8Array | null;
  readonly expires: Timestamp;
}

/** Bits that are conditions: IF_EXISTS, IF_NOT_EXISTS, IF_EQUAL_TO_VALUE, IF_EQUAL_TO_REVISION. */
const CONDITIONS = 4 | 8 | 16 | 32;

function base64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString("base64");
}

function writeFromGrpc(reader: ProtoReader, lengthBytes: number): KvWriteAnswer {
  return writeAnswer(messages.GrpcTrySetKeyValueResponse.decode(reader, lengthBytes));
}

/** The three answers of writes have the same fields. */
function writeAnswer(message: messages.GrpcTrySetKeyValueResponse): KvWriteAnswer {
  const { LastModifiedNode, LastModifiedPhysical, LastModifiedCounter } = message;
  return {
    type: message.Type,
    revision: fromHalves(message.Revision),
    lastModified: stampOf(LastModifiedNode, LastModifiedPhysical, LastModifiedCounter),
  };
}

function writeFromRest(body: JsonObject): KvWriteAnswer {
  return {
    type: intOf(body, "type"),
    revision: bigintOf(body, "revision"),
    lastModified: stampFromJson(body, "lastModified"),
  };
}

export function readFromRest(body: JsonObject): KvReadAnswer {
  return {
    ...writeFromRest(body),
    value: bytesOrNull(body, "value"),
    expires: stampFromJson(body, "expires"),
  };
}

/** Body of a set, alone or in a many-call. */
export function setFields(request: KvSetRequest): object {
  return {
    ...request,
    value: base64(request.value),
    compareValue: base64(request.compareValue),
  };
}

/** The same on the other wire. */
export function setMessage(request: KvSetRequest) {
  return {
    Key: request.key,
    Value: request.value,
    CompareValue: request.compareValue,
    CompareRevision: toHalves(request.compareRevision),
    Flags: request.flags,
    ExpiresMs: request.expiresMs,
    Durability: request.durability,
  };
}

/** The result of a set or extend. */
export function settleWrite(
  answer: KvWriteAnswer,
  key: string,
  conditional: boolean,
  doubtful: boolean,
): KvWrite {
  const { type, revision, lastModified } = answer;
  if (type === KvType.set || type === KvType.extended) {
    return { applied: true, revision, lastModified };
  }
  if (type === KvType.notSet || type === KvType.doesNotExist) {
    if (doubtful && conditional) {
      throw new UnknownOutcomeError(
        `an earlier try of this call may have set "${key}"; its revision is now ${revision}`,
      );
    }
    return { applied: false, revision, lastModified };
  }
  throw kvFailure(type, key, doubtful);
}

export function isConditional(request: KvSetRequest): boolean {
  return (request.flags & CONDITIONS) !== 0;
}

export const setKey: Operation<KvSetRequest, KvWriteAnswer, KvWrite> = {
  name: "kv.set",
  path: "/KeyValuer/TrySetKeyValue",
  stream: { kind: "kv", type: 1, field: 3 },
  route: { space: "keys", field: 8, name: ({ key }) => key },
  rest: {
    method: "POST",
    path: () => "/v1/kv/try-set",
    body: (request) => jsonText(setFields(request)),
  },
  write: (request, writer) =>
    void messages.GrpcTrySetKeyValueRequest.encode(setMessage(request), writer),
  fromGrpc: writeFromGrpc,
  fromRest: writeFromRest,
  repeat: () => true,
  settle: (answer, request, doubtful) =>
    settleWrite(answer, request.key, isConditional(request), doubtful),
};

export const extendKey: Operation<KvExtendRequest, KvWriteAnswer, KvWrite> = {
  name: "kv.extend",
  path: "/KeyValuer/TryExtendKeyValue",
  stream: { kind: "kv", type: 3, field: 7 },
  route: { space: "keys", field: 8, name: ({ key }) => key },
  rest: { method: "POST", path: () => "/v1/kv/try-extend", body: (request) => jsonText(request) },
  write({ key, expiresMs, durability }, writer) {
    const fields = { Key: key, ExpiresMs: expiresMs, Durability: durability };
    messages.GrpcTryExtendKeyValueRequest.encode(fields, writer);
  },
  fromGrpc: writeFromGrpc,
  fromRest: writeFromRest,
  repeat: () => true,
  settle: (answer, request, doubtful) => settleWrite(answer, request.key, false, doubtful),
};

export const deleteKey: Operation<KvKeyRequest, KvWriteAnswer, KvDelete> = {
  name: "kv.delete",
  path: "/KeyValuer/TryDeleteKeyValue",
  stream: { kind: "kv", type: 4, field: 6 },
  route: { space: "keys", field: 8, name: ({ key }) => key },
  rest: { method: "POST", path: () => "/v1/kv/try-delete", body: (request) => jsonText(request) },
  write({ key, durability }, writer) {
    messages.GrpcTryDeleteKeyValueRequest.encode({ Key: key, Durability: durability }, writer);
  },
  fromGrpc: writeFromGrpc,
  fromRest: writeFromRest,
  repeat: () => true,
  settle: (answer, request, doubtful) => settleDelete(answer, request.key, doubtful),
};

export function settleDelete(answer: KvWriteAnswer, key: string, doubtful: boolean): KvDelete {
  const { type, revision, lastModified } = answer;
  if (type === KvType.deleted || type === KvType.doesNotExist) {
    return { deleted: type === KvType.deleted, doubtful, revision, lastModified };
  }
  throw kvFailure(type, key, doubtful);
}

function writeRead({ key, revision, durability }: KvReadRequest) {
  return { Key: key, Revision: toHalves(revision), Durability: durability };
}

export const getKey: Operation<KvReadRequest, KvReadAnswer, KvEntry | null> = {
  name: "kv.get",
  reads: true,
  path: "/KeyValuer/TryGetKeyValue",
  stream: { kind: "kv", type: 5, field: 5 },
  route: { space: "keys", field: 16, name: ({ key }) => key },
  rest: { method: "POST", path: () => "/v1/kv/try-get", body: (request) => jsonText(request) },
  write: (request, writer) =>
    void messages.GrpcTryGetKeyValueRequest.encode(writeRead(request), writer),
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcTryGetKeyValueResponse.decode(reader, lengthBytes);
    return { type: message.Type, ...entryFields(message) };
  },
  fromRest: readFromRest,
  repeat: () => true,
  settle: (answer, { key }) => settleEntry(answer, key),
};

export const existsKey: Operation<KvReadRequest, KvReadAnswer, KvExistence | null> = {
  name: "kv.exists",
  reads: true,
  path: "/KeyValuer/TryExistsKeyValue",
  stream: { kind: "kv", type: 6, field: 8 },
  route: { space: "keys", field: 15, name: ({ key }) => key },
  rest: { method: "POST", path: () => "/v1/kv/try-exists", body: (request) => jsonText(request) },
  write: (request, writer) =>
    void messages.GrpcTryExistsKeyValueRequest.encode(writeRead(request), writer),
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcTryExistsKeyValueResponse.decode(reader, lengthBytes);
    return { type: message.Type, value: null, ...existenceFields(message) };
  },
  fromRest: readFromRest,
  repeat: () => true,
  settle: (answer, { key }) => settleExistence(answer, key),
};

export function settleEntry(answer: KvReadAnswer, key: string): KvEntry | null {
  if (answer.type === KvType.doesNotExist) return null;
  if (answer.type !== KvType.got) throw kvFailure(answer.type, key, false);
  return entryOf(key, answer);
}

export function settleExistence(answer: KvReadAnswer, key: string): KvExistence | null {
  if (answer.type === KvType.doesNotExist) return null;
  if (answer.type !== KvType.exists) throw kvFailure(answer.type, key, false);
  const { revision, expires, lastModified } = answer;
  return { key, revision, expires, lastModified };
}

/** An entry as it is handed out. */
export function entryOf(key: string, fields: Omit<KvReadAnswer, "type">): KvEntry {
  const { value, revision, expires, lastModified } = fields;
  const text = value === null ? null : decodeText(value);
  return { key, value, text, revision, expires, lastModified };
}

type ExistenceMessage = Pick<
  messages.GrpcTryGetKeyValueResponse,
  | "Revision"
  | "ExpiresNode"
  | "ExpiresPhysical"
  | "ExpiresCounter"
  | "LastModifiedNode"
  | "LastModifiedPhysical"
  | "LastModifiedCounter"
>;
type EntryMessage = ExistenceMessage & Pick<messages.GrpcTryGetKeyValueResponse, "Value">;

/** What all messages that describe an entry have in common. */
export function existenceFields(message: ExistenceMessage): Omit<KvReadAnswer, "type" | "value"> {
  const { ExpiresNode, ExpiresPhysical, ExpiresCounter } = message;
  const { LastModifiedNode, LastModifiedPhysical, LastModifiedCounter } = message;
  return {
    revision: fromHalves(message.Revision),
    expires: stampOf(ExpiresNode, ExpiresPhysical, ExpiresCounter),
    lastModified: stampOf(LastModifiedNode, LastModifiedPhysical, LastModifiedCounter),
  };
}

/** The same with the value. */
export function entryFields(message: EntryMessage): Omit<KvReadAnswer, "type"> {
  // A copy: the message it came in is much larger and would be kept alive.
  const value = message.Value === null ? null : Uint8Array.from(message.Value);
  return { value, ...existenceFields(message) };
}
