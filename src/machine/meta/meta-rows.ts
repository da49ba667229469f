/**
 * Rows of the meta partition: cluster, members, former members, partitions, range descriptors.
 *
 * Pure codec. Each begins with a version u8; rows of an earlier version are still read (P-131).
 * Invariants: 1. Texts are well-formed. 2. Names of states, roles and modes are stored as numbers
 * that never change their meaning. 3. Lists of nodes ascend and hold no id twice; numbers out of
 * their bounds are damage.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import {
  FIRST_LEVEL,
  FOUNDING_INCARNATION,
  NOT_BORN,
  NO_CONFIG,
  NO_PLACEMENT,
  configIndex,
  incarnation,
  level,
  mapVersion,
  membershipVersion,
  placementGeneration,
  rangeGeneration,
  topologyVersion,
  type PlacementGeneration,
} from "../../base/ids.js";
import {
  LEVEL_NUMBER_MAX,
  MEMBERS_MAX,
  NODE_ID_MAX,
  PROGRAM_VERSION_MAX_BYTES,
  VOTERS_MAX,
} from "../../base/limits.js";
import type {
  ClusterRecord,
  FormerMember,
  Member,
  PartitionRecord,
  ProgramLevels,
  RangeDescriptor,
  ReplicaRecord,
  ReplicaRole,
} from "../commands/command.js";
import { readNodes, writeNodes } from "../commands/fields.js";
import { STORED_ROLES, UNKNOWN_PROGRAM } from "../commands/meta-codec.js";

const VERSION = 1;
/** Cluster: counter of partitions, topology, level. Ranges: when they changed. */
const VERSION_2 = 2;
/** Members: eviction and levels. Partitions: mode, founders, and replicas with their lives. */
const VERSION_3 = 3;
/** Partitions that a split has made: by which member list. */
const VERSION_4 = 4;
const states: readonly PartitionRecord["state"][] = ["Active", "Splitting", "Draining", "Removed"];
const modes: readonly PartitionRecord["mode"][] = ["full", "placed"];
const replicaRoles: readonly ReplicaRole[] = ["voter", "learner", "removing"];
/** The topology of a cluster in which no partition was ever made and no key was ever moved. */
export const FIRST_TOPOLOGY = topologyVersion(1);

const writer = new ByteWriter(4096);

function isLevel(value: number): boolean {
  return value >= 1 && value <= LEVEL_NUMBER_MAX;
}

export function encodeCluster(record: ClusterRecord): Uint8Array {
  writer.reset().uint8(VERSION_2).text(record.clusterId).uint32(record.dataPartitions);
  writer.uint32(record.replicationFactor).uint53(record.membershipVersion);
  writer.uint53(record.mapVersion).uint32(record.nextPartitionId);
  return writer.uint53(record.topologyVersion).uint32(record.level).finish();
}

export function decodeCluster(bytes: Uint8Array): ClusterRecord | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version !== VERSION && version !== VERSION_2) return null;
  const isFirst = version === VERSION;
  const clusterId = reader.text();
  const dataPartitions = reader.uint32();
  const record = {
    clusterId,
    dataPartitions,
    replicationFactor: reader.uint32(),
    membershipVersion: membershipVersion(reader.uint53()),
    mapVersion: mapVersion(reader.uint53()),
    nextPartitionId: isFirst ? dataPartitions + 1 : reader.uint32(),
    topologyVersion: isFirst ? FIRST_TOPOLOGY : topologyVersion(reader.uint53()),
    level: isFirst ? FIRST_LEVEL : level(reader.uint32()),
  };
  const isWhole = record.nextPartitionId > dataPartitions && isLevel(record.level);
  return reader.isComplete() && isWhole ? record : null;
}

export function encodeMember(member: Member): Uint8Array {
  writer.reset().uint8(VERSION_3).uint32(member.nodeId).text(member.endpoint);
  writer.uint8(STORED_ROLES.indexOf(member.role)).uint53(member.joinedVersion);
  writer.text(member.storageId).boolean(member.evicted);
  return writer.uint32(member.levelMin).uint32(member.levelMax).text(member.version).finish();
}

function readProgram(reader: ByteReader): ProgramLevels {
  const levelMin = level(reader.uint32());
  const levelMax = level(reader.uint32());
  const version = reader.text();
  const isRange = isLevel(levelMin) && isLevel(levelMax) && levelMin <= levelMax;
  if (!isRange || version.length > PROGRAM_VERSION_MAX_BYTES) reader.fail();
  return { levelMin, levelMax, version };
}

export function decodeMember(bytes: Uint8Array): Member | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version < VERSION || version > VERSION_3) return null;
  const nodeId = reader.uint32();
  const endpoint = reader.text();
  const role = STORED_ROLES[reader.uint8()];
  const joinedVersion = membershipVersion(reader.uint53());
  const storageId = version === VERSION ? "" : reader.text();
  const evicted = version < VERSION_3 ? false : reader.boolean();
  const program = version < VERSION_3 ? UNKNOWN_PROGRAM : readProgram(reader);
  if (role === undefined || !reader.isComplete()) return null;
  return { nodeId, endpoint, role, joinedVersion, storageId, evicted, ...program };
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
  const removedVersion = membershipVersion(reader.uint53());
  const count = reader.length();
  // An id takes one byte at least: a larger count is damage and must not steer an allocation.
  if (count > reader.remainingBytes) return null;
  const storageIds: string[] = [];
  for (let at = 0; at < count; at++) storageIds.push(reader.text());
  return reader.isComplete() ? { nodeId, removedVersion, storageIds } : null;
}

