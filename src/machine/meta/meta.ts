/**
 * Commands of the meta partition: founding, replication factors, registration of key spaces; those
 * about members are next door.
 *
 * Pure decisions over the rows of the context. Invariants: 1. Founding happens once. 2. Each change
 * of the member list raises membershipVersion by one, each change of a partition or a range raises
 * mapVersion by one. 3. Descriptors tile their key space after every change. 4. A repeat is
 * "unchanged".
 */
import { assert, present } from "../../base/assert.js";
import { mapVersion, membershipVersion, next, rangeGeneration } from "../../base/ids.js";
import {
  LEVEL_NUMBER_MAX,
  PARTITIONS_MAX,
  REPLICATION_FACTOR_MAX,
  VOTERS_MAX,
} from "../../base/limits.js";
import { hashPartition, keySpaceHashText } from "../../base/routing.js";
import type {
  ClusterRecord,
  FoundClusterCommand,
  MetaCommand,
  MetaOutcome,
  RegisterRangeCommand,
  SetReplicationFactorCommand,
  UnregisterRangeCommand,
} from "../commands/command.js";
import type { DecisionContext, Rules } from "../decision/context.js";
import { RowKind, nameKey, rangeKey, uint32Key } from "../store/keys.js";
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
import { applyPlacement, foundedPartition } from "./meta-placement.js";
import { MetaReads } from "./meta-reads.js";
import {
  FIRST_TOPOLOGY,
  encodeCluster,
  encodeMember,
  encodePartition,
  encodeRange,
} from "./meta-rows.js";
import { isRangeKeySpace, tilingFault } from "./range-map.js";

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

function registerRange(context: DecisionContext, command: RegisterRangeCommand): MetaOutcome {
  const { keySpace, partitionId } = command;
  const name = nameKey(keySpace);
  if (name === null || !isRangeKeySpace(keySpace)) return outcome("invalid");
  const reads = new MetaReads(context.rows);
  const cluster = reads.cluster();
  if (cluster === null) return outcome("not-founded");
  const existing = reads.ranges(keySpace);
  const first = existing[0];
  if (first !== undefined) return outcome("unchanged", first.generation);
  const partition = isPartitionId(partitionId) ? reads.partition(partitionId) : null;
  if (partition === null || partition.state === "Removed") return outcome("unknown-partition");
  const generation = rangeGeneration(1);
  const descriptor = { startKey: null, endKey: null, partitionId, generation };
  assert(tilingFault([descriptor]) === null, "descriptors tile their key space");
  const row = encodeRange({ keySpace, descriptor, changedLeaseMs: context.nowMs });
  context.rows.insert(RowKind.range, rangeKey(name, null), row);
  storeCluster(context, { ...cluster, mapVersion: next(cluster.mapVersion) });
  return outcome("done", 1);
}

function unregisterRange(context: DecisionContext, command: UnregisterRangeCommand): MetaOutcome {
  const { keySpace } = command;
  const name = nameKey(keySpace);
  if (name === null || !isRangeKeySpace(keySpace)) return outcome("invalid");
  const reads = new MetaReads(context.rows);
  const cluster = reads.cluster();
  if (cluster === null) return outcome("not-founded");
  const existing = reads.ranges(keySpace);
  if (existing.length === 0) return outcome("unchanged");
  // Its keys are placed by hash again: none may lie anywhere else.
  const home = hashPartition(keySpaceHashText(keySpace), cluster.dataPartitions);
  if (existing.some(({ partitionId }) => partitionId !== home)) return outcome("range-elsewhere");
  for (const { startKey } of existing) {
    const start =
      startKey === null || startKey === ""
        ? startKey
        : present(nameKey(startKey), "a bound is a key");
    context.rows.delete(RowKind.range, rangeKey(name, start));
  }
  storeCluster(context, { ...cluster, mapVersion: next(cluster.mapVersion) });
  return outcome("done");
}

export const META_RULES: Rules<MetaCommand, MetaOutcome> = {
  "found-cluster": foundCluster,
  "update-member": applyMember,
  "add-member": applyMember,
  "set-member-role": applyMember,
  "evict-member": applyMember,
  "remove-member": applyMember,
  "set-replication-factor": setReplicationFactor,
  "register-range": registerRange,
  "unregister-range": unregisterRange,
  "raise-level": raiseLevel,
  "change-replicas": applyPlacement,
  "report-replicas": applyPlacement,
  "place-partition": applyPlacement,
};
