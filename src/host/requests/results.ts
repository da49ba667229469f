/**
 * How a proposal and a read end, and what a group and the node say about themselves. Types only.
 *
 * Invariants: 1. "refused" and "aborted" are certain: the command never entered a log. 2. "unknown"
 * says nothing about the effect. 3. Every accepted call ends in exactly one of these.
 */
import type { PartitionId } from "../../base/ids.js";
import type { Program } from "../../base/levels.js";
import type { Command, Outcome } from "../../machine/commands/command.js";
import type { StrayReason } from "../replication/peer-lives.js";
import type { PlannedBytes } from "../snapshots/snapshot-pace.js";
import type { SnapshotBytes } from "../snapshots/snapshot-tally.js";
import type { TransferFacts } from "../snapshots/snapshots.js";
import type { BackupFacts } from "./backup-facts.js";
import type { RangeFacts } from "./range-tally.js";
import type { TransferCount } from "./transfer-tally.js";

export type RefusalReason =
  | "not-leader"
  | "overloaded"
  | "shutting-down"
  | "not-initialized"
  /** The group is not at the level since which the command is permitted. */
  | "not-available-at-level";

export interface Applied {
  readonly status: "applied";
  readonly outcome: Outcome;
  /** The lease time of the entry that the command was part of (ms). */
  readonly leaseMs: number;
  readonly term: number;
  readonly index: number;
}

export type ProposalResult =
  | Applied
  /** No effect, certain. */
  | { readonly status: "refused"; readonly reason: RefusalReason }
  /**
   * The deadline passed, or the node stopped, while it was still queued: never proposed, no effect.
   */
  | { readonly status: "aborted" }
  /** Proposed; the outcome is not known. */
  | { readonly status: "unknown" };

export type ReadResult =
  /** `leaseMs`: the committed lease time that the state stands at. */
  | { readonly status: "confirmed"; readonly leaseMs: number }
  /** Leadership is lost or was not proved in time, or too many reads wait. */
  | { readonly status: "retry" }
  | { readonly status: "aborted" };

/** How many proposals ended how, since the start. */
export type ProposalEnds = Readonly<Record<ProposalResult["status"], number>>;

/**
 * When a command went through what commands go through, for whoever wants to know (monotonic ms); 0
 * = it has not.
 */
export interface ProposalMarks {
  queuedMs: number;
  /** It was cut into an entry, which went to the log. */
  proposedMs: number;
  /** The entry was found committed. */
  committedMs: number;
  appliedMs: number;
}

export type ProposalDone = (result: ProposalResult) => void;
/** A command that is proposed in the same entry as another one, right behind it. */
export interface JoinedCommand {
  readonly command: Command;
  readonly sizeBytes: number;
  readonly deadlineMs: number;
  readonly done: ProposalDone;
}
export type ReadDone = (result: ReadResult) => void;

/**
 * Proposes the last commands of a group that is stopping: open to stop hooks after intake has
 * ended.
 */
export type FinalPropose = (command: Command, sizeBytes: number, done: ProposalDone) => void;
/** Called once per leading group when the node stops gracefully, after intake ended. */
export type StopHook = (propose: FinalPropose) => void;
/** The leadership is about to go to `to` as planned; it waits a little until `done` is called. */
export type MoveHook = (to: number, done: () => void) => void;
/**
 * Called whenever leadership or the state it rested on ends; drops everything derived from either.
 */
export type ResetHook = (reason: string) => void;

/** How far a leader knows another member of its group to be. */
export interface PeerGroupFacts {
  readonly node: number;
  readonly state: "probe" | "replicate" | "snapshot";
  readonly learner: boolean;
  /** Entries of the leader's log that are not known to be there. */
  readonly lagEntries: number;
  /** Appends on their way. */
  readonly inFlight: number;
}

/** What this node knows of levels (contract 5.5). */
export interface LevelFacts {
  /** Of the cluster; 0 = not known. */
  readonly level: number;
  /** The highest that every member supports; 0 = not known. */
  readonly levelMax: number;
  /** How long a higher level has been possible, as far as this life of the process saw (ms). */
  readonly pendingMs: number;
}

/** Another node, as this one sees it. */
export interface PeerNodeFacts {
  readonly node: number;
  readonly linked: boolean;
  readonly endpoint: string;
  readonly clientEndpoint: string;
  /** What it supports, as it said in the last handshake. */
  readonly program: Program;
  /** Protocol that is spoken with it. */
  readonly protocol: number;
}

/** Of one group, what makes a node ready or not. */
export interface GroupHealth {
  readonly leading: boolean;
  /** Leading and the own-term entry is applied. */
  readonly serving: boolean;
  readonly leaderNode: number;
  /** Has once, in this life, applied all that a leader had committed. */
  readonly caughtUp: boolean;
}

