/**
 * Health, membership, placement, replication factor, routing metadata and leave, described.
 *
 * Plain data. Invariants: 1. The lists of outcomes and roles are in wire order: the place is the
 * number.
 */
import { call } from "./call.js";
import {
  asking,
  bool,
  enumeration,
  inQuery,
  int32,
  int32Argument,
  list,
  message,
  numbered,
  oneOf,
  remark,
  safeInt64,
  safeInt64OrNull,
  text,
  textArgument,
  textOrNull,
  texts,
} from "./members.js";

export const FINALIZE_STATUSES = [
  "Finalized",
  "AlreadyFinalized",
  "InvalidInput",
  "RefusedMembers",
  "Refused",
] as const;

const MEMBER_ROLE = enumeration({
  learner: "Learner",
  voter: "Voter",
  leaving: "Leaving",
  "not-member": "NotMember",
});
export const LEAVE_OUTCOMES = [
  "Committed",
  "NotAMember",
  "RefusedInsufficientVoters",
  "NotInitialized",
  "NoLeader",
  "Timeout",
  "RefusedDrainInProgress",
  "DrainTimedOut",
  "RefusedStillAlive",
] as const;
export const ROUTING_MODE = oneOf("Hash", "KeyRange");

/** Over gRPC the health service of the gRPC project says `ready` alone. */
export const HEALTH = message("", {
  ready: bool,
  initialized: bool,
  reason: textOrNull("absent"),
  localRole: MEMBER_ROLE,
  hostedPartitions: int32,
  partitionsWithoutLeader: int32,
  version: text,
  uptimeMs: safeInt64,
});

export const MEMBER = message("GrpcClusterMember", {
  /** Advertised peer endpoint. */
  endpoint: text,
  nodeId: int32,
  /** `Learner`, `Voter`, `Leaving` or `NotMember`. */
  role: MEMBER_ROLE,
  joinedVersion: safeInt64,
});
export const MEMBERSHIP = message("GrpcGetMembershipResponse", {
  membershipVersion: safeInt64,
  members: list(MEMBER),
  localRole: MEMBER_ROLE,
  initialized: bool,
});

export const LEAVE = message("GrpcClusterLeaveResponse", {
  left: bool,
  drained: bool,
  /** `Committed`, `NotAMember`, `RefusedInsufficientVoters`, … */
  outcome: numbered("grpc", LEAVE_OUTCOMES),
  membershipVersion: safeInt64,
  retryable: bool,
  reason: text,
});

export const REPLICA = message("GrpcPartitionReplica", {
  endpoint: text,
  /** `Voter`, `Learner` or `Removing`. */
  role: numbered("grpc", ["Voter", "Learner", "Removing"]),
});
export const PARTITION = message("GrpcPartitionPlacement", {
  partitionId: int32,
  /** `Active`, `Splitting`, `Draining` or `Removed`. */
  state: oneOf("Active", "Splitting", "Draining", "Removed"),
  generation: safeInt64,
  effectiveReplicationFactor: int32,
  hostedLocally: bool,
  /** Empty with full replication. */
  replicas: list(REPLICA),
});
export const PLACEMENT = message("GrpcGetPlacementResponse", {
  replicationFactor: int32,
  rebalancerEnabled: bool,
  initialized: bool,
  localEndpoint: text,
  hostedPartitionCount: int32,
  partitions: list(PARTITION),
});

export const REPLICATION_FACTOR = message("GrpcSetReplicationFactorResponse", {
  success: bool,
  /** `Success`, `InvalidInput` or `Refused`. */
  status: oneOf("Success", "InvalidInput", "Refused"),
  generation: safeInt64,
  reason: remark,
});

const OVERVIEW_NODE = message("GrpcOverviewNode", {
  nodeId: int32,
  /** Advertised peer endpoint. */
  endpoint: text,
  /** Base URL for clients; "" = none, or not known. */
  clientEndpoint: text,
  role: MEMBER_ROLE,
  /** As the node said in its last report; false, "" and 0 where there is none. */
  ready: bool,
  reason: text,
  version: text,
  levelMin: int32,
  levelMax: int32,
  uptimeMs: safeInt64,
  /** How old the report is; null = there is none. */
  ageMs: safeInt64OrNull("absent"),
  hostedPartitions: int32,
  leadingPartitions: int32,
  requestsPerSecond: int32,
  failedPerSecond: int32,
});
export const OVERVIEW = message("GrpcGetOverviewResponse", {
  initialized: bool,
  membershipVersion: safeInt64,
  level: int32,
  localNodeId: int32,
  /** 0 = not known. */
  metaLeaderNodeId: int32,
  /** The meta partition included, in the next member too. */
  partitions: int32,
  partitionsWithoutLeader: int32,
  partitionsUnderReplicated: int32,
  nodes: list(OVERVIEW_NODE),
  /** For operators, most urgent first. */
  alarms: texts,
});

/** A member that holds up a higher level. */
const FINALIZE_BLOCKER = message("GrpcFinalizeBlocker", {
  nodeId: int32,
  endpoint: text,
  /** Of its program; "" = not known. */
  version: text,
  levelMin: int32,
  levelMax: int32,
});
export const FINALIZE = message("GrpcFinalizeResponse", {
  success: bool,
  /** `Finalized`, `AlreadyFinalized`, `InvalidInput`, `RefusedMembers` or `Refused`. */
  status: oneOf(...FINALIZE_STATUSES),
  level: int32,
  blockers: list(FINALIZE_BLOCKER),
  reason: remark,
});

