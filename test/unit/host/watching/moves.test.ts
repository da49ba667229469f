/** Watches while key ranges move, and what nodes that learn of it late tell then (W2, W4, W6, W9, W14). */
import t from "tap";
import { level } from "../../../../src/base/ids.js";
import { WatchKind } from "../../../../src/base/result-types.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import type { Command } from "../../../../src/machine/commands/command.js";
import { Bench, set } from "../../../doubles/machine/bench.js";
import { Move, Side } from "../../../doubles/machine/range-move.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

function watching(bench: WatchBench, kind: number, name: string, rest = {}): WatchCaller {
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(kind, name, rest));
  bench.settle();
  return caller;
}

t.test("W2 W14 what a partition did that has none of the names any more is not told again", (t) => {
  const bench = new WatchBench();
  const caller = watching(bench, WatchKind.key, "k");
  bench.apply(1, set("k", "1"));
  bench.apply(2, set("k", "1"), set("k", "2"));
  bench.places.set("k", 2);
  bench.version++;
  bench.apply(2, { kind: "advance-clock" });
  t.same(caller.take(), ["created", "set k 1", "MERGED set k 2 r1", "mark"]);
  const again = watching(bench, WatchKind.key, "k", { cursor: caller.cursor });
  t.same(again.take(), ["created"]);
  bench.apply(2, set("k", "3"));
  t.same(again.take(), ["set k 3 r2"]);
  t.end();
});

const BOUNDS = { maxBytes: 1 << 20, maxVisits: 100 };

/** Up to where the target can adopt. */
function closedMove(source: Side, target: Side, startKey: string | null = null): Move {
  const move = new Move(source, target, { keySpace: "b", startKey, endKey: null });
  move.begin();
  while (!move.give("next", BOUNDS));
  move.freeze();
  return move;
}

/** Partitions 1 and 2 of this node, and replicas of them that are ahead. */
function sides(): { source: Side; target: Side } {
  const world = { nowMs: 2000 };
  return { source: new Side(world, 0, 1, true), target: new Side(world, 0, 2, false) };
}

const WHOLE = { startKey: null, endKey: null };

t.test("W9 W4 a node whose map is old: a barrier, and a start, wait until it knows", (t) => {
  const { source, target } = sides();
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? target : source));
  source.do(set("b/m", "1"));
  const caller = watching(bench, WatchKind.bucket, "b");
  const move = closedMove(source, target);
  move.finish(BOUNDS);
  move.release(100);
  bench.apply(2, set("b/m", "2"));
  bench.meta.rounds = "held";
  const began = watching(bench, WatchKind.bucket, "b", { initial: true });
  caller.stream.sync(1, 0);
  bench.settle();
  t.same(caller.take(), ["created"], "what was answered is elsewhere");
  t.same(began.take(), []);
  bench.cuts.add(move.moveId);
  bench.places.set("b", 2);
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 2 }]);
  bench.version++;
  bench.meta.rounds = "confirmed";
  bench.meta.release();
  bench.settle();
  t.same(caller.take(), ["MERGED set b/m 2 r1", "mark", "synced 1"]);
  t.same(began.take(), ["created", "INITIAL set b/m 2 r1", "mark"]);
  t.end();
});

/** A node that was down: it has the map of before `k` came to partition 2, and of that the first change. */
function afterStart(): { bench: WatchBench; cursor: string | null } {
  const other = new WatchBench();
  other.places.set("k", 2);
  const caller = watching(other, WatchKind.key, "k");
  const bench = new WatchBench();
  for (const each of [other, bench]) each.apply(2, set("k", "1"));
  other.apply(2, set("k", "2"));
  caller.take();
  for (const group of bench.groups.values()) group.rounds = "held";
  return { bench, cursor: caller.cursor };
}

/** The map gives `k` to partition 2, while partition 1 was to come to stand. */
function moves(bench: WatchBench): void {
  bench.places.set("k", 2);
  bench.version++;
  bench.group(1).release();
  bench.settle();
}

t.test("W2 W5 W14 a start waits for partitions too that the map adds meanwhile", (t) => {
  const { bench, cursor } = afterStart();
  const caller = watching(bench, WatchKind.key, "k", { cursor });
  moves(bench);
  t.same(caller.take(), [], "behind what was told elsewhere it does not begin");
  bench.apply(2, set("k", "2"));
  bench.group(2).release();
  bench.apply(2, set("k", "3"));
  t.same(caller.take(), ["created", "set k 3 r2"]);
  t.end();
});

