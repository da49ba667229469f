/**
 * Cluster operations, as the client sends and reads them.
 *
 * Invariants: 1. Roles and outcomes are the texts of the REST interface on both wires. 2. Refusals
 * are results.
 */
import * as messages from "../../proto/generated/cluster.js";
import * as health from "../../proto/generated/health.js";
import type {
  Health,
  LeaveResult,
  Membership,
  Placement,
  ReplicationFactorResult,
} from "./cluster-shapes.js";
import { bigintOf, boolOf, intOf, jsonText, listOf, textOf, textOrNull } from "../values/json.js";
import { fromLanes } from "../values/numbers.js";
import type { Operation } from "../call/operation.js";

/** An operation whose answer is its result. */
export type Plain<Request, Result> = Operation<Request, Result, Result>;
export type NoRequest = Readonly<Record<string, never>>;

const MEMBER_ROLES = ["Learner", "Voter", "Leaving", "NotMember"];
const REPLICA_ROLES = ["Voter", "Learner", "Removing"];
const LEAVE_OUTCOMES = [
  "Committed",
  "NotAMember",
  "RefusedInsufficientVoters",
  "NotInitialized",
  "NoLeader",
  "Timeout",
  "RefusedDrainInProgress",
  "DrainTimedOut",
  "RefusedStillAlive",
];
const SERVING = 1;

function nameOf(names: readonly string[], number: number): string {
  return names[number] ?? `Unknown(${number})`;
}

/** Members that every plain operation has: repeatable, and what came is the result. */
export const plain = {
  stream: null,
  repeat: () => true,
  settle: <Result>(answer: Result): Result => answer,
} as const;

export const readHealth: Plain<NoRequest, Health> = {
  ...plain,
  name: "health",
  reads: true,
  path: "/grpc.health.v1.Health/Check",
  rest: { method: "GET", path: () => "/v1/cluster/health", body: () => null, marker: "ready" },
  write: (_request, writer) => void health.HealthCheckRequest.encode({ service: "" }, writer),
  fromGrpc(reader, lengthBytes) {
    const message = health.HealthCheckResponse.decode(reader, lengthBytes);
    return { ready: message.status === SERVING, details: null };
  },
  fromRest(body) {
    const ready = boolOf(body, "ready");
    return {
      ready,
      details: {
        ready,
        initialized: boolOf(body, "initialized"),
        reason: textOrNull(body, "reason"),
        localRole: textOf(body, "localRole"),
        hostedPartitions: intOf(body, "hostedPartitions"),
        partitionsWithoutLeader: intOf(body, "partitionsWithoutLeader"),
        version: textOf(body, "version"),
        uptimeMs: bigintOf(body, "uptimeMs"),
      },
    };
  },
};

export const readMembership: Plain<NoRequest, Membership> = {
  ...plain,
  name: "cluster.membership",
  reads: true,
  path: "/Cluster/GetMembership",
  rest: { method: "GET", path: () => "/v1/cluster/membership", body: () => null },
  write: (_request, writer) => void messages.GrpcGetMembershipRequest.encode({}, writer),
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcGetMembershipResponse.decode(reader, lengthBytes);
    return {
      membershipVersion: fromLanes(message.MembershipVersion),
      members: message.Members.map((member) => ({
        endpoint: member.Endpoint,
        nodeId: member.NodeId,
        role: nameOf(MEMBER_ROLES, member.Role),
        joinedVersion: fromLanes(member.JoinedVersion),
      })),
      localRole: nameOf(MEMBER_ROLES, message.LocalRole),
      initialized: message.Initialized,
    };
  },
  fromRest(body) {
    return {
      membershipVersion: bigintOf(body, "membershipVersion"),
      members: listOf(body, "members").map((member) => ({
        endpoint: textOf(member, "endpoint"),
        nodeId: intOf(member, "nodeId"),
        role: textOf(member, "role"),
        joinedVersion: bigintOf(member, "joinedVersion"),
      })),
      localRole: textOf(body, "localRole"),
      initialized: boolOf(body, "initialized"),
    };
  },
};

/** Who leaves; 0 = the answering node. */
export interface LeaveRequest {
  readonly nodeId: number;
}

