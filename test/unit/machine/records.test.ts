/**
 * Rows of the meta partition, records of groups and what else of them is stored: every version that was
 * ever written is read, and what is out of its bounds is damage.
 */
import t, { type Test } from "tap";
import { ByteWriter } from "../../../src/base/codec.js";
import {
  FIRST_LEVEL,
  FOUNDING_INCARNATION,
  NOT_BORN,
  NO_PLACEMENT,
  configIndex,
  incarnation,
  level,
  mapVersion,
  membershipVersion,
  partitionId,
  placementGeneration,
  rangeGeneration,
  topologyVersion,
} from "../../../src/base/ids.js";
import { LEVEL_NUMBER_MAX, NODE_ID_MAX } from "../../../src/base/limits.js";
import {
  decodeConfigChange,
  encodeConfigChange,
} from "../../../src/host/replication/config-entries.js";
import {
  type ReplicaRow,
  decodeReplicaRow,
  encodeReplicaRow,
  replicaRowKey,
} from "../../../src/host/storage/replica-row.js";
import { decodeEntry, encodeEntry } from "../../../src/machine/commands/codec.js";
import type {
  ClusterRecord,
  Command,
  PartitionRecord,
  ReplicaRecord,
} from "../../../src/machine/commands/command.js";
import { type KvRow, decodeKvRow, encodeKvRow, isKvRow } from "../../../src/machine/kv/kv-row.js";
import { UNKNOWN_PROGRAM } from "../../../src/machine/commands/meta-codec.js";
import {
  EMPTY_GROUP_RECORD,
  decodeGroupRecord,
  encodeGroupRecord,
} from "../../../src/machine/commands/group-record.js";
import {
  decodeCluster,
  decodeMember,
  decodePartition,
  decodeRange,
  encodeCluster,
  encodeMember,
  encodePartition,
  encodeRange,
} from "../../../src/machine/meta/meta-rows.js";
import { byteKeyToText } from "../../../src/machine/store/keys.js";
import { member, newMember } from "../../doubles/machine/members.js";

function written(write: (writer: ByteWriter) => ByteWriter): Uint8Array {
  return write(new ByteWriter()).finish();
}

/** Cut anywhere, with a byte too many, and of the next version: nothing of it is read. */
function isStrict(
  t: Test,
  bytes: Uint8Array,
  version: number,
  decode: (bytes: Uint8Array) => unknown,
): void {
  for (let size = 0; size < bytes.length; size++) {
    if (decode(bytes.slice(0, size)) !== null) t.fail(`cut at ${size}`);
  }
  t.equal(decode(Uint8Array.from([...bytes, 0])), null, "a byte too many");
  t.equal(bytes[0], version);
  t.equal(decode(Uint8Array.from([version + 1, ...bytes.subarray(1)])), null, "a later version");
  t.equal(decode(Uint8Array.from([0, ...bytes.subarray(1)])), null, "no version");
}

const cluster: ClusterRecord = {
  clusterId: "é",
  dataPartitions: 4,
  replicationFactor: 3,
  membershipVersion: membershipVersion(2 ** 40),
  mapVersion: mapVersion(8),
  nextPartitionId: 7,
  topologyVersion: topologyVersion(2 ** 41),
  level: level(2),
};

t.test("P-131 the cluster row: both versions, bounds", (t) => {
  t.strictSame(decodeCluster(encodeCluster(cluster)), cluster);
  isStrict(t, encodeCluster(cluster), 2, decodeCluster);
  const first = written((writer) =>
    writer.uint8(1).text("c").uint32(4).uint32(0).uint53(5).uint53(6),
  );
  t.strictSame(decodeCluster(first), {
    clusterId: "c",
    dataPartitions: 4,
    replicationFactor: 0,
    membershipVersion: 5,
    mapVersion: 6,
    nextPartitionId: 5,
    topologyVersion: 1,
    level: FIRST_LEVEL,
  });
  const changed = (more: Partial<ClusterRecord>) =>
    decodeCluster(encodeCluster({ ...cluster, ...more }));
  t.equal(changed({ nextPartitionId: 4 }), null, "an id that was given out");
  t.equal(changed({ level: level(0) }), null);
  t.equal(changed({ level: level(LEVEL_NUMBER_MAX + 1) }), null);
  t.ok(changed({ level: level(LEVEL_NUMBER_MAX) }));
  t.end();
});

