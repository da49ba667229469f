/**
 * The paths about the process itself (contract 3.8).
 *
 * Invariants: 1. Liveness asks only for a fatal fault; readiness repeats what health says. 2. Both
 * send their ordinary body with 503. 3. None of them, metrics excepted, needs credentials or is
 * refused for load.
 */
import type { OperationsPort } from "../../operations/api/requests.js";
import { type Exchange, TEXT_TYPE } from "../http/exchange.js";
import { hasFlag } from "../http/query.js";
import type { QueryParameter, Route } from "../http/route.js";

/** What /metrics sends. */
export interface MetricsSource {
  readonly contentType: string;
  text(): Promise<string>;
}

/** One line of `?verbose`. */
export interface Check {
  readonly name: string;
  readonly failure: string | null;
  /** Shown behind a check that is fine. */
  readonly detail?: string;
}

/** An answer that needs no request to be written. */
export interface PlainAnswer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** What tells whether a node works and is ready. */
export type HealthSource = Pick<OperationsPort, "health" | "healthChecks" | "fatalFault">;

const VERBOSE: QueryParameter = {
  name: "verbose",
  kind: "flag",
  note: "lists one line per check",
};

function checksAnswer(
  checks: readonly Check[],
  reason: string | null,
  verbose: boolean,
): PlainAnswer {
  const verdict = reason === null ? "ok" : `failed: ${reason}`;
  let text = "";
  for (const { name, failure, detail } of verbose ? checks : []) {
    const fine = detail === undefined ? "ok" : `ok: ${detail}`;
    text += failure === null ? `[+]${name} ${fine}\n` : `[-]${name} failed: ${failure}\n`;
  }
  return { status: reason === null ? 200 : 503, type: TEXT_TYPE, text: text + verdict };
}

/** Of /livez; `more`: checks besides that of the process. */
export function liveAnswer(
  source: HealthSource,
  verbose: boolean,
  more: readonly Check[] = [],
): PlainAnswer {
  const failure = source.fatalFault();
  return checksAnswer([{ name: "process", failure }, ...more], failure, verbose);
}

/** Of /readyz. */
export function readyAnswer(source: HealthSource, verbose: boolean): PlainAnswer {
  const { ready, reason } = source.health();
  const checks = verbose ? source.healthChecks() : [];
  return checksAnswer(checks, ready ? null : (reason ?? "not-ready"), verbose);
}

function isVerbose(exchange: Exchange): boolean {
  return hasFlag(exchange.raw.url ?? "", "verbose");
}

function sendPlain(exchange: Exchange, { status, type, text }: PlainAnswer): void {
  exchange.send(status, type, text);
}

function answerMetrics(exchange: Exchange, source: MetricsSource): void {
  source.text().then(
    (text) => exchange.send(200, source.contentType, text),
    (error: unknown) => exchange.problem(500, "internal", String(error)),
  );
}

const shared = {
  method: "GET",
  tag: "node",
  body: null,
  query: [] as readonly QueryParameter[],
  answer: null,
  statuses: [] as readonly number[],
  kind: null,
} as const;

/** `documentText`: the OpenAPI document as JSON. */
export function nodeRoutes(
  version: string,
  metrics: MetricsSource | null,
  documentText: () => string,
): readonly Route[] {
  return [
    {
      ...shared,
      path: "/",
      access: "nobody",
      summary: "Name and version",
      run: (exchange) => exchange.send(200, TEXT_TYPE, `svc-server ${version}`),
    },
    {
      ...shared,
      path: "/livez",
      access: "nobody",
      summary: "Tell whether the process works",
      query: [VERBOSE],
      statuses: [503],
      run: (exchange, _, port) => sendPlain(exchange, liveAnswer(port, isVerbose(exchange))),
    },
    {
      ...shared,
      path: "/readyz",
      access: "nobody",
      summary: "Tell whether the node is ready",
      query: [VERBOSE],
      statuses: [503],
      run: (exchange, _, port) => sendPlain(exchange, readyAnswer(port, isVerbose(exchange))),
    },
    {
      ...shared,
      path: "/metrics",
      access: "reader",
      summary: "Metrics in the Prometheus text format",
      run: (exchange) => {
        if (metrics === null) exchange.send(200, TEXT_TYPE, "");
        else answerMetrics(exchange, metrics);
      },
    },
    {
      ...shared,
      path: "/openapi.json",
      access: "nobody",
      summary: "This description",
      run: (exchange) => exchange.json(200, documentText()),
    },
  ];
}
