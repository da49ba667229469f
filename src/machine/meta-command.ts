/**
 * The commands, records and outcomes of the meta partition: roster, partition map, range
 * descriptors.
 *
 * Types only; part of the vocabulary in command.ts, which gives them out again. Invariants: 1.
 * Versions and generations only grow. 2. A repeat of a command is "unchanged".
 */

export type MemberRole = "learner" | "voter" | "leaving";
export interface Member {
  readonly nodeId: number;
  /** Advertised peer endpoint, host:port. */
  readonly endpoint: string;
  readonly role: MemberRole;
  readonly joinedVersion: number;
}
/** Founds the cluster; a no-op when it is founded already. */
export interface FoundClusterCommand {
  readonly kind: "found-cluster";
  readonly clusterId: string;
  readonly dataPartitions: number;
  readonly replicationFactor: number;
  readonly members: readonly { readonly nodeId: number; readonly endpoint: string }[];
}
/**
 * The stored roster's view of one member's address, rewritten when the node restarts under another
 * endpoint.
 */
export interface UpdateMemberCommand {
  readonly kind: "update-member";
  readonly nodeId: number;
  readonly endpoint: string;
}
export interface SetReplicationFactorCommand {
  readonly kind: "set-replication-factor";
  readonly partitionId: number;
  /** 0 clears the override. */
  readonly replicationFactor: number;
}
export interface RegisterRangeCommand {
  readonly kind: "register-range";
  readonly keySpace: string;
  readonly partitionId: number;
}
export interface UnregisterRangeCommand {
  readonly kind: "unregister-range";
  readonly keySpace: string;
}

export interface RangeDescriptor {
  readonly startKey: string | null;
  readonly endKey: string | null;
  readonly partitionId: number;
  readonly generation: number;
}
export interface PartitionRecord {
  readonly partitionId: number;
  readonly state: "Active" | "Splitting" | "Draining" | "Removed";
  readonly generation: number;
  readonly replicationOverride: number;
}
export interface ClusterRecord {
  readonly clusterId: string;
  readonly dataPartitions: number;
  readonly replicationFactor: number;
  readonly membershipVersion: number;
  /** Grows with every change of the partition map or a range. */
  readonly mapVersion: number;
}
export interface MetaOutcome {
  readonly kind: "meta";
  readonly status: "done" | "unchanged" | "unknown-partition" | "not-founded" | "invalid";
  readonly generation: number;
}

export type MetaCommand =
  | FoundClusterCommand
  | UpdateMemberCommand
  | SetReplicationFactorCommand
  | RegisterRangeCommand
  | UnregisterRangeCommand;
