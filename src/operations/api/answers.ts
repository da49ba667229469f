/**
 * Answers of the data operations. Types only, plain data.
 *
 * Invariants: 1. One answer type serves REST, gRPC, batch streams and forwards. 2. `type` is the
 * number of the API's own table. 3. Absent and zero differ.
 */
import type { Hlc } from "../../base/hlc.js";
import type { Int64 } from "../../base/int64.js";

export const RouteProvenance = { unknown: 0, executed: 1, forwarded: 2 } as const;
export interface RouteHint {
  readonly partitionId: number;
  readonly endpoint: string;
  readonly provenance: number;
  readonly generation: number;
}
/**
 * Why a request was refused before anything was done: REST answers 503 with this code, gRPC
 * MustRetry; "not-available-at-level" is 409 and FAILED_PRECONDITION (contract 5.5 U8).
 */
export type Refusal = "overloaded" | "not-initialized" | "shutting-down" | "not-available-at-level";

interface AnswerBase {
  /** The numeric `type` of the API; on a refusal that API's MustRetry. */
  readonly type: number;
  /**
   * Advertised client endpoint of the node that executed; "" when it advertises none; null when
   * refused before that.
   */
  readonly servedFrom: string | null;
  readonly route: RouteHint | null;
  readonly refusal: Refusal | null;
}

export interface LockAnswer extends AnswerBase {
  readonly kind: "lock";
  readonly fencingToken: Int64;
  /** Only after get-lock that found one. */
  readonly owner: Uint8Array | null;
  readonly expires: Hlc;
  readonly expiresInMs: number;
  /** Of the lease at the decision (ms); null: none, or not known. */
  readonly leaseLeftMs: number | null;
  /** From taking in to the decision (ms); null: the node that decided does not know waiting. */
  readonly waitedMs: number | null;
  /** Place of the owner among those who wait, 1 = next; 0 = none. */
  readonly position: number;
  readonly waiters: number;
  readonly note: Uint8Array | null;
}

/** The end of a forced release. */
export interface ForcedAnswer extends AnswerBase {
  readonly kind: "forced";
  /** Of the grant that was ended; 0 with a refusal, as the number of the row that tells of it. */
  readonly fencingToken: Int64;
  readonly owner: Uint8Array | null;
  readonly auditId: number;
}

export interface LockListItem {
  readonly resource: string;
  /** Null: nobody holds it. */
  readonly owner: Uint8Array | null;
  /** Of the last grant. */
  readonly fencingToken: Int64;
  readonly held: boolean;
  readonly expires: Hlc;
  readonly expiresInMs: number;
  readonly waiters: number;
  readonly note: Uint8Array | null;
}
export interface LockPageAnswer extends AnswerBase {
  readonly kind: "lock-page";
  readonly items: readonly LockListItem[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
}

export interface LockAuditEntry {
  readonly auditId: number;
  readonly partitionId: number;
  readonly resource: string;
  readonly durability: number;
  readonly owner: Uint8Array;
  readonly fencingToken: Int64;
  readonly stamp: Hlc;
  readonly actor: string;
  readonly reason: string;
  readonly requestId: string;
  readonly nodeId: number;
  readonly waitersDropped: number;
}
export interface LockAuditAnswer extends AnswerBase {
  readonly kind: "lock-audit";
  readonly items: readonly LockAuditEntry[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
}

export interface SequenceView {
  readonly name: string;
  readonly currentValue: Int64;
  readonly initialValue: Int64;
  readonly increment: Int64;
  readonly maxValue: Int64 | null;
  readonly blockSize: number | null;
  readonly incarnation: number;
  readonly revision: number;
  readonly createdAt: Hlc;
  readonly updatedAt: Hlc;
}
export interface SequenceAnswer extends AnswerBase {
  readonly kind: "sequence";
  readonly sequence: SequenceView | null;
  readonly revision: number;
}
export interface AllocationAnswer extends AnswerBase {
  readonly kind: "allocation";
  /** null when nothing was allocated. */
  readonly allocation: {
    readonly name: string;
    readonly start: Int64;
    readonly end: Int64;
    readonly count: number;
    readonly revision: number;
  } | null;
}

/** One key's result: of set, extend, delete, get and exists. */
export interface KvAnswer extends AnswerBase {
  readonly kind: "kv";
  readonly value: Uint8Array | null;
  readonly revision: number;
  readonly expires: Hlc;
  readonly lastModified: Hlc;
  /** KvState: 0 undefined, 1 set, 2 deleted. */
  readonly state: number;
}
export interface KvManyItem {
  readonly key: string;
  readonly durability: number;
  readonly type: number;
  readonly servedFrom: string | null;
  readonly value: Uint8Array | null;
  readonly revision: number;
  readonly expires: Hlc;
  readonly lastModified: Hlc;
  readonly state: number;
  /** 1-based into `routes`; 0 = none. */
  readonly routeIndex: number;
}
export interface KvManyAnswer extends AnswerBase {
  readonly kind: "kv-many";
  readonly items: readonly KvManyItem[];
  readonly routes: readonly RouteHint[];
}
export interface KvPageItem {
  readonly key: string;
  readonly value: Uint8Array | null;
  readonly revision: number;
  readonly expires: Hlc;
  readonly lastModified: Hlc;
  readonly state: number;
}
export interface KvPageAnswer extends AnswerBase {
  readonly kind: "kv-page";
  readonly items: readonly KvPageItem[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
  /**
   * A bucket beyond the response limit (K14): no items, and the front end answers as the contract
   * says.
   */
  readonly tooLarge: boolean;
}
export type DataAnswer =
  | LockAnswer
  | ForcedAnswer
  | LockPageAnswer
  | LockAuditAnswer
  | SequenceAnswer
  | AllocationAnswer
  | KvAnswer
  | KvManyAnswer
  | KvPageAnswer;
