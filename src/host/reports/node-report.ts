/**
 * What a node tells the others of itself, and how it travels: one frame of the lane "control".
 *
 * Reports steer choices, never majorities: where a replica is to come, who leads too much, why a
 * move does not get on. Pure codec. Invariants: 1. A frame is at most NODE_REPORT_MAX_BYTES, for
 * any cluster there can be. 2. Reading is strict and bounded (P-128): lists ascend, and nothing is
 * allocated that the bytes do not hold.
 */
import { assert } from "../../base/assert.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { SINCE } from "../../base/levels.js";
import { MEMBERS_MAX, NODE_REPORT_MAX_BYTES, PARTITIONS_MAX } from "../../base/limits.js";
import { ControlMark } from "../replication/control-marks.js";

const MARK = ControlMark.report;
/** Since version 2 a report tells of placement, and of the wall clock. */
const VERSION = 2;
/** Since which protocol it does. */
const SECOND_PROTOCOL = SINCE.spoken["node report"][VERSION];

/** Replicas on their way that one report tells of: the most urgent ones are what counts. */
export const ARRIVALS_MAX = 256;
/** Waits that one report tells of, and the length of each (characters). */
export const WAITS_MAX = 64;
const WHY_MAX = 100;
const FRAME_BYTES = 512;

/** How far a replica is that comes to a group which the reporting node leads. */
export interface ReplicaArrival {
  readonly partition: number;
  /** Who gets it. */
  readonly nodeId: number;
  /** Last entry that is known to be there; it grows while log arrives. */
  readonly matchIndex: number;
  /** Chunks of a snapshot that were acknowledged; they grow while one travels. */
  readonly snapshotChunks: number;
  /** It has its snapshot, and takes log. */
  readonly hasSnapshot: boolean;
}

/** What a partition waits for, as whoever is to take its next step knows. */
export interface PartitionWait {
  readonly partition: number;
  /** For people; what is too long is cut. */
  readonly why: string;
}

export interface UnlinkedNode {
  readonly nodeId: number;
  /** For so long, as far as it was missed (ms). */
  readonly forMs: number;
}

/** What the leader of meta needs of it to place replicas, and whoever leaves to know what comes. */
export interface PlacementReport {
  /** Its --raft-enable-placement-rebalancer. */
  readonly rebalances: boolean;
  /** Names and values in each partition that it leads, in their order (bytes), to about a tenth. */
  readonly leadingBytes: readonly number[];
}

export interface NodeReport {
  /** Starts of the data directory: a report of an earlier one says nothing any more. */
  readonly bootNumber: number;
  /** See contract 5.1. */
  readonly isReady: boolean;
  /** Why it is not ready; "" when it is. What is too long is cut. */
  readonly reason: string;
  /** Since the start of the process (ms). */
  readonly uptimeMs: number;
  /** Data requests that ended lately, and those of them that failed. */
  readonly requestsPerSecond: number;
  readonly failedPerSecond: number;
  /** Applied index of the meta partition: how new its partition map is. */
  readonly metaIndex: number;
  /** Replicas of data partitions on the node. */
  readonly replicas: number;
  /** Those of them that are learners. */
  readonly learners: number;
  /** Partitions that it leads and serves, meta among them, ascending. */
  readonly leading: readonly number[];
  /** By partition, then by node. */
  readonly arrivals: readonly ReplicaArrival[];
  /** Steps towards the records that are not done yet, and why. */
  readonly waits: readonly PartitionWait[];
  /** Snapshots that it takes in. */
  readonly snapshotsIn: number;
  /** Snapshots that it sends. */
  readonly snapshotsOut: number;
  readonly logBytes: number;
  readonly storeBytes: number;
  /** What the store may grow to; 0 = no bound is known. */
  readonly storeMaxBytes: number;
  /** Log or store are full: it takes no writes. The disk alone bounds the log. */
  readonly isFull: boolean;
  /** Commands proposed here. */
  readonly writesPerSecond: number;
  /** 99th percentile of the last seconds (ms). */
  readonly loopLagP99Ms: number;
  readonly logSyncP99Ms: number;
  /** Members that it has no link with, by node id. */
  readonly unlinked: readonly UnlinkedNode[];
  /** Unix time when it was made, by the node's clock (ms). Null: not told, as by version 1. */
  readonly wallMs: number | null;
  /** Null: not told, as by version 1. */
  readonly placement: PlacementReport | null;
}