t.test("P-131 a member's row: all three versions, bounds", (t) => {
  const program = { levelMin: level(4), levelMax: level(5), version: "0.9.1" };
  const today = member(7, { evicted: true, ...program });
  t.strictSame(decodeMember(encodeMember(today)), today);
  isStrict(t, encodeMember(today), 3, decodeMember);
  const first = written((writer) => writer.uint8(1).uint32(7).text("h:7").uint8(1).uint53(3));
  const before = {
    ...newMember(7, "h:7", ""),
    ...UNKNOWN_PROGRAM,
    role: "voter",
    joinedVersion: 3,
    evicted: false,
  };
  t.strictSame(decodeMember(first), before);
  const second = written((writer) =>
    writer.uint8(2).uint32(7).text("h:7").uint8(2).uint53(3).text("disk"),
  );
  t.strictSame(decodeMember(second), { ...before, role: "leaving", storageId: "disk" });
  const changed = (more: object) => decodeMember(encodeMember({ ...today, ...more }));
  t.equal(changed({ levelMin: level(6) }), null, "no level at all");
  t.equal(changed({ levelMin: level(0) }), null);
  t.equal(changed({ levelMax: level(LEVEL_NUMBER_MAX + 1) }), null);
  t.equal(changed({ version: "x".repeat(65) }), null);
  t.ok(changed({ version: "x".repeat(64) }));
  t.end();
});

const voter: ReplicaRecord = {
  nodeId: 2,
  role: "voter",
  incarnation: FOUNDING_INCARNATION,
  since: NO_PLACEMENT,
  replaces: 0,
};
const placed: PartitionRecord = {
  partitionId: 4,
  state: "Splitting",
  generation: placementGeneration(9),
  replicationOverride: 3,
  mode: "placed",
  founders: [1, 2, 3],
  bornVersion: NOT_BORN,
  replicas: [
    voter,
    {
      ...{ nodeId: 3, role: "removing", incarnation: incarnation(7) },
      ...{ since: placementGeneration(8), replaces: 0 },
    },
    {
      ...{ nodeId: NODE_ID_MAX, role: "learner", incarnation: incarnation(9) },
      ...{ since: placementGeneration(9), replaces: 2 },
    },
  ],
  configIndex: configIndex(2 ** 44),
};

t.test("P-131 a partition's row: all four versions, bounds", (t) => {
  t.strictSame(decodePartition(encodePartition(placed)), placed);
  isStrict(t, encodePartition(placed), 3, decodePartition);
  const born = { ...placed, bornVersion: membershipVersion(7) };
  t.strictSame(decodePartition(encodePartition(born)), born, "made by a split");
  isStrict(t, encodePartition(born), 4, decodePartition);
  const full = { ...placed, mode: "full", founders: [], replicas: [] } as const;
  t.strictSame(decodePartition(encodePartition(full)), full);
  const nowhere = { ...placed, founders: [], replicas: [] };
  t.strictSame(decodePartition(encodePartition(nowhere)), nowhere, "as a restore leaves it");
  const first = written((writer) => writer.uint8(1).uint32(4).uint8(0).uint53(2).uint32(3));
  const before = { partitionId: 4, state: "Active", generation: 2, replicationOverride: 3 };
  const everywhere = { mode: "full", founders: [], replicas: [], configIndex: 0, bornVersion: 0 };
  t.strictSame(decodePartition(first), { ...before, ...everywhere });
  const second = (...nodes: number[]): Uint8Array =>
    written((writer) => {
      writer.uint8(2).uint32(4).uint8(0).uint53(2).uint32(3).length(nodes.length);
      for (const node of nodes) writer.uint32(node);
      return writer;
    });
  t.strictSame(decodePartition(second()), { ...before, ...everywhere });
  t.strictSame(decodePartition(second(2)), {
    ...{ ...before, mode: "placed", founders: [2] },
    ...{ replicas: [voter], configIndex: 0, bornVersion: 0 },
  });
  t.equal(decodePartition(second(2, 2)), null);
  t.equal(decodePartition(second(0)), null);
  const count = second();
  count[count.length - 1] = 0x7f;
  t.equal(decodePartition(count), null, "a count that steers no allocation");
  const changed = (more: Partial<PartitionRecord>) =>
    decodePartition(encodePartition({ ...placed, ...more }));
  const only = (more: Partial<ReplicaRecord>) => changed({ replicas: [{ ...voter, ...more }] });
  t.ok(only({}));
  t.equal(changed({ mode: "full" }), null, "in full mode there is no list");
  t.equal(changed({ replicas: [voter, voter] }), null, "a node twice");
  t.equal(changed({ founders: [2, 1] }), null, "not ascending");
  t.equal(changed({ founders: Array.from({ length: 10 }, (_, at) => at + 1) }), null);
  t.equal(only({ nodeId: 0 }), null);
  t.equal(only({ nodeId: NODE_ID_MAX + 1 }), null);
  t.ok(only({ incarnation: incarnation(2), since: placementGeneration(2) }));
  t.equal(only({ incarnation: incarnation(2) }), null, "a role before its life");
  t.equal(only({ since: placementGeneration(10) }), null, "younger than its record");
  t.equal(only({ replaces: 1 }), null, "a voter replaces nobody");
  t.equal(only({ role: "learner", replaces: NODE_ID_MAX + 1 }), null);
  for (const [what, at] of [
    ["state", 5],
    ["mode", 18],
  ] as const) {
    const bytes = encodePartition(placed);
    bytes[at] = 9;
    t.equal(decodePartition(bytes), null, `an unknown ${what}`);
  }
  t.end();
});

