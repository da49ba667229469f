/**
 * Allocation: `next` and `reserve`, the hot path of the library.
 *
 * Invariants: 1. An allocation whose outcome is unknown is repeated only with an idempotency key.
 * 2. Values are bigint from the first byte on. 3. Of an answer only what is handed out is decoded.
 */
import { SequenceType } from "../../base/result-types.js";
import { fromHalves } from "../values/numbers.js";
import type { Int64Halves, ProtoReader, ProtoWriter } from "../../proto/codec.js";
import { asObject, bigintOf, intOf, jsonText, textOf, type JsonObject } from "../values/json.js";
import type { Operation, RoutePlace } from "../call/operation.js";
import { sequenceFailure, sequenceTypeOf } from "./sequence-answers.js";
import type { SequenceRange } from "./sequence-shapes.js";

export interface AllocateRequest {
  readonly name: string;
  readonly count: number;
  readonly key: string | null;
  /** Makes the key for repeats of a try that travelled without one; null = no such repeats. */
  readonly repeatKey: (() => string) | null;
}

interface AllocationAnswer {
  type: number;
  start: bigint;
  end: bigint;
  count: number;
  revision: bigint;
}

/** Tags of the fields that are read and written here: number << 3 | wire type. */
const NAME = 10;
const NEXT_KEY = 18;
const NEXT_DURABILITY = 24;
const RESERVE_COUNT = 16;
const RESERVE_KEY = 26;
const RESERVE_DURABILITY = 32;
const ANSWER_TYPE = 16;
const ANSWER_ALLOCATION = 26;
const START = 16;
const END = 24;
const COUNT = 32;
const REVISION = 40;
const PERSISTENT = 1;

function readAllocation(reader: ProtoReader, end: number, answer: AllocationAnswer): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === START) answer.start = fromHalves(reader.int64() as Int64Halves);
    else if (tag === END) answer.end = fromHalves(reader.int64() as Int64Halves);
    else if (tag === COUNT) answer.count = reader.int32();
    else if (tag === REVISION) answer.revision = fromHalves(reader.int64() as Int64Halves);
    else reader.skipType(tag & 7);
  }
}

function fromGrpc(reader: ProtoReader, lengthBytes: number): AllocationAnswer {
  const end = reader.pos + lengthBytes;
  const answer: AllocationAnswer = { type: 0, start: 0n, end: 0n, count: 0, revision: 0n };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === ANSWER_TYPE) {
      answer.type = reader.int32();
    } else if (tag === ANSWER_ALLOCATION) {
      const sizeBytes = reader.uint32();
      readAllocation(reader, reader.pos + sizeBytes, answer);
    } else {
      reader.skipType(tag & 7);
    }
  }
  return answer;
}

function fromRest(body: JsonObject): AllocationAnswer {
  const allocation = asObject(body["allocation"], "allocation");
  return {
    type: sequenceTypeOf(textOf(body, "type")),
    start: bigintOf(allocation, "start"),
    end: bigintOf(allocation, "end"),
    count: intOf(allocation, "count"),
    revision: bigintOf(allocation, "revision"),
  };
}

function repeat(request: AllocateRequest): boolean {
  return request.key !== null || request.repeatKey !== null;
}

function again(request: AllocateRequest): AllocateRequest {
  if (request.key !== null || request.repeatKey === null) return request;
  return { ...request, key: request.repeatKey(), repeatKey: null };
}

function writeNext(request: AllocateRequest, writer: ProtoWriter): void {
  writer.uint32(NAME).string(request.name);
  if (request.key !== null) writer.uint32(NEXT_KEY).string(request.key);
  writer.uint32(NEXT_DURABILITY).int32(PERSISTENT);
}

function writeReserve(request: AllocateRequest, writer: ProtoWriter): void {
  writer.uint32(NAME).string(request.name).uint32(RESERVE_COUNT).int32(request.count);
  if (request.key !== null) writer.uint32(RESERVE_KEY).string(request.key);
  writer.uint32(RESERVE_DURABILITY).int32(PERSISTENT);
}

const route: RoutePlace<AllocateRequest> = {
  space: "sequences",
  field: 5,
  name: ({ name }) => name,
};
const shared = { fromGrpc, fromRest, repeat, again, route };

const nextPlace = {
  name: "sequences.next",
  path: "/Sequencer/NextSequenceValue",
  stream: { kind: "sequences", type: 4, field: 6 },
  rest: {
    method: "POST",
    path: () => "/v1/sequences/next",
    body: ({ name, key }: AllocateRequest) =>
      jsonText({ name, idempotencyKey: key, durability: "Persistent" }),
  },
  write: writeNext,
} as const;

/** The value alone. */
export const nextValue: Operation<AllocateRequest, AllocationAnswer, bigint> = {
  ...shared,
  ...nextPlace,
  settle(answer, request, doubtful) {
    if (answer.type === SequenceType.success) return answer.start;
    throw sequenceFailure(answer.type, request.name, doubtful);
  },
};

function settleRange(
  answer: AllocationAnswer,
  request: AllocateRequest,
  doubtful: boolean,
): SequenceRange {
  if (answer.type !== SequenceType.success)
    throw sequenceFailure(answer.type, request.name, doubtful);
  const { start, end, count, revision } = answer;
  return { name: request.name, start, end, count, revision };
}

/** The value with its revision. */
export const nextRange: Operation<AllocateRequest, AllocationAnswer, SequenceRange> = {
  ...shared,
  ...nextPlace,
  settle: settleRange,
};

export const reserveRange: Operation<AllocateRequest, AllocationAnswer, SequenceRange> = {
  ...shared,
  name: "sequences.reserve",
  path: "/Sequencer/ReserveSequenceRange",
  stream: { kind: "sequences", type: 5, field: 7 },
  rest: {
    method: "POST",
    path: () => "/v1/sequences/reserve",
    body: ({ name, count, key }) =>
      jsonText({ name, count, idempotencyKey: key, durability: "Persistent" }),
  },
  write: writeReserve,
  settle: settleRange,
};
