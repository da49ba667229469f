/**
 * Fuzzing of everything in the state machine that reads bytes: entries (and what apply makes of
 * them), rows, snapshot chunks, cursors. Each target gets at least 100,000 inputs, half of them
 * damaged forms of valid ones.
 *
 * Seeded; the seed is printed when a target fails. SVC_FUZZ_INPUTS and SVC_FUZZ_SEED override
 * number and seed.
 */
import t, { type Test } from "tap";
import { encodeText } from "../../src/base/bytes.js";
import {
  FIRST_LEVEL,
  attempt,
  configIndex,
  incarnation,
  level,
  mapVersion,
  membershipVersion,
  moveId,
  placementGeneration,
  rangeGeneration,
  topologyVersion,
} from "../../src/base/ids.js";
import { Prng } from "../../src/base/prng.js";
import { decodeEntry, encodeEntry } from "../../src/machine/commands/codec.js";
import type { Command, Outcome, RangeMove } from "../../src/machine/commands/command.js";
import { decodeCursor, encodeCursor } from "../../src/machine/kv/cursor.js";
import { decodeGroupRecord, encodeGroupRecord } from "../../src/machine/commands/group-record.js";
import { decodeKvRow, encodeKvRow } from "../../src/machine/kv/kv-row.js";
import {
  decodeLockRow,
  heldLockRow,
  releasedLockRow,
  successionLockRow,
} from "../../src/machine/locks/lock-row.js";
import {
  decodeFormerMember,
  encodeFormerMember,
  decodeCluster,
  decodeMember,
  decodePartition,
  decodeRange,
  encodeCluster,
  encodeMember,
  encodePartition,
  encodeRange,
} from "../../src/machine/meta/meta-rows.js";
import { decodePlannerHold, encodePlannerHold } from "../../src/machine/meta/planner-holds.js";
import {
  decodeLeaving,
  decodeMove,
  encodeLeaving,
  encodeMove,
} from "../../src/machine/meta/range-rows.js";
import {
  decodeAllocationRow,
  decodeSequenceRow,
  encodeAllocationRow,
  encodeSequenceRow,
} from "../../src/machine/sequences/sequence-row.js";
import {
  Bench,
  allocate,
  bytes,
  collect,
  create,
  extend,
  lock,
  remove,
  reserve,
  set,
  unlock,
  update,
} from "../doubles/machine/bench.js";
import { CLUSTER_COMMANDS, member, newMember } from "../doubles/machine/members.js";
import { orders, place, report } from "../doubles/machine/placement.js";

const inputs = Number(process.env["SVC_FUZZ_INPUTS"] ?? 100_000);
const seed = Number(process.env["SVC_FUZZ_SEED"] ?? 20_260_101);

/** A damaged form of `valid`: bytes changed, cut, repeated or inserted. */
function damage(random: Prng, valid: Uint8Array): Uint8Array {
  const kind = random.below(8);
  if (kind === 0) return valid.slice(0, random.below(valid.length + 1));
  if (kind === 1) {
    const at = random.below(valid.length + 1);
    const inserted = new Uint8Array(valid.length + 1);
    inserted.set(valid.subarray(0, at));
    inserted[at] = random.below(256);
    inserted.set(valid.subarray(at), at + 1);
    return inserted;
  }
  const changed = valid.slice();
  for (let rounds = 1 + random.below(3); rounds > 0 && changed.length > 0; rounds--) {
    const at = random.below(changed.length);
    changed[at] = random.chance(1, 3)
      ? ([0, 1, 0x7f, 0x80, 0xff][random.below(5)] as number)
      : random.below(256);
  }
  return changed;
}

function noise(random: Prng): Uint8Array {
  const made = new Uint8Array(random.below(80));
  for (let at = 0; at < made.length; at++) made[at] = random.below(256);
  return made;
}

