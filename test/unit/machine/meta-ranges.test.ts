/**
 * Key ranges as the meta partition decides them: every edge and refusal, and what holds of any sequence of
 * commands, however old they are.
 */
import t from "tap";
import { compareText } from "../../../src/base/bytes.js";
import { Prng } from "../../../src/base/prng.js";
import { attempt, level, moveId, rangeGeneration } from "../../../src/base/ids.js";
import {
  PARTITIONS_MAX,
  PARTITION_ID_MAX,
  RANGE_ATTEMPTS_MAX,
  RANGE_ATTEMPT_MS,
  RANGE_MOVES_MAX,
  REMOVED_PARTITIONS_KEPT,
} from "../../../src/base/limits.js";
import { readCommand } from "../../../src/machine/commands/codec.js";
import type {
  ClusterRecord,
  Command,
  PartitionRecord,
  RangeDescriptor,
} from "../../../src/machine/commands/command.js";
import { RANGE_MOVE_COMMANDS } from "../../../src/machine/commands/range-meta-commands.js";
import { encodeCluster, encodePartition } from "../../../src/machine/meta/meta-rows.js";
import { tilingFault } from "../../../src/machine/meta/range-map.js";
import { RowKind, uint32Key } from "../../../src/machine/store/keys.js";
import { InventingReader } from "../../doubles/base/inventing-reader.js";
import { RangeBench, rangeText } from "../../doubles/machine/meta-ranges.js";
import { inShort, orders } from "../../doubles/machine/placement.js";

t.setTimeout(240_000);

function setRow(bench: RangeBench, kind: number, name: string, value: Uint8Array): void {
  bench.machine["groupRows"].put(kind, name, value);
}

function setPartition(bench: RangeBench, record: PartitionRecord): void {
  setRow(bench, RowKind.partition, uint32Key(record.partitionId), encodePartition(record));
}

/** [.., m) of "e" on 1, its home, [m, t) on 3, [t, ..) on 4. */
function three(): RangeBench {
  const bench = new RangeBench();
  bench.register("e");
  bench.moved("e", "split", "e/m");
  bench.moved("e", "split", "e/t");
  return bench;
}

t.test("6.3 a split: the record, both halves, the partition that it makes, and its end", (t) => {
  const bench = new RangeBench(3, 2);
  t.equal(bench.home("e"), 1);
  t.equal(bench.register("e"), "done 1");
  const { topologyVersion } = bench.cluster;
  t.equal(bench.split("e", "e/m"), "done 3", "the id is the map version");
  t.equal(bench.cluster.mapVersion, 3);
  t.strictSame(bench.machine.meta.move("e"), {
    ...{ moveId: 3, kind: "split", keySpace: "e", startKey: "e/m", endKey: null, source: 1 },
    ...{ target: 3, generation: 1, attempt: 1, phase: "copying", reason: "none" },
    ...{ sourceDone: false, targetDone: false, deadlineLeaseMs: RANGE_ATTEMPT_MS },
  });
  t.strictSame(bench.machine.meta.moves(), [bench.machine.meta.move("e")]);
  t.equal(bench.states(), "1 Splitting, 2 Active, 3 Splitting");
  t.equal(bench.cluster.nextPartitionId, 4);
  const born = bench.record(3);
  t.equal(born.replicas.map(inShort).join(), bench.record(1).replicas.map(inShort).join());
  t.match(born, { generation: 1, mode: "placed", founders: [1, 2], configIndex: 0 });
  t.equal(bench.split("e", "e/m"), "unchanged 3", "a repeat, while it is copied");
  t.equal(bench.ranges("e"), ".. 1@1", "nothing is moved yet");
  t.equal(bench.cut("e", 3, 1, 777), "done 4");
  t.equal(bench.ranges("e"), "..e/m 1@2, e/m.. 3@2");
  t.ok(bench.machine.meta.allRanges().every(({ changedLeaseMs }) => changedLeaseMs === 777));
  t.equal(bench.cut("e", 3), "unchanged 4");
  t.equal(bench.split("e", "e/m"), "busy 0", "what was moved already is another range");
  t.equal(bench.abort("e", 3), "stale 0", "there is no way back");
  t.equal(bench.finish("e", "target"), "done 5");
  t.equal(bench.finish("e", "target"), "unchanged 0");
  t.equal(bench.states(), "1 Splitting, 2 Active, 3 Splitting", "the source has still to purge");
  t.equal(bench.finish("e", "source"), "done 6");
  t.equal(bench.states(), "1 Active, 2 Active, 3 Active");
  t.equal(bench.finish("e", "source", 3), "stale 0");
  t.equal(bench.cut("e", 3), "stale 0");
  t.strictSame(bench.machine.meta.moves(), []);
  t.equal(bench.cluster.topologyVersion, topologyVersion + 3, "begin, cut, end");
  bench.flush();
  t.equal(bench.ranges("e"), "..e/m 1@2, e/m.. 3@2");
  t.end();
});

