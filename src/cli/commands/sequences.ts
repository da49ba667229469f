/** The operations on sequences, as data. */
import {
  ALLOCATION_DOCUMENT,
  SEQUENCE_DELETE_DOCUMENT,
  SEQUENCE_GET_DOCUMENT,
  SEQUENCE_WRITE_DOCUMENT,
} from "./schemas.js";
import type { CommandSpec } from "./command.js";
import { command } from "./entry.js";

export const SEQUENCE_COMMANDS: readonly CommandSpec[] = [
  command({
    name: "--create-sequence",
    valueName: "name",
    area: "Sequences",
    meaning: "create a sequence",
    optional: ["--initial-value", "--increment", "--max-value", "--block-size"],
    examples: [
      "svc-cli --create-sequence orders",
      "svc-cli --create-sequence invoices --initial-value 1000 --increment 10",
    ],
    answers: [
      "r0 created orders current 0 increment 1 max - block default incarnation 0",
      "not created: AlreadyExists",
    ],
    module: "sequences",
    document: SEQUENCE_WRITE_DOCUMENT,
  }),
  command({
    name: "--update-sequence",
    valueName: "name",
    area: "Sequences",
    meaning: "rewrite parameters and begin a new incarnation; what is not given stays",
    optional: [
      "--current-value",
      "--increment",
      "--initial-value",
      "--max-value",
      "--remove-max-value",
      "--block-size",
      "--remove-block-size",
    ],
    examples: ["svc-cli --update-sequence orders --current-value 5000 --increment 10"],
    answers: [
      "r1 updated orders current 5000 increment 10 max - block default incarnation 1",
      "not updated: NotFound",
    ],
    module: "sequences",
    document: SEQUENCE_WRITE_DOCUMENT,
  }),
  command({
    name: "--get-sequence",
    valueName: "name",
    area: "Sequences",
    meaning: "read a sequence without taking a value",
    examples: ["svc-cli --get-sequence orders"],
    answers: ["r0 get orders current 0 increment 1 max - block default incarnation 0", "not found"],
    module: "sequences",
    document: SEQUENCE_GET_DOCUMENT,
  }),
  command({
    name: "--next-sequence",
    valueName: "name",
    area: "Sequences",
    meaning: "take the next value",
    optional: ["--idempotency-key"],
    examples: [
      "svc-cli --next-sequence orders",
      "svc-cli --next-sequence orders --idempotency-key order-4711",
    ],
    answers: ["r1 next orders 1", "not allocated: NotFound"],
    module: "sequences",
    document: ALLOCATION_DOCUMENT,
  }),
  command({
    name: "--reserve-sequence",
    valueName: "name",
    area: "Sequences",
    meaning: "take a contiguous range of values",
    optional: ["--count", "--idempotency-key"],
    examples: ["svc-cli --reserve-sequence orders --count 100"],
    answers: [
      "r2 reserved orders 1",
      "r2 reserved orders 1..100 count 100",
      "not allocated: MaxValueExceeded",
    ],
    module: "sequences",
    document: ALLOCATION_DOCUMENT,
  }),
  command({
    name: "--delete-sequence",
    valueName: "name",
    area: "Sequences",
    meaning: "delete a sequence; a later one of that name starts anew",
    examples: ["svc-cli --delete-sequence orders"],
    answers: ["deleted", "not found"],
    module: "sequences",
    question: "Delete the sequence {value}? Its numbering cannot be brought back.",
    document: SEQUENCE_DELETE_DOCUMENT,
  }),
];
