/** Moves of key ranges between the groups of whole nodes, from the begin to the last row purged. */
import t from "tap";
import { measuredMove } from "../../../../perf/micro/range-move.js";
import { RangingCluster } from "../../../doubles/host/ranging.js";

const KEYS = Array.from({ length: 300 }, (_each, at) => `room/${String(at).padStart(4, "0")}`);

function filled(size = 3): RangingCluster {
  const cluster = new RangingCluster(size);
  cluster.ready();
  cluster.register("room");
  cluster.fill(KEYS, (key) => key);
  return cluster;
}

function lost(cluster: RangingCluster): string[] {
  return KEYS.filter((key) => cluster.read(key) !== key);
}

/** Where the keys of the space lie: "-room/0150@1 room/0150-@3". */
function map(cluster: RangingCluster): string {
  return cluster.records
    .ranges("room")
    .map(({ startKey, endKey, partitionId }) => `${startKey ?? ""}-${endKey ?? ""}@${partitionId}`)
    .join(" ");
}

void t.test("a split gives the upper part of a range to a new partition", (t) => {
  const cluster = filled();
  const home = cluster.home("room");
  t.equal(cluster.split("room/0150"), "done");
  t.match(cluster.move("room"), { kind: "split", source: home, target: 3 });
  t.ok(cluster.comeToRest(), "the move ends");
  t.equal(map(cluster), `-room/0150@${home} room/0150-@3`);
  t.match(cluster.records.partition(3), { state: "Active", mode: "full", founders: [1, 2, 3] });
  t.same(lost(cluster), [], "every key is where its range is");
  t.same(cluster.leftOver(), []);
  t.equal(cluster.write("room/0200", "again"), "applied");
  t.equal(cluster.read("room/0200"), "again");
  t.end();
});

void t.test("neighbours are merged, and the partition of the one that goes is removed", (t) => {
  const cluster = filled();
  const home = cluster.home("room");
  cluster.split("room/0150");
  t.ok(cluster.comeToRest());
  t.equal(cluster.merge("room", 3, home), "done");
  t.ok(cluster.comeToRest());
  t.equal(map(cluster), `-@${home}`);
  t.match(cluster.records.partition(3), { state: "Removed" });
  t.same(lost(cluster), []);
  t.same(cluster.leftOver(), []);
  t.equal(cluster.split("room/0100"), "done");
  t.ok(cluster.comeToRest());
  t.equal(map(cluster), `-room/0100@${home} room/0100-@4`, "an id is used once (P-103)");
  t.same(lost(cluster), []);
  t.end();
});

void t.test(
  "a key space that leaves goes home range after range, and is reachable all the time",
  (t) => {
    const cluster = filled();
    const home = cluster.home("room");
    for (const at of ["room/0100", "room/0200", "room/0250"]) {
      t.equal(cluster.split(at), "done");
      t.ok(cluster.comeToRest());
    }
    t.equal(cluster.records.ranges("room").length, 4);
    t.equal(cluster.decide({ kind: "unregister-range", keySpace: "room" }), "pending");
    t.ok(cluster.passUntil(() => cluster.records.ranges("room").length === 0, 30_000) > 0);
    t.ok(cluster.comeToRest());
    t.same(lost(cluster), [], "every key is at home");
    t.same(cluster.leftOver(), []);
    const living = cluster.records.partitions().filter(({ state }) => state !== "Removed");
    t.same(
      living.map(({ partitionId }) => partitionId),
      [1, 2],
      `home is ${home}`,
    );
    const facts = [...cluster.nodes.values()].map((node) => node.facts().ranges);
    const ended = (kind: string): number => {
      const all = facts.flatMap((each) => each.ended);
      const cut = all.filter((each) => each.kind === kind && each.result === "cut");
      return cut.reduce((sum, { count }) => sum + count, 0);
    };
    t.same([ended("split"), ended("home")], [3, 3], "each move that ended is counted once");
    const frozen = facts.flatMap((each) => each.frozenCounts).reduce((sum, each) => sum + each, 0);
    t.equal(frozen, 6, "and how long it was frozen");
    t.end();
  },
);