t.test("a partition in full mode begins with the voters of the member list", (t) => {
  const bench = new RangeBench(4, 0);
  bench.setMember(2, { role: "learner" });
  bench.setMember(3, { role: "leaving" });
  bench.register("e");
  bench.meta({ kind: "set-replication-factor", partitionId: 1, replicationFactor: 0 });
  t.equal(bench.split("e", "e/m"), "done 3");
  t.match(bench.record(3), { mode: "full", founders: [1, 4], replicas: [], state: "Splitting" });
  t.equal(bench.record(3).bornVersion, bench.cluster.membershipVersion);
  t.equal(bench.record(1).bornVersion, 0, "by no split");
  t.end();
});

t.test("P-103 an aborted split: its partition is removed, its id is never used again", (t) => {
  const bench = new RangeBench();
  bench.register("e");
  for (let round = 0; round < 3; round++) {
    t.match(bench.split("e", "e/m"), /^done/);
    t.match(bench.abort("e", bench.moveOf("e"), "no-target"), /^done/);
    t.match(bench.machine.meta.move("e"), { phase: "aborting", reason: "no-target" });
    t.equal(bench.abort("e"), "unchanged 0");
    t.equal(bench.cut("e"), "stale 1", "P-100 never after the abort");
    t.equal(bench.retry("e", bench.moveOf("e"), 1), "stale 1");
    t.equal(bench.split("e", "e/m"), "busy 0");
    t.equal(bench.finish("e", "target"), "unchanged 0", "it goes with what it holds");
    t.match(bench.finish("e", "source"), /^done/);
    t.equal(bench.machine.meta.isRemoved(3 + round), true);
    t.equal(bench.cluster.nextPartitionId, 4 + round);
  }
  t.equal(bench.states(), "1 Active, 2 Active, 3 Removed, 4 Removed, 5 Removed");
  t.equal(bench.record(4).generation, 2, "newer than any life that it gave");
  t.equal(bench.ranges("e"), ".. 1@1");
  t.equal(bench.machine.meta.isRemoved(6), false, "nobody knows that one yet");
  t.equal(bench.machine.meta.livingPartitions(), 2);
  t.end();
});

t.test("P-105 a merge: neighbours only, joined at once, the source is gone", (t) => {
  const bench = three();
  t.equal(bench.ranges("e"), "..e/m 1@2, e/m..e/t 3@3, e/t.. 4@3");
  t.equal(bench.begin("e", "merge", "e/t", 1), "stale 0", "they do not touch");
  t.equal(bench.begin("e", "merge", null, 4), "stale 0", "nor do these");
  t.equal(bench.begin("e", "merge", "e/t", 2), "stale 0", "no range of the key space is there");
  t.equal(bench.begin("e", "merge", "e/t", 4), "invalid 0", "to itself");
  t.match(bench.begin("e", "merge", "e/t", 3), /^done/);
  t.equal(bench.states(), "1 Active, 2 Active, 3 Active, 4 Draining");
  t.match(bench.cut("e"), /^done/);
  t.equal(bench.ranges("e"), "..e/m 1@2, e/m.. 3@4");
  t.match(bench.machine.meta.move("e"), { sourceDone: true, targetDone: false });
  t.equal(bench.states(), "1 Active, 2 Active, 3 Active, 4 Draining");
  t.match(bench.finish("e", "target"), /^done/);
  t.equal(bench.states(), "1 Active, 2 Active, 3 Active, 4 Removed");
  bench.moved("e", "merge", null, 3);
  t.equal(bench.ranges("e"), ".. 3@5", "to the right as well");
  t.equal(bench.states(), "1 Active, 2 Active, 3 Active, 4 Removed", "the pool stays");
  t.equal(bench.machine.meta.move("e"), null);
  t.end();
});