/** Runs a target over damaged forms of `seeds` and over noise. Returns how often it said yes. */
function fuzz(
  t: Test,
  name: string,
  seeds: readonly Uint8Array[],
  target: (input: Uint8Array, at: number) => boolean,
): number {
  const random = new Prng(seed).fork(name);
  let accepted = 0;
  let input: Uint8Array = new Uint8Array();
  try {
    for (let at = 0; at < inputs; at++) {
      const valid = seeds[random.below(seeds.length)] as Uint8Array;
      input = random.chance(9, 10) ? damage(random, valid) : noise(random);
      if (target(input, at)) accepted++;
    }
  } catch (error) {
    t.fail(`${name}: seed ${seed}, input ${Array.from(input).join(",")}: ${String(error)}`);
  }
  t.ok(accepted > 0 && accepted < inputs, `${name}: ${accepted} of ${inputs} were accepted`);
  return accepted;
}

const HEIR = { owner: bytes("o"), waitId: 7n, attempt: 2n ** 64n - 1n, note: null };
const NEW_HEIR = { ...HEIR, owner: bytes("p"), leaseMs: 500, note: bytes("n") };

const commands: readonly Command[] = [
  lock("r", "o", 1000),
  extend("r", "o", 1000),
  unlock("r", "o"),
  { kind: "lock-heir", ...HEIR, resource: "r", expiresMs: 1000 },
  { kind: "set-heirs", resource: "r", token: 0n, kept: 0, added: [NEW_HEIR], horizonMs: 2000 },
  { kind: "append-heirs", resource: "r", token: 1n, added: [NEW_HEIR], horizonMs: 2000 },
  set("a/k", "value", { flags: 2, expiresMs: 50 }),
  set("k", null, { flags: 48, compareValue: bytes("value") }),
  remove("k"),
  { kind: "kv-extend", key: "k", expiresMs: 7 },
  create("s", { maxValue: 2n ** 62n, blockSize: 5 }),
  update("s", { currentValue: 0n, cursor: { incarnation: 1, revision: 1, lastHandedOut: -1n } }),
  { kind: "delete-sequence", name: "s" },
  allocate("s", 1, "key", { cursor: { incarnation: 0, revision: 0, lastHandedOut: 5n } }),
  reserve("s", 3, { incarnation: 0, revision: 1, lastHandedOut: 2n }),
  { kind: "return-block", name: "s", cursor: { incarnation: 0, revision: 1, lastHandedOut: 2n } },
  collect(5, 6, new Uint8Array([0x10, 65])),
  {
    kind: "found-cluster",
    clusterId: "c",
    dataPartitions: 3,
    replicationFactor: 1,
    level: FIRST_LEVEL,
    members: [newMember(1, "h:1", "s1")],
  },
  ...CLUSTER_COMMANDS,
  { kind: "raise-level", to: level(2), membershipVersion: membershipVersion(2) },
  { kind: "set-level", level: level(2) },
  place(2, 5, [1, 3], [2]),
  orders(3, { kind: "add", nodeId: 4, replaces: 1 }),
  orders(3, { kind: "remove", nodeId: 1 }),
  orders(4, { kind: "cancel", nodeId: 4 }),
  report(9, [1, 3, 4], [2], 3),
  ...moves(),
];

/** All commands of moves of an interval, in an order in which some have an effect. */
function moves(): Command[] {
  const named = (id: number) => ({ keySpace: "a", moveId: moveId(id), attempt: attempt(1) });
  const part = { startKey: "a/j", endKey: "a/m", generation: rangeGeneration(1) };
  const stamp = { n: 1, l: 9, c: 0 };
  const older = { deleted: false, passing: false, value: bytes("v"), stamp, endMs: 9, kept: [] };
  const history = [encodeKvRow({ ...older, revision: 1 })];
  const row = encodeKvRow({ ...older, revision: 3, kept: [{ first: 1, count: 1 }] });
  const items = [
    { key: "a/k", row, continues: false, history },
    { key: "a/k", row: null, continues: true, history },
    { key: "a/l", row: null, continues: false, history: [] },
  ];
  const clocks = { sourceLeaseMs: 7, copyAgeMs: 100 };
  return [
    { kind: "range-freeze", ...named(1), ...part },
    { kind: "range-unfreeze", ...named(1), attempt: attempt(2) },
    { kind: "range-release", ...named(1) },
    { kind: "range-purge", ...named(1), startKey: "a/j", limit: 10 },
    { kind: "range-open", ...named(2), ...part },
    { kind: "range-import", ...named(2), number: 1, ...clocks, items: items.slice(0, 1) },
    { kind: "range-import", ...named(2), number: 2, ...clocks, items: items.slice(1) },
    { kind: "range-close", ...named(2), number: 3, keys: 1, digestLow: 1, digestHigh: 2 },
    { kind: "range-drop", ...named(2) },
    { kind: "range-adopt", ...named(2) },
  ];
}

