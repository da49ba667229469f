/**
 * The cluster paths (contract 3.5, 5.1 to 5.4, 6.4).
 *
 * Invariants: 1. Health sends its ordinary body also with 503. 2. Leave and replication-factor send their own members
 * with every status.
 */
import type {
  LeaveAnswer,
  LocalRole,
  OperationsPort,
  ReplicationFactorAnswer,
} from "../operations/requests.js";
import type { RangeDescriptor } from "../machine/command.js";
import { adminRoute } from "./admin-route.js";
import type { Exchange } from "./exchange.js";
import { listText, quoted, quotedOrNull } from "./json-text.js";
import { int32, tableOf } from "./members.js";
import type { ProblemCode } from "./problems.js";
import type { QueryParameter, Route } from "./route.js";
import type { Shape } from "./shapes.js";

const ROLE_NAMES: Readonly<Record<LocalRole, string>> = {
  learner: "Learner",
  voter: "Voter",
  leaving: "Leaving",
  "not-member": "NotMember",
};

export const KEY_SPACE_QUERY: QueryParameter = {
  name: "keySpace",
  kind: "text",
  note: "only this key space; omitted or empty = all",
};

export const RANGE_SHAPE: Shape = {
  object: {
    startKey: "text-or-null",
    endKey: "text-or-null",
    partitionId: "int32",
    generation: "int64",
  },
};

export function rangeText(range: RangeDescriptor): string {
  return (
    `{"startKey":${quotedOrNull(range.startKey)},"endKey":${quotedOrNull(range.endKey)},` +
    `"partitionId":${range.partitionId},"generation":${range.generation}}`
  );
}

const HEALTH: Shape = {
  object: {
    ready: "bool",
    initialized: "bool",
    reason: "text-or-null",
    localRole: "text",
    hostedPartitions: "int32",
    partitionsWithoutLeader: "int32",
    version: "text",
    uptimeMs: "int64",
  },
};

function health(exchange: Exchange, port: OperationsPort): void {
  const answer = port.health();
  exchange.json(
    answer.ready ? 200 : 503,
    `{"ready":${answer.ready},"initialized":${answer.initialized},` +
      `"reason":${quotedOrNull(answer.reason)},"localRole":"${ROLE_NAMES[answer.localRole]}",` +
      `"hostedPartitions":${answer.hostedPartitions},` +
      `"partitionsWithoutLeader":${answer.partitionsWithoutLeader},` +
      `"version":${quoted(answer.version)},"uptimeMs":${Math.floor(answer.uptimeMs)}}`,
  );
}

const MEMBERSHIP: Shape = {
  object: {
    membershipVersion: "int64",
    members: {
      list: {
        object: { endpoint: "text", nodeId: "int32", role: "text", joinedVersion: "int64" },
      },
    },
    localRole: "text",
    initialized: "bool",
  },
};

function membership(exchange: Exchange, port: OperationsPort): void {
  const answer = port.membership();
  const members = listText(
    answer.members,
    (member) =>
      `{"endpoint":${quoted(member.endpoint)},"nodeId":${member.nodeId},` +
      `"role":"${ROLE_NAMES[member.role]}","joinedVersion":${member.joinedVersion}}`,
  );
  exchange.json(
    200,
    `{"membershipVersion":${answer.membershipVersion},"members":${members},` +
      `"localRole":"${ROLE_NAMES[answer.localRole]}","initialized":${answer.initialized}}`,
  );
}

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

const PLACEMENT: Shape = {
  object: {
    replicationFactor: "int32",
    rebalancerEnabled: "bool",
    initialized: "bool",
    localEndpoint: "text",
    hostedPartitionCount: "int32",
    partitions: {
      list: {
        object: {
          partitionId: "int32",
          state: "text",
          generation: "int64",
          effectiveReplicationFactor: "int32",
          hostedLocally: "bool",
          replicas: { list: { object: { endpoint: "text", role: "text" } } },
        },
      },
    },
  },
};

