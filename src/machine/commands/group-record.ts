/**
 * The record of one group: everything about it that is not a row of data. Written at each freeze,
 * with the effects.
 *
 * Pure codec. Invariants: 1. Reading is strict: an unknown version or a byte too many is damage. 2.
 * Floors, lease clock and counters never fall within one incarnation of the group.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { SINCE } from "../../base/levels.js";
import { NO_STAMP, type Hlc } from "../../base/hlc.js";
import {
  FIRST_LEVEL,
  NO_CONFIG,
  NO_PLACEMENT,
  configIndex,
  level,
  placementGeneration,
  type ConfigIndex,
  type Level,
  type PlacementGeneration,
} from "../../base/ids.js";
import { LEVEL_NUMBER_MAX } from "../../base/limits.js";

/**
 * Since version 2 a record tells the last installed snapshot, since version 3 level and placement,
 * since version 5 its size and what was collected; those before had none (P-131). Version 4, of the
 * size alone, was in no release: it is read.
 */
const VERSION = 5;

/** Since which level of the group its record tells its size, and what was collected. */
export const TELLING_FROM_LEVEL = SINCE.stored["group record"][VERSION];

/**
 * Lease times (ms) behind all that ended and was dropped by collection: whoever knew everything at
 * that time, or later, finds in the rows what ended since (W7).
 */
export interface CollectedEnds {
  /** Of deletions and ends of keys: above each that was dropped. */
  readonly keysMs: number;
  /** Of ends of leases of locks: the latest that was dropped. */
  readonly locksMs: number;
}

export interface GroupRecord {
  /** Which generation of rows is the group's state. */
  readonly generation: number;
  /** Highest generation ever begun: half-filled ones above `generation` are rubbish. */
  readonly lastGeneration: number;
  readonly appliedIndex: number;
  readonly appliedTerm: number;
  readonly leaseMs: number;
  readonly stamp: Hlc;
  /** No persistent lock without a row was ever granted this token or a larger one. */
  readonly tokenFloor: bigint;
  /** What the tokens of ephemeral locks are counted from; raised by a restore. */
  readonly ephemeralFloor: bigint;
  /** Next unused number for the life of a sequence. */
  readonly nextLife: number;
  /** The configuration of the group as the host encoded it; null before the first. */
  readonly membership: Uint8Array | null;
  readonly membershipIndex: ConfigIndex;
  /**
   * Highest generation of the partition's record that a configuration entry rests on: a leader that
   * knows an older record only must not plan.
   */
  readonly placedGeneration: PlacementGeneration;
  /** What may be in the group's log: raised by an entry of that log alone (P-030). */
  readonly level: Level;
  /**
   * Position of the last snapshot that was installed here; 0 when there was none. While the log's
   * floor is below it, the log has not been reset yet.
   */
  readonly installedIndex: number;
  readonly installedTerm: number;
  /** Names and values of all rows, about: each replica counts for itself; null = not told. */
  readonly dataBytes: number | null;
  /** A part of the state, as floors are; null = not told: the rows may lack what ended before. */
  readonly collected: CollectedEnds | null;
  /** Halves of the digest over all effects. */
  readonly effectsLow: number;
  readonly effectsHigh: number;
  /** Halves of the chain over all applied entries. */
  readonly chainLow: number;
  readonly chainHigh: number;
}

export const EMPTY_GROUP_RECORD: GroupRecord = {
  generation: 0,
  lastGeneration: 0,
  appliedIndex: 0,
  appliedTerm: 0,
  leaseMs: 0,
  stamp: NO_STAMP,
  tokenFloor: 0n,
  ephemeralFloor: 0n,
  nextLife: 1,
  membership: null,
  membershipIndex: NO_CONFIG,
  placedGeneration: NO_PLACEMENT,
  level: FIRST_LEVEL,
  installedIndex: 0,
  installedTerm: 0,
  dataBytes: null,
  collected: null,
  effectsLow: 0,
  effectsHigh: 0,
  chainLow: 0,
  chainHigh: 0,
};

export function writeStamp(writer: ByteWriter, stamp: Hlc): void {
  writer.int32(stamp.n).uint53(stamp.l).uint32(stamp.c);
}

export function readStamp(reader: ByteReader): Hlc {
  return { n: reader.int32(), l: reader.uint53(), c: reader.uint32() };
}

export function encodeGroupRecord(record: GroupRecord): Uint8Array {
  const writer = new ByteWriter(192);
  const { dataBytes, collected } = record;
  const version = dataBytes === null && collected === null ? 3 : VERSION;
  writer.uint8(version).uint32(record.generation).uint32(record.lastGeneration);
  writer.uint53(record.appliedIndex).uint53(record.appliedTerm).uint53(record.leaseMs);
  writeStamp(writer, record.stamp);
  writer.int64(record.tokenFloor).int64(record.ephemeralFloor).uint53(record.nextLife);
  writer.boolean(record.membership !== null);
  if (record.membership !== null) writer.bytes(record.membership);
  writer.uint53(record.membershipIndex);
  writer.uint53(record.placedGeneration).uint32(record.level);
  writer.uint53(record.installedIndex).uint53(record.installedTerm);
  if (version === VERSION) {
    writer.boolean(dataBytes !== null);
    if (dataBytes !== null) writer.uint53(dataBytes);
    writer.boolean(collected !== null);
    if (collected !== null) writer.uint53(collected.keysMs).uint53(collected.locksMs);
  }
  writer.int32(record.effectsLow).int32(record.effectsHigh);
  writer.int32(record.chainLow).int32(record.chainHigh);
  return writer.finish();
}

/** Whether what a record may leave out follows. */
function readsFlag(reader: ByteReader, version: number): boolean {
  return version === VERSION && reader.boolean();
}

/** Null when the bytes are not a group record of a known version. */
export function decodeGroupRecord(bytes: Uint8Array): GroupRecord | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version < 1 || version > VERSION) return null;
  const record: GroupRecord = {
    generation: reader.uint32(),
    lastGeneration: reader.uint32(),
    appliedIndex: reader.uint53(),
    appliedTerm: reader.uint53(),
    leaseMs: reader.uint53(),
    stamp: readStamp(reader),
    tokenFloor: reader.int64(),
    ephemeralFloor: reader.int64(),
    nextLife: reader.uint53(),
    membership: reader.boolean() ? reader.bytes() : null,
    membershipIndex: configIndex(reader.uint53()),
    placedGeneration: version < 3 ? NO_PLACEMENT : placementGeneration(reader.uint53()),
    level: version < 3 ? FIRST_LEVEL : level(reader.uint32()),
    installedIndex: version === 1 ? 0 : reader.uint53(),
    installedTerm: version === 1 ? 0 : reader.uint53(),
    dataBytes: version === 4 || readsFlag(reader, version) ? reader.uint53() : null,
    collected: readsFlag(reader, version)
      ? { keysMs: reader.uint53(), locksMs: reader.uint53() }
      : null,
    effectsLow: reader.int32(),
    effectsHigh: reader.int32(),
    chainLow: reader.int32(),
    chainHigh: reader.int32(),
  };
  const isLevel = record.level >= 1 && record.level <= LEVEL_NUMBER_MAX;
  return reader.isComplete() && isLevel ? record : null;
}
