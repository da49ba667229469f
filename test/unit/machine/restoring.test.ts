/** What becomes of a group that is restored: the table of rows and record, floors, and where a replay ends. */
import t from "tap";
import { COUNTER_MAX } from "../../../src/base/hlc.js";
import {
  NOT_BORN,
  NO_CONFIG,
  NO_PLACEMENT,
  configIndex,
  level,
  membershipVersion,
  partitionId,
  placementGeneration,
  topologyVersion,
} from "../../../src/base/ids.js";
import type { Command, PartitionRecord } from "../../../src/machine/commands/command.js";
import { type GroupRecord, decodeGroupRecord } from "../../../src/machine/commands/group-record.js";
import { EPHEMERAL_TOKENS_PER_TERM } from "../../../src/base/limits.js";
import { Machine } from "../../../src/machine/machine.js";
import { installAtStart } from "../../../src/host/snapshots/snapshot-recovery.js";
import {
  decodeCluster,
  decodePartition,
  encodeCluster,
  encodeFormerMember,
  encodeMember,
  encodePartition,
} from "../../../src/machine/meta/meta-rows.js";
import { encodePlannerHold } from "../../../src/machine/meta/planner-holds.js";
import {
  type ChainEnd,
  type RestoredFloors,
  liftedEphemeralFloor,
  liftedIncarnation,
  liftedTokenFloor,
} from "../../../src/machine/restoring/lifted.js";
import { isReplayed } from "../../../src/machine/restoring/replay-end.js";
import { RestoredGroup } from "../../../src/machine/restoring/restored-group.js";
import { type RestoreOrder, restoredRow } from "../../../src/machine/restoring/restored-rows.js";
import {
  type SequenceRow,
  decodeSequenceRow,
  encodeSequenceRow,
} from "../../../src/machine/sequences/sequence-row.js";
import { RowKind, groupRecordKey } from "../../../src/machine/store/keys.js";
import { Bench, create, lock, set, unlock } from "../../doubles/machine/bench.js";
import { member, newMember } from "../../doubles/machine/members.js";
import { MetaBench } from "../../doubles/machine/placement.js";

const TOKENS = 1n << 44n;
const FLOOR_MAX = 1n << 62n;
const NO_RESTORES: RestoredFloors = { tokenFloor: 0n, ephemeralFloor: 0n, incarnation: 0 };
const END: ChainEnd = { tokenFloor: 0n, ephemeralFloor: 0n, incarnation: 0, term: 1 };
const ORDER: RestoreOrder = {
  clusterId: "new",
  ordinal: 1,
  earlier: NO_RESTORES,
  end: END,
  sequenceSkip: 0n,
};

t.test("P-137 L14 L15 floors are above all that could be handed out", (t) => {
  const token = (row: bigint, floor: bigint, end: bigint, earlier: bigint): bigint | null =>
    liftedTokenFloor(
      row,
      floor,
      { ...END, tokenFloor: end },
      { ...NO_RESTORES, tokenFloor: earlier },
    );
  t.equal(token(-1n, 0n, 0n, 0n), TOKENS);
  t.equal(token(7n, 0n, 0n, 0n), 8n + TOKENS, "above the highest row");
  t.equal(token(7n, 9n, 0n, 0n), 9n + TOKENS, "the floor of the image");
  t.equal(token(7n, 9n, 10n, 0n), 10n + TOKENS, "the end of the chain");
  t.equal(token(7n, 9n, 10n, 11n), 11n + TOKENS, "earlier restores");
  t.equal(token(0n, FLOOR_MAX - TOKENS, 0n, 0n), FLOOR_MAX);
  t.equal(token(0n, FLOOR_MAX - TOKENS + 1n, 0n, 0n), null, "no further");

  const ephemeral = (floor: bigint, end: bigint, earlier: bigint, term: number): bigint | null =>
    liftedEphemeralFloor(
      floor,
      { ...END, ephemeralFloor: end, term },
      { ...NO_RESTORES, ephemeralFloor: earlier },
    );
  const terms = (count: number): bigint => BigInt(count) * EPHEMERAL_TOKENS_PER_TERM;
  t.equal(ephemeral(0n, 0n, 0n, 3), terms(65_539));
  t.equal(ephemeral(5n, 4n, 0n, 3), 5n + terms(65_539));
  t.equal(ephemeral(5n, 6n, 0n, 3), 6n + terms(65_539));
  t.equal(ephemeral(5n, 6n, 7n, 3), 7n + terms(65_539));
  t.equal(ephemeral(0n, 0n, FLOOR_MAX, 1), null);
  // The old cluster goes on for 65,536 changes of leader; the restored one begins in term 3 or above.
  const old = terms(3 + 65_536);
  t.ok(
    (ephemeral(0n, 0n, 0n, 3) ?? 0n) + terms(3 - 1) >= old,
    "room for the leaders after the backup",
  );

  const incarnation = (own: number, end: number, earlier: number): number | null =>
    liftedIncarnation(own, { ...END, incarnation: end }, { ...NO_RESTORES, incarnation: earlier });
  t.equal(incarnation(0, 0, 0), 2 ** 20);
  t.equal(incarnation(5, 4, 3), 5 + 2 ** 20);
  t.equal(incarnation(5, 6, 3), 6 + 2 ** 20);
  t.equal(incarnation(5, 6, 7), 7 + 2 ** 20);
  t.equal(incarnation(0, Number.MAX_SAFE_INTEGER, 0), null);
  t.end();
});