function placement(exchange: Exchange, port: OperationsPort): void {
  const answer = port.placement();
  const partitions = listText(answer.partitions, (partition) => {
    const replicas = listText(
      partition.replicas,
      (replica) => `{"endpoint":${quoted(replica.endpoint)},"role":"${replica.role}"}`,
    );
    return (
      `{"partitionId":${partition.partitionId},"state":"${partition.state}",` +
      `"generation":${partition.generation},` +
      `"effectiveReplicationFactor":${partition.effectiveReplicationFactor},` +
      `"hostedLocally":${partition.hostedLocally},"replicas":${replicas}}`
    );
  });
  exchange.json(
    200,
    `{"replicationFactor":${answer.replicationFactor},` +
      `"rebalancerEnabled":${answer.rebalancerEnabled},"initialized":${answer.initialized},` +
      `"localEndpoint":${quoted(answer.localEndpoint)},` +
      `"hostedPartitionCount":${answer.hostedPartitionCount},"partitions":${partitions}}`,
  );
}

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

const ROUTING: Shape = {
  object: {
    initialized: "bool",
    schemaVersion: "int32",
    hashAlgorithm: "text",
    prefixSeparator: "text",
    groupSeparator: "text",
    hashPoolSize: "int32",
    hashPartitionOffset: "int32",
    sequenceStorageKeyFormat: "text",
    reservedKeyPrefix: "text",
    localEndpoint: "text",
    snapshotVersion: "int64",
    coherent: "bool",
    keySpaces: {
      list: { object: { keySpace: "text", routingMode: "text", ranges: { list: RANGE_SHAPE } } },
    },
    leaders: { list: { object: { partitionId: "int32", endpoint: "text" } } },
  },
};

function routing(exchange: Exchange, port: OperationsPort, keySpace: string): void {
  const answer = port.routing(keySpace);
  const keySpaces = listText(
    answer.keySpaces,
    (space) =>
      `{"keySpace":${quoted(space.keySpace)},"routingMode":"${space.routingMode}",` +
      `"ranges":${listText(space.ranges, rangeText)}}`,
  );
  const leaders = listText(
    answer.leaders,
    (leader) => `{"partitionId":${leader.partitionId},"endpoint":${quoted(leader.endpoint)}}`,
  );
  exchange.json(
    200,
    `{"initialized":${answer.initialized},"schemaVersion":${answer.schemaVersion},` +
      `"hashAlgorithm":${quoted(answer.hashAlgorithm)},` +
      `"prefixSeparator":${quoted(answer.prefixSeparator)},` +
      `"groupSeparator":${quoted(answer.groupSeparator)},` +
      `"hashPoolSize":${answer.hashPoolSize},"hashPartitionOffset":${answer.hashPartitionOffset},` +
      `"sequenceStorageKeyFormat":${quoted(answer.sequenceStorageKeyFormat)},` +
      `"reservedKeyPrefix":${quoted(answer.reservedKeyPrefix)},` +
      `"localEndpoint":${quoted(answer.localEndpoint)},` +
      `"snapshotVersion":${answer.snapshotVersion},"coherent":${answer.coherent},` +
      `"keySpaces":${keySpaces},"leaders":${leaders}}`,
  );
}

/** `adminTimeoutMs`, `leaveTimeoutMs`: longest handling times (ms) of the calls that change the cluster. */
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
      run: membership,
    }),
    adminRoute({
      method: "POST",
      path: "/v1/cluster/leave",
      access: "admin",
      tag: "cluster",
      summary: "Remove the answering node from the cluster",
      answer: LEAVE,
      statuses: [409, 503, 504],
      run: (exchange, port) => {
        port.leave(exchange.context(leaveTimeoutMs), (answer) => answerLeave(exchange, answer));
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
      run: placement,
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
      run: (exchange, port, _, query) => routing(exchange, port, query.get("keySpace") ?? ""),
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
  run: (exchange, _, port) => health(exchange, port),
};