export const leaveCluster: Plain<LeaveRequest, LeaveResult> = {
  ...plain,
  name: "cluster.leave",
  path: "/Cluster/Leave",
  rest: {
    method: "POST",
    path: () => "/v1/cluster/leave",
    body: ({ nodeId }) => jsonText({ nodeId }),
    marker: "left",
  },
  write: ({ nodeId: NodeId }, writer) => {
    messages.GrpcClusterLeaveRequest.encode({ NodeId }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcClusterLeaveResponse.decode(reader, lengthBytes);
    return {
      left: message.Left,
      drained: message.Drained,
      outcome: nameOf(LEAVE_OUTCOMES, message.Outcome),
      membershipVersion: fromLanes(message.MembershipVersion),
      retryable: message.Retryable,
      reason: message.Reason,
    };
  },
  fromRest(body) {
    return {
      left: boolOf(body, "left"),
      drained: boolOf(body, "drained"),
      outcome: textOf(body, "outcome"),
      membershipVersion: bigintOf(body, "membershipVersion"),
      retryable: boolOf(body, "retryable"),
      reason: textOf(body, "reason"),
    };
  },
};

export const readPlacement: Plain<NoRequest, Placement> = {
  ...plain,
  name: "cluster.placement",
  reads: true,
  path: "/Cluster/GetPlacement",
  rest: { method: "GET", path: () => "/v1/cluster/placement", body: () => null },
  write: (_request, writer) => void messages.GrpcGetPlacementRequest.encode({}, writer),
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcGetPlacementResponse.decode(reader, lengthBytes);
    return {
      replicationFactor: message.ReplicationFactor,
      rebalancerEnabled: message.RebalancerEnabled,
      initialized: message.Initialized,
      localEndpoint: message.LocalEndpoint,
      hostedPartitionCount: message.HostedPartitionCount,
      partitions: message.Partitions.map((one) => ({
        partitionId: one.PartitionId,
        state: one.State,
        generation: fromLanes(one.Generation),
        effectiveReplicationFactor: one.EffectiveReplicationFactor,
        hostedLocally: one.HostedLocally,
        replicas: one.Replicas.map(({ Endpoint, Role }) => ({
          endpoint: Endpoint,
          role: nameOf(REPLICA_ROLES, Role),
        })),
      })),
    };
  },
  fromRest(body) {
    return {
      replicationFactor: intOf(body, "replicationFactor"),
      rebalancerEnabled: boolOf(body, "rebalancerEnabled"),
      initialized: boolOf(body, "initialized"),
      localEndpoint: textOf(body, "localEndpoint"),
      hostedPartitionCount: intOf(body, "hostedPartitionCount"),
      partitions: listOf(body, "partitions").map((one) => ({
        partitionId: intOf(one, "partitionId"),
        state: textOf(one, "state"),
        generation: bigintOf(one, "generation"),
        effectiveReplicationFactor: intOf(one, "effectiveReplicationFactor"),
        hostedLocally: boolOf(one, "hostedLocally"),
        replicas: listOf(one, "replicas").map((replica) => ({
          endpoint: textOf(replica, "endpoint"),
          role: textOf(replica, "role"),
        })),
      })),
    };
  },
};

export interface FactorRequest {
  readonly partitionId: number;
  readonly replicationFactor: number;
}

export const setFactor: Plain<FactorRequest, ReplicationFactorResult> = {
  ...plain,
  name: "cluster.setReplicationFactor",
  path: "/Cluster/SetReplicationFactor",
  rest: {
    method: "POST",
    path: () => "/v1/cluster/replication-factor",
    body: (request) => jsonText(request),
    marker: "success",
  },
  write({ partitionId, replicationFactor }, writer) {
    const fields = { PartitionId: partitionId, ReplicationFactor: replicationFactor };
    messages.GrpcSetReplicationFactorRequest.encode(fields, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcSetReplicationFactorResponse.decode(reader, lengthBytes);
    return {
      success: message.Success,
      status: message.Status,
      generation: fromLanes(message.Generation),
      reason: message.Reason,
    };
  },
  fromRest(body) {
    return {
      success: boolOf(body, "success"),
      status: textOf(body, "status"),
      generation: bigintOf(body, "generation"),
      reason: textOrNull(body, "reason") ?? "",
    };
  },
};