/** Whether `bytes`, from the lane "control", are a report. */
export function isNodeReport(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

/** Times travel in microseconds. */
const MICROS = 1000;
const UINT32_MAX = 0xffff_ffff;

function uint32(value: number): number {
  return Math.min(UINT32_MAX, Math.max(0, Math.round(value)));
}

/** The report as it is told over links of that protocol. */
export function spokenReport(report: NodeReport, protocol: number): NodeReport {
  return protocol < SECOND_PROTOCOL ? { ...report, wallMs: null, placement: null } : report;
}

/** The frame of a report. */
export function encodeNodeReport(report: NodeReport): Uint8Array {
  const { wallMs, placement } = report;
  const writer = new ByteWriter(FRAME_BYTES).uint8(MARK);
  assert((wallMs === null) === (placement === null), "a version tells of both or of neither");
  writer.uint8(placement === null ? VERSION - 1 : VERSION);
  writer.uint53(report.bootNumber).uint53(report.metaIndex);
  writer.boolean(report.isReady).text(report.reason.slice(0, WHY_MAX)).uint53(report.uptimeMs);
  writer.uint32(uint32(report.requestsPerSecond)).uint32(uint32(report.failedPerSecond));
  writer.length(report.replicas).length(report.learners);
  writer.length(report.snapshotsIn).length(report.snapshotsOut);
  writer.uint53(report.logBytes).uint53(report.storeBytes).uint53(report.storeMaxBytes);
  writer.boolean(report.isFull);
  writer.uint32(uint32(report.writesPerSecond));
  writer.uint32(uint32(report.loopLagP99Ms * MICROS)).uint32(uint32(report.logSyncP99Ms * MICROS));
  let last = -1;
  writer.length(report.leading.length);
  for (const partition of report.leading) {
    writer.length(partition - last);
    last = partition;
  }
  writer.length(report.arrivals.length);
  for (const { partition, nodeId, matchIndex, snapshotChunks, hasSnapshot } of report.arrivals) {
    writer.length(partition).length(nodeId).uint53(matchIndex).length(snapshotChunks);
    writer.boolean(hasSnapshot);
  }
  writer.length(report.waits.length);
  for (const { partition, why } of report.waits) {
    writer.length(partition).text(why.slice(0, WHY_MAX));
  }
  last = 0;
  writer.length(report.unlinked.length);
  for (const { nodeId, forMs } of report.unlinked) {
    writer.length(nodeId - last).uint32(uint32(forMs));
    last = nodeId;
  }
  if (wallMs !== null) writer.uint53(wallMs);
  if (placement !== null) writePlacement(writer, placement);
  const isSized = placement === null || placement.leadingBytes.length === report.leading.length;
  assert(isSized, "every partition that is led has a size");
  assert(writer.sizeBytes <= NODE_REPORT_MAX_BYTES, "every report fits its frame");
  return writer.finish();
}

/** Null when the bytes are no report of this version. */
export function decodeNodeReport(bytes: Uint8Array): NodeReport | null {
  if (bytes.length > NODE_REPORT_MAX_BYTES) return null;
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== MARK) return null;
  const version = reader.uint8();
  if (version !== VERSION && version !== VERSION - 1) return null;
  const report: Omit<NodeReport, "wallMs" | "placement"> = {
    bootNumber: reader.uint53(),
    metaIndex: reader.uint53(),
    isReady: reader.boolean(),
    reason: reader.text(),
    uptimeMs: reader.uint53(),
    requestsPerSecond: reader.uint32(),
    failedPerSecond: reader.uint32(),
    replicas: reader.length(),
    learners: reader.length(),
    snapshotsIn: reader.length(),
    snapshotsOut: reader.length(),
    logBytes: reader.uint53(),
    storeBytes: reader.uint53(),
    storeMaxBytes: reader.uint53(),
    isFull: reader.boolean(),
    writesPerSecond: reader.uint32(),
    loopLagP99Ms: reader.uint32() / MICROS,
    logSyncP99Ms: reader.uint32() / MICROS,
    leading: readLeading(reader),
    arrivals: readArrivals(reader),
    waits: readWaits(reader),
    unlinked: readUnlinked(reader),
  };
  const count = report.leading.length;
  const wallMs = version === VERSION ? reader.uint53() : null;
  const placement = version === VERSION ? readPlacement(reader, count) : null;
  return reader.isComplete() ? { ...report, wallMs, placement } : null;
}

