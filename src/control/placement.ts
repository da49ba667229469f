/**
 * What committed records say about where replicas are: effective factors, replica lists, and which
 * partitions have fewer live voters than they should (contract 5.4).
 *
 * Pure. Invariants: 1. Factor 0 means every voter and has no list. 2. An override of 0 means none:
 * the partition inherits. 3. An effective factor never exceeds the number of voters. 4. Lists are
 * the same on every node that has applied the same records.
 */
import type {
  ClusterRecord,
  Member,
  PartitionRecord,
  ReplicaRecord,
} from "../machine/commands/command.js";

/** min(override or global factor, number of voters); 0 = full replication. */
export function effectiveFactor(globalFactor: number, override: number, voters: number): number {
  return Math.min(override > 0 ? override : globalFactor, voters);
}

export interface PlacedPartition {
  readonly partition: PartitionRecord;
  readonly effectiveFactor: number;
  /** By node id; empty under full replication. */
  readonly replicas: readonly Pick<ReplicaRecord, "nodeId" | "role">[];
}

/** The data partitions by id, with factors and replicas. */
export function placedPartitions(
  cluster: ClusterRecord,
  members: readonly Member[],
  partitions: readonly PartitionRecord[],
): readonly PlacedPartition[] {
  const voters = members.filter((member) => member.role === "voter").length;
  // A partition whose factor is news is still on every node.
  const everybody = members.map(({ nodeId, role }) => {
    return { nodeId, role: role === "learner" ? "learner" : "voter" } as const;
  });
  return partitions.map((partition) => {
    const { mode, replicationOverride: override } = partition;
    const factor = effectiveFactor(cluster.replicationFactor, override, voters);
    const listed = mode === "placed" ? partition.replicas : everybody;
    return { partition, effectiveFactor: factor, replicas: factor === 0 ? [] : listed };
  });
}

/** Partitions, by id, that are not as they should be, or change. */
export interface ReplicationFacts {
  /** With fewer live voters than their effective factor. */
  readonly under: readonly number[];
  /** With more voters than their effective factor, those on their way out not counted. */
  readonly over: readonly number[];
  /** Whose live voters are no majority of all. */
  readonly withoutMajority: readonly number[];
  /** In which a replica comes or goes. */
  readonly moving: readonly number[];
  /** Replicas of placed partitions that are listed on members that leave, or were evicted. */
  readonly leavingReplicas: number;
}

/** What of the partitions is not in order, by who is live. */
export function replicationFacts(
  placed: readonly PlacedPartition[],
  members: readonly Member[],
  isLive: (nodeId: number) => boolean,
): ReplicationFacts {
  const isLeaving = ({ role, evicted }: Member): boolean => role === "leaving" || evicted;
  const leaving = new Set(members.filter(isLeaving).map(({ nodeId }) => nodeId));
  let leavingReplicas = 0;
  const under: number[] = [];
  const over: number[] = [];
  const withoutMajority: number[] = [];
  const moving: number[] = [];
  for (const { partition, effectiveFactor: factor, replicas } of placed) {
    if (leaving.size > 0) {
      leavingReplicas += partition.replicas.filter(({ nodeId }) => leaving.has(nodeId)).length;
    }
    if (partition.state === "Removed" || factor === 0) continue;
    const { partitionId } = partition;
    const staying = replicas.filter(({ role }) => role === "voter");
    const voting = replicas.filter(({ role }) => role !== "learner");
    const live = (of: typeof replicas): number => of.filter(({ nodeId }) => isLive(nodeId)).length;
    if (live(staying) < factor) under.push(partitionId);
    if (staying.length > factor) over.push(partitionId);
    if (live(voting) * 2 <= voting.length) withoutMajority.push(partitionId);
    const isPlaced = partition.mode === "placed";
    if (isPlaced && staying.length < replicas.length) moving.push(partitionId);
  }
  return { under, over, withoutMajority, moving, leavingReplicas };
}
