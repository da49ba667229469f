/**
 * What the replicas of all groups of a node share: settings, ports, budgets, and ways to ask for a
 * turn.
 *
 * Types only.
 */
import type { PartitionId } from "../../base/ids.js";
import type { EphemeralTable } from "../../machine/ephemeral.js";
import type { HardState } from "../../ports.js";
import type { SnapshotMeta } from "../../raft/state/types.js";
import type { Completions } from "../requests/completions.js";
import type { AppendBudget } from "../replication/append-budget.js";
import type { Budget } from "../requests/batcher.js";
import type { LogOutbox } from "./effects.js";
import type { CacheBudget } from "../replication/entry-cache.js";
import type { PeerOutbox } from "../replication/peer-outbox.js";
import type { HostPorts, HostSettings } from "../settings.js";
import type { LogHold } from "../storage/backup-floors.js";
import type { LevelMark } from "../storage/level-mark.js";
import type { TransferTally } from "../requests/transfer-tally.js";

/** What the groups of a node share; `Replica` is one of them here. */
export interface GroupDeps<Replica> {
  readonly settings: HostSettings;
  readonly ports: HostPorts;
  readonly completions: Completions;
  readonly budget: Budget;
  readonly outbox: LogOutbox;
  /** Bytes that are with the log and not durable. */
  readonly appendBudget: AppendBudget;
  readonly peers: PeerOutbox;
  readonly cacheBudget: CacheBudget;
  readonly snapshots: GroupSnapshots<Replica>;
  readonly levelMark: LevelMark;
  readonly transferTally: TransferTally;
  /** New commands may queue: log and store have room. */
  admits(): boolean;
  /** Batches may be cut: also, not too much is unflushed. */
  intakeOpen(): boolean;
  /** Memory has room for rows of another entry of a group that this node leads, or follows. */
  mayApply(leads: boolean): boolean;
  /** New callers are turned away: the node stops. */
  isStopping(): boolean;
  /** A turn is wanted at `atMs` at the latest. */
  wakeAt(atMs: number): void;
  /** Ephemeral tables that came for leaderships of this node. */
  readonly heirs: {
    take(group: PartitionId, term: number, token: number): EphemeralTable | null;
  };
  /** The monotonic clock of another node, as far as it was told (ms); 0 = not. */
  clockOf(node: number): number;
  /** What the wall clocks of all nodes show, given this node's; see `NodeReports`. */
  commonWallMs(this: void, ownWallMs: number, nowMs: number): number | null;
  /** Keeps what the log of `replica` has above `fromIndex`; null: some of that is gone. */
  holdLog(replica: Replica, fromIndex: number): LogHold | null;
  /** `replica` has something to do in a turn. */
  wake(replica: Replica): void;
}

/** How snapshots of a group travel and are put in place. */
export interface GroupSnapshots<Replica> {
  /** The core of `replica` wants node `to` to get a snapshot. */
  send(replica: Replica, to: number): void;
  /** Puts the snapshot that belongs to `meta` in place of log and state; `done` when durable. */
  install(replica: Replica, meta: SnapshotMeta, hardState: HardState, done: () => void): void;
  /**
   * Entries above this index are wanted by a node that gets a snapshot; Infinity when none does.
   */
  keepFrom(partition: PartitionId): number;
}