t.test("W9 a barrier waits for partitions too that the map adds meanwhile", (t) => {
  const { bench } = afterStart();
  const caller = watching(bench, WatchKind.key, "k");
  bench.group(1).release();
  bench.settle();
  caller.stream.sync(1, 0);
  bench.settle();
  moves(bench);
  t.same(caller.take(), ["created", "MERGED set k 1", "mark"]);
  bench.apply(2, set("k", "2"));
  bench.group(2).release();
  bench.settle();
  t.same(caller.take(), ["set k 2 r1", "synced 1"]);
  t.end();
});

t.test(
  "W9 a barrier over a partition that was removed meanwhile holds for those that are left",
  (t) => {
    const bench = new WatchBench(2);
    const caller = watching(bench, WatchKind.key, "k");
    bench.places.set("k", 2);
    bench.group(1).rounds = "retry";
    caller.stream.sync(1, 0);
    bench.pass(10);
    bench.version++;
    bench.apply(2, set("k", "1"));
    bench.leave(1);
    bench.pass(1200);
    t.same(caller.take(), ["created", "MERGED set k 1", "mark", "synced 1"]);
    t.end();
  },
);

t.test("W9 what nobody has for now is not passed over by who compares behind its barrier", (t) => {
  const { source, target } = sides();
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? target : source));
  source.do(set("b/m", "1"));
  const caller = new WatchCaller(bench.watches);
  caller.full = true;
  caller.stream.create(1, watchRequest(WatchKind.bucket, "b", { initial: true }));
  caller.stream.sync(1, 0);
  bench.settle();
  const move = closedMove(source, target);
  caller.full = false;
  caller.stream.ready();
  bench.pass(30);
  t.notOk(caller.take().includes("synced 1"), "a frozen key is read by nobody");
  move.retry();
  bench.pass(30);
  t.same(caller.take(), ["MERGED set b/m 1", "mark", "synced 1"]);
  t.end();
});

t.test("W9 W4 a map is old where a partition has forgotten what it gave away", (t) => {
  const world = { nowMs: 2000 };
  const [home, source, target] = [1, 2, 3].map((id) => new Side(world, 0, id, id === 1)) as [
    ...[Side, Side, Side],
  ];
  home.do(set("b/m", "1"));
  const before = closedMove(home, source);
  before.finish(BOUNDS);
  const move = closedMove(source, target);
  move.finish(BOUNDS);
  move.release(100);
  t.same(source.machine.ownership.all(), []);
  const bench = new WatchBench(3, {}, (id) => [home, source, target][id - 1] as Side);
  bench.places.set("b", 2);
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 2 }]);
  bench.meta.rounds = "held";
  const caller = watching(bench, WatchKind.bucket, "b", { initial: true });
  t.same(caller.take(), []);
  bench.places.set("b", 3);
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 3 }]);
  bench.version++;
  bench.meta.release();
  bench.settle();
  t.same(caller.take(), ["created", "INITIAL set b/m 1", "mark"]);
  t.end();
});

t.test("W9 a map is old where a target has adopted what the map does not give it yet", (t) => {
  const { source, target } = sides();
  const log: Command[] = [];
  const goOn = target.do.bind(target);
  target.do = (command) => {
    log.push(command);
    return goOn(command);
  };
  const late = new Side({ nowMs: 2000 }, 0, 1, true);
  const copy = new Side({ nowMs: 2000 }, 0, 2, false);
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? copy : late));
  for (const value of ["1", "2"]) source.do(set("b/m", value));
  bench.apply(1, set("b/m", "1"));
  const caller = watching(bench, WatchKind.bucket, "b");
  bench.group(1).rounds = bench.meta.rounds = "held";
  caller.stream.sync(1, 0);
  const move = closedMove(source, target);
  move.finish(BOUNDS);
  for (const command of log) bench.apply(2, command);
  // Up to where the round of before the freeze came.
  bench.apply(1, set("b/m", "2"));
  bench.group(1).release();
  bench.settle();
  t.same(caller.take(), ["created"], "the last change of the source is told by the target");
  bench.places.set("b", 2);
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 2 }]);
  bench.cuts.add(move.moveId);
  bench.version++;
  bench.meta.release();
  bench.settle();
  t.same(caller.take(), ["MERGED set b/m 2 r1", "mark", "synced 1"]);
  t.end();
});

