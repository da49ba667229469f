/**
 * Rows of the meta partition: cluster, members, former members, partitions, range descriptors.
 *
 * Pure codec. Each begins with a version u8; rows of an earlier version are still read (P-131).
 * Invariants: 1. Texts are well-formed. 2. Names of states and roles are stored as numbers that
 * never change their meaning.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type {
  ClusterRecord,
  FormerMember,
  Member,
  PartitionRecord,
  RangeDescriptor,
} from "../commands/command.js";
import { STORED_ROLES } from "../commands/command-writer.js";

const VERSION = 1;
/** Members carry their data directory since this version, partitions their replicas. */
const VERSION_2 = 2;
const states: readonly PartitionRecord["state"][] = ["Active", "Splitting", "Draining", "Removed"];

const writer = new ByteWriter(4096);

export function encodeCluster(record: ClusterRecord): Uint8Array {
  writer.reset().uint8(VERSION).text(record.clusterId).uint32(record.dataPartitions);
  writer.uint32(record.replicationFactor).uint53(record.membershipVersion);
  return writer.uint53(record.mapVersion).finish();
}

export function decodeCluster(bytes: Uint8Array): ClusterRecord | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const record = {
    clusterId: reader.text(),
    dataPartitions: reader.uint32(),
    replicationFactor: reader.uint32(),
    membershipVersion: reader.uint53(),
    mapVersion: reader.uint53(),
  };
  return reader.isComplete() ? record : null;
}

export function encodeMember(member: Member): Uint8Array {
  writer.reset().uint8(VERSION_2).uint32(member.nodeId).text(member.endpoint);
  writer.uint8(STORED_ROLES.indexOf(member.role)).uint53(member.joinedVersion);
  return writer.text(member.storageId).finish();
}

export function decodeMember(bytes: Uint8Array): Member | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version !== VERSION && version !== VERSION_2) return null;
  const nodeId = reader.uint32();
  const endpoint = reader.text();
  const role = STORED_ROLES[reader.uint8()];
  const joinedVersion = reader.uint53();
  const storageId = version === VERSION ? "" : reader.text();
  if (role === undefined || !reader.isComplete()) return null;
  return { nodeId, endpoint, role, joinedVersion, storageId };
}

export function encodeFormerMember(former: FormerMember): Uint8Array {
  writer.reset().uint8(VERSION).uint32(former.nodeId).uint53(former.removedVersion);
  writer.length(former.storageIds.length);
  for (const storageId of former.storageIds) writer.text(storageId);
  return writer.finish();
}

export function decodeFormerMember(bytes: Uint8Array): FormerMember | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const nodeId = reader.uint32();
  const removedVersion = reader.uint53();
  const count = reader.length();
  // An id takes one byte at least: a larger count is damage and must not steer an allocation.
  if (count > reader.remainingBytes) return null;
  const storageIds: string[] = [];
  for (let at = 0; at < count; at++) storageIds.push(reader.text());
  return reader.isComplete() ? { nodeId, removedVersion, storageIds } : null;
}

export function encodePartition(partition: PartitionRecord): Uint8Array {
  writer.reset().uint8(VERSION_2).uint32(partition.partitionId);
  writer.uint8(states.indexOf(partition.state)).uint53(partition.generation);
  writer.uint32(partition.replicationOverride).length(partition.replicas.length);
  for (const nodeId of partition.replicas) writer.uint32(nodeId);
  return writer.finish();
}

export function decodePartition(bytes: Uint8Array): PartitionRecord | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version !== VERSION && version !== VERSION_2) return null;
  const partitionId = reader.uint32();
  const state = states[reader.uint8()];
  const generation = reader.uint53();
  const replicationOverride = reader.uint32();
  const replicas: number[] = [];
  const count = version === VERSION ? 0 : reader.length();
  if (count * 4 > reader.remainingBytes) return null;
  for (let at = 0; at < count; at++) replicas.push(reader.uint32());
  if (state === undefined || !reader.isComplete()) return null;
  return { partitionId, state, generation, replicationOverride, replicas };
}

/** A descriptor with the key space it belongs to. */
export interface RangeRow {
  readonly keySpace: string;
  readonly descriptor: RangeDescriptor;
}

function writeBound(bound: string | null): void {
  writer.boolean(bound !== null);
  if (bound !== null) writer.text(bound);
}

function readBound(reader: ByteReader): string | null {
  return reader.boolean() ? reader.text() : null;
}

export function encodeRange(row: RangeRow): Uint8Array {
  writer.reset().uint8(VERSION).text(row.keySpace);
  writeBound(row.descriptor.startKey);
  writeBound(row.descriptor.endKey);
  return writer.uint32(row.descriptor.partitionId).uint53(row.descriptor.generation).finish();
}

export function decodeRange(bytes: Uint8Array): RangeRow | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const keySpace = reader.text();
  const descriptor = {
    startKey: readBound(reader),
    endKey: readBound(reader),
    partitionId: reader.uint32(),
    generation: reader.uint53(),
  };
  return reader.isComplete() ? { keySpace, descriptor } : null;
}