t.test("a range between two of one partition joins both", (t) => {
  const bench = three();
  bench.moved("e", "merge", "e/t", 3);
  bench.moved("e", "split", "e/x");
  bench.unregister("e");
  bench.moved("e", "home", "e/x", 1);
  t.equal(bench.ranges("e"), "..e/m 1@2, e/m..e/x 3@5, e/x.. 1@6", "a range between");
  bench.moved("e", "home", "e/m", 1);
  t.equal(bench.ranges("e"), ".. 1@7", "above every generation that it had");
  t.end();
});

t.test("begin: every refusal, and none leaves a trace", (t) => {
  const range = { startKey: "e/m", endKey: "e/t", source: 3, generation: rangeGeneration(3) };
  const far = rangeGeneration(9);
  type Change = Partial<Extract<Command, { kind: "begin-move" }>>;
  const table: readonly [string, Change, string][] = [
    ["done", {}, "done"],
    ["another source", { source: 1 }, "stale"],
    ["another generation", { generation: far }, "stale"],
    ["another end", { endKey: null }, "stale"],
    ["the start of its range", { startKey: "e/m" }, "stale"],
    ["the start of the next", { startKey: "e/t", endKey: "e/t" }, "stale"],
    ["outside of it", { startKey: "e/b" }, "stale"],
    ["another key space", { startKey: "b/p" }, "invalid"],
    ["no start", { startKey: null }, "invalid"],
    ["an empty start", { startKey: "" }, "invalid"],
    ["a split to a partition", { target: 2 }, "invalid"],
    ["an unregistered key space", { keySpace: "b", startKey: "b/p" }, "stale"],
    ["no key space", { keySpace: "" }, "invalid"],
    ["one that is none", { keySpace: "e/meta", startKey: "e/meta/p" }, "invalid"],
    ["a reserved one", { keySpace: "__svc:a", startKey: "__svc:a/p" }, "invalid"],
    ["a long end", { endKey: "x".repeat(1025) }, "invalid"],
    ["no source", { source: 0 }, "invalid"],
    ["a merge", { move: "merge", ...range, target: 1 }, "done"],
    ["a merge to the right", { move: "merge", ...range, target: 4 }, "done"],
    ["a merge of a part", { move: "merge", ...range, startKey: "e/p", target: 1 }, "stale"],
    ["a merge to no neighbour", { move: "merge", ...range, target: 2 }, "stale"],
    ["a merge to nobody", { move: "merge", ...range, target: 0 }, "invalid"],
    ["a merge to itself", { move: "merge", ...range, target: 3 }, "invalid"],
    [
      "a merge at an old generation",
      { move: "merge", ...range, generation: far, target: 1 },
      "stale",
    ],
    ["home", { move: "home", ...range, target: 1 }, "done"],
    ["home elsewhere", { move: "home", ...range, target: 2 }, "stale"],
    ["home to another range", { move: "home", ...range, target: 4 }, "stale"],
    ["a negative source", { move: "home", ...range, source: -1, target: 1 }, "invalid"],
  ];
  for (const [name, change, expected] of table) {
    const bench = three();
    const digest = bench.machine.stateDigest;
    const said = bench.begin("e", "split", "e/p", 0, change).split(" ")[0];
    t.equal(said, expected, name);
    if (expected !== "done") t.equal(bench.machine.stateDigest, digest, name);
  }
  t.end();
});

