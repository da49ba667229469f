/**
 * Create, update, get and delete of sequences, as the client sends and reads them.
 *
 * Invariants: 1. An update is repeated after a lost answer only when it says the value to start
 * from.
 */
import { SequenceType } from "../../base/result-types.js";
import type { ProtoReader } from "../../proto/codec.js";
import * as messages from "../../proto/generated/sequences.js";
import { NotFoundError } from "../values/errors.js";
import {
  asObject,
  bigintOf,
  bigintOrNull,
  intOrNull,
  jsonText,
  textOf,
  type JsonObject,
} from "../values/json.js";
import { fromHalves, stampFromJson, stampOf, toHalves, toHalvesOrNull } from "../values/numbers.js";
import type { Operation } from "../call/operation.js";
import { sequenceFailure, sequenceTypeOf } from "./sequence-answers.js";
import type { SequenceDelete, SequenceInfo } from "./sequence-shapes.js";

export interface NameRequest {
  readonly name: string;
}
export interface CreateRequest {
  readonly name: string;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
}
export interface UpdateRequest {
  readonly name: string;
  readonly currentValue: bigint | null;
  readonly increment: bigint | null;
  readonly initialValue: bigint | null;
  readonly maxValue: bigint | null;
  readonly removeMaxValue: boolean;
  readonly blockSize: number | null;
  readonly removeBlockSize: boolean;
}
interface SequenceAnswer {
  readonly type: number;
  readonly sequence: SequenceInfo | null;
}
const PERSISTENT = messages.GrpcSequenceDurability.SEQUENCE_PERSISTENT;
const DURABILITY = "Persistent";

export function infoFromGrpc(entry: messages.GrpcSequenceEntry): SequenceInfo {
  return {
    name: entry.Name,
    currentValue: fromHalves(entry.CurrentValue),
    initialValue: fromHalves(entry.InitialValue),
    increment: fromHalves(entry.Increment),
    maxValue: entry.MaxValue === null ? null : fromHalves(entry.MaxValue),
    blockSize: entry.BlockSize,
    incarnation: fromHalves(entry.Incarnation),
    revision: fromHalves(entry.Revision),
    durability: "persistent",
    createdAt: stampOf(entry.CreatedAtNode, entry.CreatedAtPhysical, entry.CreatedAtCounter),
    updatedAt: stampOf(entry.UpdatedAtNode, entry.UpdatedAtPhysical, entry.UpdatedAtCounter),
  };
}

export function infoFromRest(body: JsonObject): SequenceInfo {
  return {
    name: textOf(body, "name"),
    currentValue: bigintOf(body, "currentValue"),
    initialValue: bigintOf(body, "initialValue"),
    increment: bigintOf(body, "increment"),
    maxValue: bigintOrNull(body, "maxValue"),
    blockSize: intOrNull(body, "blockSize"),
    incarnation: bigintOf(body, "incarnation"),
    revision: bigintOf(body, "revision"),
    durability: "persistent",
    createdAt: stampFromJson(body, "createdAt"),
    updatedAt: stampFromJson(body, "updatedAt"),
  };
}

function restType(body: JsonObject): number {
  return sequenceTypeOf(textOf(body, "type"));
}

function answerFromGrpc(reader: ProtoReader, lengthBytes: number): SequenceAnswer {
  const message = messages.GrpcSequenceResponse.decode(reader, lengthBytes);
  const { Sequence: entry } = message;
  return { type: message.Type, sequence: entry === null ? null : infoFromGrpc(entry) };
}

function answerFromRest(body: JsonObject): SequenceAnswer {
  const { sequence } = body;
  const info = sequence === null || sequence === undefined ? null : asObject(sequence, "sequence");
  return { type: restType(body), sequence: info === null ? null : infoFromRest(info) };
}

/** The sequence of a successful answer. */
function settleInfo(answer: SequenceAnswer, request: NameRequest, doubtful: boolean): SequenceInfo {
  if (answer.type === SequenceType.success && answer.sequence !== null) return answer.sequence;
  throw sequenceFailure(answer.type, request.name, doubtful);
}

