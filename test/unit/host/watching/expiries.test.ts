/** Who commits lease clocks for ends that are watched elsewhere, whatever the leader does then (W11). */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { lock } from "../../../doubles/machine/bench.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

/** What the bench has applied of the lease clock of partition 1. */
function leaseMs(bench: WatchBench): number {
  return bench.group(1).machine.leaseMs;
}

t.test("W11 a leader that is asked before it serves keeps the wish (seed 8530687)", (t) => {
  const bench = new WatchBench();
  const group = bench.group(1);
  group.isReady = false;
  t.ok(bench.hub.wishedClock(1, 1500));
  bench.pass(700);
  t.equal(leaseMs(bench), 0);
  group.isReady = true;
  bench.pass(300);
  t.ok(leaseMs(bench) >= 1500, `${leaseMs(bench)}`);
  group.leader = 2;
  t.notOk(bench.hub.wishedClock(1, 9000), "it does not lead");
  t.end();
});

t.test("W11 a wish that is due while a clock is on its way", (t) => {
  const bench = new WatchBench();
  const group = bench.group(1);
  const { advanceClock } = group;
  const held: (() => void)[] = [];
  group.advanceClock = (...args) => void held.push(() => advanceClock(...args));
  for (const end of [1100, 1300]) bench.hub.wishedClock(1, end);
  bench.pass(400);
  t.equal(held.length, 1, "one at a time");
  group.advanceClock = advanceClock;
  held[0]?.();
  bench.settle();
  t.ok(leaseMs(bench) >= 1100 && leaseMs(bench) < 1300, `${leaseMs(bench)}`);
  bench.pass(300);
  t.ok(leaseMs(bench) >= 1300, `${leaseMs(bench)}`);
  const at = group.machine.appliedIndex;
  bench.pass(5000);
  t.equal(group.machine.appliedIndex, at, "and no more clocks than that");
  t.end();
});

t.test("W11 a clock that is not committed is tried again", (t) => {
  const bench = new WatchBench();
  const group = bench.group(1);
  const { advanceClock } = group;
  group.advanceClock = (_leaseMs, _deadlineMs, done) => {
    group.advanceClock = advanceClock;
    bench.timer.soon(() => done({ status: "aborted" }));
  };
  bench.hub.wishedClock(1, 1100);
  bench.pass(500);
  t.ok(leaseMs(bench) >= 1100, `${leaseMs(bench)}`);
  t.end();
});

t.test("W11 a wish that nobody took is repeated soon, one that was taken now and then", (t) => {
  const bench = new WatchBench();
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(WatchKind.lock, "r"));
  bench.settle();
  bench.group(1).leader = 2;
  bench.takesWishes = false;
  bench.apply(1, lock("r", "a", 60_000));
  bench.pass(1000);
  const asked = bench.wishes.length;
  t.ok(asked >= 3 && asked <= 5, `${asked} times`);
  bench.takesWishes = true;
  bench.pass(4000);
  t.ok(bench.wishes.length <= asked + 2, `${bench.wishes.length} times`);
  t.match(bench.wishes.at(-1), { partition: 1, leaseMs: 61_000 });
  t.end();
});

t.test("W11 the end behind one that came is wished for at once (seed 9381701)", (t) => {
  const bench = new WatchBench();
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(WatchKind.lockPrefix, "r"));
  bench.settle();
  bench.group(1).leader = 2;
  bench.apply(1, lock("ra", "a", 1000), lock("rb", "b", 1040));
  bench.pass(1020);
  t.match(bench.wishes, [{ leaseMs: 2000 }]);
  bench.apply(1, { kind: "advance-clock" });
  const atMs = bench.timer.nowMs;
  bench.pass(200);
  t.match(bench.wishes, [{ leaseMs: 2000 }, { leaseMs: 2040 }]);
  const afterMs = (bench.wishes.at(-1)?.atMs ?? Infinity) - atMs;
  t.ok(afterMs <= 50, `${afterMs} ms after the one before`);
  t.end();
});