t.test("begin: what is busy", (t) => {
  const bench = new RangeBench(5, 3, 12);
  const spaces = Array.from({ length: 40 }, (_, at) => `n${at}`);
  for (const keySpace of spaces) bench.register(keySpace);
  t.match(bench.split("n0", "n0/m"), /^done/);
  t.equal(bench.split("n0", "n0/p"), "busy 0", "another move of the key space");
  const same = spaces.find((one) => one !== "n0" && bench.home(one) === bench.home("n0")) ?? "";
  t.equal(bench.split(same, `${same}/m`), "busy 0", "another move from the partition");
  let running = 1;
  for (const keySpace of spaces) {
    if (running === RANGE_MOVES_MAX) break;
    if (bench.split(keySpace, `${keySpace}/m`).startsWith("done")) running++;
  }
  const idle = spaces.find((one) => bench.record(bench.home(one)).state === "Active") ?? "";
  t.equal(bench.split(idle, `${idle}/m`), "busy 0", "as many as there may be");
  bench.abort("n0");
  t.equal(bench.split(idle, `${idle}/m`), "busy 0", "until one is over");
  bench.finish("n0", "source");
  const { generation, replicas } = bench.record(bench.home(idle));
  const nodeId = [1, 2, 3, 4, 5].find((id) => replicas.every((one) => one.nodeId !== id)) ?? 0;
  const comes = orders(generation, { kind: "add", nodeId, replaces: 0 }, bench.home(idle));
  t.match(bench.item(comes), /^done/);
  t.equal(bench.split(idle, `${idle}/m`), "busy 0", "a replica is on its way");
  t.end();
});

t.test("P-092 P-096 replicas of a partition whose range moves come and go as ever", (t) => {
  const bench = new RangeBench(4, 3, 1);
  bench.register("e");
  bench.split("e", "e/m");
  for (const id of [1, 2]) {
    const { generation } = bench.record(id);
    const comes = orders(generation, { kind: "add", nodeId: 4, replaces: 1 }, id);
    t.match(bench.item(comes), /^done/, "a drain is not blocked");
  }
  bench.cut("e");
  t.match(bench.finish("e", "source"), /^done/);
  t.match(bench.finish("e", "target"), /^done/);
  t.equal(
    bench.record(2).replicas.map(inShort).join(", "),
    "1 voter, 2 voter, 3 voter, 4 learner@2 for 1",
  );
  t.equal(bench.states(), "1 Active, 2 Active");
  t.equal(bench.split("e", "e/c"), "busy 0", "the next begins when it has come");
  t.end();
});

t.test("4096 living partitions, ids up to the last number", (t) => {
  const bench = new RangeBench(1, 0, 1);
  bench.register("e");
  const cluster: ClusterRecord = { ...bench.cluster, nextPartitionId: 5000 };
  for (let id = 2; id <= PARTITIONS_MAX; id++) {
    const state = id <= 3 ? "Removed" : "Active";
    setPartition(bench, { ...bench.record(1), partitionId: id, state });
  }
  setRow(bench, RowKind.cluster, "", encodeCluster(cluster));
  t.match(bench.split("e", "e/m"), /^done/);
  bench.abort("e");
  bench.finish("e", "source");
  setPartition(bench, { ...bench.record(1), partitionId: 2 });
  t.match(bench.split("e", "e/m"), /^done/, "the last one");
  bench.cut("e");
  bench.finish("e", "source");
  bench.finish("e", "target");
  t.equal(bench.machine.meta.livingPartitions(), PARTITIONS_MAX);
  t.equal(bench.split("e", "e/c"), "too-many-partitions 0");
  bench.moved("e", "merge", "e/m", 1);
  t.match(bench.split("e", "e/c"), /^done/, "removed ones are not counted");
  bench.abort("e");
  bench.finish("e", "source");
  setRow(
    bench,
    RowKind.cluster,
    "",
    encodeCluster({ ...bench.cluster, nextPartitionId: PARTITION_ID_MAX + 1 }),
  );
  t.equal(bench.split("e", "e/c"), "too-many-partitions 0", "no id is left");
  t.end();
});

t.test("P-103 the newest removed partitions are remembered, the others are still removed", (t) => {
  const bench = new RangeBench(1, 0, 1);
  bench.register("e");
  for (let round = 0; round < REMOVED_PARTITIONS_KEPT + 5; round++) {
    bench.split("e", "e/m");
    bench.abort("e");
    bench.finish("e", "source");
    const kept = bench.machine.meta.partitions().length;
    if (kept !== Math.min(2 + round, 1 + REMOVED_PARTITIONS_KEPT)) t.fail(`${round}: ${kept}`);
  }
  const records = bench.machine.meta.partitions();
  t.strictSame(records, bench.recordsAnew());
  t.equal(records.length, 1 + REMOVED_PARTITIONS_KEPT);
  t.equal(records[1]?.partitionId, 7);
  t.equal(bench.machine.meta.isRemoved(2), true, "without a record");
  t.equal(bench.machine.meta.isRemoved(7), true);
  t.equal(bench.machine.meta.isRemoved(1), false);
  t.end();
});

