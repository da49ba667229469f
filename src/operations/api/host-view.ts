/**
 * What operations see of the host: the members of `Node` and `Group` that they use, and nothing
 * more.
 *
 * Types only. Invariant: the host's classes fit these without a cast; tests put other bodies behind
 * them.
 */
import type { PartitionId } from "../../base/ids.js";
import type { Group } from "../../host/group/group.js";
import type { Node } from "../../host/node.js";

export type GroupAccess = Pick<
  Group,
  | "partition"
  | "machine"
  | "ephemeral"
  | "propose"
  | "read"
  | "advanceClock"
  | "leaseNowMs"
  | "nextStamp"
  | "holdEntries"
  | "announceCommits"
  | "isServing"
  | "isLeader"
  | "term"
  | "isHandingOver"
  | "leaderNode"
  | "levelMs"
  | "addReset"
  | "addStopHook"
  | "addMoveHook"
>;

/** A range, for a question about its keys. */
export interface RangeOfKeys {
  readonly keySpace: string;
  readonly partitionId: number;
  /** Half-open; null = open on that side. */
  readonly startKey: string | null;
  readonly endKey: string | null;
  /** So many are enough to know: nobody counts on; absent: all. */
  readonly enoughKeys?: number;
}

export interface NodeAccess extends Pick<
  Node,
  | "initialized"
  | "shuttingDown"
  | "closing"
  | "isOutside"
  | "health"
  | "checks"
  | "leave"
  | "removeMember"
  | "reportedLeader"
  | "isLinked"
  | "partitionWaits"
  | "lastReport"
  | "finalize"
  | "levels"
> {
  route(hashText: string): GroupAccess | null;
  group(partition: PartitionId): GroupAccess | null;
  /** The partition that `hashText` is placed in, hosted or not; null until the map is known. */
  partitionOf(hashText: string): PartitionId | null;
  /** Advertised client endpoint of another node; "" = unknown, or it has none. */
  clientEndpointOf?(nodeId: number): string;
  /** Live keys of a range that this node leads, as it counted them last; null = not known. */
  knownRangeKeys?(range: RangeOfKeys): number | null;
  /** Tells the live keys of a range, counted where it is led, in a later turn; null = not known. */
  rangeSize(range: RangeOfKeys, done: (size: { readonly keys: number | null }) => void): void;
  metaGroup(): GroupAccess;
  /** Meta first, then by partition id. */
  groups(): readonly GroupAccess[];
  onGroup(hook: (group: GroupAccess) => void): void;
  /** `hook` is called for every group that leaves this node. */
  onGroupLeft(hook: (group: GroupAccess) => void): void;
}