t.test(
  "P-031 any bytes: entries decode to a refusal or to commands that apply decides without throwing",
  (t) => {
    const stamp = { leaseMs: 5, stamp: { n: 1, l: 9, c: 0 } };
    const seeds = commands.map((command) => encodeEntry(stamp, [command]));
    seeds.push(encodeEntry(stamp, commands));
    const bench = new Bench();
    const outcomes: Outcome[] = [];
    let applied = 0;
    fuzz(t, "entry", seeds, (input) => {
      const decoded = decodeEntry(input);
      if (!decoded.ok) return false;
      const index = bench.machine.appliedIndex + 1;
      outcomes.length = 0;
      // Lease times of noise would end every lease at once: only every 16th entry brings its own.
      const leaseMs = index % 16 === 0 ? Math.min(decoded.value.stamp.leaseMs, 2 ** 40) : 0;
      const entry = { index, term: 1, leaseMs, stamp: decoded.value.stamp.stamp };
      bench.machine.apply(entry, decoded.value.commands, outcomes);
      if (outcomes.length !== decoded.value.commands.length) throw new Error("one outcome each");
      applied += outcomes.length;
      if (index % 1000 === 0) bench.flush();
      return true;
    });
    t.ok(applied > inputs / 20, `${applied} commands were applied`);
    const twin = new Bench(bench.store.copy());
    t.ok(twin.machine.appliedIndex > 0, "the state that came of it is whole");
    t.end();
  },
);

