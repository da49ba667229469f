/**
 * The requests about sequences: types, and all that is told of each kind.
 *
 * Pure. Invariants: 1. Whatever depends on the record (a merged maximum, the revision) is checked
 * in apply, not here.
 */
import { BLOCK_SIZE_MAX } from "../../base/limits.js";
import { bigint64, boolean, int32, nullable, text } from "../../base/shape.js";
import { trimWhiteSpace } from "../../machine/store/names.js";
import type { KindRows } from "./kind.js";
import { Durability, isIdempotencyKey, isOpenName } from "./names.js";

export interface CreateSequenceRequest {
  readonly kind: "create-sequence";
  readonly name: string;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  readonly durability: number;
}
export interface UpdateSequenceRequest {
  readonly kind: "update-sequence";
  readonly name: string;
  readonly currentValue: bigint | null;
  readonly increment: bigint | null;
  readonly initialValue: bigint | null;
  readonly maxValue: bigint | null;
  readonly removeMaxValue: boolean;
  readonly blockSize: number | null;
  readonly removeBlockSize: boolean;
  readonly durability: number;
}
export interface GetSequenceRequest {
  readonly kind: "get-sequence";
  readonly name: string;
  readonly durability: number;
}
export interface DeleteSequenceRequest {
  readonly kind: "delete-sequence";
  readonly name: string;
  readonly durability: number;
}
export interface NextSequenceRequest {
  readonly kind: "next-sequence";
  readonly name: string;
  /** null or blank = none. */
  readonly idempotencyKey: string | null;
  readonly durability: number;
}
export interface ReserveSequenceRequest {
  readonly kind: "reserve-sequence";
  readonly name: string;
  readonly count: number;
  readonly idempotencyKey: string | null;
  readonly durability: number;
}

export type SequenceRequest =
  | CreateSequenceRequest
  | UpdateSequenceRequest
  | GetSequenceRequest
  | DeleteSequenceRequest
  | NextSequenceRequest
  | ReserveSequenceRequest;

function isBlockSize(blockSize: number | null): boolean {
  return blockSize === null || (blockSize >= 1 && blockSize <= BLOCK_SIZE_MAX);
}

function isCreateAcceptable(request: CreateSequenceRequest): boolean {
  if (request.increment < 1n || !isBlockSize(request.blockSize)) return false;
  return request.maxValue === null || request.maxValue >= request.initialValue;
}

function isUpdateAcceptable(request: UpdateSequenceRequest): boolean {
  const { currentValue, increment, initialValue, maxValue, blockSize } = request;
  const given = [currentValue, increment, initialValue, maxValue, blockSize];
  const removes = request.removeMaxValue || request.removeBlockSize;
  if (!removes && given.every((value) => value === null)) return false;
  if (request.removeMaxValue && maxValue !== null) return false;
  if (request.removeBlockSize && blockSize !== null) return false;
  return (increment === null || increment >= 1n) && isBlockSize(blockSize);
}

export function isSequenceAcceptable(request: SequenceRequest): boolean {
  if (request.durability !== Durability.persistent) return false;
  if (!isOpenName(trimWhiteSpace(request.name))) return false;
  switch (request.kind) {
    case "create-sequence":
      return isCreateAcceptable(request);
    case "update-sequence":
      return isUpdateAcceptable(request);
    case "next-sequence":
      return isIdempotencyKey(request.idempotencyKey);
    case "reserve-sequence":
      return request.count >= 1 && isIdempotencyKey(request.idempotencyKey);
    default:
      return true;
  }
}

const nullableInt64 = nullable(bigint64);
const nullableInt32 = nullable(int32);
const nullableText = nullable(text);

const record = { family: "sequence", answer: "sequence", api: "sequences" } as const;
const allocation = { family: "sequence", answer: "allocation", api: "sequences" } as const;

export const SEQUENCE_KINDS = {
  "create-sequence": {
    ...record,
    wire: 10,
    reads: false,
    operation: "create",
    members: {
      name: text,
      initialValue: bigint64,
      increment: bigint64,
      maxValue: nullableInt64,
      blockSize: nullableInt32,
      durability: int32,
    },
  },
  "update-sequence": {
    ...record,
    wire: 11,
    reads: false,
    operation: "update",
    members: {
      name: text,
      currentValue: nullableInt64,
      increment: nullableInt64,
      initialValue: nullableInt64,
      maxValue: nullableInt64,
      removeMaxValue: boolean,
      blockSize: nullableInt32,
      removeBlockSize: boolean,
      durability: int32,
    },
  },
  "get-sequence": {
    ...record,
    wire: 12,
    reads: true,
    operation: "get",
    members: { name: text, durability: int32 },
  },
  "delete-sequence": {
    ...record,
    wire: 13,
    reads: false,
    operation: "delete",
    members: { name: text, durability: int32 },
  },
  "next-sequence": {
    ...allocation,
    wire: 14,
    reads: false,
    operation: "next",
    members: { name: text, idempotencyKey: nullableText, durability: int32 },
  },
  "reserve-sequence": {
    ...allocation,
    wire: 15,
    reads: false,
    operation: "reserve",
    members: { name: text, count: int32, idempotencyKey: nullableText, durability: int32 },
  },
} as const satisfies KindRows<SequenceRequest>;