/** Numbers for metrics; a snapshot. */
export interface GroupFacts extends GroupHealth {
  readonly partition: PartitionId;
  /** Serving with the ephemeral data of the leader before. */
  readonly inherits: boolean;
  readonly term: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly lastIndex: number;
  readonly flushedIndex: number;
  readonly queuedCommands: number;
  readonly queuedBytes: number;
  /** Commands proposed and not yet answered. */
  readonly pendingProposals: number;
  readonly inFlightEntries: number;
  readonly waitingReads: number;
  /** No ticks and no heartbeats until something happens. */
  readonly quiesced: boolean;
  /** A change of the configuration is under way, and both majorities count. */
  readonly joint: boolean;
  /** No lease of a lock or key is known to end after this lease time (ms). */
  readonly leasesUntilMs: number;
  /** Empty unless this node leads the group. */
  readonly peers: readonly PeerGroupFacts[];
}

export interface HealthFacts {
  readonly ready: boolean;
  readonly initialized: boolean;
  /** null when ready; `fatal-fault: text` or the first reason that applies. */
  readonly reason: string | null;
  readonly localRole: "Voter" | "Learner" | "Leaving" | "None";
  readonly hostedPartitions: number;
  readonly partitionsWithoutLeader: number;
}

/** One line of `/readyz?verbose`. */
export interface ReadyCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** What the allocator did here, while this node led the meta partition. */
export interface PlacementFacts {
  /** Passes since the start, by how each ended. */
  readonly passes: Readonly<Record<"ordered" | "waiting" | "settled", number>>;
  /** Orders since the start by what they were for, and what became of them. */
  readonly moves: readonly {
    readonly class: string;
    readonly result: "accepted" | "refused";
    readonly count: number;
  }[];
  /** Partitions with a replica on its way in the last pass, by what for; zeros elsewhere. */
  readonly inFlight: ReadonlyMap<string, number>;
  /** For so long the longest of them is on its way, as far as this leadership saw (ms). */
  readonly oldestTransitionMs: number;
  /**
   * Partitions that waited in the last pass, by reason, and balance as one more; empty where meta
   * is not led.
   */
  readonly waiting: ReadonlyMap<string, number>;
  /** Many timed passes in a row had work and moved nothing. */
  readonly isIdle: boolean;
}

/** What the log keeps for backups. */
export interface BackupLogFacts {
  /** Of running backups, one for each log of a group. */
  readonly holds: number;
  readonly holdBytes: number;
  /** For incremental backups to come. */
  readonly windowBytes: number;
  /** Times that a group lost its window because all of them kept too much. */
  readonly windowsLost: number;
}

export interface NodeFacts {
  readonly queuedBytes: number;
  readonly unflushedBytes: number;
  readonly logBytes: number;
  readonly logFull: boolean;
  readonly storeBytes: number;
  readonly storeFull: boolean;
  /** Groups whose apply waits for a flush to make room. */
  readonly heldGroups: number;
  /** Times that the log was let go although another node wanted it. */
  readonly logCuts: number;
  /** What taking backups came to. */
  readonly backups: BackupFacts;
  /** What the log keeps for backups. */
  readonly backupLog: BackupLogFacts;
  /** Entries handed to the log and not durable, and appends refused because of too many. */
  readonly unwrittenBytes: number;
  readonly refusedAppends: number;
  /** Proposals that ended, by how. */
  readonly proposalEnds: ProposalEnds;
  readonly turns: number;
  readonly lateTicks: number;
  readonly flushes: number;
  /** Snapshots of groups that were installed here, and that other nodes installed from here. */
  readonly snapshotsInstalled: number;
  readonly snapshotsDelivered: number;
  /** Sent from here and not installed: given up for a fault, or because nobody wants them now. */
  readonly snapshotsFailed: number;
  readonly snapshotsAborted: number;
  /** The same of snapshots that were sent here. */
  readonly arrivalsFailed: number;
  readonly arrivalsAborted: number;
  /** Frames to other nodes that were dropped for want of room or a link. */
  readonly droppedFrames: number;
  /** Messages to other nodes that were dropped because no frame may be so large. */
  readonly oversizedMessages: number;
  readonly sentFrames: number;
  readonly sentFrameBytes: number;
  /** Frames and items that could not be read, and messages for groups that are not here. */
  readonly badItems: number;
  /** Messages for no replica of here, by reason. */
  readonly strays: Readonly<Record<StrayReason, number>>;
  /** Replicas that were dropped to the end in this life of the node. */
  readonly replicaDrops: number;
  readonly placement: PlacementFacts;
  /** Planned moves of leaderships that began here, by what for and how they ended. */
  readonly leaderTransfers: readonly TransferCount[];
  /** Bytes of snapshots that travelled, by direction and receiver. */
  readonly snapshotBytes: readonly SnapshotBytes[];
  /** Moves of key ranges. */
  readonly ranges: RangeFacts;
  /** What snapshots for drain and balance may take now. */
  readonly plannedRates: readonly PlannedBytes[];
  /** Leaderships offered to others because the disk hung. */
  readonly diskStallTransfers: number;
  readonly peers: readonly PeerNodeFacts[];
  readonly levels: LevelFacts;
  readonly transfers: readonly TransferFacts[];
}
