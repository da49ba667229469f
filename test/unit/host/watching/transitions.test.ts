/** What watches are told when a partition goes, comes as an image, or has other keys (W6, W14). */
import t from "tap";
import { WATCHED_LEASES_MAX, WATCH_SYNCED_MAX } from "../../../../src/base/limits.js";
import { WatchKind } from "../../../../src/base/result-types.js";
import { Prng } from "../../../../src/base/prng.js";
import type { Command } from "../../../../src/machine/commands/command.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { Move, Side } from "../../../doubles/machine/range-move.js";
import { attempt, level, moveId, rangeGeneration } from "../../../../src/base/ids.js";
import { Bench, lock, remove, set, unlock } from "../../../doubles/machine/bench.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

function watching(bench: WatchBench, kind: number, name: string, rest = {}): WatchCaller {
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(kind, name, rest));
  bench.settle();
  return caller;
}

/** A machine that got what `commands` say, one entry each, and more than the other one. */
function further(entries: number, ...commands: Parameters<Bench["one"]>[1][]): Bench {
  const state = new Bench();
  state.one(0, { kind: "set-level", level: level(2) });
  for (const command of commands) state.one(2000, command);
  while (state.machine.appliedIndex < entries) state.one(2000, { kind: "advance-clock" });
  return state;
}

t.test("W6 P-186 an image: each name that changed comes once, in its newest state", (t) => {
  const bench = new WatchBench();
  bench.apply(1, { kind: "advance-clock" });
  bench.apply(1, set("k", "1"));
  bench.apply(1, set("p/gone", "1"));
  bench.apply(1, set("p/same", "1"));
  const key = watching(bench, WatchKind.key, "k");
  const prefix = watching(bench, WatchKind.prefix, "p/");
  const held = watching(bench, WatchKind.lock, "r");
  bench.apply(1, lock("r", "a", 60_000));
  const before = [set("k", "1"), set("p/gone", "1"), set("p/same", "1"), lock("r", "a", 60_000)];
  const after = [set("k", "2"), set("k", "3"), remove("p/gone"), unlock("r", "a")];
  bench.install(1, further(20, ...before, ...after));
  t.same(key.take(), ["created", "MERGED set k 3 r2", "mark"]);
  t.same(prefix.take(), ["created", "MERGED deleted p/gone r1", "mark"]);
  t.same(held.take(), ["created", "locked r t0 a", "MERGED unlocked r t0", "mark"]);
  t.equal(bench.hub.tally.merged.get("image"), 3);
  bench.apply(1, set("k", "4"));
  t.same(key.take(), ["set k 4 r3"], "live again");
  t.end();
});

t.test("W6 W13 an image under a stream that is full", (t) => {
  const bench = new WatchBench();
  const caller = watching(bench, WatchKind.key, "k");
  caller.full = true;
  bench.apply(1, set("k", "1"));
  bench.install(1, further(9, set("k", "1"), set("k", "2")));
  bench.apply(1, set("k", "3"));
  t.same(caller.take(), ["created"]);
  caller.drain();
  bench.settle();
  t.same(caller.takeEvents().at(-1), "set k 3 r2");
  t.end();
});

t.test("W11 leases that came with an image end too", (t) => {
  const bench = new WatchBench();
  const key = watching(bench, WatchKind.key, "k");
  const prefix = watching(bench, WatchKind.prefix, "k");
  bench.install(1, further(5, set("k", "1", { expiresMs: 500 })));
  t.same([...key.takeEvents(), ...prefix.takeEvents()], ["set k 1", "set k 1"]);
  bench.pass(1650);
  t.same([...key.takeEvents(), ...prefix.takeEvents()], ["expired k", "expired k"]);
  t.end();
});

t.test("W4 a watch does not begin before its round, and events wait for that", (t) => {
  const bench = new WatchBench();
  const group = bench.group(1);
  group.rounds = "held";
  const caller = watching(bench, WatchKind.key, "k", { initial: true });
  bench.apply(1, set("k", "1"));
  t.same(caller.take(), []);
  group.release();
  bench.settle();
  t.same(caller.take(), ["created", "INITIAL set k 1", "mark"]);
  group.rounds = "retry";
  const other = watching(bench, WatchKind.key, "k");
  bench.pass(12_000);
  t.same(other.take(), ["ended stale"], "nobody could be asked");
  t.end();
});

