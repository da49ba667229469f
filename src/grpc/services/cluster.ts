/**
 * The Cluster service, and the two key-range calls of the KeyValuer service: the administrative
 * calls.
 *
 * Invariants: 1. While the node shuts down each of these calls ends with UNAVAILABLE. 2. Refusals
 * of an operation are responses, with the operation's own words.
 */
import { status, type ServiceError } from "@grpc/grpc-js";
import type { KeySpaceView, LocalRole, OperationsPort } from "../../operations/api/requests.js";
import { LEAVE_OUTCOMES } from "../../operations/api/requests.js";
import type { Encodable } from "../../proto/codec.js";
import * as proto from "../../proto/generated/cluster.js";
import * as keyvalues from "../../proto/generated/keyvalues.js";
import { adminMethod, type AdminMethod } from "../calls/unary.js";
import { callError } from "../calls/runtime.js";

type Descriptor = KeySpaceView["ranges"][number];

const ROLES: Readonly<Record<LocalRole, number>> = {
  learner: proto.GrpcClusterMemberRole.CLUSTER_MEMBER_ROLE_LEARNER,
  voter: proto.GrpcClusterMemberRole.CLUSTER_MEMBER_ROLE_VOTER,
  leaving: proto.GrpcClusterMemberRole.CLUSTER_MEMBER_ROLE_LEAVING,
  "not-member": proto.GrpcClusterMemberRole.CLUSTER_MEMBER_ROLE_NOT_MEMBER,
};
const REPLICA_ROLES = {
  Voter: proto.GrpcPartitionReplicaRole.PARTITION_REPLICA_ROLE_VOTER,
  Learner: proto.GrpcPartitionReplicaRole.PARTITION_REPLICA_ROLE_LEARNER,
  Removing: proto.GrpcPartitionReplicaRole.PARTITION_REPLICA_ROLE_REMOVING,
} as const;

function rangeOf(range: Descriptor): Encodable<proto.GrpcRangeDescriptor> {
  return {
    StartKey: range.startKey,
    EndKey: range.endKey,
    PartitionId: range.partitionId,
    Generation: range.generation,
  };
}

/** Why administrative calls are not taken now; null = they are. */
function shuttingDown(operations: OperationsPort): ServiceError | null {
  if (!operations.isStopping()) return null;
  return callError(status.UNAVAILABLE, "the node is shutting down");
}

function membership(operations: OperationsPort): Encodable<proto.GrpcGetMembershipResponse> {
  const answer = operations.membership();
  return {
    MembershipVersion: answer.membershipVersion,
    Members: answer.members.map((member) => ({
      Endpoint: member.endpoint,
      NodeId: member.nodeId,
      Role: ROLES[member.role],
      JoinedVersion: member.joinedVersion,
    })),
    LocalRole: ROLES[answer.localRole],
    Initialized: answer.initialized,
  };
}

function placement(operations: OperationsPort): Encodable<proto.GrpcGetPlacementResponse> {
  const answer = operations.placement();
  return {
    ReplicationFactor: answer.replicationFactor,
    RebalancerEnabled: answer.rebalancerEnabled,
    Initialized: answer.initialized,
    LocalEndpoint: answer.localEndpoint,
    HostedPartitionCount: answer.hostedPartitionCount,
    Partitions: answer.partitions.map((partition) => ({
      PartitionId: partition.partitionId,
      State: partition.state,
      Generation: partition.generation,
      EffectiveReplicationFactor: partition.effectiveReplicationFactor,
      HostedLocally: partition.hostedLocally,
      Replicas: partition.replicas.map((replica) => ({
        Endpoint: replica.endpoint,
        Role: REPLICA_ROLES[replica.role],
      })),
    })),
  };
}

function routing(
  operations: OperationsPort,
  keySpace: string,
): Encodable<proto.GrpcGetRoutingMetadataResponse> {
  const answer = operations.routing(keySpace);
  return {
    Initialized: answer.initialized,
    SchemaVersion: answer.schemaVersion,
    HashAlgorithm: answer.hashAlgorithm,
    PrefixSeparator: answer.prefixSeparator,
    HashPoolSize: answer.hashPoolSize,
    HashPartitionOffset: answer.hashPartitionOffset,
    SequenceStorageKeyFormat: answer.sequenceStorageKeyFormat,
    ReservedKeyPrefix: answer.reservedKeyPrefix,
    LocalEndpoint: answer.localEndpoint,
    SnapshotVersion: answer.snapshotVersion,
    Coherent: answer.coherent,
    KeySpaces: answer.keySpaces.map((space) => ({
      KeySpace: space.keySpace,
      RoutingMode: space.routingMode,
      Ranges: space.ranges.map(rangeOf),
    })),
    Leaders: answer.leaders.map((leader) => ({
      PartitionId: leader.partitionId,
      Endpoint: leader.endpoint,
    })),
    GroupSeparator: answer.groupSeparator,
  };
}