t.test("P-132 a millisecond is replayed whole or not at all", (t) => {
  const at = (l: number, c: number): { n: number; l: number; c: number } => ({ n: 1, l, c });
  for (const [stamp, targetMs, isIn] of [
    [at(50, 0), 50, true],
    [at(50, 1), 50, true],
    [at(50, COUNTER_MAX), 50, true],
    [at(51, 0), 50, false],
    [at(49, COUNTER_MAX), 50, true],
    [null, 50, true],
    [at(2 ** 50, 7), 0, true],
  ] as const) {
    t.equal(isReplayed(stamp, targetMs), isIn, `${stamp?.l}.${stamp?.c} at ${targetMs}`);
  }
  t.end();
});

const SEQUENCE: SequenceRow = {
  ...{ currentValue: 900n, before: 800n, initialValue: 0n, increment: 10n },
  ...{ maxValue: 950n, blockSize: 10, incarnation: 4, revision: 3, life: 2 },
  ...{ createdAt: { n: 1, l: 1, c: 0 }, updatedAt: { n: 1, l: 2, c: 0 } },
  ...{ firstOrdinal: 1, nextOrdinal: 3, entries: 2 },
};

t.test("P-137 S6 a restored sequence hands out no value of an open block", (t) => {
  const restored = (changes: Partial<SequenceRow>, order: Partial<RestoreOrder>): unknown => {
    const bytes = encodeSequenceRow({ ...SEQUENCE, ...changes });
    const row = restoredRow(RowKind.sequence, bytes, { ...ORDER, ...order });
    return typeof row === "string" ? row : decodeSequenceRow(row);
  };
  const incarnation = 4 + 2 ** 20;
  t.strictSame(restored({}, {}), { ...SEQUENCE, before: 900n, incarnation });
  for (const [sequenceSkip, maxValue, value] of [
    [3n, 950n, 930n],
    [5n, 950n, 950n],
    [6n, 950n, 950n],
    [1n << 62n, 950n, 950n],
    [3n, null, 930n],
    [1n << 62n, null, (1n << 63n) - 1n],
    [1n, 850n, 900n],
  ] as const) {
    const moved = { currentValue: value, before: value, maxValue, incarnation };
    t.strictSame(restored({ maxValue }, { sequenceSkip }), { ...SEQUENCE, ...moved });
  }
  const end = { ...END, incarnation: Number.MAX_SAFE_INTEGER };
  t.equal(restored({}, { end }), "overflow");
  t.end();
});

