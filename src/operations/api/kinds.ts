/**
 * The kinds of data requests, one row each: everything about a kind that is more than one place's
 * business.
 *
 * Pure. Invariants: 1. What a request is about is told by the
 * family of its kind, never by which members it happens to have. 2. Wire numbers are never used
 * again for something else: nodes of two versions talk to each other during an update. 3. The order
 * of the rows is the order of the kinds in the metrics.
 */
import type { DataAnswer } from "./answers.js";
import type { DataRequest, DataRequestKind } from "./data-requests.js";
import type { Family } from "./kind.js";
import { KV_KINDS } from "./kv-requests.js";
import { LOCK_ADMIN_KINDS, LOCK_KINDS } from "./lock-requests.js";
import { SEQUENCE_KINDS } from "./sequence-requests.js";

export type { Family, KindRow } from "./kind.js";

export const KINDS = {
  ...LOCK_KINDS,
  ...LOCK_ADMIN_KINDS,
  ...SEQUENCE_KINDS,
  ...KV_KINDS,
} as const;

type Rows = typeof KINDS;

type KindOf<F extends Family> = {
  [Kind in DataRequestKind]: Rows[Kind]["family"] extends F ? Kind : never;
}[DataRequestKind];

/** The requests of a family, or of several. */
export type RequestOf<F extends Family> = Extract<DataRequest, { readonly kind: KindOf<F> }>;

/** A request about one object, or about one bucket: it has one partition. */
export type SingleRequest = RequestOf<"lock" | "sequence" | "key" | "bucket">;

/** The answer that belongs to a request. */
export type AnswerOf<R extends DataRequest> = Extract<
  DataAnswer,
  { readonly kind: Rows[R["kind"]]["answer"] }
>;

export function familyOf(request: DataRequest): Family {
  return KINDS[request.kind].family;
}

/** `family`: that of the request, from whoever asks more than once and looked it up. */
export function isOf<F extends Family>(
  request: DataRequest,
  wanted: F,
  family: Family = familyOf(request),
): request is RequestOf<F> {
  return family === wanted;
}

/** `family`: as for `isOf`. */
export function isSingle(
  request: DataRequest,
  family: Family = familyOf(request),
): request is SingleRequest {
  return family !== "many" && family !== "scan" && family !== "list";
}

/** The bucket that a request is about. */
export function bucketOf(request: RequestOf<"bucket">): string {
  return request.kind === "kv-bucket" ? request.bucket : request.prefix;
}
