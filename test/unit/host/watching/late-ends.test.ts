/** Ends of leases that nobody looked after, and that are found where the name is written over (W2, W4, W11). */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { Bench, lock, set } from "../../../doubles/machine/bench.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

function watching(bench: WatchBench, kind: number, name: string, rest = {}): WatchCaller {
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(kind, name, rest));
  bench.settle();
  return caller;
}

t.test("W2 W5 an end that was told elsewhere is not told again (seed 8501399)", (t) => {
  const elsewhere = new WatchBench();
  const bench = new WatchBench();
  for (const each of [elsewhere, bench]) each.apply(1, lock("r", "a", 500));
  const told = watching(elsewhere, WatchKind.lock, "r");
  watching(bench, WatchKind.lock, "r").stream.close();
  const image = new Bench();
  image.one(1000, lock("r", "a", 500));
  image.one(1000, { kind: "advance-clock" });
  bench.install(1, image);
  for (const each of [elsewhere, bench]) each.pass(1000);
  elsewhere.apply(1, { kind: "advance-clock" });
  t.same(told.takeEvents(), ["lockExpired r t0 a"]);
  told.stream.sync(1, 1);
  elsewhere.pass(20_000);
  bench.apply(1, { kind: "advance-clock" });
  bench.apply(1, lock("r", "b", 60_000));
  const again = watching(bench, WatchKind.lock, "r", { cursor: told.cursor });
  t.same(again.takeEvents(), ["locked r t1 b"]);
  t.end();
});

t.test("W4 an end of before the state was read is no event (seed 8500132)", (t) => {
  const bench = new WatchBench();
  bench.apply(1, lock("p/a", "a", 60_000), lock("p/r", "a", 500));
  bench.pass(1000);
  bench.apply(1, { kind: "advance-clock" });
  const slow = new WatchCaller(bench.watches);
  slow.full = true;
  slow.stream.create(1, watchRequest(WatchKind.lockPrefix, "p/", { initial: true }));
  bench.settle();
  slow.drain(2);
  bench.settle();
  t.same(slow.take(), ["created", "INITIAL locked p/a t0 a"]);
  bench.apply(1, lock("p/r", "b", 60_000));
  slow.drain();
  bench.settle();
  t.same(slow.take(), ["locked p/r t1 b", "mark"]);
  t.end();
});

/** One that takes nothing yet. */
function stalled(bench: WatchBench, rest: object): WatchCaller {
  const caller = new WatchCaller(bench.watches);
  caller.full = true;
  caller.stream.create(1, watchRequest(WatchKind.prefix, "p/", rest));
  bench.settle();
  return caller;
}

/** A node, and a cursor of another one with the same state: the lease of "p/k" runs there. */
function beforeAnEnd() {
  const elsewhere = new WatchBench();
  const bench = new WatchBench();
  for (const each of [elsewhere, bench]) {
    each.apply(1, set("p/a", "1"), set("p/k", "2", { expiresMs: 500 }));
  }
  const told = watching(elsewhere, WatchKind.prefix, "p/");
  told.stream.sync(1, 1);
  elsewhere.settle();
  return { bench, cursor: told.cursor };
}

function endIt(bench: WatchBench): void {
  bench.pass(1000);
  bench.apply(1, { kind: "advance-clock" });
}

t.test("W2 W4 an end that a reading alone found is not lost with its row (seed 9380176)", (t) => {
  const { bench, cursor } = beforeAnEnd();
  const slow = stalled(bench, { initial: true });
  // Nobody looked after the lease: nothing was read yet.
  endIt(bench);
  slow.drain();
  bench.settle();
  t.same(slow.takeEvents(), ["set p/a 1"]);
  bench.apply(1, set("p/k", "3"));
  bench.settle();
  t.same(slow.takeEvents(), ["set p/k 3 r1"]);
  const again = watching(bench, WatchKind.prefix, "p/", { cursor });
  t.same(again.take(), ["created", "expired p/k; set p/k 3 r1"]);
  t.end();
});

t.test("W2 W4 nor while another one reads on for ends", (t) => {
  const { bench, cursor } = beforeAnEnd();
  const first = stalled(bench, { initial: true });
  endIt(bench);
  const again = stalled(bench, { cursor });
  first.drain();
  bench.settle();
  bench.apply(1, set("p/k", "3"));
  bench.settle();
  again.drain();
  bench.settle();
  t.same(again.takeEvents(), ["expired p/k", "set p/k 3 r1"]);
  bench.apply(1, set("p/a", "4"));
  bench.settle();
  t.same(again.takeEvents(), ["set p/a 4 r1"]);
  t.same(first.takeEvents(), ["set p/a 1", "set p/k 3 r1", "set p/a 4 r1"]);
  t.end();
});