function readMethods(operations: OperationsPort): AdminMethod[] {
  return [
    adminMethod({
      path: "/Cluster/GetMembership",
      role: "reader",
      request: proto.GrpcGetMembershipRequest,
      response: proto.GrpcGetMembershipResponse,
      run: (_message, _context, done) => done(membership(operations)),
    }),
    adminMethod({
      path: "/Cluster/GetPlacement",
      role: "reader",
      request: proto.GrpcGetPlacementRequest,
      response: proto.GrpcGetPlacementResponse,
      run: (_message, _context, done) => done(placement(operations)),
    }),
    adminMethod({
      path: "/Cluster/GetRanges",
      role: "reader",
      request: proto.GrpcGetRangesRequest,
      response: proto.GrpcGetRangesResponse,
      run: (message, _context, done) => {
        const answer = operations.ranges(message.KeySpace);
        done({
          Initialized: answer.initialized,
          LocalEndpoint: answer.localEndpoint,
          KeySpaces: answer.keySpaces.map((space) => ({
            KeySpace: space.keySpace,
            RoutingMode: space.routingMode,
            Descriptors: space.ranges.map(rangeOf),
          })),
        });
      },
    }),
    adminMethod({
      path: "/Cluster/GetRoutingMetadata",
      role: "reader",
      request: proto.GrpcGetRoutingMetadataRequest,
      response: proto.GrpcGetRoutingMetadataResponse,
      run: (message, _context, done) => done(routing(operations, message.KeySpace)),
    }),
  ];
}

function placementMethods(operations: OperationsPort): AdminMethod[] {
  return [
    adminMethod({
      path: "/Cluster/Leave",
      role: "admin",
      request: proto.GrpcClusterLeaveRequest,
      response: proto.GrpcClusterLeaveResponse,
      run: ({ NodeId: nodeId }, context, done, fail) => {
        if (nodeId < 0) return fail(callError(status.INVALID_ARGUMENT, "NodeId is not negative"));
        operations.leave({ nodeId }, context, (answer) =>
          done({
            Left: answer.left,
            Outcome: LEAVE_OUTCOMES.indexOf(answer.outcome),
            MembershipVersion: answer.membershipVersion,
            Retryable: answer.retryable,
            Reason: answer.reason,
            Drained: answer.drained,
          }),
        );
      },
    }),
    adminMethod({
      path: "/Cluster/SetReplicationFactor",
      role: "admin",
      request: proto.GrpcSetReplicationFactorRequest,
      response: proto.GrpcSetReplicationFactorResponse,
      run: (message, context, done) =>
        operations.setReplicationFactor(
          { partitionId: message.PartitionId, replicationFactor: message.ReplicationFactor },
          context,
          (answer) =>
            done({
              Success: answer.success,
              Status: answer.status,
              Generation: answer.generation,
              Reason: answer.reason,
            }),
        ),
    }),
  ];
}

function rangeMethods(operations: OperationsPort): AdminMethod[] {
  return [
    adminMethod({
      path: "/Cluster/SplitRange",
      role: "admin",
      request: proto.GrpcSplitRangeRequest,
      response: proto.GrpcSplitRangeResponse,
      run: (message, context, done) =>
        operations.splitRange(
          { keySpace: message.KeySpace, splitKey: message.SplitKey },
          context,
          (answer) =>
            done({
              Success: answer.success,
              Status: answer.status,
              Determinate: answer.determinate,
              NewPartitionId: answer.newPartitionId,
              NewGeneration: answer.newGeneration,
              LeaderHint: answer.leaderHint,
              Reason: answer.reason,
            }),
        ),
    }),
    adminMethod({
      path: "/Cluster/MergeRanges",
      role: "admin",
      request: proto.GrpcMergeRangesRequest,
      response: proto.GrpcMergeRangesResponse,
      run: (_message, context, done) =>
        operations.mergeRanges(context, (answer) =>
          done({
            Success: answer.success,
            Status: answer.status,
            Determinate: answer.determinate,
            Merges: answer.merges,
            LeaderHint: answer.leaderHint,
            Reason: answer.reason,
          }),
        ),
    }),
  ];
}

function keySpaceMethods(operations: OperationsPort): AdminMethod[] {
  return [
    adminMethod({
      path: "/KeyValuer/RegisterKeyRange",
      role: "admin",
      request: keyvalues.GrpcRegisterKeyRangeRequest,
      response: keyvalues.GrpcRegisterKeyRangeResponse,
      run: (message, context, done) =>
        operations.registerRange(message.KeySpace, context, (answer) =>
          done({
            Success: answer.success,
            Status: answer.status,
            Seeded: answer.seeded,
            RoutingMode: answer.routingMode,
            DescriptorCount: answer.descriptorCount,
            Reason: answer.reason,
          }),
        ),
    }),
    adminMethod({
      path: "/KeyValuer/RemoveKeyRange",
      role: "admin",
      request: keyvalues.GrpcRemoveKeyRangeRequest,
      response: keyvalues.GrpcRemoveKeyRangeResponse,
      run: (message, context, done) =>
        operations.unregisterRange(message.KeySpace, context, (answer) =>
          done({
            Success: answer.success,
            Status: answer.status,
            RoutingMode: answer.routingMode,
            DescriptorCount: answer.descriptorCount,
            Reason: answer.reason,
          }),
        ),
    }),
  ];
}

/** All administrative calls but backups. */
export function clusterMethods(operations: OperationsPort): AdminMethod[] {
  const methods = [
    ...readMethods(operations),
    ...placementMethods(operations),
    ...rangeMethods(operations),
    ...keySpaceMethods(operations),
  ];
  return methods.map((method) => ({
    ...method,
    handle: (bytes, context, respond): void => {
      const refusal = shuttingDown(operations);
      if (refusal !== null) respond(refusal, null);
      else method.handle(bytes, context, respond);
    },
  }));
}