t.test("W9 SYNCED waits for the rounds of all partitions", (t) => {
  const bench = new WatchBench(3);
  const caller = watching(bench, WatchKind.prefix, "p/");
  const last = bench.group(3);
  last.rounds = "held";
  caller.stream.sync(5, 1);
  bench.settle();
  bench.apply(3, set("p/a", "1"));
  t.same(caller.take(), ["created", "set p/a 1"]);
  last.release();
  bench.settle();
  t.same(caller.take(), ["synced 5"]);
  caller.full = true;
  last.rounds = "confirmed";
  bench.apply(2, set("p/b", "1"));
  caller.stream.sync(6, 1);
  bench.settle();
  t.same(caller.take(), [], "a full stream is not told before what is before it");
  caller.drain();
  bench.settle();
  t.same(caller.take(), ["set p/b 1", "synced 6"]);
  t.end();
});

t.test("W9 Syncs that came while a round was under way wait for one of their own", (t) => {
  const bench = new WatchBench();
  const group = bench.group(1);
  const caller = watching(bench, WatchKind.key, "k");
  group.rounds = "held";
  caller.stream.sync(1, 1);
  caller.stream.sync(2, 0);
  caller.stream.sync(3, 1);
  group.release();
  bench.settle();
  t.same(caller.take(), ["created", "synced 1"], "the round began before the others came");
  group.release();
  bench.settle();
  t.same(caller.take(), ["synced 2", "synced 3"], "one for both");
  t.end();
});

t.test("W16 P-185 Syncs without a leader: what one more is about ends, the stream goes on", (t) => {
  const bench = new WatchBench();
  const caller = watching(bench, WatchKind.key, "k");
  caller.stream.create(2, watchRequest(WatchKind.key, "j"));
  bench.settle();
  caller.take();
  bench.group(1).rounds = "held";
  for (let at = 2; at <= WATCH_SYNCED_MAX; at += 2) caller.stream.sync(at, 1);
  t.same(caller.take(), [], "as many as may wait");
  caller.stream.sync(1, 2);
  bench.settle();
  t.same(caller.take(), ["ended overloaded #2"]);
  caller.stream.sync(1, 0);
  bench.settle();
  t.same(caller.take(), ["ended overloaded"]);
  caller.stream.create(3, watchRequest(WatchKind.key, "k"));
  for (let at = 0; at < 3; at++) {
    bench.group(1).release();
    bench.settle();
  }
  t.equal(caller.messages.filter(({ syncId }) => syncId > 0).length, WATCH_SYNCED_MAX / 2);
  caller.stream.sync(7, 3);
  bench.group(1).release();
  bench.settle();
  t.same(caller.take().slice(-1), ["synced 7 #3"], "there is room again");
  t.end();
});

t.test("W14 a partition that leaves the node ends what watches it", (t) => {
  const bench = new WatchBench();
  const here = watching(bench, WatchKind.key, "k");
  bench.places.set("j", 2);
  const gone = watching(bench, WatchKind.key, "j");
  const both = watching(bench, WatchKind.prefix, "p");
  bench.leave(2);
  t.same(here.take(), ["created"]);
  t.same(gone.take(), ["created", "ended notHosted"]);
  t.same(both.take(), ["created", "ended notHosted"]);
  t.equal(gone.messages.at(-1)?.partition, 2, "it says which");
  t.same(watching(bench, WatchKind.key, "j").take(), ["ended notHosted"]);
  t.end();
});

t.test("W14 a key that goes to another partition is told from there", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("k", "1"));
  const caller = watching(bench, WatchKind.key, "k");
  bench.apply(2, set("k", "2"));
  t.same(caller.take(), ["created"], "it is not there yet");
  bench.places.set("k", 2);
  bench.version++;
  bench.apply(2, { kind: "advance-clock" });
  t.same(caller.take(), ["MERGED set k 2", "mark"]);
  bench.apply(1, set("k", "late"));
  t.same(caller.take(), [], "what its old partition still says is past");
  bench.apply(2, set("k", "3"));
  t.same(caller.take(), ["set k 3 r1"]);
  t.end();
});