/** How many follow; more than there can be, or than the bytes hold, is a fault. */
function readCount(reader: ByteReader, most: number, itemBytes: number): number {
  const count = reader.length();
  if (count <= most && count * itemBytes <= reader.remainingBytes) return count;
  reader.fail();
  return 0;
}

/** The number that follows `last`: higher than it. */
function readNext(reader: ByteReader, last: number): number {
  const step = reader.length();
  if (step === 0) reader.fail();
  return last + step;
}

/** Steps from one size to the next on a scale of powers of two: sizes are told to about a tenth. */
const STEPS = 4;
const CLASSES_MAX = 53 * STEPS + 1;

/** 0 for nothing, and then one more for each step. */
function sizeClass(bytes: number): number {
  return bytes < 1 ? 0 : Math.min(CLASSES_MAX, 1 + Math.round(STEPS * Math.log2(bytes)));
}

/** A size of that class (bytes). */
function bytesOf(sizeClass: number): number {
  return sizeClass === 0 ? 0 : Math.round(2 ** ((sizeClass - 1) / STEPS));
}

function writePlacement(writer: ByteWriter, { rebalances, leadingBytes }: PlacementReport): void {
  writer.boolean(rebalances);
  for (const bytes of leadingBytes) writer.uint8(sizeClass(bytes));
}

function readPlacement(reader: ByteReader, count: number): PlacementReport {
  const rebalances = reader.boolean();
  const leadingBytes: number[] = [];
  for (let at = 0; at < count && !reader.failed; at++) {
    const read = reader.uint8();
    if (read > CLASSES_MAX) reader.fail();
    leadingBytes.push(bytesOf(read));
  }
  return { rebalances, leadingBytes };
}

function readLeading(reader: ByteReader): readonly number[] {
  const leading: number[] = [];
  const count = readCount(reader, PARTITIONS_MAX + 1, 1);
  for (let at = 0; at < count && !reader.failed; at++) {
    leading.push(readNext(reader, leading[at - 1] ?? -1));
  }
  return leading;
}

const ARRIVAL_MIN_BYTES = 12;

function readArrivals(reader: ByteReader): readonly ReplicaArrival[] {
  const arrivals: ReplicaArrival[] = [];
  const count = readCount(reader, ARRIVALS_MAX, ARRIVAL_MIN_BYTES);
  for (let at = 0; at < count && !reader.failed; at++) {
    const partition = reader.length();
    const nodeId = reader.length();
    const matchIndex = reader.uint53();
    const snapshotChunks = reader.length();
    const hasSnapshot = reader.boolean();
    arrivals.push({ partition, nodeId, matchIndex, snapshotChunks, hasSnapshot });
  }
  return arrivals;
}

const WAIT_MIN_BYTES = 2;

function readWaits(reader: ByteReader): readonly PartitionWait[] {
  const waits: PartitionWait[] = [];
  const count = readCount(reader, WAITS_MAX, WAIT_MIN_BYTES);
  for (let at = 0; at < count && !reader.failed; at++) {
    waits.push({ partition: reader.length(), why: reader.text() });
  }
  return waits;
}

const UNLINKED_MIN_BYTES = 5;

function readUnlinked(reader: ByteReader): readonly UnlinkedNode[] {
  const unlinked: UnlinkedNode[] = [];
  const count = readCount(reader, MEMBERS_MAX, UNLINKED_MIN_BYTES);
  for (let at = 0; at < count && !reader.failed; at++) {
    const nodeId = readNext(reader, unlinked[at - 1]?.nodeId ?? 0);
    unlinked.push({ nodeId, forMs: reader.uint32() });
  }
  return unlinked;
}
