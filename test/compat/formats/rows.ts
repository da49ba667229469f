/** What lies in the state store, in entries and in snapshots. */
import { encodeText } from "../../../src/base/bytes.js";
import {
  attempt,
  configIndex,
  incarnation,
  level,
  mapVersion,
  moveId,
  NOT_BORN,
  membershipVersion,
  placementGeneration,
  rangeGeneration,
  topologyVersion,
} from "../../../src/base/ids.js";
import {
  decodeConfigChange,
  decodeMembership,
  encodeConfigChange,
  encodeMembership,
} from "../../../src/host/replication/config-entries.js";
import { KnownPeers } from "../../../src/host/cluster/known-peers.js";
import { decodeIdentity, encodeIdentity } from "../../../src/host/storage/identity.js";
import { decodeReplicaRow, encodeReplicaRow } from "../../../src/host/storage/replica-row.js";
import { decodeEntry, encodeEntry } from "../../../src/machine/commands/codec.js";
import type { RangeMove, ReplicaRecord } from "../../../src/machine/commands/command.js";
import {
  type GroupRecord,
  decodeGroupRecord,
  encodeGroupRecord,
} from "../../../src/machine/commands/group-record.js";
import { type KvRow, decodeKvRow, encodeKvRow } from "../../../src/machine/kv/kv-row.js";
import {
  type LockAuditRow,
  decodeAuditHead,
  decodeLockAudit,
  encodeAuditHead,
  encodeLockAudit,
} from "../../../src/machine/locks/lock-audit-row.js";
import { successionOf } from "../../../src/machine/locks/heirs.js";
import {
  type LockRow,
  LockState,
  decodeLockRow,
  successionLockRow,
} from "../../../src/machine/locks/lock-row.js";
import {
  decodeCluster,
  decodeFormerMember,
  decodeMember,
  decodePartition,
  decodeRange,
  encodeCluster,
  encodeFormerMember,
  encodeMember,
  encodePartition,
  encodeRange,
} from "../../../src/machine/meta/meta-rows.js";
import { decodePlannerHold, encodePlannerHold } from "../../../src/machine/meta/planner-holds.js";
import { decodeOwnership, encodeOwnership } from "../../../src/machine/ownership/ownership-row.js";
import {
  decodeLeaving,
  decodeMove,
  encodeLeaving,
  encodeMove,
} from "../../../src/machine/meta/range-rows.js";
import {
  decodeAllocationRow,
  decodeSequenceRow,
  encodeAllocationRow,
  encodeSequenceRow,
} from "../../../src/machine/sequences/sequence-row.js";
import { ChunkWriter, SnapshotDigest, readChunk } from "../../../src/machine/snapshot/format.js";
import { type ByteKey, toByteKey } from "../../../src/machine/store/keys.js";
import { EVERY_COMMAND } from "./commands.js";
import { type Format, format } from "./format.js";

const MOVE: RangeMove = {
  moveId: moveId(1),
  kind: "home",
  keySpace: "k",
  startKey: "k/a",
  endKey: null,
  source: 17,
  target: 1,
  generation: rangeGeneration(1),
  attempt: attempt(1),
  phase: "copying",
  reason: "none",
  sourceDone: false,
  targetDone: false,
  deadlineLeaseMs: 0,
};
const STAMP = { n: -3, l: 1_700_000_000_123, c: 4_000_000_000 };
const LATER = { n: 7, l: 1_700_000_000_999, c: 1 };
function replica(
  nodeId: number,
  role: ReplicaRecord["role"],
  life: number,
  since: number,
  replaces = 0,
): ReplicaRecord {
  const lived = { incarnation: incarnation(life), since: placementGeneration(since) };
  return { nodeId, role, ...lived, replaces };
}

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
const NAME = "caf\u00e9/\u65e5\u672c";
const OWNER = encodeText("owner-1");

const PROGRAM_LINE = { levelMin: level(1), levelMax: level(2), version: "0.1.0" };

