/**
 * The paths about the process itself (contract 3.8).
 *
 * Invariants: 1. Liveness asks only for a fatal fault; readiness repeats what health says. 2. Both
 * send their ordinary body with 503. 3. None of them, metrics excepted, needs credentials or is
 * refused for load.
 */
import type { OperationsPort } from "../operations/requests.js";
import { type Exchange, TEXT_TYPE } from "./exchange.js";
import { hasFlag } from "./query.js";
import type { QueryParameter, Route } from "./route.js";

/** What /metrics sends. */
export interface MetricsSource {
  readonly contentType: string;
  text(): Promise<string>;
}

interface Check {
  readonly name: string;
  readonly failure: string | null;
}

const VERBOSE: QueryParameter = {
  name: "verbose",
  kind: "flag",
  note: "lists one line per check",
};

function answerChecks(exchange: Exchange, checks: readonly Check[], reason: string | null): void {
  const verdict = reason === null ? "ok" : `failed: ${reason}`;
  let text = "";
  if (hasFlag(exchange.raw.url ?? "", "verbose")) {
    for (const { name, failure } of checks) {
      text += failure === null ? `[+]${name} ok\n` : `[-]${name} failed: ${failure}\n`;
    }
  }
  exchange.send(reason === null ? 200 : 503, TEXT_TYPE, text + verdict);
}

function live(exchange: Exchange, port: OperationsPort): void {
  const fault = port.fatalFault();
  answerChecks(exchange, [{ name: "process", failure: fault }], fault);
}

function ready(exchange: Exchange, port: OperationsPort): void {
  const { ready, reason } = port.health();
  answerChecks(exchange, port.healthChecks(), ready ? null : (reason ?? "not-ready"));
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
      run: (exchange, _, port) => live(exchange, port),
    },
    {
      ...shared,
      path: "/readyz",
      access: "nobody",
      summary: "Tell whether the node is ready",
      query: [VERBOSE],
      statuses: [503],
      run: (exchange, _, port) => ready(exchange, port),
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