t.test(
  "W14 P-186 what a late source brings of keys that its target adopted is told to nobody",
  (t) => {
    const world = { nowMs: 2000 };
    const source = new Side(world, 0, 1, true);
    const target = new Side(world, 0, 2, false);
    // The replica of the source on this node is behind the one that moves the keys.
    const bench = new WatchBench(2, {}, (id) => (id === 2 ? target : new Bench(undefined, id)));
    const late = [set("b/a", "1"), set("b/m", "1"), set("b/m", "2"), set("b/a", "2")];
    for (const command of late) source.do(command);
    bench.apply(1, ...late.slice(0, 2));
    const prefix = watching(bench, WatchKind.prefix, "b/");
    const move = new Move(source, target, { keySpace: "b", startKey: "b/k", endKey: null });
    const bounds = { maxBytes: 1 << 20, maxVisits: 100 };
    move.begin();
    while (!move.give("next", bounds));
    const frozen = move.freeze();
    t.equal(move.finish(bounds), "done");
    bench.settle();
    t.same(prefix.take(), ["created", "MERGED set b/m 2 r1", "mark"]);
    bench.apply(2, set("b/m", "3"));
    t.same(prefix.take(), ["set b/m 3 r2"]);
    bench.apply(1, ...late.slice(2));
    t.same(prefix.take(), ["set b/a 2 r1"], "of the keys that stayed alone");
    const initial = watching(bench, WatchKind.prefix, "b/", { initial: true });
    t.same(initial.takeEvents(), ["set b/a 2 r1", "set b/m 3 r2"], "nor when the state is read");
    t.equal(frozen.status, "done");
    const { keySpace, moveId, attempt } = move.named;
    const interval = { startKey: "b/k", endKey: null, generation: rangeGeneration(4) };
    bench.apply(1, { kind: "range-freeze", keySpace, moveId, attempt, ...interval });
    bench.apply(1, set("b/b", "1"));
    t.same(prefix.take(), ["set b/b 1"]);
    t.end();
  },
);

t.test("W2 W14 keys that were frozen, and are served again, are told as they are then", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("b/k", "1", { expiresMs: 500 }), set("b/m", "1"));
  const before = watching(bench, WatchKind.prefix, "b/");
  const move = { keySpace: "b", moveId: moveId(1) };
  const interval = { startKey: null, endKey: null, generation: rangeGeneration(1) };
  bench.apply(1, { kind: "range-freeze", ...move, ...interval, attempt: attempt(1) });
  const meanwhile = watching(bench, WatchKind.prefix, "b/", { initial: true });
  bench.pass(1000);
  t.same(before.take(), ["created"], "nobody has them");
  t.same(meanwhile.takeEvents(), []);
  bench.apply(1, { kind: "range-unfreeze", ...move, attempt: attempt(2) });
  t.same(before.takeEvents(), ["expired b/k", "set b/m 1"]);
  t.same(meanwhile.takeEvents(), ["expired b/k", "set b/m 1"]);
  t.end();
});

t.test("W7 W14 a watch that goes on is told what came with stamps of another partition", (t) => {
  const world = { nowMs: 2000 };
  const source = new Side(world, 0, 1, true);
  const target = new Side(world, 0, 2, false);
  const bench = new WatchBench(2, {}, (id) => (id === 2 ? target : source));
  source.do(set("b/m", "1"));
  bench.ranges.set("b", [{ startKey: null, endKey: null, partitionId: 2 }]);
  // The stamps of the target are ahead.
  while (target.machine.appliedIndex < 50) bench.apply(2, { kind: "advance-clock" });
  const { cursor } = watching(bench, WatchKind.prefix, "b/");
  source.do(set("b/m", "2"));
  const move = new Move(source, target, { keySpace: "b", startKey: null, endKey: null });
  const bounds = { maxBytes: 1 << 20, maxVisits: 100 };
  move.begin();
  while (!move.give("next", bounds));
  move.freeze();
  t.equal(move.finish(bounds), "done");
  const prefix = watching(bench, WatchKind.prefix, "b/", { cursor });
  t.same(prefix.take(), ["created", "MERGED set b/m 2 r1", "mark"]);
  t.end();
});