/** The members of a range; two messages of gRPC have them. */
export const RANGE_MEMBERS = {
  /** null = open. */
  startKey: textOrNull("absent"),
  endKey: textOrNull("absent"),
  partitionId: int32,
  generation: safeInt64,
} as const;
export const ROUTING_RANGE = message("GrpcRoutingRange", RANGE_MEMBERS);
export const ROUTING_KEY_SPACE = message("GrpcRoutingKeySpace", {
  keySpace: text,
  routingMode: ROUTING_MODE,
  ranges: list(ROUTING_RANGE),
});
const LEADER = message("GrpcPartitionLeader", {
  partitionId: int32,
  /** Client endpoint; "" = not known to the node that answered. */
  endpoint: text,
});
export const ROUTING = message("GrpcGetRoutingMetadataResponse", {
  initialized: bool,
  schemaVersion: int32,
  hashAlgorithm: text,
  prefixSeparator: text,
  groupSeparator: text,
  hashPoolSize: int32,
  hashPartitionOffset: int32,
  sequenceStorageKeyFormat: text,
  reservedKeyPrefix: text,
  localEndpoint: text,
  snapshotVersion: safeInt64,
  coherent: bool,
  keySpaces: list(ROUTING_KEY_SPACE),
  leaders: list(LEADER),
});

export const KEY_SPACE_FILTER = {
  keySpace: inQuery(textArgument("only this key space; omitted or empty = all")),
} as const;

/** @internal */
export const CLUSTER_CALLS = {
  "cluster.membership": call({
    access: "reader",
    grpc: "/Cluster/GetMembership",
    rest: {
      method: "GET",
      path: "/v1/cluster/membership",
      summary: "List the members",
      statuses: [],
    },
    request: asking("GrpcGetMembershipRequest", {}),
    answer: MEMBERSHIP,
    reads: true,
  }),
  "cluster.leave": call({
    access: "admin",
    grpc: "/Cluster/Leave",
    rest: {
      method: "POST",
      path: "/v1/cluster/leave",
      summary: "Remove the answering node from the cluster, or a member that is gone",
      bodyOptional: true,
      statuses: [409, 503, 504],
    },
    request: asking("GrpcClusterLeaveRequest", {
      nodeId: int32Argument(
        "a member whose process or disk is gone; 0 or omitted = the answering node",
      ),
    }),
    answer: LEAVE,
    bound: "leave",
    mistake: ({ nodeId }) =>
      nodeId < 0 ? { rest: "nodeId is 0 or a node id", grpc: "NodeId is not negative" } : null,
    status({ outcome }) {
      switch (outcome) {
        case "Committed":
        case "NotAMember":
          return 200;
        case "RefusedInsufficientVoters":
        case "RefusedStillAlive":
          return 409;
        case "NotInitialized":
        case "NoLeader":
        case "RefusedDrainInProgress":
          return 503;
        case "Timeout":
        case "DrainTimedOut":
          return 504;
      }
    },
  }),
  "cluster.placement": call({
    access: "reader",
    grpc: "/Cluster/GetPlacement",
    rest: {
      method: "GET",
      path: "/v1/cluster/placement",
      summary: "List the partitions and their replicas",
      statuses: [],
    },
    request: asking("GrpcGetPlacementRequest", {}),
    answer: PLACEMENT,
    reads: true,
  }),
  "cluster.overview": call({
    access: "reader",
    grpc: "/Cluster/GetOverview",
    rest: {
      method: "GET",
      path: "/v1/cluster/overview",
      summary: "Read how all members are, as the asked node heard of them",
      statuses: [],
    },
    request: asking("GrpcGetOverviewRequest", {}),
    answer: OVERVIEW,
    reads: true,
  }),
  "cluster.setReplicationFactor": call({
    access: "admin",
    grpc: "/Cluster/SetReplicationFactor",
    rest: {
      method: "POST",
      path: "/v1/cluster/replication-factor",
      summary: "Set the replication factor of a partition",
      statuses: [409],
    },
    request: asking("GrpcSetReplicationFactorRequest", {
      partitionId: int32Argument("1 and more"),
      replicationFactor: int32Argument("0 to 9; 0 = the global factor"),
    }),
    answer: REPLICATION_FACTOR,
    status: ({ success }) => (success ? 200 : 409),
  }),
  "cluster.finalize": call({
    access: "admin",
    grpc: "/Cluster/Finalize",
    rest: {
      method: "POST",
      path: "/v1/cluster/finalize",
      summary: "Raise the level of the cluster, after an upgrade of all members",
      bodyOptional: true,
      statuses: [409],
    },
    request: asking("GrpcFinalizeRequest", {
      level: int32Argument("0 or omitted = the present level + 1"),
    }),
    answer: FINALIZE,
    status: ({ success }) => (success ? 200 : 409),
    // Without a level a repeat would raise once more.
    repeat: ({ level }) => level !== 0,
  }),
  "cluster.routing": call({
    access: "reader",
    grpc: "/Cluster/GetRoutingMetadata",
    rest: {
      method: "GET",
      path: "/v1/cluster/routing",
      summary: "Read how keys are routed to partitions",
      statuses: [],
    },
    request: asking("GrpcGetRoutingMetadataRequest", KEY_SPACE_FILTER),
    answer: ROUTING,
    reads: true,
  }),
} as const;
