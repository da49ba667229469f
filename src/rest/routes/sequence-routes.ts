/**
 * The sequence paths (contract 3.2 and 3.3).
 *
 * Invariants: 1. All six paths answer with one object of the same six members. 2. `type` and
 * `sequence.durability` are names unless the request carried `durability` as a JSON number.
 */
import { SequenceType, typeNames } from "../../base/result-types.js";
import type {
  AllocationAnswer,
  CreateSequenceRequest,
  DeleteSequenceRequest,
  GetSequenceRequest,
  NextSequenceRequest,
  ReserveSequenceRequest,
  SequenceAnswer,
  SequenceView,
  UpdateSequenceRequest,
} from "../../operations/api/requests.js";
import { dataRoute } from "./data-route.js";
import { quoted, quotedOrNull, routeText, stampText } from "../json/json-text.js";
import {
  bool,
  durability,
  int32,
  int64,
  optionalInt32,
  optionalInt64,
  optionalText,
  tableOf,
  text,
} from "../json/members.js";
import type { Route } from "../http/route.js";
import { ROUTE, type Schema } from "../http/schemas.js";

const TYPE_NAMES = typeNames(SequenceType);

const name = text("name", "name of the sequence; white space around it is removed");
const key = optionalText(
  "idempotencyKey",
  "repeating a request with the same key repeats its answer",
);

const createTable = tableOf(
  name,
  int64("initialValue", 0n, "first value; omitted = 0"),
  int64("increment", 1n, "step between values; omitted = 1"),
  optionalInt64("maxValue", "largest value; null = no bound"),
  optionalInt32("blockSize", "values reserved at once; null = the server's default"),
  durability(),
);
const updateTable = tableOf(
  name,
  optionalInt64("currentValue", "new current value; omitted = kept"),
  optionalInt64("increment", "new step; omitted = kept"),
  optionalInt64("initialValue", "new first value; omitted = kept"),
  optionalInt64("maxValue", "new bound; omitted = kept"),
  bool("removeMaxValue", "removes the bound"),
  optionalInt32("blockSize", "new block size; omitted = kept"),
  bool("removeBlockSize", "removes the block size"),
  durability(),
);
const nameTable = tableOf(name, durability());
const nextTable = tableOf(name, key, durability());
const reserveTable = tableOf(
  name,
  int32("count", "number of values, at least 1"),
  key,
  durability(),
);

/** A sequence, or null. */
export const SEQUENCE: Schema = {
  object: {
    name: "text",
    currentValue: "int64",
    initialValue: "int64",
    increment: "int64",
    maxValue: "int64-or-null",
    blockSize: "int32-or-null",
    incarnation: "int64",
    revision: "int64",
    durability: "text-or-int32",
    createdAt: "stamp",
    updatedAt: "stamp",
  },
  orNull: true,
};

const ANSWER: Schema = {
  object: {
    servedFrom: "text-or-null",
    type: "text-or-int32",
    sequence: SEQUENCE,
    allocation: {
      object: {
        name: "text-or-null",
        start: "int64",
        end: "int64",
        count: "int32",
        revision: "int64",
      },
    },
    revision: "int64",
    route: ROUTE,
  },
};

const NO_ALLOCATION = '{"name":null,"start":0,"end":0,"count":0,"revision":0}';

function typeText(type: number, numeric: boolean): string {
  return numeric ? String(type) : `"${TYPE_NAMES.get(type) ?? "Error"}"`;
}

export function sequenceText(view: SequenceView | null, numeric: boolean): string {
  if (view === null) return "null";
  return (
    `{"name":${quoted(view.name)},"currentValue":${view.currentValue.toString()},` +
    `"initialValue":${view.initialValue.toString()},"increment":${view.increment.toString()},` +
    `"maxValue":${view.maxValue === null ? "null" : view.maxValue.toString()},` +
    `"blockSize":${view.blockSize},"incarnation":${view.incarnation},` +
    `"revision":${view.revision},"durability":${numeric ? "1" : '"Persistent"'},` +
    `"createdAt":${stampText(view.createdAt)},"updatedAt":${stampText(view.updatedAt)}}`
  );
}

