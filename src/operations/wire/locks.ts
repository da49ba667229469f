/**
 * Requests about locks and their answers with all that programs of level 2 know of them: waiting,
 * notes, tokens on changes. In a cluster of level 1 they go as `requests.ts` has them.
 *
 * Pure. Invariants: 1. What is left out reads as "none", as the request has it. 2. An answer goes
 * back in the form of its call.
 */
import { Int64 } from "../../base/int64.js";
import {
  bytes,
  hlc,
  int32,
  int53,
  lanes64,
  nullable,
  oneOf,
  text,
  type Members,
} from "../../base/shape.js";
import type { LockAnswer } from "../api/answers.js";
import type { LockRequest } from "../api/requests.js";
import type { PlainLockAnswer } from "./answers.js";

export interface LockCall {
  readonly kind: "lock-call";
  readonly asks: LockRequest["kind"];
  readonly resource: string;
  readonly owner: Uint8Array | null;
  readonly expiresMs: number;
  readonly durability: number;
  readonly waitMs: number;
  readonly waitId: Int64;
  readonly tryNumber: Int64;
  readonly note: Uint8Array | null;
  readonly fencingToken: Int64 | null;
}

/** The answer to such a call. */
export interface LockCallAnswer extends Omit<LockAnswer, "kind"> {
  readonly kind: "lock-answer";
}

export const lockCall: Members<Omit<LockCall, "kind">> = {
  asks: oneOf<LockRequest["kind"]>("try-lock", "try-extend", "try-unlock", "get-lock"),
  resource: text,
  owner: nullable(bytes),
  expiresMs: int32,
  durability: int32,
  waitMs: int32,
  waitId: lanes64,
  tryNumber: lanes64,
  note: nullable(bytes),
  fencingToken: nullable(lanes64),
};

type OwnMembers = Omit<LockAnswer, "kind" | "type" | "servedFrom" | "route" | "refusal">;

export const lockAnswerMembers: Members<OwnMembers> = {
  fencingToken: lanes64,
  owner: nullable(bytes),
  expires: hlc,
  expiresInMs: int53,
  leaseLeftMs: nullable(int53),
  waitedMs: nullable(int53),
  position: int32,
  waiters: int32,
  note: nullable(bytes),
};

const NOTHING = {
  owner: null,
  expiresMs: 0,
  waitMs: 0,
  waitId: Int64.ZERO,
  tryNumber: Int64.ZERO,
  note: null,
  fencingToken: null,
};

export function toLockCall(request: LockRequest): LockCall {
  return { ...NOTHING, ...request, asks: request.kind, kind: "lock-call" };
}

export function ofLockCall(call: LockCall): LockRequest {
  const { asks, resource, owner, expiresMs, durability, note, fencingToken } = call;
  const of = owner ?? new Uint8Array(0);
  switch (asks) {
    case "try-lock": {
      const { waitMs, waitId, tryNumber } = call;
      const wait = { waitMs, waitId, tryNumber };
      return { kind: asks, resource, owner: of, expiresMs, durability, ...wait, note };
    }
    case "try-extend":
      return { kind: asks, resource, owner: of, expiresMs, durability, fencingToken, note };
    case "try-unlock":
      return { kind: asks, resource, owner: of, durability, fencingToken };
    case "get-lock":
      return { kind: asks, resource, durability, owner };
  }
}

/** An answer in either form. */
export function ofLockAnswer(answer: LockCallAnswer | PlainLockAnswer): LockAnswer {
  if (answer.kind === "lock-answer") return { ...answer, kind: "lock" };
  const unknown = { leaseLeftMs: null, waitedMs: null, position: 0, waiters: 0, note: null };
  return { ...answer, ...unknown };
}