export const createSequence: Operation<CreateRequest, SequenceAnswer, SequenceInfo> = {
  name: "sequences.create",
  path: "/Sequencer/CreateSequence",
  stream: { kind: "sequences", type: 1, field: 3 },
  route: { space: "sequences", field: 6, name: ({ name }) => name },
  rest: {
    method: "POST",
    path: () => "/v1/sequences/create",
    body: (request) => jsonText({ ...request, durability: DURABILITY }),
  },
  write(request, writer) {
    messages.GrpcCreateSequenceRequest.encode(
      {
        Name: request.name,
        InitialValue: toHalves(request.initialValue),
        Increment: toHalves(request.increment),
        MaxValue: toHalvesOrNull(request.maxValue),
        Durability: PERSISTENT,
        BlockSize: request.blockSize,
      },
      writer,
    );
  },
  fromGrpc: answerFromGrpc,
  fromRest: answerFromRest,
  repeat: () => true,
  settle: settleInfo,
};

export const updateSequence: Operation<UpdateRequest, SequenceAnswer, SequenceInfo> = {
  name: "sequences.update",
  path: "/Sequencer/UpdateSequence",
  stream: { kind: "sequences", type: 2, field: 4 },
  route: { space: "sequences", field: 6, name: ({ name }) => name },
  rest: {
    method: "POST",
    path: () => "/v1/sequences/update",
    body: (request) => jsonText({ ...request, durability: DURABILITY }),
  },
  write(request, writer) {
    messages.GrpcUpdateSequenceRequest.encode(
      {
        Name: request.name,
        CurrentValue: toHalvesOrNull(request.currentValue),
        Increment: toHalvesOrNull(request.increment),
        InitialValue: toHalvesOrNull(request.initialValue),
        MaxValue: toHalvesOrNull(request.maxValue),
        RemoveMaxValue: request.removeMaxValue,
        BlockSize: request.blockSize,
        RemoveBlockSize: request.removeBlockSize,
        Durability: PERSISTENT,
      },
      writer,
    );
  },
  fromGrpc: answerFromGrpc,
  fromRest: answerFromRest,
  // Without a value to set, a repeat would start from values handed out in between.
  repeat: (request) => request.currentValue !== null,
  settle: settleInfo,
};

export const getSequence: Operation<NameRequest, SequenceAnswer, SequenceInfo | null> = {
  name: "sequences.get",
  reads: true,
  path: "/Sequencer/GetSequence",
  stream: { kind: "sequences", type: 3, field: 5 },
  route: { space: "sequences", field: 6, name: ({ name }) => name },
  rest: {
    method: "POST",
    path: () => "/v1/sequences/get",
    body: (request) => jsonText({ name: request.name, durability: DURABILITY }),
  },
  write(request, writer) {
    messages.GrpcGetSequenceRequest.encode({ Name: request.name, Durability: PERSISTENT }, writer);
  },
  fromGrpc: answerFromGrpc,
  fromRest: answerFromRest,
  repeat: () => true,
  settle(answer, request) {
    if (answer.type === SequenceType.success && answer.sequence !== null) return answer.sequence;
    const failure = sequenceFailure(answer.type, request.name, false);
    if (failure instanceof NotFoundError) return null;
    throw failure;
  },
};

export const deleteSequence: Operation<NameRequest, SequenceAnswer, SequenceDelete> = {
  name: "sequences.delete",
  path: "/Sequencer/DeleteSequence",
  stream: { kind: "sequences", type: 6, field: 8 },
  route: { space: "sequences", field: 6, name: ({ name }) => name },
  rest: {
    method: "POST",
    path: () => "/v1/sequences/delete",
    body: (request) => jsonText({ name: request.name, durability: DURABILITY }),
  },
  write(request, writer) {
    const fields = { Name: request.name, Durability: PERSISTENT };
    messages.GrpcDeleteSequenceRequest.encode(fields, writer);
  },
  fromGrpc: answerFromGrpc,
  fromRest: answerFromRest,
  repeat: () => true,
  settle(answer, request, doubtful) {
    if (answer.type === SequenceType.success) return { deleted: true, doubtful };
    const failure = sequenceFailure(answer.type, request.name, doubtful);
    if (failure instanceof NotFoundError) return { deleted: false, doubtful };
    throw failure;
  },
};
