/**
 * The commands, records and outcomes of the meta partition: member list, partition map, range
 * descriptors.
 *
 * Types only; part of the vocabulary in command.ts, which gives them out again. Invariants: 1.
 * Versions and generations only grow. 2. A repeat of a command is "unchanged".
 */
import type {
  ConfigIndex,
  Incarnation,
  Level,
  MapVersion,
  MembershipVersion,
  PlacementGeneration,
  RangeGeneration,
  TopologyVersion,
} from "../../base/ids.js";
import type { PlacementCommand } from "./placement-commands.js";
import type { RangeMoveCommand } from "./range-meta-commands.js";

/** What the program of a node supports. */
export interface ProgramLevels {
  readonly levelMin: Level;
  readonly levelMax: Level;
  /** Of the program, for people; at most PROGRAM_VERSION_MAX_BYTES; "" = not known. */
  readonly version: string;
}

export type MemberRole = "learner" | "voter" | "leaving";
export interface Member extends ProgramLevels {
  readonly nodeId: number;
  /** Advertised peer endpoint, host:port; "" = a node that is alone and accepts no peers. */
  readonly endpoint: string;
  readonly role: MemberRole;
  readonly joinedVersion: MembershipVersion;
  /** Made with the member's data directory (P-090); "" until the member has told it. */
  readonly storageId: string;
  /** It is removed by force, while its process was silent. */
  readonly evicted: boolean;
}
/** A node that was removed: what it must not come back with. */
export interface FormerMember {
  readonly nodeId: number;
  /** The membership version of its removal. */
  readonly removedVersion: MembershipVersion;
  /** Data directories of its former lives, the latest last. */
  readonly storageIds: readonly string[];
}
/** What a node says of itself when it founds or joins. */
export interface NewMember extends ProgramLevels {
  readonly nodeId: number;
  readonly endpoint: string;
  readonly storageId: string;
}
/** Founds the cluster; a no-op when it is founded already. */
export interface FoundClusterCommand {
  readonly kind: "found-cluster";
  readonly clusterId: string;
  readonly dataPartitions: number;
  readonly replicationFactor: number;
  /** Which every founder supports. */
  readonly level: Level;
  /** `storageId`: "" where it is not known yet. */
  readonly members: readonly NewMember[];
}
/**
 * The stored member list's view of one member's address and program, rewritten when the node
 * restarts under another endpoint or program, and of its data directory, written once.
 */
export interface UpdateMemberCommand extends ProgramLevels {
  readonly kind: "update-member";
  readonly nodeId: number;
  readonly endpoint: string;
  /** "" leaves what is known. */
  readonly storageId: string;
}
/** Takes a node in as a learner. One that was removed must come with another data directory. */
export interface AddMemberCommand extends NewMember {
  readonly kind: "add-member";
}
/** Moves a member on: a learner to voter, anybody to leaving, and back from leaving. */
export interface SetMemberRoleCommand {
  readonly kind: "set-member-role";
  readonly nodeId: number;
  readonly role: MemberRole;
}
/**
 * Takes a member out by force: it is leaving from now on, and stays so. Only the leader of meta
 * proposes it, after it asked whether anybody hears the member.
 */
