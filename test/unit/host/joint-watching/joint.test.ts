/** Watches whose partitions several nodes have, joined of parts (W14). */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { rangeGeneration } from "../../../../src/base/ids.js";
import { JointBench } from "../../../doubles/host/joint-bench.js";
import { Bench, lock, remove, set } from "../../../doubles/machine/bench.js";
import { Move, Side } from "../../../doubles/machine/range-move.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

/** Node 1 has partition 1, nodes 2 and 3 have 2 and 3. */
const REPLICAS = [
  [1, 2],
  [2, 3],
  [3, 2],
];

function watching(
  bench: JointBench,
  id: number,
  kind: number,
  name: string,
  rest = {},
): WatchCaller {
  const caller = new WatchCaller(bench.watches(id));
  caller.stream.create(1, watchRequest(kind, name, rest));
  bench.settle();
  return caller;
}

t.test(
  "W14 a prefix that no node hosts all of: the changes of all partitions, one CREATED",
  (t) => {
    const bench = new JointBench(3, REPLICAS);
    bench.apply(1, set("p/a", "0"));
    const caller = watching(bench, 1, WatchKind.prefix, "p/");
    t.same(caller.take(), ["created"]);
    t.not(caller.cursor, null);
    for (const partition of [1, 2, 3]) bench.apply(partition, set(`p/${partition}`, "1"));
    t.same(caller.take(), ["set p/1 1", "set p/2 1", "set p/3 1"]);
    bench.apply(2, set("p/2", "2"), set("p/x", "1"));
    t.same(caller.take(), ["set p/2 2 r1; set p/x 1"]);
    bench.apply(3, set("q", "1"));
    bench.pass(900);
    t.same(caller.take(), []);
    bench.pass(300);
    t.same(caller.take(), ["mark"]);
    t.end();
  },
);

t.test("W4 W14 the present state of all partitions comes first, and one mark ends it", (t) => {
  const bench = new JointBench(3, REPLICAS);
  bench.apply(1, set("p/1", "1"));
  bench.apply(3, set("p/3", "1"));
  const caller = watching(bench, 1, WatchKind.prefix, "p/", { initial: true });
  t.same(caller.take(), ["created", "INITIAL set p/3 1", "INITIAL set p/1 1", "mark"]);
  const cursors = caller.messages.map(({ cursor }) => cursor !== null);
  t.same(cursors, [false, false, false, true]);
  t.end();
});

t.test("W14 a key, a lock and a sequence of partitions that are elsewhere", (t) => {
  const bench = new JointBench(3, REPLICAS);
  const { places } = bench.node(1).bench;
  for (const name of ["k", "r", "s"])
    for (const node of bench.nodes) node.bench.places.set(name, 3);
  t.equal(places.get("k"), 3);
  const key = watching(bench, 1, WatchKind.key, "k");
  const held = watching(bench, 1, WatchKind.lock, "r");
  bench.apply(3, set("k", "1"), lock("r", "a", 500));
  t.same(key.take(), ["created", "set k 1"]);
  t.same(held.take(), ["created", "locked r t0 a"]);
  bench.pass(650);
  t.same(held.take(), ["lockExpired r t0 a"]);
  t.end();
});

t.test("W5 W6 W14 a cursor is good at every node, for joint watches and others", (t) => {
  const bench = new JointBench(3, REPLICAS);
  bench.apply(1, set("p/1", "1"));
  const first = watching(bench, 1, WatchKind.prefix, "p/");
  bench.apply(2, set("p/2", "1"));
  const { cursor } = first;
  first.stream.close();
  bench.apply(3, set("p/3", "1"));
  bench.apply(1, set("p/1", "2"));
  t.same(watching(bench, 1, WatchKind.prefix, "p/", { cursor }).take().slice(1), [
    "set p/3 1",
    "set p/1 2 r1",
  ]);
  const there = watching(bench, 3, WatchKind.prefix, "p/", { cursor });
  bench.pass(10);
  t.same(there.take(), ["created", "set p/1 2 r1", "MERGED set p/3 1", "mark"]);
  t.end();
});

t.test("W9 W14 SYNCED comes behind what every part was yet to tell, once for all watches", (t) => {
  const bench = new JointBench(3, REPLICAS);
  const caller = watching(bench, 1, WatchKind.prefix, "p/");
  caller.stream.create(2, watchRequest(WatchKind.key, "k"));
  bench.settle();
  caller.take();
  bench.node(2).bench.group(2).rounds = "held";
  caller.stream.sync(7, 0);
  bench.settle();
  bench.apply(3, set("p/3", "1"));
  t.same(caller.take(), ["set p/3 1"]);
  bench.append(2, set("p/2", "1"));
  bench.level(2);
  t.same(caller.take(), ["set p/2 1", "synced 7 #2,1"]);
  t.end();
});

