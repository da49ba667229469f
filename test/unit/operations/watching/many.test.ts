/** Watches of prefixes, buckets and locks by prefix, on the real host and machine of one node. */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { Prng } from "../../../../src/base/prng.js";
import type { DataRequest, WatchMessage } from "../../../../src/operations/api/requests.js";
import { Bench, lock, set, unlock } from "../../../doubles/operations/fixture.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

function del(key: string): DataRequest {
  return { kind: "kv-delete", key, durability: 1, plain: true };
}

function begin(bench: Bench, kind: number, name: string, rest = {}): WatchCaller {
  const caller = new WatchCaller(bench.operations);
  caller.stream.create(1, watchRequest(kind, name, rest));
  return caller;
}

function watching(bench: Bench, kind: number, name: string, rest = {}): WatchCaller {
  const caller = begin(bench, kind, name, rest);
  bench.world.pass(5);
  return caller;
}

t.test("W2 W4 a prefix: what is there, then what happens, over all partitions", (t) => {
  const bench = new Bench();
  for (const key of ["p/a", "p/b", "pq", "x/p"]) bench.ask(set(key, "0"));
  const caller = watching(bench, WatchKind.prefix, "p", { initial: true });
  const told = caller.take();
  t.same(told.at(0), "created");
  t.same(told.at(-1), "mark");
  const initial = caller.messages.filter((each) => each.initial).flatMap(({ events }) => events);
  t.same(initial.map(({ name }) => name).sort(), ["p/a", "p/b", "pq"]);
  bench.ask(set("p/c", "1"));
  bench.ask(set("x/p", "1"));
  bench.ask(del("pq"));
  t.same(caller.takeEvents(), ["set p/c 1", "deleted pq r1"]);
  t.end();
});

t.test("W4 a bucket: its own keys alone, and in one instant", (t) => {
  const bench = new Bench();
  for (const key of ["b", "b/a", "b/c/d", "b/z", "ba"]) bench.ask(set(key, "0"));
  const caller = watching(bench, WatchKind.bucket, "b", { initial: true });
  t.same(caller.take(), ["created", "INITIAL set b 0; set b/a 0; set b/z 0", "mark"]);
  bench.ask(set("b/c/e", "1"));
  bench.ask(set("b/n", "1"));
  t.same(caller.takeEvents(), ["set b/n 1"]);
  t.end();
});

t.test("W4 W7 locks by prefix; beyond memory they are told anew", (t) => {
  const bench = new Bench();
  bench.ask(lock("r/1", "a", 600_000));
  bench.ask(lock("r/2", "b", 600_000));
  bench.ask(unlock("r/2", "b"));
  const caller = watching(bench, WatchKind.lockPrefix, "r/", { initial: true });
  t.same(caller.takeEvents(), ["locked r/1 t0 a"], "what nobody holds is not there");
  bench.ask(lock("r/2", "c", 600_000));
  t.same(caller.takeEvents(), ["locked r/2 t1 c"]);
  const { cursor } = caller;
  caller.stream.close();
  bench.ask(unlock("r/1", "a"));
  const near = watching(bench, WatchKind.lockPrefix, "r/", { cursor });
  t.same(near.take(), ["created", "unlocked r/1 t0 a"]);
  near.stream.close();
  bench.world.pass(130_000);
  const far = watching(bench, WatchKind.lockPrefix, "r/", { cursor });
  t.same(far.take(), ["created", "INITIAL RESET", "INITIAL locked r/2 t1 c", "mark"]);
  t.end();
});

t.test("W6 a prefix beyond memory: each name that changed once, gone ones too", (t) => {
  const bench = new Bench();
  bench.ask(set("p/same", "0"));
  bench.ask(set("p/lease", "0", { expiresMs: 70_000 }));
  bench.ask(set("p/gone", "0"));
  const first = watching(bench, WatchKind.prefix, "p/");
  const { cursor } = first;
  first.stream.close();
  bench.ask(set("p/new", "1"));
  bench.ask(set("p/new", "2"));
  bench.ask(del("p/gone"));
  bench.world.pass(150_000);
  // A write of the partition lets its clock go on.
  bench.ask(set("p/new", "3"));
  const second = watching(bench, WatchKind.prefix, "p/", { cursor });
  t.same(second.takeEvents().sort(), ["deleted p/gone r1", "expired p/lease", "set p/new 3 r2"]);
  t.ok(second.messages.every(({ events, merged }) => events.length === 0 || merged));
  t.end();
});