function envelope(
  answer: SequenceAnswer | AllocationAnswer,
  numeric: boolean,
  sequence: string,
  allocation: string,
  revision: number,
): string {
  return (
    `{"servedFrom":${quotedOrNull(answer.servedFrom)},"type":${typeText(answer.type, numeric)},` +
    `"sequence":${sequence},"allocation":${allocation},"revision":${revision},` +
    `"route":${routeText(answer.route)}}`
  );
}

function writeSequence(answer: SequenceAnswer, numeric: boolean): string {
  const sequence = sequenceText(answer.sequence, numeric);
  return envelope(answer, numeric, sequence, NO_ALLOCATION, answer.revision);
}

function writeAllocation(answer: AllocationAnswer, numeric: boolean): string {
  const given = answer.allocation;
  if (given === null) return envelope(answer, numeric, "null", NO_ALLOCATION, 0);
  const text =
    `{"name":${quoted(given.name)},"start":${given.start.toString()},` +
    `"end":${given.end.toString()},"count":${given.count},"revision":${given.revision}}`;
  return envelope(answer, numeric, "null", text, given.revision);
}

const shared = { tag: "sequences", answer: ANSWER } as const;

export const SEQUENCE_ROUTES: readonly Route[] = [
  dataRoute<CreateSequenceRequest, typeof createTable.members>({
    ...shared,
    path: "/v1/sequences/create",
    kind: "create-sequence",
    access: "writer",
    summary: "Create a sequence",
    table: createTable,
    build: ([name, initialValue, increment, maxValue, blockSize, durability]) => {
      const values = { initialValue, increment, maxValue, blockSize };
      return { kind: "create-sequence", name, ...values, durability };
    },
    write: writeSequence,
  }),
  dataRoute<UpdateSequenceRequest, typeof updateTable.members>({
    ...shared,
    path: "/v1/sequences/update",
    kind: "update-sequence",
    access: "writer",
    summary: "Change a sequence and start a new incarnation",
    table: updateTable,
    build: (values) => ({
      kind: "update-sequence",
      name: values[0],
      currentValue: values[1],
      increment: values[2],
      initialValue: values[3],
      maxValue: values[4],
      removeMaxValue: values[5],
      blockSize: values[6],
      removeBlockSize: values[7],
      durability: values[8],
    }),
    write: writeSequence,
  }),
  dataRoute<GetSequenceRequest, typeof nameTable.members>({
    ...shared,
    path: "/v1/sequences/get",
    kind: "get-sequence",
    access: "reader",
    summary: "Read a sequence",
    table: nameTable,
    build: ([name, durability]) => ({ kind: "get-sequence", name, durability }),
    write: writeSequence,
  }),
  dataRoute<NextSequenceRequest, typeof nextTable.members>({
    ...shared,
    path: "/v1/sequences/next",
    kind: "next-sequence",
    access: "writer",
    summary: "Take the next value",
    table: nextTable,
    build: ([name, idempotencyKey, durability]) => {
      return { kind: "next-sequence", name, idempotencyKey, durability };
    },
    write: writeAllocation,
  }),
  dataRoute<ReserveSequenceRequest, typeof reserveTable.members>({
    ...shared,
    path: "/v1/sequences/reserve",
    kind: "reserve-sequence",
    access: "writer",
    summary: "Take a range of values",
    table: reserveTable,
    build: ([name, count, idempotencyKey, durability]) => {
      return { kind: "reserve-sequence", name, count, idempotencyKey, durability };
    },
    write: writeAllocation,
  }),
  dataRoute<DeleteSequenceRequest, typeof nameTable.members>({
    ...shared,
    path: "/v1/sequences/delete",
    kind: "delete-sequence",
    access: "writer",
    summary: "Delete a sequence",
    table: nameTable,
    build: ([name, durability]) => ({ kind: "delete-sequence", name, durability }),
    write: writeSequence,
  }),
];
