/**
 * What cluster calls answer. Member names and texts are those of the REST interface.
 *
 * Invariants: 1. 64-bit numbers are bigint.
 */

/** Readiness of the node that answered. */
export interface Health {
  readonly ready: boolean;
  /** The full body of the health path; null over gRPC, whose health service has none. */
  readonly details: HealthDetails | null;
}

export interface HealthDetails {
  readonly ready: boolean;
  readonly initialized: boolean;
  readonly reason: string | null;
  readonly localRole: string;
  readonly hostedPartitions: number;
  readonly partitionsWithoutLeader: number;
  readonly version: string;
  readonly uptimeMs: bigint;
}

export interface ClusterMember {
  /** Advertised peer endpoint. */
  readonly endpoint: string;
  readonly nodeId: number;
  /** `Learner`, `Voter`, `Leaving` or `NotMember`. */
  readonly role: string;
  readonly joinedVersion: bigint;
}

export interface Membership {
  readonly membershipVersion: bigint;
  readonly members: readonly ClusterMember[];
  readonly localRole: string;
  readonly initialized: boolean;
}

export interface LeaveResult {
  readonly left: boolean;
  readonly drained: boolean;
  /** `Committed`, `NotAMember`, `RefusedInsufficientVoters`, … */
  readonly outcome: string;
  readonly membershipVersion: bigint;
  readonly retryable: boolean;
  readonly reason: string;
}

export interface PartitionReplica {
  readonly endpoint: string;
  /** `Voter`, `Learner` or `Removing`. */
  readonly role: string;
}

export interface PartitionPlacement {
  readonly partitionId: number;
  /** `Active`, `Splitting`, `Draining` or `Removed`. */
  readonly state: string;
  readonly generation: bigint;
  readonly effectiveReplicationFactor: number;
  readonly hostedLocally: boolean;
  /** Empty with full replication. */
  readonly replicas: readonly PartitionReplica[];
}

export interface Placement {
  readonly replicationFactor: number;
  readonly rebalancerEnabled: boolean;
  readonly initialized: boolean;
  readonly localEndpoint: string;
  readonly hostedPartitionCount: number;
  readonly partitions: readonly PartitionPlacement[];
}

export interface ReplicationFactorResult {
  readonly success: boolean;
  /** `Success`, `InvalidInput` or `Refused`. */
  readonly status: string;
  readonly generation: bigint;
  readonly reason: string;
}

export interface RoutingRange {
  /** null = open. */
  readonly startKey: string | null;
  readonly endKey: string | null;
  readonly partitionId: number;
  readonly generation: bigint;
}

export interface RoutingKeySpace {
  readonly keySpace: string;
  readonly routingMode: string;
  readonly ranges: readonly RoutingRange[];
}

export interface RoutingMetadata {
  readonly initialized: boolean;
  readonly schemaVersion: number;
  readonly hashAlgorithm: string;
  readonly prefixSeparator: string;
  readonly groupSeparator: string;
  readonly hashPoolSize: number;
  readonly hashPartitionOffset: number;
  readonly sequenceStorageKeyFormat: string;
  readonly reservedKeyPrefix: string;
  readonly localEndpoint: string;
  readonly snapshotVersion: bigint;
  readonly coherent: boolean;
  readonly keySpaces: readonly RoutingKeySpace[];
  readonly leaders: readonly { readonly partitionId: number; readonly endpoint: string }[];
}
