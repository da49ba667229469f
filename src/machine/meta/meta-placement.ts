/**
 * Where the replicas of partitions may be: the records of the partition map that say so.
 *
 * Pure decisions over the rows of the context. Invariants: 1. A partition in full mode has no list:
 * it is where the member list says. 2. Lists ascend by node id.
 */
import { FOUNDING_INCARNATION, configIndex, placementGeneration } from "../../base/ids.js";
import type { PartitionRecord, ReplicaRecord } from "../commands/command.js";

/**
 * The record of a data partition when the cluster is founded by `nodes`, ascending: with a factor
 * above 0 the founders take turns, so that every one has within one as many replicas as any other.
 */
export function foundedPartition(
  partitionId: number,
  nodes: readonly number[],
  factor: number,
): PartitionRecord {
  const founders: number[] = [];
  for (let at = 0; at < Math.min(factor, nodes.length); at++) {
    founders.push(nodes[(partitionId - 1 + at) % nodes.length] as number);
  }
  founders.sort((a, b) => a - b);
  const founding = { role: "voter", incarnation: FOUNDING_INCARNATION, replaces: 0 } as const;
  const replicas: ReplicaRecord[] = founders.map((nodeId) => ({ nodeId, ...founding }));
  return {
    partitionId,
    state: "Active",
    generation: placementGeneration(1),
    replicationOverride: 0,
    mode: factor === 0 ? "full" : "placed",
    founders,
    replicas,
    configIndex: configIndex(0),
  };
}
