/**
 * Many-calls: independent items in one call, as the client sends and reads them.
 *
 * Invariants: 1. The answer has one item per item of the request, in its order. 2. An item is
 * judged alone.
 */
import * as messages from "../../proto/generated/keyvalues.js";
import { ServerError } from "../values/errors.js";
import { intOf, jsonText, listOf, type JsonObject } from "../values/json.js";
import {
  entryFields,
  existenceFields,
  readFromRest,
  setFields,
  setMessage,
  type KvKeyRequest,
  type KvReadAnswer,
  type KvReadRequest,
  type KvSetRequest,
  type KvWriteAnswer,
} from "./kv-operations.js";
import { bigintOf } from "../values/json.js";
import { fromHalves, stampFromJson, stampOf, toHalves } from "../values/numbers.js";
import type { Operation } from "../call/operation.js";

/** The answers of all items, and whether an earlier try of the call may have changed them. */
export interface ManyAnswers<Answers> {
  readonly answers: Answers;
  readonly doubtful: boolean;
}

type Many<Request, Answer> = Operation<
  readonly Request[],
  readonly Answer[],
  ManyAnswers<readonly Answer[]>
>;

function counted<Request, Answer>(
  answers: readonly Answer[],
  requests: readonly Request[],
  doubtful: boolean,
): ManyAnswers<readonly Answer[]> {
  if (answers.length === requests.length) return { answers, doubtful };
  const message = `${requests.length} items were sent and ${answers.length} answered`;
  throw new ServerError(message, {}, "protocol");
}

type WriteItem = messages.GrpcTrySetManyKeyValueResponseItem;

function writeItem(item: WriteItem): KvWriteAnswer {
  const { LastModifiedNode, LastModifiedPhysical, LastModifiedCounter } = item;
  return {
    type: item.Type,
    revision: fromHalves(item.Revision),
    lastModified: stampOf(LastModifiedNode, LastModifiedPhysical, LastModifiedCounter),
  };
}

function writeItemsFromRest(body: JsonObject): KvWriteAnswer[] {
  return listOf(body, "items").map((item) => ({
    type: intOf(item, "type"),
    revision: bigintOf(item, "revision"),
    lastModified: stampFromJson(item, "lastModified"),
  }));
}

function readItemsFromRest(body: JsonObject): KvReadAnswer[] {
  return listOf(body, "items").map(readFromRest);
}

export const setMany: Many<KvSetRequest, KvWriteAnswer> = {
  name: "kv.setMany",
  path: "/KeyValuer/TrySetManyKeyValue",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/kv/try-set-many",
    body: (items) => jsonText({ items: items.map(setFields) }),
  },
  write(items, writer) {
    messages.GrpcTrySetManyKeyValueRequest.encode({ Items: items.map(setMessage) }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcTrySetManyKeyValueResponse.decode(reader, lengthBytes);
    return message.Items.map(writeItem);
  },
  fromRest: writeItemsFromRest,
  repeat: (items) => items.every((item) => (item.flags & ~3) === 0),
  settle: counted,
};

export const deleteMany: Many<KvKeyRequest, KvWriteAnswer> = {
  name: "kv.deleteMany",
  path: "/KeyValuer/TryDeleteManyKeyValue",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/kv/try-delete-many",
    body: (items) => jsonText({ items }),
  },
  write(items, writer) {
    const Items = items.map(({ key, durability }) => ({ Key: key, Durability: durability }));
    messages.GrpcTryDeleteManyKeyValueRequest.encode({ Items }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcTryDeleteManyKeyValueResponse.decode(reader, lengthBytes);
    return message.Items.map(writeItem);
  },
  fromRest: writeItemsFromRest,
  repeat: () => true,
  settle: counted,
};

function readItems(items: readonly KvReadRequest[]) {
  return items.map(({ key, revision, durability }) => ({
    Key: key,
    Revision: toHalves(revision),
    Durability: durability,
  }));
}

export const getMany: Many<KvReadRequest, KvReadAnswer> = {
  name: "kv.getMany",
  reads: true,
  path: "/KeyValuer/TryGetManyValues",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/kv/try-get-many",
    body: (items) => jsonText({ items }),
  },
  write(items, writer) {
    messages.GrpcTryGetManyValuesRequest.encode({ Items: readItems(items) }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcTryGetManyValuesResponse.decode(reader, lengthBytes);
    return message.Items.map((item) => ({ type: item.Type, ...entryFields(item) }));
  },
  fromRest: readItemsFromRest,
  repeat: () => true,
  settle: counted,
};

export const existsMany: Many<KvReadRequest, KvReadAnswer> = {
  name: "kv.existsMany",
  reads: true,
  path: "/KeyValuer/TryExistsManyValues",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/kv/try-exists-many",
    body: (items) => jsonText({ items }),
  },
  write(items, writer) {
    messages.GrpcTryExistsManyValuesRequest.encode({ Items: readItems(items) }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcTryExistsManyValuesResponse.decode(reader, lengthBytes);
    return message.Items.map((item) => ({
      type: item.Type,
      value: null,
      ...existenceFields(item),
    }));
  },
  fromRest: readItemsFromRest,
  repeat: () => true,
  settle: counted,
};