t.test("P-100 a cut is for the attempt that counts; attempts are five", (t) => {
  const bench = new RangeBench();
  bench.register("e");
  bench.split("e", "e/m");
  const id = bench.moveOf("e");
  t.equal(bench.retry("e", id, 2), "stale 1", "an attempt to come");
  t.equal(bench.retry("e", id + 1, 1), "stale 0", "another move");
  t.equal(bench.retry("b", id, 1), "stale 0", "another key space");
  t.equal(bench.retry("e", id, 1, 50), "done 2");
  t.match(bench.machine.meta.move("e"), { attempt: 2, deadlineLeaseMs: 50 + RANGE_ATTEMPT_MS });
  t.equal(bench.retry("e", id, 1), "stale 2", "a repeat");
  t.equal(bench.cut("e", id, 1), "stale 2", "frozen and closed in an attempt that is over");
  t.equal(bench.cut("e", id, 3), "stale 2");
  for (let of = 2; of < RANGE_ATTEMPTS_MAX; of++) {
    t.equal(bench.retry("e", id, of), `done ${of + 1}`);
  }
  t.equal(bench.retry("e", id, RANGE_ATTEMPTS_MAX), "too-many-attempts 5");
  t.equal(bench.cut("e", id, RANGE_ATTEMPTS_MAX - 1), "stale 5");
  t.match(bench.cut("e", id, RANGE_ATTEMPTS_MAX), /^done/);
  t.equal(bench.cut("e", id, 1), "stale 5");
  t.equal(bench.retry("e", id, RANGE_ATTEMPTS_MAX), "stale 5");
  t.equal(bench.abort("e", id, "none"), "invalid 0", "without a reason");
  t.equal(bench.finish("e", "source", id + 1), "stale 0");
  t.end();
});

t.test("a side is done after the cut or the abort only", (t) => {
  const bench = three();
  bench.unregister("e");
  bench.begin("e", "home", "e/t", 1);
  t.equal(bench.finish("e", "source"), "stale 0");
  t.equal(bench.finish("e", "target"), "stale 0");
  bench.abort("e");
  t.match(bench.machine.meta.move("e"), { sourceDone: false, targetDone: false });
  t.match(bench.finish("e", "target"), /^done/);
  t.equal(bench.states(), "1 Active, 2 Active, 3 Active, 4 Draining");
  t.match(bench.finish("e", "source"), /^done/);
  t.equal(bench.states(), "1 Active, 2 Active, 3 Active, 4 Active", "it has its range still");
  t.end();
});

t.test("6.3 K12: descriptors go only when every range is at home, decided in apply", (t) => {
  const bench = three();
  const digest = (): string => bench.machine.stateDigest;
  t.equal(bench.unregister("b"), "unchanged 0");
  bench.begin("e", "merge", "e/t", 3);
  t.equal(bench.unregister("e"), "busy 0", "a merge is under way");
  bench.abort("e");
  t.equal(bench.unregister("e"), "busy 0");
  bench.finish("e", "source");
  bench.finish("e", "target");
  t.equal(bench.unregister("e"), "pending 0");
  t.equal(bench.machine.meta.isLeaving("e"), true);
  t.strictSame(bench.machine.meta.leavingKeySpaces(), ["e"]);
  const was = digest();
  t.equal(bench.unregister("e"), "pending 0");
  t.equal(digest(), was, "a repeat waits with it");
  t.equal(bench.split("e", "e/c"), "stale 0", "it is not split any more");
  t.equal(bench.register("e"), "unchanged 2", "taken back");
  t.equal(bench.machine.meta.isLeaving("e"), false);
  t.equal(bench.unregister("e"), "pending 0");
  bench.begin("e", "home", "e/m", 1);
  t.equal(bench.unregister("e"), "pending 0", "while a range is on its way home");
  bench.register("e");
  t.equal(bench.unregister("e"), "pending 0", "also after it was taken back meanwhile");
  bench.cut("e");
  bench.finish("e", "source");
  bench.finish("e", "target");
  t.equal(bench.unregister("e"), "pending 0", "one range is still away");
  t.equal(bench.ranges("e"), "..e/t 1@4, e/t.. 4@3");
  bench.begin("e", "home", "e/t", 1);
  bench.cut("e");
  t.equal(bench.ranges("e"), ".. 1@5");
  t.equal(bench.unregister("e"), "pending 0", "all are at home, and the move is not over");
  bench.finish("e", "source");
  bench.finish("e", "target");
  const { mapVersion } = bench.cluster;
  t.equal(bench.unregister("e"), "done 0");
  t.equal(bench.cluster.mapVersion, mapVersion + 1);
  t.equal(bench.ranges("e"), "");
  t.equal(bench.machine.meta.isLeaving("e"), false);
  t.equal(bench.unregister("e"), "unchanged 0");
  t.equal(bench.register("e"), "done 1");
  t.end();
});

