/**
 * What a path is: the table entry from which the router, the access check and the OpenAPI document
 * are made.
 *
 * Types only. Invariants: 1. Every path that the server answers is one Route. 2. A route decides
 * nothing: it decodes, hands down, and writes what comes back.
 */
import type { Access } from "./access.js";
import type { DataRequestKind, OperationsPort } from "../../operations/api/requests.js";
import type { Exchange } from "./exchange.js";
import type { MemberTable } from "../json/members.js";
import type { Schema } from "./schemas.js";

export interface QueryParameter {
  readonly name: string;
  readonly kind: "text" | "bool" | "flag";
  readonly note: string;
}

export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly access: Access;
  readonly summary: string;
  readonly tag: "locks" | "sequences" | "kv" | "cluster" | "ranges" | "backups" | "watch" | "node";
  /**
   * Request members; null = none, and then an empty body is accepted. GET routes have no body at
   * all.
   */
  readonly body: MemberTable | null;
  readonly query: readonly QueryParameter[];
  /** The answer of status 200; null = text. */
  readonly answer: Schema | null;
  /** The answer goes on while the call lasts. */
  readonly lasts?: true;
  /** Statuses beyond 200 that the route itself gives, for the document. */
  readonly statuses: readonly number[];
  /** Data routes: the kind of request, and that query parameters mean nothing there. */
  readonly kind: DataRequestKind | null;
  /** `body`: the whole body, empty when there is none. */
  run(exchange: Exchange, body: Buffer, port: OperationsPort): void;
}
