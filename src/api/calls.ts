/**
 * All administrative calls by their names. From this table follow the rpcs, the REST paths, the
 * OpenAPI document, the port of the operations and what the client sends and reads.
 *
 * Plain data. Invariants: 1. A call is listed once; its name is `family.operation`, as the client
 * library has it. 2. The document lists them in this order.
 */
import { BACKUP_CALLS, type BackupRefusal } from "./backups.js";
import type { AnswerOfCall, Call, RequestOfCall, ResultOfCall } from "./call.js";
import { CLUSTER_CALLS } from "./cluster.js";
import { RANGE_CALLS } from "./ranges.js";

const CALLS = { ...CLUSTER_CALLS, ...RANGE_CALLS, ...BACKUP_CALLS } as const;

export type CallName = keyof typeof CALLS;
export type RequestNamed<N extends CallName> = RequestOfCall<(typeof CALLS)[N]>;
export type AnswerNamed<N extends CallName> = AnswerOfCall<(typeof CALLS)[N]>;
export type ResultNamed<N extends CallName> = ResultOfCall<(typeof CALLS)[N]>;

/** The cluster is not at the level since which the call is carried out (contract 5.5 U8). */
export interface NotAtLevel {
  readonly notAtLevel: true;
}

/** It was not taken in; it had no effect. */
export interface Unadmitted {
  readonly refused: "overloaded" | "shutting-down";
}

/** How a call ends: in its answer, or, for a family with refusals, in one of these. */
export type EndNamed<N extends CallName> =
  | { readonly answer: AnswerNamed<N> }
  | NotAtLevel
  | (N extends keyof typeof BACKUP_CALLS
      ? Unadmitted | { readonly refusal: BackupRefusal }
      : never);

/** Name and description of every call, for code that treats them all alike. */
export const CALL_LIST: readonly (readonly [name: CallName, call: Call])[] = Object.entries(
  CALLS,
) as [CallName, Call][];