export interface EvictMemberCommand {
  readonly kind: "evict-member";
  readonly nodeId: number;
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
/** Routes a key space by ranges: one over all of it. Takes back that it leaves. */
export interface RegisterRangeCommand {
  readonly kind: "register-range";
  readonly keySpace: string;
  readonly partitionId: number;
}
/** Ends that, once every range is back at the hash partition; until then the key space leaves. */
export interface UnregisterRangeCommand {
  readonly kind: "unregister-range";
  readonly keySpace: string;
}

/** Permits the next level to the groups, if every member supports it. */
export interface RaiseLevelCommand {
  readonly kind: "raise-level";
  readonly to: Level;
  /** Of the member list that was looked at. */
  readonly membershipVersion: MembershipVersion;
}

/**
 * Asks the planners to move nothing without need: a backup is taken. Ends with `forMs` from now, by
 * the lease clock of meta.
 */
export interface HoldPlannerCommand {
  readonly kind: "hold-planner";
  /** Who asks, as it may renew and end it. */
  readonly holder: string;
  /** 0 ends the hold. */
  readonly forMs: number;
}

/**
 * Makes a cluster without members, as a restore leaves it, one of a single member; else a no-op.
 */
export interface RefoundClusterCommand {
  readonly kind: "refound-cluster";
  /** That the cluster has since the restore. */
  readonly clusterId: string;
  readonly member: NewMember;
}

export interface RangeDescriptor {
  readonly startKey: string | null;
  readonly endKey: string | null;
  readonly partitionId: number;
  readonly generation: RangeGeneration;
}
/**
 * "voter" votes in the group, or is about to; "learner" is on its way in, "removing" on its way
 * out.
 */
export type ReplicaRole = "voter" | "learner" | "removing";
export interface ReplicaRecord {
  readonly nodeId: number;
  readonly role: ReplicaRole;
  readonly incarnation: Incarnation;
  /** Generation at which it got its role: what a report says of it counts from there on. */
  readonly since: PlacementGeneration;
  /** The voter that goes when this learner votes; 0 = none. */
  readonly replaces: number;
}
export interface PartitionRecord {
  readonly partitionId: number;
  readonly state: "Active" | "Splitting" | "Draining" | "Removed";
  readonly generation: PlacementGeneration;
  readonly replicationOverride: number;
  /** "full": on every node, as the member list says; "placed": on `replicas`. For good once placed. */
  readonly mode: "full" | "placed";
  /** Voters that the group begins with, ascending; empty: those of the cluster. */
  readonly founders: readonly number[];
  /**
   * Of the member list by which a split made it; NOT_BORN: at the founding. A founder whose data
   * directory joined later is not the one that was meant (P-088).
   */
  readonly bornVersion: MembershipVersion;
  /** Who may have a replica, by node id; empty in full mode. */
  readonly replicas: readonly ReplicaRecord[];
  /** Of the configuration that was reported last. */
  readonly configIndex: ConfigIndex;
}
export interface ClusterRecord {
  readonly clusterId: string;
  readonly dataPartitions: number;
  readonly replicationFactor: number;
  readonly membershipVersion: MembershipVersion;
  /** Grows with every change of the partition map or a range. */
  readonly mapVersion: MapVersion;
  /** The next partition that is made gets this id; an id is never used twice. */
  readonly nextPartitionId: number;
  readonly topologyVersion: TopologyVersion;
  /** What groups may be raised to; each takes it with an entry of its own log. */
  readonly level: Level;
}
export interface MetaOutcome {
  readonly kind: "meta";
  readonly status: MetaStatus;
  /** Version or generation after the command; 0 where there is none. */
  readonly generation: number;
  /** Of a command about several partitions: what became of each, in its order; else empty. */
  readonly items: readonly ItemOutcome[];
}
export interface ItemOutcome {
  readonly status: MetaStatus;
  /** Of the partition's record after the command; 0 where there is none. */
  readonly generation: PlacementGeneration;
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
  | "drain-in-progress"
  /** It was decided on what is not so any more. */
  | "stale"
  /** A member's program does not support the level. */
  | "level-unsupported"
  /**
   * A replica of the partition is on its way in or out (P-092), a list names the member, or moves
   * of ranges that are under way leave no room for this one.
   */
  | "busy"
  /** The partition is in full mode: its replicas follow the member list. */
  | "not-placed"
  /** Done, and the configuration had a member that the record did not know: an alarm. */
  | "taken-in"
  /** The key space leaves, and does so by itself: ranges of it are still away. */
  | "pending"
  | "too-many-partitions"
  /** The move has begun anew as often as it may. */
  | "too-many-attempts";

export type MetaCommand =
  | FoundClusterCommand
  | UpdateMemberCommand
  | AddMemberCommand
  | SetMemberRoleCommand
  | EvictMemberCommand
  | RemoveMemberCommand
  | SetReplicationFactorCommand
  | RegisterRangeCommand
  | UnregisterRangeCommand
  | RaiseLevelCommand
  | HoldPlannerCommand
  | RefoundClusterCommand
  | PlacementCommand
  | RangeMoveCommand;
