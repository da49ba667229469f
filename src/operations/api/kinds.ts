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

/**
 * What the requests of a kind are about: one lock, one sequence, one key, one bucket, each in one
 * partition; or several keys ("many"), or partitions whichever they are ("scan").
 */
export type Family = "lock" | "sequence" | "key" | "bucket" | "many" | "scan";

export interface KindRow {
  /** Stands for the kind between nodes: 1 to 99. */
  readonly wire: number;
  readonly family: Family;
  /** Kind of its answers. */
  readonly answer: DataAnswer["kind"];
  /** It changes nothing, however often it is carried out. */
  readonly reads: boolean;
  /** Labels in `svc_requests_total`. */
  readonly api: "locks" | "sequences" | "kv";
  readonly operation: string;
}

const lock = { family: "lock", answer: "lock", api: "locks" } as const;
const record = { family: "sequence", answer: "sequence", api: "sequences" } as const;
const allocation = { family: "sequence", answer: "allocation", api: "sequences" } as const;
const key = { family: "key", answer: "kv", api: "kv" } as const;
const many = { family: "many", answer: "kv-many", api: "kv" } as const;
const bucket = { family: "bucket", answer: "kv-page", api: "kv" } as const;
const scan = { family: "scan", answer: "kv-page", api: "kv" } as const;

export const KINDS = {
  "try-lock": { ...lock, wire: 1, reads: false, operation: "try-lock" },
  "try-extend": { ...lock, wire: 2, reads: false, operation: "try-extend" },
  "try-unlock": { ...lock, wire: 3, reads: false, operation: "try-unlock" },
  "get-lock": { ...lock, wire: 4, reads: true, operation: "get-info" },
  "create-sequence": { ...record, wire: 10, reads: false, operation: "create" },
  "update-sequence": { ...record, wire: 11, reads: false, operation: "update" },
  "get-sequence": { ...record, wire: 12, reads: true, operation: "get" },
  "delete-sequence": { ...record, wire: 13, reads: false, operation: "delete" },
  "next-sequence": { ...allocation, wire: 14, reads: false, operation: "next" },
  "reserve-sequence": { ...allocation, wire: 15, reads: false, operation: "reserve" },
  "kv-set": { ...key, wire: 20, reads: false, operation: "try-set" },
  "kv-extend": { ...key, wire: 21, reads: false, operation: "try-extend" },
  "kv-delete": { ...key, wire: 22, reads: false, operation: "try-delete" },
  "kv-get": { ...key, wire: 23, reads: true, operation: "try-get" },
  "kv-exists": { ...key, wire: 24, reads: true, operation: "try-exists" },
  "kv-set-many": { ...many, wire: 30, reads: false, operation: "try-set-many" },
  "kv-delete-many": { ...many, wire: 31, reads: false, operation: "try-delete-many" },
  "kv-get-many": { ...many, wire: 32, reads: true, operation: "try-get-many" },
  "kv-exists-many": { ...many, wire: 33, reads: true, operation: "try-exists-many" },
  "kv-bucket": { ...bucket, wire: 40, reads: true, operation: "get-by-bucket" },
  "kv-scan-all": { ...scan, wire: 41, reads: true, operation: "scan-all-by-prefix" },
  "kv-scan-local": { ...scan, wire: 42, reads: true, operation: "scan-by-prefix" },
  "kv-range": { ...bucket, wire: 43, reads: true, operation: "get-by-range" },
} as const satisfies Readonly<Record<DataRequestKind, KindRow>>;

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

export function isOf<F extends Family>(request: DataRequest, family: F): request is RequestOf<F> {
  return KINDS[request.kind].family === family;
}

export function isSingle(request: DataRequest): request is SingleRequest {
  const { family } = KINDS[request.kind];
  return family !== "many" && family !== "scan";
}

/** The bucket that a request is about. */
export function bucketOf(request: RequestOf<"bucket">): string {
  return request.kind === "kv-bucket" ? request.bucket : request.prefix;
}
