/**
 * What snapshot transfers need of a group and of the node, as types.
 *
 * Invariants: 1. Everything here is called outside of the core: no method of a core runs inside
 * another one.
 */
import type { PartitionId } from "../../base/ids.js";
import type { Machine } from "../../machine/machine.js";
import type { HardState, LogPort, LoggerPort } from "../../ports.js";
import type { Membership, Role, SnapshotMeta } from "../../raft/state/types.js";
import type { PeerLives, StrayReason } from "../replication/peer-lives.js";
import type { RaftItem } from "../replication/raft-frames.js";
import type { SnapshotFrame } from "./snapshot-frames.js";
import type { SnapshotSettings } from "./snapshot-limits.js";
import type { SnapshotPurpose } from "./snapshot-pace.js";

/** One group, as a transfer sees it; a replica is one. */
export interface SnapshotGroup {
  readonly partition: PartitionId;
  readonly machine: Machine;
  readonly core: {
    readonly term: number;
    readonly role: Role;
    readonly commitIndex: number;
    reportSnapshot(id: number, ok: boolean): void;
  };
  readonly members: { readonly membership: Membership };
  /** Which lives of the replicas transfers are between. */
  readonly lives: Pick<PeerLives, "own" | "of" | "strayReason">;
  /** The log holds what is above. */
  readonly floorIndex: number;
  /** Queues a message for the core, to be stepped in the group's next turn. */
  receive(item: RaftItem): void;
  /** A snapshot took the place of the state, up to `index`: what is derived goes (P-042). */
  replaced(index: number): void;
}

/** What a sender needs of the node. */
export interface SnapshotLink {
  readonly settings: SnapshotSettings;
  readonly logger: LoggerPort;
  /** False: it was dropped. */
  send(to: number, frame: SnapshotFrame): boolean;
  /** A number that no session of this node had before, as far as can be told. */
  nextSession(): number;
  /** More chunks may be made for `to` now, by the rates. */
  maySend(group: SnapshotGroup, to: number): boolean;
  /** So many bytes left for `to`. */
  charge(group: SnapshotGroup, to: number, bytes: number): void;
}

/** What the transfers of a node need of it. */
export interface SnapshotDeps {
  readonly settings: SnapshotSettings;
  readonly logger: LoggerPort;
  readonly log: Pick<LogPort, "resetGroup">;
  readonly nodeId: number;
  /** Where session numbers begin: random. */
  readonly sessionSeed: number;
  nowMs(): number;
  /** Queues a frame on the lane "bulk"; false: it was dropped. */
  sendBulk(to: number, bytes: Uint8Array): boolean;
  find(partition: PartitionId): SnapshotGroup | null;
  /** What the replica of `to` comes for. */
  purposeOf(partition: PartitionId, to: number): SnapshotPurpose;
  /** Data of `level` may be written here; false: not yet. */
  mayHold(level: number): boolean;
  /** A transfer was announced between lives that are over, or not known. */
  stray(reason: StrayReason): void;
  /** There is room in memory for more rows that are not flushed, beside what is being written. */
  mayFill(): boolean;
  /** `done` is called, in no turn, when everything put into the memtable until now is durable. */
  flushSoon(done: () => void): void;
  /** The core of the group has something to say. */
  wake(partition: PartitionId): void;
}

export interface InstallOrder {
  readonly meta: SnapshotMeta;
  readonly hardState: HardState;
  readonly done: () => void;
}