t.test("P-138 nothing of who the old cluster was is restored", (t) => {
  const meta = new MetaBench(3, 2, 2);
  const { machine } = meta;
  const cluster = machine.meta.cluster();
  if (cluster === null) throw new Error("founded");
  const of = { clusterId: "old", membershipVersion: membershipVersion(9) };
  const bytes = encodeCluster({ ...cluster, ...of, topologyVersion: topologyVersion(5) });
  for (const ordinal of [1, 3]) {
    const row = restoredRow(RowKind.cluster, bytes, { ...ORDER, ordinal });
    t.strictSame(typeof row === "string" ? row : decodeCluster(row), {
      ...cluster,
      clusterId: "new",
      membershipVersion: 0,
      topologyVersion: 5 + ordinal * 2 ** 20,
    });
  }
  t.throws(() => restoredRow(RowKind.cluster, bytes, { ...ORDER, clusterId: "old" }));
  t.equal(restoredRow(RowKind.cluster, bytes, { ...ORDER, ordinal: 2 ** 40 }), "overflow");

  const former = encodeFormerMember({
    ...{ nodeId: 4, removedVersion: membershipVersion(3), storageIds: ["s"] },
  });
  t.equal(restoredRow(RowKind.member, encodeMember(member(2)), ORDER), "gone");
  t.equal(restoredRow(RowKind.formerMember, former, ORDER), "gone");
  t.equal(restoredRow(RowKind.plannerHold, encodePlannerHold(5), ORDER), "gone");

  for (const record of machine.meta.partitions()) {
    const listed: PartitionRecord = {
      ...record,
      generation: placementGeneration(7),
      replicationOverride: 3,
      configIndex: configIndex(12),
      bornVersion: membershipVersion(2),
    };
    const row = restoredRow(RowKind.partition, encodePartition(listed), ORDER);
    t.strictSame(typeof row === "string" ? row : decodePartition(row), {
      ...listed,
      ...{ founders: [], replicas: [], configIndex: NO_CONFIG, bornVersion: NOT_BORN },
    });
  }
  t.end();
});

/** Rows of the group by kind and name, and its record. */
function contentOf(bench: Bench): { rows: Map<string, string>; record: GroupRecord | null } {
  bench.flush();
  const rows = new Map<string, string>();
  let record: GroupRecord | null = null;
  bench.memtable.scan("\0", null, (key, bytes) => {
    if (key === groupRecordKey(1)) record = decodeGroupRecord(bytes);
    else rows.set(key.slice(9), Buffer.from(bytes).toString("hex"));
    return true;
  });
  return { rows, record };
}

const COMMANDS: readonly Command[] = [
  lock("held", "o", 60_000),
  lock("free", "o", 60_000),
  unlock("free", "o"),
  set("key", "one"),
  set("key", "two"),
  create("s"),
  create("other", { increment: 5n }),
];

/** As groups count their data: names and values. */
function bytesIn(rows: ReadonlyMap<string, string>): number {
  let bytes = 0;
  for (const [name, hex] of rows) bytes += name.length - 1 + hex.length / 2;
  return bytes;
}

function restore(
  bench: Bench,
  order: RestoreOrder,
  limit = 2,
  dataBytes = bytesIn(contentOf(bench).rows),
): [string, RestoredGroup] {
  bench.machine.close();
  const record = { ...bench.machine.record(), dataBytes };
  const group = new RestoredGroup(bench.memtable, partitionId(1), record, order);
  let said = "more";
  while (said === "more") said = group.step(limit);
  return [said, group];
}

t.test("P-137 a group is restored: floors lifted, position installed, the rest as it was", (t) => {
  for (const limit of [1, 2, 1000]) {
    const bench = new Bench();
    for (const command of COMMANDS) bench.apply(5000, command);
    const before = contentOf(bench);
    const was = bench.machine.record();
    const highest = [...before.rows.keys()].length;
    const end = { tokenFloor: 50n, ephemeralFloor: 0n, incarnation: 3, term: 4 };
    const [said, group] = restore(bench, { ...ORDER, end }, limit);
    t.equal(said, "done");
    const after = contentOf(bench);
    t.equal(after.rows.size, highest);
    for (const [name, bytes] of before.rows) {
      const isSame = after.rows.get(name) === bytes;
      t.equal(isSame, name.charCodeAt(0) !== RowKind.sequence, `row ${name}`);
    }
    t.strictSame(after.record, {
      ...was,
      dataBytes: bytesIn(after.rows),
      tokenFloor: 50n + TOKENS,
      ephemeralFloor: (4n + 65_536n) * EPHEMERAL_TOKENS_PER_TERM,
      membership: null,
      membershipIndex: NO_CONFIG,
      placedGeneration: NO_PLACEMENT,
      installedIndex: was.appliedIndex,
      installedTerm: was.appliedTerm,
    });
    t.equal(after.record?.leaseMs, 5000, "leases run on");
    t.strictSame(group.floors, {
      tokenFloor: 50n + TOKENS,
      ephemeralFloor: (4n + 65_536n) * EPHEMERAL_TOKENS_PER_TERM,
      incarnation: 3 + 2 ** 20,
    });
    const machine = new Machine(bench.memtable, partitionId(1));
    t.equal(installAtStart(machine, null).kind, "reset", "its log begins there");
    const held = machine.reads.getLock("held", 5000);
    t.match(held, { owner: Buffer.from("o") }, "a lock that is held stays so");
  }
  t.end();
});

