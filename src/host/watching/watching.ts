/**
 * What watches need of the world.
 *
 * Types only.
 */
import type { KeyBounds } from "../../machine/ownership/ownership-row.js";
import type { WatchedRows } from "../../machine/watched-rows.js";
import type { ClockPort, TimerPort } from "../../ports.js";
import type { Group } from "../group/group.js";

export type WatchGroup = Pick<
  Group,
  | "partition"
  | "machine"
  | "read"
  | "advanceClock"
  | "leaseNowMs"
  | "isServing"
  | "isLeader"
  | "leaderNode"
  | "levelMs"
>;

/** An interval of the keys of a key space, as the map has it. */
export interface KeyOwner extends KeyBounds {
  readonly partitionId: number;
}

export interface WatchPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  /** null: not hosted here. */
  group(partition: number): WatchGroup | null;
  groups(): readonly WatchGroup[];
  /** `hook` runs once for every group that is here, now or later. */
  onGroup(hook: (group: WatchGroup) => void): void;
  onGroupLeft(hook: (group: WatchGroup) => void): void;
  /** The partitions that may have what is watched; null before the cluster is founded. */
  partitionsOf(kind: number, name: string): ReadonlySet<number> | null;
  /** The key spaces that are divided into ranges, as the map has them now. */
  ranges(): ReadonlyMap<string, readonly KeyOwner[]>;
  /** The partition of the keys of a key space that has no ranges. */
  homeOf(keySpace: string): number | null;
  /** Keys were moved from one partition to another at some time, as far as the map says. */
  hasMoved(): boolean;
  /** The map has the cut of the move, which was adopted. */
  knowsCut(keySpace: string, moveId: number): boolean;
  /** Grows whenever any of these may say something else. */
  mapVersion(): number;
  clusterId(): string;
  /** No row is to be read any more. */
  isClosing(): boolean;
  /**
   * Asks the leader of the partition, on another node, up to which entry everything is applied that
   * was answered before this call; null: it is not known in time. Never in the turn of the call.
   */
  confirmThere(partition: number, deadlineMs: number, done: (index: number | null) => void): void;
  /**
   * Asks that leader to commit its lease clock as soon as it has reached `leaseMs`. `done` once,
   * never in the turn of the call; false: it does not, or may not have heard of it.
   */
  wishClock(partition: number, leaseMs: number, done: (isTaken: boolean) => void): void;
}

export interface WatchSettings {
  readonly watchersMax: number;
  readonly historyBytes: number;
  /** Longest time between marks where none is asked for (ms). */
  readonly progressMs: number;
}

/** The rows of a partition with the lease time that they stand at. */
export interface WatchedState {
  readonly rows: WatchedRows;
  readonly leaseMs: number;
}