t.test("W11 leases below a prefix end, those from before the watch too", (t) => {
  const bench = new Bench();
  bench.ask(set("p/old", "0", { expiresMs: 1000 }));
  const caller = watching(bench, WatchKind.prefix, "p/");
  bench.ask(set("p/new", "0", { expiresMs: 500 }));
  t.same(caller.takeEvents(), ["set p/new 0"]);
  bench.world.pass(640);
  t.same(caller.takeEvents(), ["expired p/new"]);
  bench.world.pass(640);
  t.same(caller.takeEvents(), ["expired p/old"]);
  t.end();
});

/** What a caller knows, from what it was told. */
function learn(known: Map<string, string>, { events, reset }: WatchMessage): void {
  if (reset) known.clear();
  for (const { type, name, value } of events) {
    if (type === 1) known.set(name, Buffer.from(value ?? []).toString());
    else known.delete(name);
  }
}

t.test("frontier: a large prefix is read in slices while it changes, and nothing is lost", (t) => {
  const random = new Prng(7);
  const bench = new Bench();
  const state = new Map<string, string>();
  const change = (): void => {
    const key = `p/${random.below(1500)}`;
    if (random.below(4) === 0) {
      bench.send(del(key));
      state.delete(key);
    } else {
      const value = String(random.below(1_000_000));
      bench.send(set(key, value));
      state.set(key, value);
    }
  };
  for (let batch = 0; batch < 20; batch++) {
    for (let at = 0; at < 100; at++) change();
    bench.world.settle();
  }
  const caller = begin(bench, WatchKind.prefix, "p/", { initial: true });
  for (let at = 0; at < 300; at++) {
    change();
    if (at % 3 === 0) bench.world.timer.step();
    if (at % 5 === 0) bench.world.settle();
  }
  bench.world.pass(100);
  const known = new Map<string, string>();
  const revisions = new Map<string, number>();
  for (const message of caller.messages) {
    learn(known, message);
    for (const { name, revision } of message.events) {
      const last = revisions.get(name) ?? -1;
      if (revision <= last) t.fail(`${name} came as ${revision} behind ${last}`);
      revisions.set(name, revision);
    }
  }
  t.same(new Map([...known].sort()), new Map([...state].sort()));
  t.ok(caller.messages.filter(({ initial }) => initial).length > 1, "in several slices");
  t.equal(caller.messages.filter(({ type }) => type === 2).length, 1, "one mark");
  t.end();
});

t.test("W13 slow readers of a prefix: whatever they miss, they end with the newest state", (t) => {
  const random = new Prng(11);
  const bench = new Bench({ watchHistoryBytes: 20_000 });
  const state = new Map<string, string>();
  const callers = [1, 2, 3].map((room) => {
    const caller = watching(bench, WatchKind.prefix, "p/", { initial: true });
    return { caller, room };
  });
  for (let round = 0; round < 40; round++) {
    for (let left = random.below(40); left > 0; left--) {
      const key = `p/${random.below(50)}`;
      if (random.below(4) === 0) {
        bench.send(del(key));
        state.delete(key);
      } else {
        bench.send(set(key, String(round)));
        state.set(key, String(round));
      }
    }
    bench.world.settle();
    for (const { caller, room } of callers) if (random.below(5) === 0) caller.drain(room);
    bench.world.pass(1);
  }
  for (const { caller } of callers) caller.drain();
  bench.world.pass(50);
  for (const { caller } of callers) {
    const known = new Map<string, string>();
    for (const message of caller.messages) learn(known, message);
    t.same(new Map([...known].sort()), new Map([...state].sort()));
  }
  const { tally } = bench.operations.watches;
  t.ok((tally.merged.get("behind") ?? 0) > 0, "some fell behind");
  t.equal(tally.behind, 0);
  t.ok(tally.historyBytes <= 20_000);
  t.end();
});