t.test("P-131 a range's row: both versions", (t) => {
  const descriptor = {
    ...{ startKey: null, endKey: "é", partitionId: 2 },
    generation: rangeGeneration(3),
  };
  const row = { keySpace: "k", descriptor, changedLeaseMs: 2 ** 42 };
  t.strictSame(decodeRange(encodeRange(row)), row);
  isStrict(t, encodeRange(row), 2, decodeRange);
  const first = written((writer) =>
    writer.uint8(1).text("k").boolean(false).boolean(true).text("é").uint32(2).uint53(3),
  );
  t.strictSame(decodeRange(first), { ...row, changedLeaseMs: 0 });
  t.end();
});

t.test("P-131 P-030 a group's record: all its versions, bounds", (t) => {
  const record = {
    ...EMPTY_GROUP_RECORD,
    ...{ appliedIndex: 9, membership: Uint8Array.from([1, 2]), membershipIndex: configIndex(3) },
    ...{ installedIndex: 7, installedTerm: 6, chainHigh: 5 },
    ...{ placedGeneration: placementGeneration(2 ** 40), level: level(4), dataBytes: 2 ** 41 },
    collected: { keysMs: 2 ** 52, locksMs: 2 ** 42 },
  };
  const newest = encodeGroupRecord(record);
  t.strictSame(decodeGroupRecord(newest), record);
  isStrict(t, newest, 5, decodeGroupRecord);
  for (const part of [{ dataBytes: null }, { collected: null }]) {
    const some = encodeGroupRecord({ ...record, ...part });
    t.strictSame(decodeGroupRecord(some), { ...record, ...part });
    isStrict(t, some, 5, decodeGroupRecord);
  }
  // Two flags (2), what was collected (16) and the lanes (16) are last.
  const fourth = Uint8Array.from([4, ...newest.slice(1, -42), ...newest.slice(-41, -33)]);
  const sized = Uint8Array.from([...fourth, ...newest.slice(-16)]);
  t.strictSame(decodeGroupRecord(sized), { ...record, collected: null }, "of no release");
  const unsized = { ...record, dataBytes: null, collected: null };
  const bytes = encodeGroupRecord(unsized);
  t.equal(bytes[0], 3, "without a size as before");
  t.strictSame(decodeGroupRecord(bytes), unsized);
  // Placement and level (12 bytes) stand before the installed position (16) and the lanes (16).
  const second = Uint8Array.from([2, ...bytes.slice(1, -44), ...bytes.slice(-32)]);
  const before = { ...unsized, placedGeneration: NO_PLACEMENT, level: FIRST_LEVEL };
  t.strictSame(decodeGroupRecord(second), before);
  const first = Uint8Array.from([1, ...bytes.slice(1, -44), ...bytes.slice(-16)]);
  t.strictSame(decodeGroupRecord(first), { ...before, installedIndex: 0, installedTerm: 0 });
  for (const wrong of [0, LEVEL_NUMBER_MAX + 1]) {
    t.equal(decodeGroupRecord(encodeGroupRecord({ ...record, level: level(wrong) })), null);
  }
  t.end();
});

t.test("P-131 a config entry: both versions, and the order to leave", (t) => {
  const operations = [{ kind: "addLearner", node: 3 }] as const;
  const change = { version: 2, transition: "auto", operations } as const;
  const ordered = { change, generation: placementGeneration(2 ** 40) };
  const bytes = encodeConfigChange(ordered);
  t.strictSame(decodeConfigChange(bytes), ordered);
  const first = Uint8Array.from([1, ...bytes.subarray(9)]);
  t.strictSame(decodeConfigChange(first), { change, generation: NO_PLACEMENT });
  const leave = { version: 2, transition: "auto", operations: [] };
  const left = { change: leave, generation: NO_PLACEMENT };
  t.strictSame(decodeConfigChange(new Uint8Array()), left, "the core proposes it itself");
  for (let size = 1; size < bytes.length; size++) {
    if (decodeConfigChange(bytes.slice(0, size)) !== null) t.fail(`cut at ${size}`);
  }
  t.equal(decodeConfigChange(Uint8Array.from([...bytes, 0])), null);
  t.equal(decodeConfigChange(Uint8Array.from([3, ...bytes.subarray(1)])), null);
  t.end();
});

