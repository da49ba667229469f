/**
 * Replica placement as it follows from committed records: effective factors and replica lists
 * (contract 5.4).
 *
 * Pure. Invariants: 1. Factor 0 means every voter and has no list. 2. An override of 0 means none:
 * the partition inherits. 3. An effective factor never exceeds the number of voters.
 */
import type { ClusterRecord, Member, PartitionRecord } from "../machine/commands/command.js";

/** min(override or global factor, number of voters); 0 = full replication. */
export function effectiveFactor(globalFactor: number, override: number, voters: number): number {
  return Math.min(override > 0 ? override : globalFactor, voters);
}

export interface PlacedPartition {
  readonly partition: PartitionRecord;
  readonly effectiveFactor: number;
  /** Empty under full replication. */
  readonly replicas: readonly Member[];
}

/**
 * The map with factors and replicas. `hosts`: the members that the partition's committed
 * configuration names.
 */
export function placePartitions(
  cluster: ClusterRecord,
  members: readonly Member[],
  partitions: readonly PartitionRecord[],
  hosts: (partition: PartitionRecord) => readonly Member[],
): readonly PlacedPartition[] {
  const voters = members.filter((member) => member.role === "voter").length;
  return partitions.map((partition) => {
    const factor = effectiveFactor(
      cluster.replicationFactor,
      partition.replicationOverride,
      voters,
    );
    return { partition, effectiveFactor: factor, replicas: factor === 0 ? [] : hosts(partition) };
  });
}
