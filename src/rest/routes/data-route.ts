/**
 * How every data path works: decode, execute, write.
 *
 * Invariants: 1. A number that does not fit, and a request that cannot be expressed, is the
 * operation's InvalidInput with HTTP 200. 2. A refusal is 503 with the endpoint's own members
 * added. 3. The numeric or named form of sequence answers follows the request (contract 3.3).
 */
import {
  type AnswerOf,
  type DataRequest,
  type DataRequestKind,
  type OperationsPort,
  type Refusal,
  isWaiting,
} from "../../operations/api/requests.js";
import { decodeBody } from "../json/decoder.js";
import type { Exchange } from "../http/exchange.js";
import type { Decoded, Members, TypedTable, ValuesOf } from "../json/members.js";
import type { Access } from "../http/access.js";
import type { Route } from "../http/route.js";
import type { Schema } from "../http/schemas.js";

export interface DataRouteOptions<R extends DataRequest, M extends Members> {
  readonly path: string;
  readonly kind: R["kind"] & DataRequestKind;
  readonly access: Access;
  readonly tag: Route["tag"];
  readonly summary: string;
  readonly table: TypedTable<M>;
  readonly answer: Schema;
  readonly statuses?: readonly number[];
  /**
   * The request, or null when what was sent is InvalidInput before any operation could judge it.
   */
  build(values: ValuesOf<M>, decoded: Decoded): R | null;
  /** The text of the answer. `numeric`: the form of 3.3. */
  write(answer: AnswerOf<R>, numeric: boolean, exchange: Exchange): string;
  /**
   * Writes an answer that is so large that it would hold everybody else up, in slices over several
   * turns; false when `write` may do it at once.
   */
  writeLater?(answer: AnswerOf<R>, done: (text: Buffer) => void): boolean;
  /** Answers that are no answer object; true when it has answered. */
  divert?(answer: AnswerOf<R>, exchange: Exchange): boolean;
}

export function dataRoute<R extends DataRequest, M extends Members>(
  options: DataRouteOptions<R, M>,
): Route {
  const { kind, table } = options;
  const refuse = (
    exchange: Exchange,
    answer: AnswerOf<R>,
    refusal: Refusal,
    numeric: boolean,
  ): void => exchange.refusal(refusal, options.write(answer, numeric, exchange), "type");
  const answerWith = (
    exchange: Exchange,
    answer: AnswerOf<R>,
    numeric: boolean,
    port: OperationsPort,
  ): void => {
    if (answer.refusal !== null) return refuse(exchange, answer, answer.refusal, numeric);
    if (options.divert?.(answer, exchange) === true) return;
    const send = (text: string | Buffer): void => {
      if (exchange.admits(text.length)) return exchange.json(200, text);
      // Only reads have large answers, so nothing was done that this refusal denies.
      const refused = port.mustRetry(kind, "overloaded") as AnswerOf<R>;
      refuse(exchange, refused, "overloaded", numeric);
    };
    if (options.writeLater?.(answer, send) === true) return;
    send(options.write(answer, numeric, exchange));
  };
  return {
    method: "POST",
    path: options.path,
    access: options.access,
    summary: options.summary,
    tag: options.tag,
    body: table.table,
    query: [],
    answer: options.answer,
    statuses: options.statuses ?? [],
    kind,
    run(exchange, body, port) {
      const decoded = decodeBody(body, table.table);
      if ("code" in decoded) {
        exchange.problem(400, decoded.code, decoded.detail);
        return;
      }
      const numeric = decoded.numericDurability;
      // The decoder fills the values by the same table from which their types were derived.
      const values = decoded.values as unknown as ValuesOf<M>;
      const request = decoded.misfit === null ? options.build(values, decoded) : null;
      if (request === null) {
        // The port answers with the kind of answer that belongs to the kind of request.
        answerWith(exchange, port.invalidInput(kind) as AnswerOf<R>, numeric, port);
        return;
      }
      if (exchange.isOverloaded) {
        answerWith(exchange, port.mustRetry(kind, "overloaded") as AnswerOf<R>, numeric, port);
        return;
      }
      const waitMs = isWaiting(request) ? (request.waitMs ?? 0) : 0;
      const context = exchange.context(exchange.boundMs(waitMs));
      const wait = port.execute(request, context, (answer) => {
        answerWith(exchange, answer, numeric, port);
      });
      if (wait !== null) exchange.whenGone(() => void wait.leave("cancelled"));
    },
  };
}
