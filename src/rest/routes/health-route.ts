/**
 * The health of a node (contract 3.5, 5.1).
 *
 * Invariants: 1. Health sends its ordinary body also with 503.
 */
import { HEALTH } from "../../api/cluster.js";
import type { HealthAnswer } from "../../operations/api/requests.js";
import type { Route } from "../http/route.js";
import { schemaOf } from "../http/schemas.js";
import { answerText } from "../json/described.js";

/** Of /v1/cluster/health, as JSON. */
export function healthText(answer: HealthAnswer): string {
  return answerText(HEALTH, { ...answer, uptimeMs: Math.floor(answer.uptimeMs) });
}

export const HEALTH_ROUTE: Route = {
  method: "GET",
  path: "/v1/cluster/health",
  access: "nobody",
  tag: "cluster",
  summary: "Tell whether the node is ready",
  body: null,
  query: [],
  answer: schemaOf(HEALTH),
  statuses: [503],
  kind: null,
  run(exchange, _, port) {
    const answer = port.health();
    exchange.json(answer.ready ? 200 : 503, healthText(answer));
  },
};
