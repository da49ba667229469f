/** Whether watches can be told of all that ended: by what collection dropped, not by settings (W7). */
import t from "tap";
import { level } from "../../../../src/base/ids.js";
import { WatchKind } from "../../../../src/base/result-types.js";
import type { Command } from "../../../../src/machine/commands/command.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { Move, Side } from "../../../doubles/machine/range-move.js";
import { Bench, collect, lock, remove, set, unlock } from "../../../doubles/machine/bench.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

function watching(bench: WatchBench, kind: number, name: string, rest = {}): WatchCaller {
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(kind, name, rest));
  bench.settle();
  return caller;
}

/** Lets the history of what nobody watches be forgotten. */
function forget(bench: WatchBench): void {
  bench.pass(130_000);
}

/** Drops what ended more than that long ago. */
function collected(retentionMs: number): Command {
  return collect(1000, retentionMs);
}

const ANEW = ["created", "INITIAL RESET", "INITIAL set p/stays 1", "mark"];

t.test("W7 a deletion that was collected: the state anew, whatever the settings here", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("p/gone", "1"), set("p/stays", "1"));
  const { cursor, stream } = watching(bench, WatchKind.prefix, "p/");
  stream.close();
  bench.apply(1, remove("p/gone"));
  const told = watching(bench, WatchKind.prefix, "p/");
  forget(bench);
  bench.apply(1, set("other", "1"));
  const kept = watching(bench, WatchKind.prefix, "p/", { cursor });
  t.same(kept.take(), ["created", "MERGED deleted p/gone r1", "mark"], "however long ago");
  for (const each of [kept, told]) each.stream.close();
  bench.apply(1, collected(1000));
  forget(bench);
  t.same(watching(bench, WatchKind.prefix, "p/", { cursor }).take(), ANEW);
  t.equal(bench.hub.tally.resets, 1);
  const later = watching(bench, WatchKind.prefix, "p/", { cursor: told.cursor });
  t.same(later.take(), ANEW, "the same lease time is not behind it");
  const informed = watching(bench, WatchKind.prefix, "p/", { cursor: kept.cursor });
  t.same(informed.take(), ["created", "mark"], "what was told is not missed");
  t.end();
});

t.test("W7 the end of a lease that was collected: the state anew", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("p/lease", "1", { expiresMs: 100 }), set("p/stays", "1"));
  const { cursor, stream } = watching(bench, WatchKind.prefix, "p/");
  stream.close();
  bench.pass(1000);
  bench.apply(1, collected(500));
  forget(bench);
  t.same(watching(bench, WatchKind.prefix, "p/", { cursor }).take(), ANEW);
  t.end();
});

t.test(
  "W7 a deletion that is collected while the state is compared: it anew (seed 8500459)",
  (t) => {
    const bench = new WatchBench();
    bench.apply(1, set("p/gone", "1"), set("p/stays", "1"));
    const { cursor, stream } = watching(bench, WatchKind.prefix, "p/");
    stream.close();
    bench.apply(1, remove("p/gone"));
    forget(bench);
    bench.apply(1, { kind: "advance-clock" });
    const slow = new WatchCaller(bench.watches);
    slow.full = true;
    slow.stream.create(1, watchRequest(WatchKind.prefix, "p/", { cursor }));
    bench.settle();
    bench.apply(1, collected(1000));
    slow.drain();
    bench.settle();
    t.same(slow.take(), ANEW);
    t.end();
  },
);

t.test("W7 W11 an end whose row is gone before it was read: the state anew (seed 8310330)", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("p/lease", "1", { expiresMs: 200 }), set("p/stays", "1"));
  const slow = new WatchCaller(bench.watches);
  slow.full = true;
  slow.stream.create(1, watchRequest(WatchKind.prefix, "p/"));
  bench.pass(1000);
  bench.apply(1, collected(500));
  slow.drain();
  bench.settle();
  t.ok(slow.take().includes("INITIAL RESET"));
  t.end();
});

t.test("W7 locks that were collected say nothing of keys, nor keys of locks", (t) => {
  const bench = new WatchBench();
  bench.apply(1, lock("r", "a", 100_000), set("p/stays", "1"), set("p/gone", "1"));
  const keys = watching(bench, WatchKind.prefix, "p/");
  const held = watching(bench, WatchKind.lock, "r");
  for (const { stream } of [keys, held]) stream.close();
  bench.pass(10);
  bench.apply(1, unlock("r", "a"), remove("p/gone"));
  bench.pass(1000);
  bench.apply(1, {
    ...{ kind: "collect", after: null, limit: 1000 },
    ...{ lockRetentionMs: 500, tombstoneRetentionMs: 0 },
  });
  forget(bench);
  const prefix = watching(bench, WatchKind.prefix, "p/", { cursor: keys.cursor });
  t.same(prefix.take(), ["created", "MERGED deleted p/gone r1", "mark"]);
  const other = watching(bench, WatchKind.lock, "r", { cursor: held.cursor });
  t.same(other.take(), ["created", "MERGED unlocked r t0", "mark"], "it is free");
  t.end();
});

t.test("W7 P-186 an image says what was collected where it was made", (t) => {
  const bench = new WatchBench();
  const before = [set("p/gone", "1"), set("p/stays", "1")];
  bench.apply(1, ...before);
  const { cursor, stream } = watching(bench, WatchKind.prefix, "p/");
  stream.close();
  const source = new Bench();
  source.apply(0, { kind: "set-level", level: level(2) }, ...before);
  source.apply(1000, remove("p/gone"));
  source.apply(9000, collected(1000));
  while (source.machine.appliedIndex < 20) source.one(9000, { kind: "advance-clock" });
  bench.install(1, source);
  t.same(bench.group(1).machine.collected, { keysMs: 1001, locksMs: 0 });
  t.same(watching(bench, WatchKind.prefix, "p/", { cursor }).take(), ANEW);
  const live = watching(bench, WatchKind.prefix, "p/");
  t.same(live.take(), ["created"], "who begins now misses nothing");
  t.end();
});

t.test("W7 W14 keys that came from a partition where some were collected: the state anew", (t) => {
  const world = { nowMs: 2000 };
  const source = new Side(world, 0, 1, true);
  const target = new Side(world, 0, 2, false);
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? target : source));
  source.do(set("b/m", "1"));
  source.do(set("b/gone", "1"));
  const { cursor } = watching(bench, WatchKind.prefix, "b/");
  source.do(remove("b/gone"));
  world.nowMs += 5000;
  source.do(collected(1000));
  const move = new Move(source, target, { keySpace: "b", startKey: null, endKey: null });
  const bounds = { maxBytes: 1 << 20, maxVisits: 100 };
  move.begin();
  while (!move.give("next", bounds));
  move.freeze();
  t.equal(move.finish(bounds), "done");
  bench.ranges.set("b", [{ startKey: null, endKey: null, partitionId: 2 }]);
  const here = watching(bench, WatchKind.prefix, "b/", { cursor });
  t.same(here.take(), ["created", "INITIAL RESET", "INITIAL set b/m 1", "mark"]);
  t.end();
});