const RECORD: GroupRecord = {
  generation: 3,
  lastGeneration: 4,
  appliedIndex: 2 ** 53 - 1,
  appliedTerm: 99,
  leaseMs: 1_700_000_000_000,
  stamp: STAMP,
  tokenFloor: INT64_MAX,
  ephemeralFloor: 2n ** 40n,
  nextLife: 77,
  membership: encodeText("as the host wrote it"),
  membershipIndex: configIndex(12),
  placedGeneration: placementGeneration(5),
  level: level(2),
  installedIndex: 10,
  dataBytes: 2 ** 33,
  collected: { keysMs: 2 ** 53 - 1, locksMs: 1_600_000_000_000 },
  installedTerm: 2,
  effectsLow: -1,
  effectsHigh: 2 ** 31 - 1,
  chainLow: -(2 ** 31),
  chainHigh: 5,
};

interface Chunk {
  readonly sequence: number;
  readonly record: GroupRecord | null;
  readonly rows: readonly {
    readonly kind: number;
    readonly name: string;
    readonly value: string;
  }[];
  /** Number of rows and digest, of the last chunk. */
  readonly end: readonly number[] | null;
}

const GROUP = 4;
const latin = (text: string): Uint8Array => Buffer.from(text, "latin1");

function writeChunk({ sequence, record, rows, end }: Chunk): Uint8Array {
  const writer = new ChunkWriter(GROUP);
  for (let at = 0; at <= sequence; at++) writer.begin();
  if (record !== null) writer.record(encodeGroupRecord(record));
  for (const { kind, name, value } of rows) writer.row(kind, latin(name), latin(value));
  if (end !== null) {
    const [count = 0, low = 0, high = 0] = end;
    const digest = new SnapshotDigest();
    writer.end(
      Object.defineProperties(digest, {
        low: { value: low },
        high: { value: high },
        rows: { value: count },
      }),
    );
  }
  return writer.finish(end !== null);
}

function readChunkOf(bytes: Uint8Array): Chunk | null {
  const text = (part: Uint8Array): string => Buffer.from(part).toString("latin1");
  for (const sequence of [0, 1]) {
    let record: GroupRecord | null = null;
    let end: number[] | null = null;
    const rows: { kind: number; name: string; value: string }[] = [];
    const isWhole = readChunk(bytes, GROUP, sequence, {
      record: (found) => (record = found),
      row: ({ kind, name, value }) => rows.push({ kind, name: text(name), value: text(value) }) > 0,
      end: (...found) => (end = found),
    });
    if (isWhole) return { sequence, record, rows, end };
  }
  return null;
}

const CHUNKS: readonly Chunk[] = [
  {
    sequence: 0,
    record: RECORD,
    rows: [
      { kind: 1, name: "a", value: "\x00\x01" },
      { kind: 2, name: "b\xff", value: "" },
    ],
    end: null,
  },
  { sequence: 1, record: null, rows: [{ kind: 9, name: "z", value: "y" }], end: [3, -5, 6] },
];

function writeLock(row: LockRow): Uint8Array {
  return successionLockRow(successionOf(row));
}

function readKv(bytes: Uint8Array): KvRow | null {
  const row = decodeKvRow(bytes);
  if (row === null) return null;
  const { deleted, value, passing, revision, stamp, endMs, kept } = row;
  return { deleted, value, passing, revision, stamp, endMs, kept };
}

interface KnownPeer {
  readonly nodeId: number;
  readonly storageId: string;
}

/** The row of `KnownPeers`, which has learned of `peers`. */
function writeKnown(peers: readonly KnownPeer[]): Uint8Array {
  let row: Uint8Array | null = null;
  const known = new KnownPeers({
    get: () => null,
    put: (_key: ByteKey, value) => (row = value),
    flushSoon: () => undefined,
  });
  for (const { nodeId, storageId } of peers) {
    const boot = { bootNumber: 10 + nodeId, bootNonce: 2 ** 32 - nodeId, earlierNonces: [] };
    known.learn({ nodeId, storageId, ...boot });
  }
  return row ?? new Uint8Array();
}