export function encodePartition(partition: PartitionRecord): Uint8Array {
  const isBorn = partition.bornVersion !== NOT_BORN;
  writer
    .reset()
    .uint8(isBorn ? VERSION_4 : VERSION_3)
    .uint32(partition.partitionId);
  writer.uint8(states.indexOf(partition.state)).uint53(partition.generation);
  writer.uint32(partition.replicationOverride).uint8(modes.indexOf(partition.mode));
  writeNodes(writer, partition.founders).length(partition.replicas.length);
  for (const replica of partition.replicas) {
    writer.uint32(replica.nodeId).uint8(replicaRoles.indexOf(replica.role));
    writer.uint53(replica.incarnation).uint53(replica.since).uint32(replica.replaces);
  }
  writer.uint53(partition.configIndex);
  if (isBorn) writer.uint53(partition.bornVersion);
  return writer.finish();
}

/** Bytes of one replica in its row. */
const REPLICA_BYTES = 25;

function readReplicas(reader: ByteReader, generation: PlacementGeneration): ReplicaRecord[] {
  const count = reader.length();
  if (count > MEMBERS_MAX || count * REPLICA_BYTES > reader.remainingBytes) {
    reader.fail();
    return [];
  }
  const replicas: ReplicaRecord[] = [];
  for (let at = 0; at < count; at++) {
    const nodeId = reader.uint32();
    const role = replicaRoles[reader.uint8()];
    const life = incarnation(reader.uint53());
    const since = placementGeneration(reader.uint53());
    const replaces = reader.uint32();
    const before = replicas[at - 1]?.nodeId ?? 0;
    const isNode = nodeId > before && nodeId <= NODE_ID_MAX;
    // Who replaces nobody, or a learner alone; and no role is older than its replica, or younger
    // than its record.
    const isPlausible = replaces === 0 || (role === "learner" && replaces <= NODE_ID_MAX);
    const isInOrder = life <= since && since <= generation;
    if (role === undefined || !isNode || !isPlausible || !isInOrder) {
      reader.fail();
      return [];
    }
    replicas.push({ nodeId, role, incarnation: life, since, replaces });
  }
  return replicas;
}

/** Where a list of nodes was all that a row said of its replicas. */
function replicasOfNodes(nodes: readonly number[]): ReplicaRecord[] {
  const founding = { role: "voter", incarnation: FOUNDING_INCARNATION, replaces: 0 } as const;
  return nodes.map((nodeId) => ({ nodeId, ...founding, since: NO_PLACEMENT }));
}

export function decodePartition(bytes: Uint8Array): PartitionRecord | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version < VERSION || version > VERSION_4) return null;
  const partitionId = reader.uint32();
  const state = states[reader.uint8()];
  const generation = placementGeneration(reader.uint53());
  const replicationOverride = reader.uint32();
  if (version < VERSION_3) {
    const founders = version === VERSION ? [] : readNodes(reader, VOTERS_MAX);
    if (state === undefined || !reader.isComplete()) return null;
    const mode = founders.length === 0 ? "full" : "placed";
    const replicas = replicasOfNodes(founders);
    const head = { partitionId, state, generation, replicationOverride, bornVersion: NOT_BORN };
    return { ...head, mode, founders, replicas, configIndex: NO_CONFIG };
  }
  const mode = modes[reader.uint8()];
  const founders = readNodes(reader, VOTERS_MAX);
  const replicas = readReplicas(reader, generation);
  const reported = configIndex(reader.uint53());
  const bornVersion = version < VERSION_4 ? NOT_BORN : membershipVersion(reader.uint53());
  if (version === VERSION_4 && bornVersion === NOT_BORN) return null;
  if (state === undefined || mode === undefined || !reader.isComplete()) return null;
  if (mode === "full" && replicas.length > 0) return null;
  const head = { partitionId, state, generation, replicationOverride, bornVersion };
  return { ...head, mode, founders, replicas, configIndex: reported };
}

/** A descriptor with the key space it belongs to. */
export interface RangeRow {
  readonly keySpace: string;
  readonly descriptor: RangeDescriptor;
  /** Lease time of the meta partition at its last change (ms); 0 = not known. */
  readonly changedLeaseMs: number;
}

function writeBound(bound: string | null): void {
  writer.boolean(bound !== null);
  if (bound !== null) writer.text(bound);
}

function readBound(reader: ByteReader): string | null {
  return reader.boolean() ? reader.text() : null;
}

export function encodeRange(row: RangeRow): Uint8Array {
  writer.reset().uint8(VERSION_2).text(row.keySpace);
  writeBound(row.descriptor.startKey);
  writeBound(row.descriptor.endKey);
  writer.uint32(row.descriptor.partitionId).uint53(row.descriptor.generation);
  return writer.uint53(row.changedLeaseMs).finish();
}

export function decodeRange(bytes: Uint8Array): RangeRow | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version !== VERSION && version !== VERSION_2) return null;
  const keySpace = reader.text();
  const descriptor = {
    startKey: readBound(reader),
    endKey: readBound(reader),
    partitionId: reader.uint32(),
    generation: rangeGeneration(reader.uint53()),
  };
  const changedLeaseMs = version === VERSION ? 0 : reader.uint53();
  return reader.isComplete() ? { keySpace, descriptor, changedLeaseMs } : null;
}