t.test("P-030 at level 1 no key space leaves: what is elsewhere stays", (t) => {
  const bench = new RangeBench(3, 0, 2, 1);
  t.equal(bench.register("e", 2), "done 1", "by a call that says so");
  const digest = bench.machine.stateDigest;
  t.equal(bench.unregister("e"), "range-elsewhere 0");
  t.equal(bench.machine.stateDigest, digest);
  bench.one(0, { kind: "set-level", level: level(2) });
  t.equal(bench.unregister("e"), "pending 0");
  t.end();
});

t.test(
  "P-103 a key space begins in the pool: nowhere else does a partition own by default",
  (t) => {
    const bench = new RangeBench();
    t.equal(bench.register("e", 3), "unknown-partition 0");
    bench.register("e");
    bench.moved("e", "split", "e/m");
    t.equal(bench.register("b", 3), "unknown-partition 0");
    t.equal(bench.register("b"), "done 1");
    t.end();
  },
);

const probes = (keySpace: string): readonly string[] => {
  return ["!", "e", "b", "b1", "c", "f", "m", "é", "\u{10ffff}"].map((key) => `${keySpace}/${key}`);
};

function owner(ranges: readonly RangeDescriptor[], key: string): RangeDescriptor | null {
  const holds = ranges.filter(({ startKey, endKey }) => {
    const isFrom = startKey === null || compareText(startKey, key) <= 0;
    return isFrom && (endKey === null || compareText(key, endKey) < 0);
  });
  if (holds.length > 1) throw new Error(`${key} has two ranges`);
  return holds[0] ?? null;
}

const SPACES = ["s", "k", "e"];

/** What one step must leave as it was, and what it may change. */
class Watcher {
  private cluster: ClusterRecord;
  private owners = new Map<string, RangeDescriptor | null>();
  private digest = "";
  private readonly born = new Set<number>();
  private readonly gone = new Set<number>();

  constructor(private readonly bench: RangeBench) {
    this.cluster = bench.cluster;
    for (const { partitionId } of bench.machine.meta.partitions()) this.born.add(partitionId);
    this.take();
  }

  private take(): void {
    this.cluster = this.bench.cluster;
    this.digest = this.bench.machine.stateDigest;
    for (const space of SPACES) {
      const ranges = this.bench.machine.meta.ranges(space);
      for (const key of probes(space)) this.owners.set(key, owner(ranges, key));
    }
  }

  /** What is wrong after `command`; null when nothing is. */
  fault(command: Command, said: string): string | null {
    const wrong = this.structure() ?? this.ids() ?? this.versions(command, said);
    const moved = wrong ?? this.moved(command, said);
    this.take();
    return moved;
  }

  private structure(): string | null {
    const { meta } = this.bench.machine;
    const moves = meta.moves();
    if (moves.length > RANGE_MOVES_MAX) return "too many moves";
    const named = new Set<number>();
    for (const { keySpace, descriptors } of meta.keySpaces()) {
      if (tilingFault(descriptors) !== null) return `${keySpace} is not tiled`;
      for (const { partitionId } of descriptors) named.add(partitionId);
    }
    for (const space of meta.leavingKeySpaces()) {
      if (meta.ranges(space).length === 0) return `${space} leaves without ranges`;
    }
    const anew = this.bench.recordsAnew();
    if (JSON.stringify(meta.partitions()) !== JSON.stringify(anew)) return "an old record is read";
    for (const { partitionId, state } of meta.partitions()) {
      const from = moves.filter(({ source }) => source === partitionId);
      const makes = moves.some(({ kind, target }) => kind === "split" && target === partitionId);
      if (from.length > 1) return `${partitionId} is the source of two moves`;
      const [move] = from;
      const expected =
        move === undefined
          ? makes
            ? "Splitting"
            : ""
          : move.kind === "split"
            ? "Splitting"
            : "Draining";
      const isOk = expected === "" ? ["Active", "Removed"].includes(state) : state === expected;
      if (!isOk) return `${partitionId} is ${state}`;
      const isInPool = partitionId <= this.cluster.dataPartitions;
      const isUsed = isInPool || named.has(partitionId) || expected !== "";
      if (isUsed === (state === "Removed")) return `${partitionId} is ${state}, used ${isUsed}`;
    }
    return null;
  }

