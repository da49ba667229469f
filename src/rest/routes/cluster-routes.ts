/**
 * The cluster paths (contract 3.5, 5.1 to 5.4, 6.4).
 *
 * Invariants: 1. Leave and replication-factor send their own members with every status.
 */
import type { LeaveAnswer, ReplicationFactorAnswer } from "../../operations/api/requests.js";
import { adminRoute } from "./admin-route.js";
import {
  answerHealth,
  answerMembership,
  answerPlacement,
  answerRouting,
  HEALTH,
  MEMBERSHIP,
  PLACEMENT,
  ROUTING,
} from "./cluster-answers.js";
import type { Exchange } from "../http/exchange.js";
import { quoted } from "../json/json-text.js";
import { int32, tableOf } from "../json/members.js";
import type { ProblemCode } from "../http/problems.js";
import type { QueryParameter, Route } from "../http/route.js";
import type { Shape } from "../http/shapes.js";

export const KEY_SPACE_QUERY: QueryParameter = {
  name: "keySpace",
  kind: "text",
  note: "only this key space; omitted or empty = all",
};

const LEAVE: Shape = {
  object: {
    left: "bool",
    drained: "bool",
    outcome: "text",
    membershipVersion: "int64",
    retryable: "bool",
    reason: "text",
  },
};

/** Status and code of each outcome (contract 5.3). */
const LEAVE_STATUSES: Readonly<
  Record<LeaveAnswer["outcome"], { readonly status: number; readonly code: ProblemCode | null }>
> = {
  Committed: { status: 200, code: null },
  NotAMember: { status: 200, code: null },
  RefusedInsufficientVoters: { status: 409, code: "refused" },
  NotInitialized: { status: 503, code: "unavailable" },
  NoLeader: { status: 503, code: "unavailable" },
  RefusedDrainInProgress: { status: 503, code: "unavailable" },
  Timeout: { status: 504, code: "timeout" },
  DrainTimedOut: { status: 504, code: "timeout" },
  RefusedStillAlive: { status: 409, code: "refused" },
};

function answerLeave(exchange: Exchange, answer: LeaveAnswer): void {
  const own =
    `{"left":${answer.left},"drained":${answer.drained},"outcome":"${answer.outcome}",` +
    `"membershipVersion":${answer.membershipVersion},"retryable":${answer.retryable},` +
    `"reason":${quoted(answer.reason)}}`;
  const { status, code } = LEAVE_STATUSES[answer.outcome];
  if (code === null) exchange.json(status, own);
  else exchange.problem(status, code, answer.reason, null, own);
}

const leaveTable = tableOf(
  int32("nodeId", "a member whose process or disk is gone; 0 or omitted = the answering node"),
);

const FACTOR: Shape = {
  object: { success: "bool", status: "text", generation: "int64", reason: "text" },
};
const factorTable = tableOf(
  int32("partitionId", "1 and more"),
  int32("replicationFactor", "0 to 9; 0 = the global factor"),
);

function answerFactor(exchange: Exchange, answer: ReplicationFactorAnswer): void {
  const own =
    `{"success":${answer.success},"status":${quoted(answer.status)},` +
    `"generation":${answer.generation},"reason":${quoted(answer.reason)}}`;
  if (answer.success) exchange.json(200, own);
  else exchange.problem(409, "refused", answer.reason, null, own, "status");
}

/**
 * `adminTimeoutMs`, `leaveTimeoutMs`: longest handling times (ms) of the calls that change the
 * cluster.
 */
export function clusterRoutes(adminTimeoutMs: number, leaveTimeoutMs: number): readonly Route[] {
  return [
    adminRoute({
      method: "GET",
      path: "/v1/cluster/membership",
      access: "reader",
      tag: "cluster",
      summary: "List the members",
      answer: MEMBERSHIP,
      statuses: [],
      run: answerMembership,
    }),
    adminRoute({
      method: "POST",
      path: "/v1/cluster/leave",
      access: "admin",
      tag: "cluster",
      summary: "Remove the answering node from the cluster, or a member that is gone",
      table: leaveTable,
      bodyOptional: true,
      answer: LEAVE,
      statuses: [409, 503, 504],
      run: (exchange, port, [nodeId]) => {
        if (nodeId < 0) {
          exchange.problem(400, "invalid-argument", "nodeId is 0 or a node id");
          return;
        }
        const context = exchange.context(leaveTimeoutMs);
        port.leave({ nodeId }, context, (answer) => answerLeave(exchange, answer));
      },
    }),
    adminRoute({
      method: "GET",
      path: "/v1/cluster/placement",
      access: "reader",
      tag: "cluster",
      summary: "List the partitions and their replicas",
      answer: PLACEMENT,
      statuses: [],
      run: answerPlacement,
    }),
    adminRoute({
      method: "POST",
      path: "/v1/cluster/replication-factor",
      access: "admin",
      tag: "cluster",
      summary: "Set the replication factor of a partition",
      table: factorTable,
      answer: FACTOR,
      statuses: [409],
      run: (exchange, port, [partitionId, replicationFactor]) => {
        const request = { partitionId, replicationFactor };
        port.setReplicationFactor(request, exchange.context(adminTimeoutMs), (answer) =>
          answerFactor(exchange, answer),
        );
      },
    }),
    adminRoute({
      method: "GET",
      path: "/v1/cluster/routing",
      access: "reader",
      tag: "cluster",
      summary: "Read how keys are routed to partitions",
      query: [KEY_SPACE_QUERY],
      answer: ROUTING,
      statuses: [],
      run: (exchange, port, _, query) => answerRouting(exchange, port, query.get("keySpace") ?? ""),
    }),
  ];
}

export const HEALTH_ROUTE: Route = {
  method: "GET",
  path: "/v1/cluster/health",
  access: "nobody",
  tag: "cluster",
  summary: "Tell whether the node is ready",
  body: null,
  query: [],
  answer: HEALTH,
  statuses: [503],
  kind: null,
  run: (exchange, _, port) => answerHealth(exchange, port),
};
