/**
 * The paths of the administrative calls, made from their descriptions: check the query, decode the
 * body, hand down, write what comes back.
 *
 * Invariants: 1. A number that does not fit is 400 `invalid-number` here. 2. Calls are bounded by
 * the times that their sections of the contract give, not by the request timeout. 3. An answer that
 * says no is a problem document with the answer's own members; its own `status` wins the clash with
 * the status of the document.
 */
import { CALL_LIST, type CallName } from "../../api/calls.js";
import type { Call, ProblemStatus } from "../../api/call.js";
import type { Asking, Message } from "../../api/members.js";
import type { OperationsPort } from "../../operations/api/requests.js";
import type { Exchange } from "../http/exchange.js";
import type { ProblemCode } from "../http/problems.js";
import { parseQuery, type QueryValues } from "../http/query.js";
import type { QueryParameter, Route } from "../http/route.js";
import { schemaOf } from "../http/schemas.js";
import { decodeBody } from "../json/decoder.js";
import { answerText, argumentsIn, bodyTable } from "../json/described.js";
import { MemberTable } from "../json/members.js";
import { answerBackupRefusal } from "./backup-refusals.js";

/** Longest handling times (ms) of the calls, by their bound. */
export type CallTimes = Readonly<Record<Call["bound"], number>>;

const NOTHING = new MemberTable([]);
const NO_MEMBERS = Buffer.from("{}");

const PROBLEM_CODES: Readonly<Record<ProblemStatus, ProblemCode>> = {
  400: "invalid-argument",
  409: "refused",
  503: "unavailable",
  504: "timeout",
};

type Arguments = Record<string, unknown>;

function queryOf(request: Asking): readonly QueryParameter[] {
  return argumentsIn(request, "query").map(([name, { kind, note }]) => {
    return { name, kind: kind === "bool" ? "bool" : "text", note };
  });
}

/** The arguments of a body; null when they were refused, and the request is answered. */
function bodyArguments(
  exchange: Exchange,
  call: Call,
  table: MemberTable | null,
  body: Buffer,
): Arguments | null {
  if (call.rest.method === "GET" || (table === null && body.length === 0)) return {};
  const isOmitted = call.rest.bodyOptional === true && body.length === 0;
  const decoded = decodeBody(isOmitted ? NO_MEMBERS : body, table ?? NOTHING);
  if ("code" in decoded) {
    exchange.problem(400, decoded.code, decoded.detail);
    return null;
  }
  if (decoded.misfit !== null) {
    const detail = `member "${decoded.misfit}" must be an integer in its range`;
    exchange.problem(400, "invalid-number", detail);
    return null;
  }
  const given: Arguments = {};
  for (const [at, [name, argument]] of argumentsIn(call.request, "body").entries()) {
    if (!argument.ignored) given[name] = decoded.values[at];
  }
  return given;
}

/** The arguments that stand in the path and the query. */
function urlArguments(exchange: Exchange, request: Asking, query: QueryValues): Arguments {
  const given: Arguments = {};
  for (const [name, { kind }] of argumentsIn(request, "query")) {
    given[name] = kind === "bool" ? query.get(name) === "true" : (query.get(name) ?? "");
  }
  for (const [name] of argumentsIn(request, "path")) given[name] = exchange.pathId;
  return given;
}

function sendAnswer(exchange: Exchange, call: Call, answer: unknown): void {
  const text = answerText(call.answer, answer as never);
  const status = call.status?.(answer as never) ?? 200;
  if (status === 200) return exchange.json(200, text);
  const { reason } = answer as { readonly reason: string };
  const clash = "status" in call.answer.members ? "status" : "none";
  exchange.problem(status, PROBLEM_CODES[status], reason, null, text, clash);
}

function callRoute(name: CallName, call: Call<Asking, Message>, times: CallTimes): Route {
  const { method, path, summary, statuses } = call.rest;
  const query = queryOf(call.request);
  const table = bodyTable(call.request);
  return {
    method,
    path,
    access: call.access,
    summary,
    tag: name.split(".")[0] as Route["tag"],
    body: table,
    query,
    answer: schemaOf(call.answer),
    statuses: [400, ...statuses],
    kind: null,
    run(exchange, body, port: OperationsPort) {
      const parameters = parseQuery(exchange.raw.url ?? "", query);
      if (typeof parameters === "string") {
        return exchange.problem(400, "invalid-argument", parameters);
      }
      const given = bodyArguments(exchange, call, table, body);
      if (given === null) return;
      const request = { ...given, ...urlArguments(exchange, call.request, parameters) };
      const mistake = call.mistake?.(request as never) ?? null;
      if (mistake !== null) return exchange.problem(400, "invalid-argument", mistake.rest);
      const whenGone = (callback: () => void): void => exchange.whenGone(callback);
      const context = { ...exchange.context(times[call.bound]), whenGone };
      // The request was made by the description from which its type follows.
      port.administration[name](request as never, context, (end) => {
        if ("answer" in end) sendAnswer(exchange, call, end.answer);
        else if ("refused" in end) exchange.refusal(end.refused, null, "none");
        else if ("notAtLevel" in end) exchange.refusal("not-available-at-level", null, "none");
        else answerBackupRefusal(exchange, name, end.refusal);
      });
    },
  };
}

/** One route per call, in the order of the table. */
export function callRoutes(times: CallTimes): readonly Route[] {
  return CALL_LIST.map(([name, call]) => callRoute(name, call, times));
}