t.test("W7 a cursor of another cluster, as of before a restore: the whole state anew", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("k", "1"));
  const { cursor } = watching(bench, WatchKind.key, "k");
  bench.clusterId = "restored";
  const caller = watching(bench, WatchKind.key, "k", { cursor });
  t.same(caller.take(), ["created", "INITIAL RESET", "INITIAL set k 1", "mark"]);
  t.end();
});

t.test(
  "an entry that does not fit a message goes on in the next, and has its cursor there",
  (t) => {
    const bench = new WatchBench();
    const caller = watching(bench, WatchKind.prefix, "p/");
    const commands = Array.from({ length: 5 }, (_, at) => set(`p/${at}`, "x".repeat(100_000)));
    bench.apply(1, ...commands);
    const events = caller.messages.filter((each) => each.events.length > 0);
    t.same(
      events.map(({ events: told, more, cursor }) => [told.length, more, cursor !== null]),
      [
        [2, true, false],
        [2, true, false],
        [1, false, true],
      ],
    );
    t.end();
  },
);

t.test("3.9 a message ends before the entry that would bring more events than are wanted", (t) => {
  const bench = new WatchBench();
  const caller = watching(bench, WatchKind.prefix, "p/", { eventsMax: 3 });
  caller.full = true;
  for (const count of [2, 1, 1, 5, 1]) {
    bench.apply(1, ...Array.from({ length: count }, (_, at) => set(`p/${at}`, "x")));
  }
  caller.drain();
  bench.settle();
  const told = caller.messages.filter(({ events }) => events.length > 0);
  t.same(
    told.map(({ events, cursor }) => [events.length, cursor !== null]),
    [
      [3, true],
      [1, true],
      [5, true],
      [1, true],
    ],
  );
  t.end();
});

t.test("W10 P-187 a mark that was due while the stream was full comes behind its events", (t) => {
  const bench = new WatchBench();
  const caller = watching(bench, WatchKind.key, "k", { progressMs: 100 });
  caller.full = true;
  bench.apply(1, set("k", "1"));
  bench.pass(150);
  t.same(caller.take(), ["created"]);
  caller.drain();
  bench.settle();
  t.same(caller.take(), ["set k 1", "mark"]);
  t.end();
});

t.test("W10 a mark says for how long no leader was heard, and above 30 s the watch ends", (t) => {
  const bench = new WatchBench();
  const caller = watching(bench, WatchKind.prefix, "p/", { progressMs: 1000 });
  const staleMs = (): number => caller.messages.at(-1)?.staleMs ?? -1;
  bench.pass(1000);
  t.same([caller.take(), staleMs()], [["created", "mark"], 0]);
  bench.group(2).heardMs = bench.timer.nowMs;
  bench.pass(25_000);
  t.equal(staleMs(), 25_000, "of the partition that is furthest behind");
  bench.group(2).heardMs = bench.timer.nowMs - 200;
  bench.pass(1000);
  t.equal(staleMs(), 1200, "it was heard again");
  bench.group(2).heardMs = -Infinity;
  bench.pass(1000);
  t.equal(staleMs(), 2200, "who leads is not known, but was");
  bench.pass(28_000);
  t.same(caller.take().at(-1), "ended stale");
  t.end();
});

t.test("many watches of one stream are told together, whoever of them goes", (t) => {
  const bench = new WatchBench();
  const caller = new WatchCaller(bench.watches);
  for (let id = 1; id <= 50; id++) caller.stream.create(id, watchRequest(WatchKind.key, "k"));
  bench.settle();
  caller.take();
  bench.apply(1, set("k", "1"));
  const ids = Array.from({ length: 50 }, (_, at) => at + 1);
  t.same(caller.take(), [`#${ids.join(",")} set k 1`]);
  caller.full = true;
  for (let at = 0; at < 4; at++) bench.apply(1, set("k", "x".repeat(200_000)));
  caller.drain(1);
  bench.settle();
  caller.stream.cancel(1);
  caller.drain();
  bench.settle();
  const last = caller.messages.filter(({ watchIds }) => watchIds.includes(50));
  t.equal(
    last.reduce((sum, { events }) => sum + events.length, 0),
    5,
    "all of it",
  );
  t.end();
});

