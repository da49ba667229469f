/**
 * The Sequencer service: its messages to requests, answers to its messages.
 *
 * Invariants: 1. Optional fields keep the difference
 * between absent and zero in both directions. 2. Sequences know one durability only; a request's
 * number goes down unchanged.
 */
import { assert } from "../../base/assert.js";
import type {
  AllocationAnswer,
  DataAnswer,
  SequenceAnswer,
} from "../../operations/api/requests.js";
import { halvesToBigInt, type Encodable } from "../../proto/codec.js";
import * as proto from "../../proto/generated/sequences.js";
import type { BatchOperation, BatchStreamKind, DataMethod } from "../calls/method.js";
import { dataMethod, elapsedField, routeOf } from "../calls/method.js";

const bigOrNull = (
  halves: proto.GrpcUpdateSequenceRequest["MaxValue"],
): ReturnType<typeof halvesToBigInt> | null => (halves === null ? null : halvesToBigInt(halves));

function sequenceResponse(
  answer: DataAnswer,
  elapsedMs: number,
): Encodable<proto.GrpcSequenceResponse> {
  assert(answer.kind === "sequence", "a sequence call gets a sequence answer");
  return {
    ServedFrom: answer.servedFrom,
    Type: answer.type,
    Sequence: entryOf(answer.sequence),
    Revision: answer.revision,
    TimeElapsedMs: elapsedField(elapsedMs),
    Route: routeOf(answer.route),
  };
}

export function entryOf(
  view: SequenceAnswer["sequence"],
): Encodable<proto.GrpcSequenceEntry> | null {
  if (view === null) return null;
  return {
    Name: view.name,
    CurrentValue: view.currentValue,
    InitialValue: view.initialValue,
    Increment: view.increment,
    MaxValue: view.maxValue,
    Revision: view.revision,
    Durability: proto.GrpcSequenceDurability.SEQUENCE_PERSISTENT,
    CreatedAtNode: view.createdAt.n,
    CreatedAtPhysical: view.createdAt.l,
    CreatedAtCounter: view.createdAt.c,
    UpdatedAtNode: view.updatedAt.n,
    UpdatedAtPhysical: view.updatedAt.l,
    UpdatedAtCounter: view.updatedAt.c,
    BlockSize: view.blockSize,
    Incarnation: view.incarnation,
  };
}

function allocationResponse(
  answer: DataAnswer,
  elapsedMs: number,
): Encodable<proto.GrpcSequenceAllocationResponse> {
  assert(answer.kind === "allocation", "an allocation call gets an allocation answer");
  return {
    ServedFrom: answer.servedFrom,
    Type: answer.type,
    Allocation: allocationOf(answer.allocation),
    TimeElapsedMs: elapsedField(elapsedMs),
    Route: routeOf(answer.route),
  };
}

function allocationOf(
  allocation: AllocationAnswer["allocation"],
): Encodable<proto.GrpcSequenceAllocation> | null {
  if (allocation === null) return null;
  return {
    Name: allocation.name,
    Start: allocation.start,
    End: allocation.end,
    Count: allocation.count,
    Revision: allocation.revision,
  };
}

const create = dataMethod({
  path: "/Sequencer/CreateSequence",
  role: "writer",
  kind: "create-sequence",
  request: proto.GrpcCreateSequenceRequest,
  response: proto.GrpcSequenceResponse,
  toRequest: (message) => ({
    kind: "create-sequence",
    name: message.Name,
    initialValue: halvesToBigInt(message.InitialValue),
    increment: halvesToBigInt(message.Increment),
    maxValue: bigOrNull(message.MaxValue),
    blockSize: message.BlockSize,
    durability: message.Durability,
  }),
  toResponse: sequenceResponse,
});

const update = dataMethod({
  path: "/Sequencer/UpdateSequence",
  role: "writer",
  kind: "update-sequence",
  request: proto.GrpcUpdateSequenceRequest,
  response: proto.GrpcSequenceResponse,
  toRequest: (message) => ({
    kind: "update-sequence",
    name: message.Name,
    currentValue: bigOrNull(message.CurrentValue),
    increment: bigOrNull(message.Increment),
    initialValue: bigOrNull(message.InitialValue),
    maxValue: bigOrNull(message.MaxValue),
    removeMaxValue: message.RemoveMaxValue,
    blockSize: message.BlockSize,
    removeBlockSize: message.RemoveBlockSize,
    durability: message.Durability,
  }),
  toResponse: sequenceResponse,
});

const get = dataMethod({
  path: "/Sequencer/GetSequence",
  role: "reader",
  kind: "get-sequence",
  request: proto.GrpcGetSequenceRequest,
  response: proto.GrpcSequenceResponse,
  toRequest: (message) => ({
    kind: "get-sequence",
    name: message.Name,
    durability: message.Durability,
  }),
  toResponse: sequenceResponse,
});

const remove = dataMethod({
  path: "/Sequencer/DeleteSequence",
  role: "writer",
  kind: "delete-sequence",
  request: proto.GrpcDeleteSequenceRequest,
  response: proto.GrpcSequenceResponse,
  toRequest: (message) => ({
    kind: "delete-sequence",
    name: message.Name,
    durability: message.Durability,
  }),
  toResponse: sequenceResponse,
});

const next = dataMethod({
  path: "/Sequencer/NextSequenceValue",
  role: "writer",
  kind: "next-sequence",
  request: proto.GrpcNextSequenceRequest,
  response: proto.GrpcSequenceAllocationResponse,
  toRequest: (message) => ({
    kind: "next-sequence",
    name: message.Name,
    idempotencyKey: message.IdempotencyKey,
    durability: message.Durability,
  }),
  toResponse: allocationResponse,
});

const reserve = dataMethod({
  path: "/Sequencer/ReserveSequenceRange",
  role: "writer",
  kind: "reserve-sequence",
  request: proto.GrpcReserveSequenceRangeRequest,
  response: proto.GrpcSequenceAllocationResponse,
  toRequest: (message) => ({
    kind: "reserve-sequence",
    name: message.Name,
    count: message.Count,
    idempotencyKey: message.IdempotencyKey,
    durability: message.Durability,
  }),
  toResponse: allocationResponse,
});

/** The unary calls of the service. */
export const SEQUENCER_METHODS: readonly DataMethod[] = [
  create,
  update,
  get,
  remove,
  next,
  reserve,
];

const Types = proto.GrpcSequenceClientBatchType;

/** The batch stream of the service. */
export const SEQUENCER_STREAM: BatchStreamKind = {
  path: "/Sequencer/BatchClientSequenceRequests",
  frames: true,
  forwarded: false,
  operations: new Map<number, BatchOperation>([
    [Types.SEQUENCE_BATCH_CREATE, { requestField: 3, responseField: 3, method: create }],
    [Types.SEQUENCE_BATCH_UPDATE, { requestField: 4, responseField: 3, method: update }],
    [Types.SEQUENCE_BATCH_GET, { requestField: 5, responseField: 3, method: get }],
    [Types.SEQUENCE_BATCH_NEXT, { requestField: 6, responseField: 4, method: next }],
    [Types.SEQUENCE_BATCH_RESERVE, { requestField: 7, responseField: 4, method: reserve }],
    [Types.SEQUENCE_BATCH_DELETE, { requestField: 8, responseField: 3, method: remove }],
  ]),
  cancel: null,
};