void t.test(
  "what is written while a range is copied is there afterwards, and nothing else",
  (t) => {
    const cluster = filled();
    t.equal(cluster.split("room/0100"), "done");
    const values = new Map(KEYS.map((key) => [key, key]));
    let moved = 0;
    for (let round = 0; round < 400 && !cluster.isAtRest; round++) {
      const key = KEYS[(round * 7) % KEYS.length] ?? "";
      const end = cluster.write(key, `${key} ${round}`);
      if (end === "applied") values.set(key, `${key} ${round}`);
      if (end === "moved") moved++;
    }
    t.ok(cluster.comeToRest());
    t.same(
      KEYS.filter((key) => cluster.read(key) !== values.get(key)),
      [],
    );
    t.same(cluster.leftOver(), []);
    t.comment(`${moved} writes met a frozen range`);
    t.end();
  },
);

void t.test(
  "P-104 splits at the ends of order: name, open start, beyond two bytes, longest key",
  (t) => {
    const cluster = new RangingCluster(3);
    cluster.ready();
    cluster.register("room");
    const longest = `room/${"z".repeat(1019)}`;
    // In the order of bytes, which that of UTF-16 is not.
    const ends = ["room", "room/", longest, "room/\ue000", "room/\uffff", "room/\u{10000}"];
    const keys = [...ends, "room/a b", "room/\u00e9", "room/\u65e5\u672c"];
    for (const key of keys) t.equal(cluster.write(key), "applied");
    for (const at of [...ends].reverse()) {
      t.equal(cluster.split(at), "done");
      t.ok(cluster.comeToRest());
    }
    const starts = cluster.records.ranges("room").map(({ startKey }) => startKey);
    t.same(starts, [null, ...ends]);
    const away = (): string[] => keys.filter((key) => cluster.read(key) !== key);
    t.same(away(), []);
    t.same(cluster.leftOver(), []);
    t.equal(cluster.decide({ kind: "unregister-range", keySpace: "room" }), "pending");
    t.ok(cluster.passUntil(() => cluster.records.ranges("room").length === 0, 60_000) > 0);
    t.ok(cluster.comeToRest());
    t.same(away(), []);
    t.same(cluster.leftOver(), []);
    t.end();
  },
);

t.test("a cluster that sleeps is woken to look at sizes, and does not spin for it", (t) => {
  const ranges = { splitThreshold: 200, splitMinSize: 2, mergeMinSize: 2, collectionEveryMs: 5000 };
  const cluster = new RangingCluster(3, { ranges, quiesceAfterMs: 500 });
  cluster.ready();
  cluster.register("room");
  cluster.fill(KEYS.slice(0, 50), (key) => key);
  cluster.pass(20_000);
  const turns = (): number => {
    return [...cluster.nodes.values()].reduce((sum, node) => sum + node.facts().turns, 0);
  };
  const before = turns();
  cluster.pass(20_000);
  const awake = turns() - before;
  t.ok(awake < 2000, `${awake} turns in 20 s of sleep`);
  t.equal(cluster.records.ranges("room").length, 1, "50 keys are not split at 200");
  cluster.fill(KEYS, (key) => key);
  cluster.pass(20_000);
  t.equal(cluster.records.ranges("room").length, 2, "300 are");
  t.ok(cluster.comeToRest());
  t.same(lost(cluster), []);
  t.end();
});

t.test(
  "what a split costs is measured of a whole one, and a copy is little more than its rows",
  (t) => {
    const { movedKeys, movedBytes, rowBytes } = measuredMove(600);
    t.equal(movedKeys, 300);
    t.ok(movedBytes <= 1.3 * rowBytes, `${movedBytes} bytes for ${rowBytes}`);
    t.end();
  },
);
