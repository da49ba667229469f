/**
 * Answers of the administrative operations: health, membership, placement, routing, ranges,
 * backups. Types only.
 *
 * Invariants: 1. The lists of outcomes are in wire order: an index is the number.
 */
import type { MemberRole, RangeDescriptor } from "../../machine/commands/command.js";

export type LocalRole = MemberRole | "not-member";

export interface HealthAnswer {
  readonly ready: boolean;
  readonly initialized: boolean;
  readonly reason: string | null;
  readonly localRole: LocalRole;
  readonly hostedPartitions: number;
  readonly partitionsWithoutLeader: number;
  readonly version: string;
  readonly uptimeMs: number;
}
export interface HealthCheck {
  readonly name: "initialized" | "membership" | "leaders" | "applied" | "storage" | "shutdown";
  readonly failure: string | null;
  /** What an operator wants to know although the check is passed. */
  readonly detail?: string;
}
export interface MembershipAnswer {
  readonly membershipVersion: number;
  readonly members: readonly {
    readonly endpoint: string;
    readonly nodeId: number;
    readonly role: MemberRole;
    readonly joinedVersion: number;
  }[];
  readonly localRole: LocalRole;
  readonly initialized: boolean;
}
/** Index = number on gRPC. */
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
export interface LeaveAnswer {
  readonly left: boolean;
  readonly drained: boolean;
  readonly outcome: (typeof LEAVE_OUTCOMES)[number];
  readonly membershipVersion: number;
  readonly retryable: boolean;
  readonly reason: string;
}
export interface PlacementAnswer {
  readonly replicationFactor: number;
  readonly rebalancerEnabled: boolean;
  readonly initialized: boolean;
  readonly localEndpoint: string;
  readonly hostedPartitionCount: number;
  readonly partitions: readonly {
    readonly partitionId: number;
    readonly state: "Active" | "Splitting" | "Draining" | "Removed";
    readonly generation: number;
    readonly effectiveReplicationFactor: number;
    readonly hostedLocally: boolean;
    readonly replicas: readonly {
      readonly endpoint: string;
      readonly role: "Voter" | "Learner" | "Removing";
    }[];
  }[];
}
export interface ReplicationFactorAnswer {
  readonly success: boolean;
  readonly status: "Success" | "InvalidInput" | "Refused";
  readonly generation: number;
  readonly reason: string;
}
export interface RoutingAnswer {
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
  readonly snapshotVersion: number;
  readonly coherent: boolean;
  readonly keySpaces: readonly KeySpaceView[];
  readonly leaders: readonly { readonly partitionId: number; readonly endpoint: string }[];
}
export interface KeySpaceView {
  readonly keySpace: string;
  readonly routingMode: "Hash" | "KeyRange";
  readonly ranges: readonly RangeDescriptor[];
}
export interface RangesAnswer {
  readonly initialized: boolean;
  readonly localEndpoint: string;
  readonly keySpaces: readonly KeySpaceView[];
}
export interface RegisterRangeAnswer {
  readonly success: boolean;
  readonly status: string;
  readonly seeded: boolean;
  readonly routingMode: "Hash" | "KeyRange";
  readonly descriptorCount: number;
  readonly reason: string;
}
export interface SplitRangeAnswer {
  readonly success: boolean;
  readonly status: string;
  readonly determinate: boolean;
  readonly newPartitionId: number;
  readonly newGeneration: number;
  readonly leaderHint: string;
  readonly reason: string;
}
export interface MergeRangesAnswer {
  readonly success: boolean;
  readonly status: string;
  readonly determinate: boolean;
  readonly merges: number;
  readonly leaderHint: string;
  readonly reason: string;
}
/** Index = number on REST restore answers. */
export const BACKUP_OUTCOMES = [
  "Ok",
  "NotConfigured",
  "ParentMissing",
  "NeedsFull",
  "CorruptChain",
  "CorruptArtifact",
  "TargetConflict",
  "TargetOutsideCoverage",
  "Cancelled",
  "IoError",
  "RetryableLeadershipLoss",
  "ExactCheckpointUnavailable",
  "UnsupportedFormat",
  "TopologyChanged",
  "NotBackupCoordinator",
  "InsecureRoot",
  "RestrictedCoverage",
] as const;
export type BackupOutcome = (typeof BACKUP_OUTCOMES)[number];
export interface BackupRefusal {
  readonly outcome: BackupOutcome | null;
  /** null outcome only: a malformed id or an empty target directory. */
  readonly message: string;
}

export type BackupRequest =
  | { readonly kind: "full" | "coordinated" | "list" }
  | { readonly kind: "incremental"; readonly parentBackupId: string }
  | { readonly kind: "chain" | "validate-chain"; readonly leafBackupId: string }
  | { readonly kind: "gc"; readonly dryRun: boolean }
  | {
      readonly kind: "restore";
      readonly leafBackupId: string;
      readonly targetDir: string;
      readonly targetTimeMs: bigint;
    };
