/**
 * How the administrative paths work: check the query, decode the body, hand down.
 *
 * Invariants: 1. A number that does not fit is 400 `invalid-number` here. 2. Calls are bounded by
 * the times that their sections of the contract give, not by the request timeout.
 */
import type { OperationsPort } from "../../operations/api/requests.js";
import { decodeBody } from "../json/decoder.js";
import type { Exchange } from "../http/exchange.js";
import type { Members, TypedTable, ValuesOf } from "../json/members.js";
import { tableOf } from "../json/members.js";
import { parseQuery, type QueryValues } from "../http/query.js";
import type { Access } from "../http/access.js";
import type { QueryParameter, Route } from "../http/route.js";
import type { Shape } from "../http/shapes.js";

export interface AdminRouteOptions<M extends Members> {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly access: Access;
  readonly tag: Route["tag"];
  readonly summary: string;
  readonly table?: TypedTable<M>;
  /** No body at all says as much as `{}`. */
  readonly bodyOptional?: boolean;
  readonly query?: readonly QueryParameter[];
  readonly answer: Shape;
  readonly statuses: readonly number[];
  run(exchange: Exchange, port: OperationsPort, values: ValuesOf<M>, query: QueryValues): void;
}

const NOTHING = tableOf();
const NO_MEMBERS = Buffer.from("{}");

export function adminRoute<M extends Members = readonly []>(options: AdminRouteOptions<M>): Route {
  const query = options.query ?? [];
  const table = options.table?.table ?? null;
  return {
    method: options.method,
    path: options.path,
    access: options.access,
    summary: options.summary,
    tag: options.tag,
    body: table,
    query,
    answer: options.answer,
    statuses: [400, ...options.statuses],
    kind: null,
    run(exchange, body, port) {
      const parameters = parseQuery(exchange.raw.url ?? "", query);
      if (typeof parameters === "string") {
        exchange.problem(400, "invalid-argument", parameters);
        return;
      }
      let values: readonly unknown[] = [];
      if (options.method === "POST" && (table !== null || body.length > 0)) {
        const isOmitted = options.bodyOptional === true && body.length === 0;
        const decoded = decodeBody(isOmitted ? NO_MEMBERS : body, table ?? NOTHING.table);
        if ("code" in decoded) {
          exchange.problem(400, decoded.code, decoded.detail);
          return;
        }
        if (decoded.misfit !== null) {
          const detail = `member "${decoded.misfit}" must be an integer in its range`;
          exchange.problem(400, "invalid-number", detail);
          return;
        }
        values = decoded.values;
      }
      // The decoder fills the values by the same table from which their types were derived.
      options.run(exchange, port, values as unknown as ValuesOf<M>, parameters);
    },
  };
}