  private ids(): string | null {
    for (const { partitionId, state } of this.bench.machine.meta.partitions()) {
      if (!this.born.has(partitionId)) {
        if (partitionId !== this.cluster.nextPartitionId)
          return `${partitionId} is not the next id`;
        this.born.add(partitionId);
      }
      if (state === "Removed") this.gone.add(partitionId);
      else if (this.gone.has(partitionId)) return `${partitionId} has two lives`;
    }
    return null;
  }

  private versions(command: Command, said: string): string | null {
    const { mapVersion, topologyVersion } = this.bench.cluster;
    const isChanged = this.bench.machine.stateDigest !== this.digest;
    if (mapVersion - this.cluster.mapVersion !== Number(isChanged)) return "mapVersion";
    const isTaken = said.startsWith("done") || said === "taken-in";
    const mayChange = isTaken || said.startsWith("pending") || command.kind === "register-range";
    if (isChanged && !mayChange) return "a refusal left a trace";
    const ends = command.kind === "finish-move" && this.bench.moveOf(command.keySpace) === 0;
    const counts = ["begin-move", "cut-range", "abort-move"].includes(command.kind) || ends;
    const raised = topologyVersion - this.cluster.topologyVersion;
    return raised === Number(isChanged && counts) ? null : "topologyVersion";
  }

  /** Keys change their partition by the cut of a move alone, and generations only grow. */
  private moved(command: Command, said: string): string | null {
    for (const space of SPACES) {
      const ranges = this.bench.machine.meta.ranges(space);
      for (const key of probes(space)) {
        const was = this.owners.get(key) ?? null;
        const is = owner(ranges, key);
        if (was === null || is === null) {
          if (
            was === is ||
            (is === null ? this.leaves(command, space, was) : command.kind === "register-range")
          )
            continue;
          return `${key} lost or found a range`;
        }
        const text = `${key}: ${rangeText(was)}, then ${rangeText(is)}`;
        if (was.partitionId === is.partitionId) {
          if (is.generation < was.generation) return text;
          continue;
        }
        const move = this.bench.machine.meta.move(space);
        const isCut =
          command.kind === "cut-range" && said.startsWith("done") && move?.phase === "cut";
        const isIts = move?.source === was.partitionId && move.target === is.partitionId;
        const isNow = isCut && move.attempt === command.attempt && move.moveId === command.moveId;
        if (!isNow || !isIts || is.generation <= was.generation) return text;
      }
    }
    return null;
  }

  /** All that was there is at home. */
  private leaves(command: Command, space: string, was: RangeDescriptor | null): boolean {
    if (command.kind !== "unregister-range" || command.keySpace !== space) return false;
    return was?.partitionId === this.bench.home(space);
  }
}