t.test("W2 W14 a question that arrives late takes nothing of what the newer one asked for", (t) => {
  const bench = new JointBench(3, REPLICAS);
  const caller = watching(bench, 1, WatchKind.lockPrefix, "p/");
  caller.take();
  const held = bench.node(2).bench.group(2);
  held.rounds = "held";
  // The answer to the one before; one that is on its way for long; a newer one, and its answer.
  const delays = [0, 20, 5, 10];
  bench.delayMs = () => delays.shift() ?? 0;
  bench.apply(3, lock("p/3", "a", 60_000));
  caller.stream.sync(7, 0);
  bench.pass(21);
  bench.apply(3, lock("p/4", "b", 60_000));
  bench.pass(30);
  held.release();
  bench.pass(30);
  t.same(caller.take(), ["locked p/3 t0 a", "locked p/4 t0 b", "synced 7"]);
  t.end();
});

t.test("W14 a node that is gone: another one tells on, merged", (t) => {
  const bench = new JointBench(3, REPLICAS);
  const caller = watching(bench, 1, WatchKind.prefix, "p/");
  bench.apply(3, set("p/3", "1"), set("p/x", "1"));
  caller.take();
  bench.setDown(2, true);
  bench.apply(3, set("p/3", "2"), remove("p/x"));
  bench.pass(6000);
  const events = caller.takeEvents();
  t.same(events.slice(-2), ["set p/3 2 r1", "deleted p/x r1"]);
  bench.apply(2, set("p/2", "1"));
  t.same(caller.takeEvents(), ["set p/2 1"]);
  bench.setDown(3, true);
  bench.pass(16_000);
  t.same(caller.take().at(-1), "ended notHosted", "nobody is left");
  t.end();
});

t.test("W14 a watch whose node loses a partition goes on elsewhere", (t) => {
  const bench = new JointBench(2, [
    [1, 2],
    [1, 2],
  ]);
  const caller = watching(bench, 1, WatchKind.prefix, "p/");
  bench.apply(1, set("p/1", "1"));
  t.same(caller.take(), ["created", "set p/1 1"]);
  bench.node(1).bench.leave(2);
  bench.apply(2, set("p/2", "1"));
  bench.pass(50);
  t.same(caller.takeEvents(), ["set p/2 1"]);
  t.equal(bench.node(1).joints.count, 1);
  bench.apply(1, set("p/1", "2"));
  t.same(caller.take(), ["set p/1 2 r1"]);
  caller.stream.close();
  bench.pass(40_000);
  t.same([bench.node(1).joints.count, bench.node(2).told.count], [0, 0], "nothing is left");
  t.end();
});

t.test("W7 W14 the Reset of one part is one of the whole watch", (t) => {
  const bench = new JointBench(3, REPLICAS);
  bench.apply(1, lock("p/1", "a", 60_000));
  bench.apply(3, lock("p/3", "b", 60_000));
  const caller = watching(bench, 1, WatchKind.lockPrefix, "p/");
  bench.setDown(2, true);
  bench.apply(3, lock("p/5", "b", 60_000));
  bench.pass(6000);
  const told = caller.take().filter((each) => each !== "mark");
  t.same(told.slice(0, 2), ["created", "INITIAL RESET"]);
  t.same(told.slice(2).sort(), [
    "INITIAL locked p/1 t0 a",
    "INITIAL locked p/3 t0 b; locked p/5 t0 b",
  ]);
  bench.apply(3, lock("p/4", "c", 60_000));
  t.same(caller.takeEvents(), ["locked p/4 t0 c"]);
  t.end();
});

t.test("W13 P-185 a caller that takes nothing: parts are set back, and little is held", (t) => {
  const bench = new JointBench(3, REPLICAS, { historyBytes: 300_000 });
  const caller = watching(bench, 1, WatchKind.prefix, "p/");
  caller.take();
  caller.full = true;
  for (let at = 0; at < 60; at++) bench.apply(3, set(`p/${at % 10}`, "x".repeat(50_000) + at));
  t.ok(bench.node(2).told.heldBytes < 1_200_000, `${bench.node(2).told.heldBytes}`);
  caller.drain();
  bench.pass(20);
  const last = new Map<string, string>();
  for (const { events } of caller.messages) {
    for (const { name, value } of events) last.set(name, Buffer.from(value ?? []).toString());
  }
  for (let at = 50; at < 60; at++) t.match(last.get(`p/${at % 10}`), new RegExp(`x${at}$`));
  t.equal(caller.messages.at(-1)?.cursor !== null, true);
  t.end();
});