t.test("P-097 the row of a replica outlives it; strict and bounded", (t) => {
  const row: ReplicaRow = {
    incarnation: incarnation(2 ** 50),
    state: "gone",
    term: 2 ** 51,
    vote: NODE_ID_MAX,
    lastGeneration: 2 ** 32 - 1,
  };
  const bytes = encodeReplicaRow(row);
  t.strictSame(decodeReplicaRow(bytes), row);
  isStrict(t, bytes, 1, decodeReplicaRow);
  for (const state of ["live", "dropping"] as const) {
    t.strictSame(decodeReplicaRow(encodeReplicaRow({ ...row, state })), { ...row, state });
  }
  t.equal(decodeReplicaRow(encodeReplicaRow({ ...row, vote: NODE_ID_MAX + 1 })), null);
  const unknown = bytes.slice();
  unknown[1] = 3;
  t.equal(decodeReplicaRow(unknown), null);
  t.equal(byteKeyToText(replicaRowKey(partitionId(12))).slice(1), "replica/12");
  t.end();
});

t.test("P-131 commands of earlier versions are still read", (t) => {
  const stamp = { leaseMs: 1, stamp: { n: 1, l: 1, c: 0 } };
  const old = (write: (writer: ByteWriter) => void): Command | undefined => {
    const empty = encodeEntry(stamp, []);
    const writer = new ByteWriter().raw(empty.subarray(0, empty.length - 1)).length(1);
    write(writer);
    const decoded = decodeEntry(writer.finish());
    return decoded.ok ? decoded.value.commands[0] : undefined;
  };
  const update = { kind: "update-member", ...newMember(7, "h:7", ""), ...UNKNOWN_PROGRAM };
  t.strictSame(
    old((writer) => writer.uint8(65).uint8(1).int32(7).text("h:7")),
    update,
  );
  t.strictSame(
    old((writer) => writer.uint8(65).uint8(2).int32(7).text("h:7").text("s")),
    { ...update, storageId: "s" },
  );
  t.strictSame(
    old((writer) => writer.uint8(69).uint8(1).int32(7).text("h:7").text("s")),
    { ...update, kind: "add-member", storageId: "s" },
  );
  const founding = {
    ...{ kind: "found-cluster", clusterId: "c", dataPartitions: 2, replicationFactor: 0 },
    level: FIRST_LEVEL,
  };
  t.strictSame(
    old((writer) => {
      writer.uint8(64).uint8(1).text("c").int32(2).int32(0).length(1).int32(7).text("h:7");
    }),
    { ...founding, members: [{ ...newMember(7, "h:7", ""), ...UNKNOWN_PROGRAM }] },
  );
  t.strictSame(
    old((writer) => {
      writer.uint8(64).uint8(2).text("c").int32(2).int32(0).length(1);
      writer.int32(7).text("h:7").text("s");
    }),
    { ...founding, members: [{ ...newMember(7, "h:7", "s"), ...UNKNOWN_PROGRAM }] },
  );
  t.equal(
    old((writer) => writer.uint8(69).uint8(3).int32(7).text("h:7").text("s")),
    undefined,
  );
  t.end();
});

t.test("P-131 the row of a key is whole, looked at in place, exactly when it can be read", (t) => {
  const stamp = { n: 3, l: 1_700_000_000_000, c: 7 };
  const value = Uint8Array.of(1, 2, 3);
  const plain = { deleted: false, value, passing: false, revision: 9, stamp, endMs: null };
  const runs = [
    { first: 2, count: 3 },
    { first: 6, count: 1 },
  ];
  const rows: KvRow[] = [
    { ...plain, kept: [] },
    { ...plain, value: null, passing: true, kept: [] },
    { ...plain, endMs: 1_700_000_000_500, kept: runs },
    { ...plain, value: null, deleted: true, endMs: 5, kept: runs.slice(1) },
  ];
  let whole = 0;
  const agrees = (bytes: Uint8Array): boolean => {
    const is = decodeKvRow(bytes) !== null;
    if (is) whole++;
    const inside = new Uint8Array(bytes.length + 9).fill(0xff);
    inside.set(bytes, 5);
    return isKvRow(inside, 5, 5 + bytes.length) === is;
  };
  for (const row of rows) {
    const bytes = encodeKvRow(row);
    t.ok(isKvRow(bytes, 0, bytes.length));
    for (let end = 0; end < bytes.length; end++) {
      if (!agrees(bytes.slice(0, end))) t.fail(`${end} bytes of ${bytes.length}`);
    }
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
      if (!agrees(flipped)) t.fail(`bit ${bit} of ${bytes.length} bytes`);
    }
  }
  t.ok(whole > 100, "some of them can be read");
  t.end();
});
