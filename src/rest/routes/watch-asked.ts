/**
 * What is asked for on the watch paths, and how a watch that ended before its first answer is
 * refused (contract 3.9 rule 3).
 *
 * Invariants: 1. What can be judged without the watch is judged here; the rest is its own.
 */
import { WatchEnd, WatchKind } from "../../base/result-types.js";
import type { WatchRequest } from "../../operations/api/requests.js";
import type { Exchange } from "../http/exchange.js";
import { KIND_NAMES, endName, kindOf, onlyOf } from "./watch-answers.js";

/** The role that the watch paths need. */
export const ACCESS = "reader";

export interface Asked {
  readonly kind: string;
  readonly name: string;
  readonly cursor: string | null;
  readonly fromRevision: bigint | null;
  readonly initial: boolean;
  readonly noValues: boolean;
  readonly only: readonly string[];
}

/** What is asked for; a text says what is wrong with it. */
export function requestOf({ kind, only, ...rest }: Asked): WatchRequest | string {
  const number = kindOf(kind);
  if (number === WatchKind.none) return `kind is one of ${KIND_NAMES.join(", ")}`;
  const types = onlyOf(only);
  if (types === null) return "only names types of events";
  return { ...rest, kind: number, only: types, progressMs: 0 };
}

/** Answers for a watch that ended. */
export function answerEnd(exchange: Exchange, end: number): void {
  switch (end) {
    case WatchEnd.invalidInput:
      return exchange.problem(400, "invalid-argument", "the service does not accept the watch");
    case WatchEnd.forbidden:
      return exchange.problem(403, "forbidden", `this path needs the role ${ACCESS}`);
    case WatchEnd.overloaded:
      return exchange.refusal("overloaded", null, "none");
    case WatchEnd.shuttingDown:
      return exchange.refusal("shutting-down", null, "none");
    default: {
      const detail = `this node cannot tell what changes (${endName(end)}): ask another one`;
      return exchange.problem(503, "unavailable", detail, { "retry-after": "1" });
    }
  }
}