t.test("W2 W14 P-186 keys that move: what the source was yet to tell comes first", (t) => {
  const source = new Side({ nowMs: 2000 }, 0, 1, true);
  const target = new Side({ nowMs: 2000 }, 0, 2, false);
  const rowsOf = (node: number, id: number): Bench =>
    id === 2 && node === 2 ? target : new Bench(undefined, id, id === 1);
  const bench = new JointBench(2, [[1], [2]], {}, rowsOf);
  // The replica of the source that is asked is behind the one that moves the keys.
  const late = [set("b/a", "1"), set("b/m", "1"), set("b/m", "2"), set("b/a", "2")];
  for (const command of late) source.do(command);
  for (const command of late.slice(0, 2)) bench.apply(1, command);
  const caller = watching(bench, 2, WatchKind.prefix, "b/");
  const group = bench.node(1).bench.group(1);
  group.rounds = "held";
  const move = new Move(source, target, { keySpace: "b", startKey: "b/k", endKey: null });
  const bounds = { maxBytes: 1 << 20, maxVisits: 100 };
  move.begin();
  while (!move.give("next", bounds));
  move.freeze();
  t.equal(move.finish(bounds), "done");
  target.do(set("b/m", "3"));
  bench.settle();
  const anew = watching(bench, 2, WatchKind.prefix, "b/", { initial: true });
  bench.pass(100);
  t.same([caller.take(), anew.take()], [["created"], []], "nothing of the target before that");
  const { keySpace, moveId, attempt } = move.named;
  const interval = { startKey: "b/k", endKey: null, generation: rangeGeneration(4) };
  for (const { bench: node } of bench.nodes) {
    const spans = [
      { startKey: null, endKey: "b/k", partitionId: 1 },
      { startKey: "b/k", endKey: null, partitionId: 2 },
    ];
    node.ranges.set("b", spans);
    node.cuts.add(move.moveId);
    node.version++;
  }
  for (const command of late.slice(2)) bench.append(1, command);
  bench.append(1, { kind: "range-freeze", keySpace, moveId, attempt, ...interval });
  group.rounds = "confirmed";
  bench.level(1);
  bench.pass(100);
  t.same(caller.takeEvents(), ["set b/m 2 r1", "set b/a 2 r1", "set b/m 3 r2"]);
  t.same(anew.takeEvents().sort(), ["set b/a 2 r1", "set b/m 3 r2"]);
  target.do(set("b/m", "4"));
  bench.settle();
  t.same([...caller.take(), ...anew.take()], ["set b/m 4 r3", "set b/m 4 r3"]);
  t.end();
});

t.test("W14 a key whose partition is another one by the map is told from there", (t) => {
  const bench = new JointBench(3, REPLICAS);
  const caller = watching(bench, 1, WatchKind.key, "k");
  bench.apply(1, set("k", "1"));
  t.same(caller.take(), ["created", "set k 1"]);
  bench.apply(3, set("k", "2"));
  for (const { bench: node } of bench.nodes) {
    node.places.set("k", 3);
    node.version++;
  }
  bench.apply(1, set("j", "1"));
  bench.pass(100);
  t.same(caller.take(), ["MERGED set k 2", "mark"]);
  bench.apply(3, set("k", "3"));
  t.same(caller.take(), ["set k 3 r1"]);
  t.end();
});

t.test("W10 the caller may read no more: the mark is an end", (t) => {
  const bench = new JointBench(3, REPLICAS);
  const caller = watching(bench, 1, WatchKind.prefix, "p/", { progressMs: 200 });
  bench.pass(250);
  t.same(caller.take(), ["created", "mark"]);
  caller.allowed = false;
  bench.pass(250);
  t.same(caller.take(), ["ended forbidden"]);
  t.end();
});

t.test("W14 below the level at which nodes know of parts it ends as before", (t) => {
  const bench = new JointBench(3, REPLICAS);
  bench.isOn = false;
  t.same(watching(bench, 1, WatchKind.prefix, "p/").take(), ["ended notHosted"]);
  t.end();
});

t.test("a stream has one watch of an id; one that was cancelled leaves it", (t) => {
  const bench = new JointBench(3, REPLICAS);
  const caller = watching(bench, 1, WatchKind.prefix, "p/");
  caller.stream.create(1, watchRequest(WatchKind.key, "k"));
  bench.settle();
  t.same(caller.take(), ["created", "ended invalidInput"]);
  caller.stream.cancel(1);
  caller.stream.create(1, watchRequest(WatchKind.key, "k"));
  caller.stream.cancel(1);
  caller.stream.create(1, watchRequest(WatchKind.prefix, "p/"));
  bench.settle();
  bench.apply(3, set("p/3", "1"));
  t.same(caller.take(), ["ended cancelled", "ended cancelled", "created", "set p/3 1"]);
  t.end();
});
