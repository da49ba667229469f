/**
 * Commands of the meta partition: founding and replication factors; those about members, replicas
 * and key ranges are next door.
 *
 * Pure decisions over the rows of the context. Invariants: 1. Founding happens once. 2. Each change
 * of the member list raises membershipVersion by one, each change of a partition or a range raises
 * mapVersion by one. 3. A repeat is "unchanged".
 */
import { mapVersion, membershipVersion, next } from "../../base/ids.js";
import {
  LEVEL_NUMBER_MAX,
  PARTITIONS_MAX,
  REPLICATION_FACTOR_MAX,
  VOTERS_MAX,
} from "../../base/limits.js";
import type {
  ClusterRecord,
  FoundClusterCommand,
  MetaCommand,
  MetaOutcome,
  SetReplicationFactorCommand,
} from "../commands/command.js";
import type { DecisionContext, Rules } from "../decision/context.js";
import { RowKind, uint32Key } from "../store/keys.js";
import { holdPlanner } from "./hold-planner.js";
import { raiseLevel } from "./meta-levels.js";
import {
  applyMember,
  isNodeId,
  isPartitionId,
  isProgram,
  isText,
  outcome,
  supports,
} from "./meta-members.js";
import type { MetaContext } from "./meta-context.js";
import { applyPlacement, foundedPartition } from "./meta-placement.js";
import { RANGE_RULES } from "./meta-ranges.js";
import { MetaReads } from "./meta-reads.js";
import { refoundCluster } from "./refounding.js";
import { FIRST_TOPOLOGY, encodeCluster, encodeMember, encodePartition } from "./meta-rows.js";

function isFactor(factor: number): boolean {
  return Number.isInteger(factor) && factor >= 0 && factor <= REPLICATION_FACTOR_MAX;
}

function isFoundable(command: FoundClusterCommand): boolean {
  const { dataPartitions, members } = command;
  if (!isText(command.clusterId) || !isFactor(command.replicationFactor)) return false;
  if (!Number.isInteger(dataPartitions) || dataPartitions < 1) return false;
  if (dataPartitions > PARTITIONS_MAX) return false;
  if (members.length < 1 || members.length > VOTERS_MAX) return false;
  if (new Set(members.map((member) => member.nodeId)).size !== members.length) return false;
  const isLevel = command.level >= 1 && command.level <= LEVEL_NUMBER_MAX;
  return members.every((member) => {
    const { nodeId, endpoint, storageId } = member;
    // Who is alone needs no address.
    const isPlace = isText(endpoint) || (endpoint === "" && members.length === 1);
    const canWork = isLevel && isProgram(member) && supports(member, command.level);
    return isNodeId(nodeId) && isPlace && (storageId === "" || isText(storageId)) && canWork;
  });
}

function foundCluster(context: DecisionContext, command: FoundClusterCommand): MetaOutcome {
  if (!isFoundable(command)) return outcome("invalid");
  if (new MetaReads(context.rows).cluster() !== null) return outcome("unchanged");
  const { rows } = context;
  const { clusterId, dataPartitions, replicationFactor, level } = command;
  const joinedVersion = membershipVersion(1);
  const record: ClusterRecord = {
    ...{ clusterId, dataPartitions, replicationFactor, level },
    membershipVersion: joinedVersion,
    mapVersion: mapVersion(1),
    nextPartitionId: dataPartitions + 1,
    topologyVersion: FIRST_TOPOLOGY,
  };
  rows.insert(RowKind.cluster, "", encodeCluster(record));
  for (const founder of command.members) {
    const member = { ...founder, role: "voter", joinedVersion, evicted: false } as const;
    rows.insert(RowKind.member, uint32Key(founder.nodeId), encodeMember(member));
  }
  const nodes = command.members.map(({ nodeId }) => nodeId).sort((a, b) => a - b);
  for (let partitionId = 1; partitionId <= dataPartitions; partitionId++) {
    const partition = foundedPartition(partitionId, nodes, replicationFactor);
    rows.insert(RowKind.partition, uint32Key(partitionId), encodePartition(partition));
  }
  return outcome("done", 1);
}

function storeCluster(context: DecisionContext, record: ClusterRecord): void {
  context.rows.put(RowKind.cluster, "", encodeCluster(record));
}

function setReplicationFactor(
  context: DecisionContext,
  command: SetReplicationFactorCommand,
): MetaOutcome {
  const { partitionId, replicationFactor } = command;
  if (!isFactor(replicationFactor)) return outcome("invalid");
  const reads = new MetaReads(context.rows);
  const cluster = reads.cluster();
  if (cluster === null) return outcome("not-founded");
  const partition = isPartitionId(partitionId) ? reads.partition(partitionId) : null;
  if (partition === null || partition.state === "Removed") return outcome("unknown-partition");
  if (partition.replicationOverride === replicationFactor) {
    return outcome("unchanged", partition.generation);
  }
  const generation = next(partition.generation);
  const changed = { ...partition, generation, replicationOverride: replicationFactor };
  context.rows.put(RowKind.partition, uint32Key(partitionId), encodePartition(changed));
  storeCluster(context, { ...cluster, mapVersion: next(cluster.mapVersion) });
  return outcome("done", generation);
}

export const META_RULES: Rules<MetaCommand, MetaOutcome, MetaContext> = {
  "found-cluster": foundCluster,
  "update-member": applyMember,
  "add-member": applyMember,
  "set-member-role": applyMember,
  "evict-member": applyMember,
  "remove-member": applyMember,
  "set-replication-factor": setReplicationFactor,
  "raise-level": raiseLevel,
  "hold-planner": holdPlanner,
  "refound-cluster": refoundCluster,
  "change-replicas": applyPlacement,
  "report-replicas": applyPlacement,
  "place-partition": applyPlacement,
  ...RANGE_RULES,
};