t.test("W9 a barrier that was found by one map is looked for again by the next one", (t) => {
  const bench = new WatchBench(1);
  const caller = watching(bench, WatchKind.key, "k");
  caller.full = true;
  caller.stream.sync(1, 0);
  bench.settle();
  bench.group(1).rounds = "held";
  bench.version++;
  caller.drain();
  bench.settle();
  t.same(caller.take(), ["created"]);
  bench.group(1).release();
  bench.settle();
  t.same(caller.take(), ["synced 1"]);
  t.end();
});

t.test("W14 a target that adopts late what it gave away since: who has the keys is heard", (t) => {
  const { source, target } = sides();
  const log: Command[] = [];
  const goOn = target.do.bind(target);
  target.do = (command) => {
    log.push(command);
    return goOn(command);
  };
  source.do(set("b/m", "1"));
  closedMove(source, target).finish(BOUNDS);
  target.do(set("b/m", "2"));
  // Here the keys have come home already, and the map says so.
  const late = new Side({ nowMs: 2000 }, 0, 2, false);
  const home = new Bench();
  for (const value of ["1", "2", "3"]) home.one(2000, set("b/m", value));
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? late : home));
  bench.ranges.set("other", [{ ...WHOLE, partitionId: 2 }]);
  bench.cuts.add(77);
  const caller = watching(bench, WatchKind.prefix, "b/", { initial: true });
  caller.take();
  for (const command of log) bench.apply(2, command);
  t.same(caller.takeEvents(), [], "what it tells is past");
  bench.apply(1, set("b/m", "4"));
  t.same(caller.take().at(-1), "set b/m 4 r3");
  t.end();
});

t.test("W2 W14 a key that left, ended elsewhere and came home: its end comes once", (t) => {
  const world = { nowMs: 2000 };
  const away = new Side(world, 0, 2, true);
  const home = new Side(world, 0, 1, false);
  away.do(set("b/m", "1", { expiresMs: 300 }));
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? away : home));
  bench.timer.nowMs = 2000;
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 2 }]);
  const caller = watching(bench, WatchKind.prefix, "b/", { initial: true });
  // As it was noted at home, before the key left.
  bench.hub["feed"]["leases"].note(1, "key", "b/m", 3000);
  bench.timer.nowMs = world.nowMs = 2400;
  bench.apply(2, { kind: "advance-clock" });
  t.same(caller.takeEvents(), ["set b/m 1", "expired b/m"]);
  closedMove(away, home).finish(BOUNDS);
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 1 }]);
  bench.version++;
  bench.settle();
  caller.take();
  bench.timer.nowMs = world.nowMs = 3500;
  bench.apply(1, { kind: "advance-clock" });
  t.same(caller.takeEvents(), []);
  bench.apply(1, set("b/m", "2"));
  t.same(caller.takeEvents(), ["set b/m 2 r1"]);
  t.end();
});

t.test("W14 keys that the map gives to who adopted them before anybody watched", (t) => {
  const { source, target } = sides();
  const old = new Side({ nowMs: 2000 }, 0, 1, true);
  old.do(set("b/m", "1"));
  source.do(set("b/m", "1"));
  closedMove(source, target).finish(BOUNDS);
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? target : old));
  bench.ranges.set("other", [{ ...WHOLE, partitionId: 2 }]);
  const caller = watching(bench, WatchKind.prefix, "b/", { initial: true });
  bench.apply(2, set("b/m", "2"));
  t.same(caller.takeEvents(), ["set b/m 1"], "as far as this node knows");
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 2 }]);
  bench.version++;
  bench.apply(2, set("b/m", "3"));
  t.same(caller.take().slice(-2), ["MERGED set b/m 3 r2", "mark"]);
  t.end();
});

t.test("W6 W14 an image that brings keys with stamps of another partition", (t) => {
  const { source, target } = sides();
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? new Bench(undefined, 2, false) : source));
  target.one(0, { kind: "set-level", level: level(2) });
  source.do(set("b/m", "1"));
  while (bench.group(2).machine.appliedIndex < 50) bench.apply(2, { kind: "advance-clock" });
  bench.ranges.set("b", [{ ...WHOLE, partitionId: 2 }]);
  const caller = watching(bench, WatchKind.prefix, "b/");
  closedMove(source, target).finish(BOUNDS);
  while (target.machine.appliedIndex < 60) target.do({ kind: "advance-clock" });
  bench.install(2, target);
  t.same(caller.take(), ["created", "MERGED set b/m 1", "mark"]);
  t.end();
});