function readKnown(bytes: Uint8Array): readonly KnownPeer[] {
  const known = new KnownPeers({
    get: () => bytes,
    put: () => undefined,
    flushSoon: () => undefined,
  });
  known.load();
  const ids = Array.from({ length: 100 }, (_, at) => at + 1);
  return ids
    .filter((id) => known.storageIdOf(id) !== "")
    .map((nodeId) => ({ nodeId, storageId: known.storageIdOf(nodeId) }));
}

const UINT64_MAX = 2n ** 64n - 1n;
const HELD = { state: LockState.held, endMs: 7, owner: OWNER, note: null, succession: null };
const RELEASED = { ...HELD, state: LockState.released, owner: new Uint8Array() };
const NO_LIST = { waitId: 0n, attempt: 0n, heirs: [], listTerm: 0, untilMs: 0 };
const KV_ROW = { deleted: false, passing: false, revision: 9, stamp: STAMP, endMs: null, kept: [] };

export const ROW_FORMATS: Readonly<Record<string, Format>> = {
  entry: format(
    1,
    [
      { stamp: { leaseMs: 0, stamp: STAMP }, commands: [] },
      { stamp: { leaseMs: 2 ** 53 - 1, stamp: LATER }, commands: EVERY_COMMAND },
    ],
    ({ stamp, commands }) => encodeEntry(stamp, commands),
    (bytes) => {
      const entry = decodeEntry(bytes);
      return entry.ok ? { stamp: entry.value.stamp, commands: [...entry.value.commands] } : null;
    },
  ),
  "configuration entry": format(
    2,
    [
      {
        change: {
          version: 2 as const,
          transition: "explicit" as const,
          operations: [
            { kind: "addVoter" as const, node: 1 },
            { kind: "addLearner" as const, node: 65_000 },
            { kind: "remove" as const, node: 3 },
            { kind: "update" as const, node: 4 },
          ],
        },
        generation: placementGeneration(8),
      },
      {
        change: { version: 1, transition: "auto", operations: [{ kind: "remove", node: 2 }] },
        generation: placementGeneration(0),
      },
    ],
    encodeConfigChange,
    decodeConfigChange,
  ),
  "configuration of a group": format(
    1,
    [
      {
        voters: [1, 2, 3],
        votersOutgoing: [1, 2],
        learners: [7],
        learnersNext: [8, 9],
        autoLeave: true,
      },
    ],
    encodeMembership,
    decodeMembership,
  ),
  "group record": format(5, [RECORD], encodeGroupRecord, decodeGroupRecord),
  "cluster row": format(
    2,
    [
      {
        clusterId: NAME,
        dataPartitions: 8,
        replicationFactor: 3,
        membershipVersion: membershipVersion(5),
        mapVersion: mapVersion(6),
        nextPartitionId: 12,
        topologyVersion: topologyVersion(2),
        level: level(1),
      },
    ],
    encodeCluster,
    decodeCluster,
  ),
  "member row": format(
    3,
    (["learner", "voter", "leaving"] as const).map((role, at) => ({
      nodeId: 5 + at,
      endpoint: "node-5.example:9000",
      role,
      joinedVersion: membershipVersion(4),
      storageId: at === 0 ? "" : "5709a9e0",
      evicted: at === 2,
      ...PROGRAM_LINE,
    })),
    encodeMember,
    decodeMember,
  ),
  "former member row": format(
    1,
    [{ nodeId: 2, removedVersion: membershipVersion(9), storageIds: ["a", NAME] }],
    encodeFormerMember,
    decodeFormerMember,
  ),
  "partition row": format(
    4,
    [
      {
        partitionId: 4,
        state: "Active" as const,
        generation: placementGeneration(1),
        replicationOverride: 0,
        mode: "full" as const,
        founders: [],
        bornVersion: NOT_BORN,
        replicas: [],
        configIndex: configIndex(0),
      },
      {
        partitionId: 2 ** 32 - 1,
        state: "Draining",
        generation: placementGeneration(30),
        replicationOverride: 5,
        mode: "placed",
        founders: [1, 2, 3],
        bornVersion: membershipVersion(12),
        replicas: [
          replica(1, "voter", 0, 0),
          replica(2, "removing", 3, 29),
          replica(4, "learner", 30, 30, 2),
        ],
        configIndex: configIndex(88),
      },
    ],
    encodePartition,
    decodePartition,
  ),
  "range row": format(
    2,
    [
      {
        keySpace: NAME,
        descriptor: {
          startKey: null,
          endKey: "m",
          partitionId: 3,
          generation: rangeGeneration(2),
        },
        changedLeaseMs: 1_700_000_000_000,
      },
    ],
    encodeRange,
    decodeRange,
  ),
  "leaving key space row": format(1, [true as const], encodeLeaving, decodeLeaving),
  "planner hold row": format(1, [1, 2 ** 50], encodePlannerHold, decodePlannerHold),
  "range move row": format<RangeMove>(
    1,
    [
      {
        moveId: moveId(40),
        kind: "split" as const,
        keySpace: NAME,
        startKey: "m",
        endKey: null,
        source: 3,
        target: 2 ** 31 - 1,
        generation: rangeGeneration(2),
        attempt: attempt(5),
        phase: "aborting" as const,
        reason: "transfer-failed" as const,
        sourceDone: false,
        targetDone: true,
        deadlineLeaseMs: 1_700_000_000_000,
      },
      { ...MOVE, kind: "home", endKey: "é" },
      { ...MOVE, kind: "merge", startKey: null, phase: "cut", sourceDone: true },
    ],
    encodeMove,
    decodeMove,
  ),
  "lock row": format<LockRow>(
    3,
    [
      { ...HELD, token: 3n, endMs: 1_700_000_000_000 },
      { ...RELEASED, token: INT64_MAX, endMs: 0 },
      { ...HELD, token: 4n, note: encodeText(NAME) },
      { ...HELD, token: 5n, note: new Uint8Array() },
      { ...HELD, token: 6n, succession: { ...NO_LIST, waitId: UINT64_MAX, top: 6n } },
      {
        ...HELD,
        token: 7n,
        note: encodeText(NAME),
        succession: {
          ...{
            waitId: 1n,
            attempt: UINT64_MAX,
            listTerm: 99,
            untilMs: 2 ** 53 - 1,
            top: INT64_MAX,
          },
          heirs: [
            { token: 8n, owner: OWNER, waitId: 2n, attempt: 0n, leaseMs: 60_000, note: null },
            {
              ...{ token: INT64_MAX, owner: encodeText(NAME), waitId: UINT64_MAX, attempt: 1n },
              ...{ leaseMs: 1, note: encodeText(NAME) },
            },
          ],
        },
      },
      { ...RELEASED, token: 8n, endMs: 7, succession: { ...NO_LIST, untilMs: 8, top: 9n } },
    ],
    writeLock,
    decodeLockRow,
  ),
  "lock audit row": format<LockAuditRow>(
    1,
    [false, true].map((isEphemeral) => ({
      resource: NAME,
      isEphemeral,
      owner: OWNER,
      token: INT64_MAX,
      stamp: STAMP,
      actor: "ops",
      reason: NAME,
      requestId: "r-1",
      nodeId: 65_000,
      waitersDropped: 2 ** 32 - 1,
    })),
    encodeLockAudit,
    decodeLockAudit,
  ),
  "lock audit head row": format(
    1,
    [
      { oldest: 1, next: 1 },
      { oldest: 7, next: 2 ** 53 - 1 },
    ],
    encodeAuditHead,
    decodeAuditHead,
  ),
  "sequence row": format(
    1,
    [
      {
        currentValue: INT64_MAX,
        before: INT64_MIN,
        initialValue: -1n,
        increment: 1n,
        maxValue: INT64_MAX,
        blockSize: 1000,
        incarnation: 2,
        revision: 3,
        createdAt: STAMP,
        updatedAt: LATER,
        life: 4,
        firstOrdinal: 5,
        nextOrdinal: 9,
        entries: 3,
      },
      {
        currentValue: 0n,
        before: 0n,
        initialValue: 0n,
        increment: 2n,
        maxValue: null,
        blockSize: null,
        incarnation: 1,
        revision: 0,
        createdAt: STAMP,
        updatedAt: STAMP,
        life: 1,
        firstOrdinal: 0,
        nextOrdinal: 0,
        entries: 0,
      },
    ],
    encodeSequenceRow,
    decodeSequenceRow,
  ),
  "allocation row": format(
    1,
    [
      {
        name: toByteKey(encodeText(NAME)),
        count: 3,
        before: INT64_MIN,
        increment: 7n,
        incarnation: 2,
        revision: 11,
        ordinal: 6,
        endMs: 1_700_000_000_000,
      },
    ],
    encodeAllocationRow,
    decodeAllocationRow,
  ),
  "value row": format<KvRow>(
    1,
    [
      { ...KV_ROW, value: encodeText("value") },
      { ...KV_ROW, value: null, passing: true, endMs: 5000 },
      { ...KV_ROW, value: null, deleted: true, endMs: 1_700_000_000_000 },
      {
        ...KV_ROW,
        value: new Uint8Array(),
        kept: [
          { first: 1, count: 2 },
          { first: 5, count: 3 },
        ],
      },
    ],
    encodeKvRow,
    readKv,
  ),
  "ownership row": format(
    1,
    (["leaving", "left", "arriving", "closed", "here"] as const).map((state, at) => ({
      keySpace: NAME,
      startKey: at === 0 ? null : `${NAME}/b`,
      endKey: at === 1 ? null : `${NAME}/c`,
      state,
      generation: rangeGeneration(2 ** 40),
      moveId: moveId(8),
      attempt: attempt(5),
      nextImport: 2 ** 33,
      keys: 12,
      digestLow: 2 ** 32 - 1,
      digestHigh: 1,
      stamp: at === 4 ? LATER : STAMP,
      purgedTo: at === 1 ? `${NAME}/bb` : null,
      isPurged: at === 0,
    })),
    encodeOwnership,
    decodeOwnership,
  ),
  "snapshot chunk": format(1, CHUNKS, writeChunk, readChunkOf),
  "replica of a node": format(
    1,
    (["live", "dropping", "gone"] as const).map((state) => ({
      incarnation: incarnation(6),
      state,
      term: 2 ** 40,
      vote: 3,
      lastGeneration: 8,
    })),
    encodeReplicaRow,
    decodeReplicaRow,
  ),
  "identity of a node": format(
    3,
    [
      {
        nodeId: 1,
        founders: [
          { nodeId: 1, endpoint: "one:9000", storageId: "a" },
          { nodeId: 2, endpoint: "two:9000", storageId: "b" },
        ],
        isJoiner: false,
        bootNumber: 3,
        bootNonces: [1, 2 ** 32 - 1, 0],
      },
      {
        nodeId: 9,
        founders: [{ nodeId: 1, endpoint: "", storageId: "" }],
        isJoiner: true,
        bootNumber: 1,
        bootNonces: [5],
      },
    ],
    encodeIdentity,
    decodeIdentity,
  ),
  "known peers": format(
    2,
    [
      [
        { nodeId: 2, storageId: "two" },
        { nodeId: 31, storageId: NAME },
      ],
    ],
    writeKnown,
    readKnown,
  ),
};