function draw(prng: Prng, bench: RangeBench, past: readonly Command[]): Command {
  const keySpace = SPACES[prng.below(SPACES.length)] as string;
  const { meta } = bench.machine;
  const move = meta.move(keySpace);
  const isOld = prng.chance(1, 12);
  const id = moveId(isOld ? prng.below(bench.cluster.mapVersion + 2) : (move?.moveId ?? 0));
  const of = { keySpace, moveId: id };
  const at = attempt(prng.chance(1, 5) ? 1 + prng.below(6) : (move?.attempt ?? 1));
  const ranges = meta.ranges(keySpace);
  const index = prng.below(ranges.length || 1);
  const range = ranges[index];
  const roll = prng.below(20);
  if (roll === 0 && past.length > 0) return past[prng.below(past.length)] as Command;
  if (roll <= 2 || range === undefined) {
    return { kind: "register-range", keySpace, partitionId: bench.home(keySpace) };
  }
  if (roll <= 4) return { kind: "unregister-range", keySpace };
  if (roll <= 10 && (move === null || prng.chance(1, 6))) {
    const kind = (["split", "split", "merge", "home"] as const)[prng.below(4)] as "split";
    const from = kind === "split" ? (probes(keySpace)[prng.below(9)] as string) : range.startKey;
    const near = ranges[index + (prng.chance(1, 2) ? 1 : -1)]?.partitionId ?? 1;
    const wild = 1 + prng.below(bench.cluster.nextPartitionId);
    const target = [0, near, bench.home(keySpace)][["split", "merge", "home"].indexOf(kind)] ?? 0;
    return {
      ...{ kind: "begin-move", keySpace, move: kind, startKey: from, endKey: range.endKey },
      ...{ source: range.partitionId, target: prng.chance(1, 10) ? wild : target },
      generation: prng.chance(1, 10) ? rangeGeneration(prng.below(9)) : range.generation,
    };
  }
  if (roll === 11) return { kind: "retry-move", ...of, attempt: at };
  if (roll === 12) return { kind: "abort-move", ...of, reason: "transfer-failed" };
  if (roll <= 14) return { kind: "cut-range", ...of, attempt: at };
  return { kind: "finish-move", ...of, side: prng.chance(1, 2) ? "source" : "target" };
}

const SEEDS = Number(process.env["SVC_PLACEMENT_SEEDS"] ?? 300);

t.test("P-100 P-103 P-104 P-105 any commands, late and twice: one owner, ids once, states", (t) => {
  const seen = {
    splits: 0,
    merges: 0,
    homes: 0,
    aborts: 0,
    retries: 0,
    removed: 0,
    unregistered: 0,
  };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const prng = new Prng(seed);
    const bench = new RangeBench(3, prng.below(4), 1 + prng.below(3));
    const watcher = new Watcher(bench);
    const past: Command[] = [];
    for (let at = 0; at < 150; at++) {
      const command = draw(prng, bench, past);
      const before =
        command.kind === "cut-range" ? bench.machine.meta.move(command.keySpace) : null;
      const said = bench.ask(command, at);
      past.push(command);
      const fault = watcher.fault(command, said);
      if (fault !== null) {
        t.fail(`seed ${seed}, step ${at}, ${JSON.stringify(command)} ${said}: ${fault}`);
        return t.end();
      }
      if (!said.startsWith("done")) continue;
      if (before?.kind === "split") seen.splits++;
      if (before?.kind === "merge") seen.merges++;
      if (before?.kind === "home") seen.homes++;
      if (command.kind === "abort-move") seen.aborts++;
      if (command.kind === "retry-move") seen.retries++;
      if (command.kind === "unregister-range") seen.unregistered++;
    }
    seen.removed += bench.machine.meta.partitions().filter((one) => one.state === "Removed").length;
  }
  t.comment(JSON.stringify(seen));
  for (const [what, count] of Object.entries(seen)) t.ok(count >= SEEDS / 4, `${what}: ${count}`);
  t.end();
});

t.test("P-031 commands of any content are decided", (t) => {
  const numbers = [67, 68, ...Object.values(RANGE_MOVE_COMMANDS).map(({ number }) => number)];
  const prng = new Prng(7);
  const bench = new RangeBench();
  bench.register("e");
  bench.split("e", "e/m");
  for (let at = 0; at < 20_000; at++) {
    const command = readCommand(
      new InventingReader(prng, [numbers[prng.below(numbers.length)] as number, 1]),
    );
    if (command === null || command === "unknown") continue;
    const near = "moveId" in command && prng.chance(1, 2);
    bench.ask(
      near ? { ...command, keySpace: "e", moveId: moveId(bench.moveOf("e")) } : command,
      at,
    );
  }
  t.equal(tilingFault(bench.machine.meta.ranges("e")), null);
  bench.ask({ kind: "register-range", keySpace: "z", partitionId: 1 }, Number.MAX_SAFE_INTEGER);
  t.match(bench.split("z", "z/m"), /^(done|busy)/, "the last of all times");
  t.end();
});
