/**
 * The node debug over REST (contract 3.5, 5.7).
 *
 * Invariants: 1. One is made at a time: who asks meanwhile is refused as overload.
 */
import { PROFILE_MAX_SECONDS } from "../../base/limits.js";
import type { NodeDebugPort } from "../../operations/api/node-debug.js";
import { parseQuery } from "../http/query.js";
import type { QueryParameter, Route } from "../http/route.js";

const QUERY: readonly QueryParameter[] = [
  {
    name: "profileSeconds",
    kind: "text",
    note: `1 to ${PROFILE_MAX_SECONDS}: with a profile of the processor over so many seconds`,
  },
];

/** Seconds of a profile; null: no such number. */
function secondsOf(text: string | undefined): number | null {
  if (text === undefined) return 0;
  const seconds = /^[0-9]{1,2}$/.test(text) ? Number(text) : 0;
  return seconds >= 1 && seconds <= PROFILE_MAX_SECONDS ? seconds : null;
}

export function nodeDebugRoute(debug: NodeDebugPort | null): Route {
  return {
    method: "GET",
    path: "/v1/node/debug",
    access: "admin",
    tag: "node",
    summary: "Read what there is to find out what is wrong with the node",
    body: null,
    query: QUERY,
    answer: { object: {} },
    statuses: [400, 503],
    kind: null,
    run(exchange) {
      const parameters = parseQuery(exchange.raw.url ?? "", QUERY);
      if (typeof parameters === "string") {
        return exchange.problem(400, "invalid-argument", parameters);
      }
      const seconds = secondsOf(parameters.get("profileSeconds"));
      if (seconds === null) {
        const range = `profileSeconds is 1 to ${PROFILE_MAX_SECONDS}`;
        return exchange.problem(400, "invalid-argument", range);
      }
      if (debug === null) return exchange.refusal("overloaded", null, "none");
      debug.make(seconds, (text) => {
        if (exchange.hasEnded) return;
        if (text === null) exchange.refusal("overloaded", null, "none");
        else exchange.json(200, text);
      });
    },
  };
}