t.test("W5 a partition that went and came again has no history of the time between", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("k", "1"));
  const caller = watching(bench, WatchKind.key, "k");
  const { cursor } = caller;
  const group = bench.group(1);
  bench.leave(1);
  group.rows.apply(bench.timer.nowMs, set("k", "2"), set("k", "3"));
  bench.join(1, group);
  const again = watching(bench, WatchKind.key, "k", { cursor });
  t.same(again.take(), ["created", "MERGED set k 3 r2", "mark"]);
  t.end();
});

t.test("frontier: between slices names are told once, by the scan or by events", (t) => {
  for (const kind of ["initial", "merged"]) {
    const random = new Prng(kind.length);
    const bench = new WatchBench(2, { historyBytes: kind === "merged" ? 20_000 : 1 << 20 });
    const state = new Map<string, string>();
    const change = (): Command => {
      const key = `p/${random.below(1500)}`;
      const value = String(random.below(1e6));
      state.set(key, value);
      return set(key, value);
    };
    const grow = (count: number): void => bench.apply(1, ...Array.from({ length: count }, change));
    grow(3000);
    const caller = new WatchCaller(bench.watches);
    const initial = kind === "initial";
    if (initial) caller.room = 1;
    caller.stream.create(1, watchRequest(WatchKind.prefix, "p/", { initial }));
    bench.settle();
    if (kind === "merged") {
      caller.full = true;
      for (let at = 0; at < 15; at++) grow(100);
    }
    const before = caller.messages.length;
    for (let round = 0; round < 200 && caller.messages.at(-1)?.type !== 2; round++) {
      caller.drain(1);
      bench.settle();
      grow(2);
    }
    caller.drain();
    bench.settle();
    const revisions = new Map<string, number>();
    const known = new Map<string, string>();
    for (const { events } of caller.messages.slice(kind === "initial" ? 0 : before)) {
      for (const { name, revision, value } of events) {
        const last = revisions.get(name) ?? -1;
        if (revision <= last) t.fail(`${kind}: ${name} came as ${revision} behind ${last}`);
        revisions.set(name, revision);
        known.set(name, Buffer.from(value ?? []).toString());
      }
    }
    const wrong = [...known].filter(([name, value]) => state.get(name) !== value);
    t.same(wrong, [], `${kind}: the newest state`);
    if (kind === "initial") t.equal(known.size, state.size);
    t.ok(caller.messages.length > before + 4, `${kind}: in slices`);
  }
  t.end();
});

/** So many leases of partition 2 that nobody watches are looked after. */
function crowd(bench: WatchBench, count: number): void {
  const note = (at: number): boolean => bench.hub.noteLease(2, "key", `x/${at}`, 1e9);
  for (let at = 0; at < count; at++) note(at);
}

t.test("W16 a lease more than are looked after: who watches its name ends, and goes on", (t) => {
  const bench = new WatchBench();
  const named = watching(bench, WatchKind.key, "p/a");
  const prefix = watching(bench, WatchKind.prefix, "p/");
  const other = watching(bench, WatchKind.key, "q");
  bench.apply(1, set("p/a", "1"));
  crowd(bench, WATCHED_LEASES_MAX);
  bench.apply(1, set("p/a", "2", { expiresMs: 1000 }), set("q", "1"));
  t.same(named.take(), ["created", "set p/a 1", "ended overloaded"]);
  t.same(prefix.take(), ["created", "set p/a 1", "ended overloaded"]);
  t.same(other.take(), ["created", "set q 1"], "whoever watches something else");
  const { cursor } = named;
  const again = watching(bench, WatchKind.key, "p/a", { cursor });
  t.same(again.take().at(-1), "ended overloaded", "there is no room yet");
  // Names that nobody watches are forgotten with the filters: a minute later there is.
  bench.pass(80_000);
  const later = watching(bench, WatchKind.key, "p/b");
  bench.pass(100);
  const last = watching(bench, WatchKind.key, "p/a", { cursor });
  t.same(last.takeEvents().at(-1), "expired p/a r1");
  bench.apply(1, set("p/b", "1", { expiresMs: 500 }));
  bench.pass(600);
  t.same(later.takeEvents(), ["set p/b 1", "expired p/b"]);
  t.end();
});

t.test("W15 without watches a machine is not looked at", (t) => {
  const bench = new WatchBench();
  bench.apply(1, set("k", "1"));
  t.equal(bench.group(1).machine.tap, null);
  t.equal(bench.hub.count, 0);
  t.end();
});