t.test("P-128 rows: damaged ones are refused or read as other rows, never thrown on", (t) => {
  const stamp = { n: 1, l: 9, c: 0 };
  const kept = [
    { first: 1, count: 2 },
    { first: 9, count: 1 },
  ];
  const value = {
    deleted: false,
    passing: false,
    value: bytes("v"),
    revision: 12,
    stamp,
    endMs: 4,
    kept,
  };
  const sequence = {
    currentValue: 5n,
    before: 1n,
    initialValue: 0n,
    increment: 1n,
    maxValue: 9n,
    blockSize: 3,
    incarnation: 1,
    revision: 2,
    createdAt: stamp,
    updatedAt: stamp,
    life: 1,
    firstOrdinal: 0,
    nextOrdinal: 2,
    entries: 2,
  };
  const allocation = {
    name: "s",
    count: 1,
    before: 1n,
    increment: 1n,
    incarnation: 0,
    revision: 1,
    ordinal: 3,
    endMs: 0,
  };
  const generation = rangeGeneration(1);
  const descriptor = { startKey: "a", endKey: null, partitionId: 1, generation };
  const move: RangeMove = {
    ...{ moveId: moveId(4), kind: "merge", keySpace: "k", startKey: "a", endKey: null },
    ...{ source: 1, target: 2, generation, attempt: attempt(2), phase: "cut", reason: "none" },
    ...{ sourceDone: false, targetDone: true, deadlineLeaseMs: 9 },
  };
  const record = { ...new Bench().machine.record(), membership: bytes("m") };
  const cluster = {
    clusterId: "c",
    dataPartitions: 1,
    replicationFactor: 0,
    membershipVersion: membershipVersion(1),
    mapVersion: mapVersion(1),
    nextPartitionId: 2,
    topologyVersion: topologyVersion(1),
    level: FIRST_LEVEL,
  };
  const grant = { owner: bytes("o"), waitId: 2n ** 64n - 1n, attempt: 3n, note: bytes("n") };
  const succession = {
    ...{ isHeld: true, base: { ...grant, token: 7n }, endMs: 5, listTerm: 2, untilMs: 9, top: 12n },
    heirs: [8n, 10n].map((token) => ({ ...grant, token, leaseMs: 60_000 })),
  };
  const targets: readonly [string, (input: Uint8Array) => unknown, Uint8Array][] = [
    ["lock row", decodeLockRow, heldLockRow(7n, 5, bytes("o"), null)],
    ["lock row with a note", decodeLockRow, heldLockRow(7n, 5, bytes("o"), bytes("n"))],
    ["released lock row", decodeLockRow, releasedLockRow(7n, 5)],
    ["lock row with heirs", decodeLockRow, successionLockRow(succession)],
    [
      "released lock row below a token that was named",
      decodeLockRow,
      successionLockRow({ ...succession, isHeld: false, heirs: [] }),
    ],
    ["value row", decodeKvRow, encodeKvRow(value)],
    ["tombstone row", decodeKvRow, encodeKvRow({ ...value, deleted: true, value: null })],
    ["sequence row", decodeSequenceRow, encodeSequenceRow(sequence)],
    ["allocation row", decodeAllocationRow, encodeAllocationRow(allocation)],
    ["cluster row", decodeCluster, encodeCluster(cluster)],
    ["member row", decodeMember, encodeMember(member(1))],
    [
      "partition row",
      decodePartition,
      encodePartition({
        partitionId: 1,
        state: "Active",
        generation: placementGeneration(3),
        replicationOverride: 0,
        mode: "placed",
        founders: [1, 2],
        bornVersion: membershipVersion(4),
        replicas: [
          {
            ...{ nodeId: 1, role: "voter", incarnation: incarnation(0) },
            ...{ since: placementGeneration(2), replaces: 0 },
          },
          {
            ...{ nodeId: 4, role: "learner", incarnation: incarnation(3) },
            ...{ since: placementGeneration(3), replaces: 1 },
          },
        ],
        configIndex: configIndex(7),
      }),
    ],
    [
      "former member row",
      decodeFormerMember,
      encodeFormerMember({
        nodeId: 1,
        removedVersion: membershipVersion(4),
        storageIds: ["s", "t"],
      }),
    ],
    ["range row", decodeRange, encodeRange({ keySpace: "k", descriptor, changedLeaseMs: 5 })],
    ["range move row", decodeMove, encodeMove(move)],
    ["leaving key space row", decodeLeaving, encodeLeaving()],
    ["planner hold row", decodePlannerHold, encodePlannerHold(2 ** 50)],
    ["group record", decodeGroupRecord, encodeGroupRecord(record)],
  ];
  for (const [name, decode, valid] of targets) {
    t.ok(decode(valid) !== null, `${name} is read`);
    fuzz(t, name, [valid], (input) => decode(input) !== null);
  }
  t.end();
});

t.test("P-040 P-128 snapshot chunks: no damaged chunk is taken, none throws", (t) => {
  const bench = new Bench();
  for (const command of commands) bench.apply(1, command);
  const source = bench.machine.openSnapshot(1 << 20);
  const chunks: Uint8Array[] = [];
  for (let last = false; !last;) {
    const chunk = source.next(120);
    if (chunk === "overrun") throw new Error("overrun");
    chunks.push(chunk.bytes);
    last = chunk.last;
  }
  const first = chunks[0] as Uint8Array;
  const target = new Bench();
  fuzz(t, "chunk", [first], (input) => {
    const sink = target.machine.beginRestore();
    const { ok } = sink.take(input);
    target.machine.abandonRestore();
    if (ok && String(input) !== String(first)) throw new Error("a damaged chunk was taken");
    return ok;
  });
  t.end();
});

t.test("K18 cursors: any text is refused or is of this query", (t) => {
  const seeds = ["k", "a/b", "é", "x".repeat(1024)].map((key) =>
    encodeText(encodeCursor("query", encodeText(key))),
  );
  fuzz(t, "cursor", seeds, (input) => {
    const text = Array.from(input, (byte) => String.fromCharCode(byte)).join("");
    return decodeCursor("query", text) !== null;
  });
  t.end();
});
