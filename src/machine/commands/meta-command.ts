/**
 * The commands, records and outcomes of the meta partition: member list, partition map, range
 * descriptors.
 *
 * Types only; part of the vocabulary in command.ts, which gives them out again. Invariants: 1.
 * Versions and generations only grow. 2. A repeat of a command is "unchanged".
 */

export type MemberRole = "learner" | "voter" | "leaving";
export interface Member {
  readonly nodeId: number;
  /** Advertised peer endpoint, host:port; "" = a node that is alone and accepts no peers. */
  readonly endpoint: string;
  readonly role: MemberRole;
  readonly joinedVersion: number;
  /** Made with the member's data directory (P-090); "" until the member has told it. */
  readonly storageId: string;
}
/** A node that was removed: what it must not come back with. */
export interface FormerMember {
  readonly nodeId: number;
  /** The membership version of its removal. */
  readonly removedVersion: number;
  /** Data directories of its former lives, the latest last. */
  readonly storageIds: readonly string[];
}
/** Founds the cluster; a no-op when it is founded already. */
export interface FoundClusterCommand {
  readonly kind: "found-cluster";
  readonly clusterId: string;
  readonly dataPartitions: number;
  readonly replicationFactor: number;
  /** `storageId`: "" where it is not known yet. */
  readonly members: readonly {
    readonly nodeId: number;
    readonly endpoint: string;
    readonly storageId: string;
  }[];
}
/**
 * The stored member list's view of one member's address, rewritten when the node restarts under
 * another endpoint, and of its data directory, written once.
 */
export interface UpdateMemberCommand {
  readonly kind: "update-member";
  readonly nodeId: number;
  readonly endpoint: string;
  /** "" leaves what is known. */
  readonly storageId: string;
}
/** Takes a node in as a learner. One that was removed must come with another data directory. */
export interface AddMemberCommand {
  readonly kind: "add-member";
  readonly nodeId: number;
  readonly endpoint: string;
  readonly storageId: string;
}
/** Moves a member on: a learner to voter, anybody to leaving, and back from leaving. */
export interface SetMemberRoleCommand {
  readonly kind: "set-member-role";
  readonly nodeId: number;
  readonly role: MemberRole;
}
export interface RemoveMemberCommand {
  readonly kind: "remove-member";
  readonly nodeId: number;
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
  /** The nodes that host it, ascending; empty: every voter does (full replication). */
  readonly replicas: readonly number[];
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
  readonly status: MetaStatus;
  /** Version or generation after the command; 0 where there is none. */
  readonly generation: number;
}
export type MetaStatus =
  | "done"
  | "unchanged"
  | "unknown-partition"
  | "not-founded"
  | "invalid"
  /** A range lies outside the partition that the key space hashes to: its data would be lost. */
  | "range-elsewhere"
  | "not-a-member"
  /** A member of that id exists with another data directory (P-090). */
  | "storage-lost"
  /** This data directory belonged to a member that was removed. */
  | "was-removed"
  | "too-many-members"
  | "too-many-voters"
  /** No other voter would remain. */
  | "last-voter"
  /** Another member is leaving (P-096). */
  | "drain-in-progress";

export type MetaCommand =
  | FoundClusterCommand
  | UpdateMemberCommand
  | AddMemberCommand
  | SetMemberRoleCommand
  | RemoveMemberCommand
  | SetReplicationFactorCommand
  | RegisterRangeCommand
  | UnregisterRangeCommand;
