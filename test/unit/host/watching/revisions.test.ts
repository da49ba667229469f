/** What a watch is told from a revision on, of which some, or all, are gone (W8). */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { JointBench } from "../../../doubles/host/joint-bench.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { collect, remove, set } from "../../../doubles/machine/bench.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

const KEY = WatchKind.key;
/** Sum of 2^type of deletions alone. */
const DELETED_ONLY = 1 << 2;

function watching(bench: WatchBench, rest: object): WatchCaller {
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(KEY, "k", rest));
  bench.settle();
  return caller;
}

/** A key that had revisions up to 3, of which nothing is left. */
function collected(settings = {}): WatchBench {
  const bench = new WatchBench(1, settings);
  for (const value of ["0", "1", "2"]) bench.apply(1, set("k", value));
  bench.apply(1, remove("k"));
  bench.timer.nowMs += 10_000;
  bench.apply(1, { kind: "advance-clock" });
  bench.apply(1, collect(1000, 1000));
  return bench;
}

t.test("W8 all revisions are gone: the first event that comes is merged, and it alone", (t) => {
  const bench = collected();
  const caller = watching(bench, { fromRevision: 1n });
  t.same(caller.take(), ["created"]);
  bench.apply(1, set("k", "a"));
  bench.apply(1, set("k", "b"));
  t.same(caller.take(), ["MERGED set k a", "set k b r1"]);
  const anew = watching(bench, { fromRevision: 3n });
  bench.apply(1, set("k", "c"));
  t.same(anew.take(), ["created", "MERGED set k c r2"], "its revisions began anew");
  t.end();
});

t.test("W8 nothing is gone: no event is merged", (t) => {
  const bench = new WatchBench();
  const fresh = watching(bench, { fromRevision: -1n });
  bench.apply(1, set("k", "a"));
  t.same(fresh.take(), ["created", "set k a"]);
  const level = watching(bench, { fromRevision: 0n });
  bench.apply(1, set("k", "b"));
  t.same(level.take(), ["created", "set k b r1"]);
  t.end();
});

t.test("W8 W10 a mark before that event says so too: its cursor is behind the gap", (t) => {
  const bench = collected();
  const caller = watching(bench, { fromRevision: 1n, progressMs: 500 });
  bench.pass(1100);
  t.same(caller.take(), ["created", "mark MERGED", "mark MERGED"]);
  const on = watching(bench, { cursor: caller.cursor });
  bench.apply(1, set("k", "a"));
  t.same([caller.take(), on.take()], [["MERGED set k a"], ["created", "set k a"]]);
  bench.pass(600);
  t.same(caller.take(), ["mark"]);
  t.end();
});

t.test("W8 two watches of one stream: only the one that missed something is told so", (t) => {
  const bench = collected();
  const caller = watching(bench, { fromRevision: 1n });
  caller.stream.create(2, watchRequest(KEY, "k"));
  bench.settle();
  caller.take();
  bench.apply(1, set("k", "a"));
  t.same(caller.take().sort(), ["#2 set k a", "MERGED set k a"]);
  bench.apply(1, set("k", "b"));
  t.same(caller.take(), ["#1,2 set k b r1"]);
  t.end();
});

t.test("W8 what is left is not wanted: the first event that is wanted is merged", (t) => {
  const bench = new WatchBench();
  for (let at = 0; at < 20; at++) bench.apply(1, set("k", `${at}`));
  const caller = watching(bench, { fromRevision: 3n, only: DELETED_ONLY });
  t.same(caller.take(), ["created"]);
  bench.apply(1, remove("k"));
  t.same(caller.take(), ["MERGED deleted k r20"]);
  t.end();
});

t.test("W8 what goes while revisions are being told", (t) => {
  const bench = new WatchBench();
  const large = "x".repeat(100_000);
  const put = (value: string): void =>
    bench.apply(1, set("k", value + large, { revisionsRetained: 8 }));
  for (let at = 0; at < 8; at++) put(`${at}`);
  const caller = new WatchCaller(bench.watches);
  caller.room = 2;
  caller.stream.create(1, watchRequest(KEY, "k", { fromRevision: -1n }));
  bench.settle();
  for (let at = 8; at < 13; at++) put(`${at}`);
  caller.drain();
  bench.settle();
  const told = caller.messages.map(({ merged, events }) => ({
    merged,
    revisions: events.map(({ revision }) => revision),
  }));
  t.same(told.slice(0, 2), [
    { merged: false, revisions: [] },
    { merged: false, revisions: [0, 1, 2] },
  ]);
  t.same(told[2], { merged: true, revisions: [5, 6, 7] }, "3 and 4 went meanwhile");
  t.end();
});

t.test("W7 W8 who falls behind before that event is told the state anew", (t) => {
  const bench = collected({ historyBytes: 500 });
  const caller = watching(bench, { fromRevision: 1n });
  caller.full = true;
  for (let at = 0; at < 20; at++) bench.apply(1, set("k", `${at}`));
  caller.drain();
  bench.settle();
  t.same(caller.take(), ["created", "INITIAL RESET", "INITIAL set k 19 r19", "mark"]);
  t.end();
});

t.test("W8 W14 a key whose partition is elsewhere", (t) => {
  const bench = new JointBench(2, [[2], [1]]);
  const caller = new WatchCaller(bench.watches(1));
  caller.stream.create(1, watchRequest(KEY, "k", { fromRevision: 1n, progressMs: 2000 }));
  bench.pass(2500);
  t.same(caller.take(), ["created", "mark MERGED"]);
  bench.apply(1, set("k", "a"));
  bench.apply(1, set("k", "b"));
  t.same(caller.take(), ["MERGED set k a", "set k b r1"]);
  t.end();
});
