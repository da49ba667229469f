/**
 * What the planner of placement sees, and what it says: facts in, orders and reasons out.
 *
 * Types, and the arithmetic of rests. Times are those of one monotonic clock (ms).
 * Invariants: 1. Records are the committed ones; everything else steers choices and never a
 * majority. 2. What a new leader of meta does not know yet is unknown, not good.
 */
import type { Member, PartitionRecord, ReplicaOrder } from "../machine/commands/command.js";
import type { PlacementReason } from "./placement-reasons.js";

/** What a node said of itself last; the leader of meta knows it of itself. */
export interface ReportedLoad {
  readonly receivedMs: number;
  /** Snapshots of all kinds that it takes in, and that it sends. */
  readonly snapshotsIn: number;
  readonly snapshotsOut: number;
  readonly storeBytes: number;
  /** What the store may grow to; 0 = no bound is known. */
  readonly storeMaxBytes: number;
  /** Log or store are full: it takes no writes. */
  readonly isFull: boolean;
  readonly loopLagP99Ms: number;
}

/** One line of the member list, with what the leader of meta has measured. */
export interface MemberView extends Pick<Member, "nodeId" | "role" | "evicted"> {
  /** Its replica of meta has caught up. */
  readonly isCaughtUp: boolean;
  /** Since when it is heard without a break; Infinity = it is not heard now. */
  readonly liveSinceMs: number;
  /** See `deadMembers`. */
  readonly isDead: boolean;
  readonly report: ReportedLoad | null;
}

/** What is known of one group; nothing = it has no leader. */
export interface PlacedGroupView {
  /** By its own word or the report of that node; 0 = unknown. */
  readonly leader: number;
  readonly sizeBytes: number;
  /** Its new replica has its snapshot, as the leader of the group told; false = not known. */
  readonly hasSnapshot: boolean;
  /**
   * When its new replica got on last (bytes of a snapshot, or entries), as the leader of meta saw
   * it; the time when it first saw the replica listed, before anything is told.
   */
  readonly advancedMs: number;
}

/** A partition does not try a node again that failed to take its replica. */
export interface Rest {
  readonly untilMs: number;
  readonly lengthMs: number;
}
/** By `restKey`. */
export type Rests = ReadonlyMap<number, Rest>;

export interface PlacementView {
  readonly nowMs: number;
  /** --raft-enable-placement-rebalancer of the leader of meta. */
  readonly isEnabled: boolean;
  /** A backup is taken: what is not urgent waits. */
  readonly isHeld: boolean;
  /** Of the cluster, as committed at its founding. */
  readonly replicationFactor: number;
  readonly members: readonly MemberView[];
  /** Data partitions. */
  readonly partitions: readonly PartitionRecord[];
  readonly groups: ReadonlyMap<number, PlacedGroupView>;
  /** What the pass before gave back; empty for a new leader of meta. */
  readonly rests: Rests;
}

/** In the order in which they are looked at. */
export const PLACEMENT_CLASSES = [
  "finish",
  "place",
  "repair",
  "drain",
  "trim",
  "grow",
  "balance",
] as const;
export type PlacementClass = (typeof PLACEMENT_CLASSES)[number];

/** An order for meta; `class`: what it is good for. */
export interface PlacementStep {
  readonly class: PlacementClass;
  readonly order: ReplicaOrder;
}

/** Something is to be done about a partition, and cannot be now. */
export interface PlacementWait {
  readonly partitionId: number;
  readonly class: PlacementClass;
  readonly reason: PlacementReason;
}

export interface PlacementPlan {
  /** At most one for each partition, most urgent first. */
  readonly steps: readonly PlacementStep[];
  readonly waits: readonly PlacementWait[];
  /** Why replicas that are spread unevenly are left so; null when they are even, or moved. */
  readonly balance: PlacementReason | null;
  readonly rests: Rests;
  /** Partitions with a replica on its way before these steps, by what it is good for. */
  readonly inFlight: ReadonlyMap<PlacementClass, number>;
}

const REST_MS = 300_000;
const REST_MAX_MS = 3_600_000;
/** Node ids are below it. */
const NODES = 65_536;

/** A pair as one number, exact for every partition id. */
export function restKey(partitionId: number, nodeId: number): number {
  return partitionId * NODES + nodeId;
}

/** The rest after a failure: twice as long as the one before, if that is remembered. */
export function restAfter(before: Rest | undefined, nowMs: number): Rest {
  if (before !== undefined && nowMs < before.untilMs) return before;
  const lengthMs = before === undefined ? REST_MS : Math.min(2 * before.lengthMs, REST_MAX_MS);
  return { untilMs: nowMs + lengthMs, lengthMs };
}

/**
 * The rests that still say something: one is forgotten when the node has become a voter after all,
 * when the partition is no more, and an hour after its end.
 */
export function keptRests({ rests, nowMs, partitions }: PlacementView): Map<number, Rest> {
  const kept = new Map<number, Rest>();
  if (rests.size === 0) return kept;
  const records = new Map(partitions.map((record) => [record.partitionId, record]));
  for (const [key, rest] of rests) {
    const record = records.get(Math.floor(key / NODES));
    const replica = record?.replicas.find(({ nodeId }) => nodeId === key % NODES);
    const isOver = record === undefined || replica?.role === "voter";
    if (!isOver && nowMs < rest.untilMs + REST_MAX_MS) kept.set(key, rest);
  }
  return kept;
}

/** So many timed passes in a row without any movement are an alarm. */
export const IDLE_PASSES_ALARM = 12;

/**
 * Timed passes in a row that had work and moved nothing (P-093). `hasMoved`: since the pass before
 * a record changed, or a new replica got on. What an operator switched off is no work.
 */
export function idlePasses(before: number, plan: PlacementPlan, hasMoved: boolean): number {
  const isWaiting = plan.waits.some(({ reason }) => reason !== "disabled");
  const hasWork = plan.steps.length > 0 || isWaiting || plan.balance !== null;
  return hasMoved || !hasWork ? 0 : before + 1;
}
