/**
 * What committed records say about where replicas are: effective factors, replica lists, and which
 * partitions have fewer live voters than they should (contract 5.4).
 *
 * Pure. Invariants: 1. Factor 0 means every voter and has no list. 2. An override of 0 means none:
 * the partition inherits. 3. An effective factor never exceeds the number of voters. 4. Lists are
 * the same on every node that has applied the same records.
 */
import { VOTERS_MAX } from "../base/limits.js";
import type {
  ClusterRecord,
  Member,
  PartitionRecord,
  ReplicaRecord,
} from "../machine/commands/command.js";

/** min(override or global factor, number of voters); 0 = full replication. */
function effectiveFactor(globalFactor: number, override: number, voters: number): number {
  return Math.min(override > 0 ? override : globalFactor, voters);
}

/**
 * How many voters a partition is to have; 0 = it is in full mode and stays so. A placed one without
 * a factor has as many as the member list has voters.
 */
export function wishedReplicas(
  record: Pick<PartitionRecord, "mode" | "replicationOverride">,
  replicationFactor: number,
  voters: number,
): number {
  const factor = effectiveFactor(replicationFactor, record.replicationOverride, voters);
  const isWanted = record.replicationOverride > 0 || replicationFactor > 0;
  if (isWanted) return factor;
  return record.mode === "full" ? 0 : Math.min(voters, VOTERS_MAX);
}

/**
 * Whether a node moves replicas where it leads the meta partition: as it was told, else as the
 * factor of its cluster says. Most nodes join long after the founding and are told of neither.
 */
export function isRebalancing(
  told: boolean | null,
  cluster: Pick<ClusterRecord, "replicationFactor"> | null,
): boolean {
  return told ?? (cluster?.replicationFactor ?? 0) > 0;
}

type Listed = Pick<ReplicaRecord, "nodeId" | "role">;

export interface PlacedPartition {
  readonly partition: PartitionRecord;
  readonly effectiveFactor: number;
  /** By node id; empty under full replication, and of a partition that is removed. */
  readonly replicas: readonly Listed[];
  /** So many voters it is to have; 0 = it follows the member list. */
  readonly wished: number;
  /** The nodes that have it, or are about to, by node id. */
  readonly listed: readonly Listed[];
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
    const isRemoved = partition.state === "Removed";
    const listed = isRemoved ? [] : mode === "placed" ? partition.replicas : everybody;
    return {
      ...{ partition, listed, effectiveFactor: factor },
      replicas: factor === 0 ? [] : listed,
      wished: wishedReplicas(partition, cluster.replicationFactor, voters),
    };
  });
}

/** Partitions, by id, that are not as they should be, or change. */
export interface ReplicationFacts {
  /** With fewer live voters than they are to have. */
  readonly under: readonly number[];
  /** With more voters than they are to have, those on their way out not counted. */
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
  for (const { partition, wished, listed } of placed) {
    const { partitionId, mode, state } = partition;
    if (state === "Removed" || wished === 0) continue;
    const isPlaced = mode === "placed";
    if (isPlaced) leavingReplicas += listed.filter(({ nodeId }) => leaving.has(nodeId)).length;
    const staying = listed.filter(({ role }) => role === "voter");
    const voting = listed.filter(({ role }) => role !== "learner");
    const live = (of: readonly Listed[]): number =>
      of.filter(({ nodeId }) => isLive(nodeId)).length;
    if (live(staying) < wished) under.push(partitionId);
    if (staying.length > wished) over.push(partitionId);
    if (live(voting) * 2 <= voting.length) withoutMajority.push(partitionId);
    if (isPlaced && staying.length < listed.length) moving.push(partitionId);
  }
  return { under, over, withoutMajority, moving, leavingReplicas };
}