/** The token of the next grant of each lock, in a cluster that goes on from `bench`. */
function nextTokens(bench: Bench, names: readonly string[]): bigint[] {
  const machine = new Machine(bench.memtable, partitionId(1));
  return names.map((resource) => {
    const outcomes: unknown[] = [];
    const index = machine.appliedIndex + 1;
    const stamp = { n: 1, l: 9000 + index, c: 0 };
    const command = lock(resource, "next", 10);
    machine.apply({ index, term: 9, leaseMs: 90_000_000, stamp }, [command], outcomes as never);
    return (outcomes[0] as { token: bigint }).token;
  });
}

t.test("P-137 L14 a second restore of the same backup grants what the first could not", (t) => {
  const names = ["held", "free", "never"];
  let earlier: RestoredFloors = NO_RESTORES;
  let least = 100n;
  for (let ordinal = 1; ordinal <= 3; ordinal++) {
    const bench = new Bench();
    for (const command of COMMANDS) bench.apply(5000, command);
    const end = { ...END, tokenFloor: 100n };
    const [said, group] = restore(bench, { ...ORDER, ordinal, earlier, end });
    t.equal(said, "done");
    const tokens = nextTokens(bench, names);
    t.ok(
      tokens.every((token) => token >= least),
      `${tokens.join()} are at least ${least}`,
    );
    const { floors } = group;
    t.ok(floors.ephemeralFloor > earlier.ephemeralFloor);
    t.ok(floors.incarnation > earlier.incarnation);
    earlier = floors;
    // What it may grant before the next backup.
    least = floors.tokenFloor + TOKENS;
  }
  t.end();
});

t.test("P-137 a floor that is too large refuses the restore", (t) => {
  for (const earlier of [
    { ...NO_RESTORES, tokenFloor: FLOOR_MAX },
    { ...NO_RESTORES, ephemeralFloor: FLOOR_MAX },
    { ...NO_RESTORES, incarnation: Number.MAX_SAFE_INTEGER },
  ]) {
    const bench = new Bench();
    for (const command of COMMANDS) bench.apply(5000, command);
    const was = contentOf(bench).record;
    const [said] = restore(bench, { ...ORDER, earlier });
    t.equal(said, "overflow");
    t.strictSame(contentOf(bench).record, was, "no record of a restored group is written");
  }
  t.end();
});

t.test("a group that had counted less than it has is restored all the same", (t) => {
  // Counting began when the level came that asks for it, beside rows that were there already.
  const meta = new MetaBench(3, 0, 2);
  const [said] = restore(meta, ORDER, 1, 5);
  t.equal(said, "done");
  t.equal(contentOf(meta).record?.dataBytes, 0);
  t.end();
});

t.test("P-138 a restored meta partition is refounded by the node that has it", (t) => {
  for (const factor of [0, 2]) {
    const meta = new MetaBench(3, factor, 2);
    meta.one(0, { kind: "set-level", level: level(2) });
    meta.one(0, { kind: "hold-planner", holder: "backup", forMs: 60_000 });
    const before = meta.machine.meta.cluster();
    const [said] = restore(meta, ORDER, 1);
    const { rows, record } = contentOf(meta);
    t.equal(record?.dataBytes, bytesIn(rows), "what is gone is not counted");
    t.equal(said, "done");
    const machine = new Machine(meta.memtable, partitionId(1));
    t.strictSame(machine.meta.members(), []);
    t.notOk(machine.meta.isPlannerHeld(1), "who held the planners is gone");
    const command: Command = {
      ...{ kind: "refound-cluster", clusterId: "new", member: newMember(7, "n7:1", "s7") },
    };
    const outcomes: unknown[] = [];
    const index = machine.appliedIndex + 1;
    const stamp = { n: 7, l: machine.lastStamp.l + 1, c: 0 };
    machine.apply({ index, term: 2, leaseMs: 1, stamp }, [command], outcomes as never);
    t.match(outcomes, [{ status: "done" }]);
    t.strictSame(
      machine.meta.members().map(({ nodeId }) => nodeId),
      [7],
    );
    t.equal(machine.meta.partitions().length, 2);
    t.equal(machine.meta.cluster()?.topologyVersion, (before?.topologyVersion ?? 0) + 2 ** 20);
  }
  t.end();
});
