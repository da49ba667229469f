/** What it costs that many who watch the same fall behind at once (W13, P-185). */
import t, { type Test } from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { WATCH_MESSAGE_BYTES } from "../../../../src/base/limits.js";
import { Prng } from "../../../../src/base/prng.js";
import { eventBytes } from "../../../../src/machine/events.js";
import { ChangedNames } from "../../../../src/host/watching/changed-names.js";
import { textToByteKey } from "../../../../src/machine/store/keys.js";
import { WatchedRows, keyEvent } from "../../../../src/machine/watched-rows.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { remove, set } from "../../../doubles/machine/bench.js";
import { WatchCaller, shortEvent, watchRequest } from "../../../doubles/operations/watching.js";

const KEYS = 2000;
const WATCHERS = 1000;
const CHANGED = 50;
const VALUE_BYTES = 32_768;

/** Counts the rows that watches look at. */
function countRows(t: Test): { count: number } {
  const read = { count: 0 };
  const { scan, key } = WatchedRows.prototype;
  WatchedRows.prototype.scan = function (span, after, seen) {
    scan.call(this, span, after, (name, value) => {
      read.count++;
      return seen(name, value);
    });
  };
  WatchedRows.prototype.key = function (name) {
    read.count++;
    return key.call(this, name);
  };
  t.teardown(() => void Object.assign(WatchedRows.prototype, { scan, key }));
  return read;
}

/** A stream that watches a prefix. */
function watcher(bench: WatchBench, prefix = "p/"): WatchCaller {
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(WatchKind.prefix, prefix));
  return caller;
}

t.test("W13 P-185 a thousand who watch the same read it once, and then what changed", (t) => {
  const bench = new WatchBench(1, { watchersMax: WATCHERS, historyBytes: 20_000 });
  for (let at = 0; at < KEYS; at++) bench.group(1).rows.one(1000, set(`p/${at}`, "1"));
  const read = countRows(t);
  const callers = Array.from({ length: WATCHERS }, () => watcher(bench));
  bench.settle();
  t.ok(read.count >= KEYS && read.count < 2 * KEYS, `${read.count} rows for all to begin`);
  for (const caller of callers) {
    t.same(caller.take(), ["created"]);
    caller.full = true;
  }
  for (let at = 0; at < 400; at++) bench.apply(1, set(`p/${at % CHANGED}`, `${at}`));
  read.count = 0;
  for (const caller of callers) caller.drain();
  bench.settle();
  const isOnce = read.count >= KEYS && read.count < 2 * KEYS + WATCHERS * CHANGED;
  t.ok(isOnce, `${read.count} rows for all to catch up`);
  const { tally, turns } = bench.hub;
  t.same([tally.merged.get("behind"), tally.behind, turns.count], [WATCHERS, 0, 0]);
  for (const caller of callers) {
    const names = caller.messages.flatMap(({ events }) => events.map(({ name }) => name));
    if (new Set(names).size !== CHANGED || names.length !== CHANGED) t.fail("not each name once");
  }
  t.end();
});

t.test("W6 whoever stands before where others were compared from is told of more", (t) => {
  const bench = new WatchBench(1, { historyBytes: 2000 });
  bench.apply(1, set("p/a", "1"), set("p/b", "1"), set("p/c", "1"));
  const earlier = watcher(bench);
  bench.settle();
  const { cursor } = earlier;
  earlier.stream.close();
  bench.apply(1, set("p/a", "2"));
  const slow = watcher(bench);
  bench.settle();
  slow.full = true;
  for (let at = 0; at < 50; at++) bench.apply(1, set("p/b", `${at}`));
  slow.drain();
  bench.settle();
  t.same(slow.take(), ["created", "MERGED set p/b 49 r50", "mark"]);
  const again = new WatchCaller(bench.watches);
  again.stream.create(1, watchRequest(WatchKind.prefix, "p/", { cursor }));
  bench.settle();
  t.same(again.take(), ["created", "MERGED set p/a 2 r1; set p/b 49 r50", "mark"]);
  t.end();
});

t.test("P-185 W13 what others found is told in messages of a bounded size", (t) => {
  const bench = new WatchBench(1, { historyBytes: 20_000 });
  const named = (at: number): string => `p/${String(at).padStart(2, "0")}`;
  const callers = [watcher(bench), watcher(bench)] as const;
  bench.settle();
  for (const caller of callers) caller.full = true;
  for (let at = 0; at < 60; at++) bench.apply(1, set(named(at), "x".repeat(VALUE_BYTES)));
  const [first, second] = callers;
  first.drain();
  bench.settle();
  const read = countRows(t);
  second.drain(1);
  bench.settle();
  t.equal(second.messages.at(-1)?.events.at(-1)?.name, named(7), "eight fit the first message");
  for (const at of [3, 40]) bench.apply(1, set(named(at), "late"));
  second.drain();
  bench.settle();
  t.ok(read.count <= 62, `${read.count} rows, by name`);
  for (const { messages } of callers) {
    const sizes = messages.map(({ events }) => events.reduce((sum, e) => sum + eventBytes(e), 0));
    t.ok(Math.max(...sizes) <= WATCH_MESSAGE_BYTES + 2 * VALUE_BYTES, `${sizes.join()}`);
  }
  const told = second.messages.flatMap(({ events }) => events.map(shortEvent));
  const late = told.filter((text) => text.endsWith("late r1") || text.includes(" late"));
  t.same(late.sort(), ["set p/03 late r1", "set p/40 late r1"], "each newest state once");
  t.equal(told.length, 61);
  t.end();
});

t.test("W6 W13 W14 names that are not ASCII: which partition speaks for them", (t) => {
  const bench = new WatchBench(2, { historyBytes: 2000 });
  bench.ranges.set("b", [
    { startKey: null, endKey: "b/ж", partitionId: 1 },
    { startKey: "b/ж", endKey: null, partitionId: 2 },
  ]);
  const callers = [watcher(bench, "b/"), watcher(bench, "b/")];
  bench.settle();
  for (const caller of callers) caller.full = true;
  for (let at = 0; at < 60; at++) {
    bench.apply(1, set("b/а", `${at}`));
    bench.apply(2, set("b/я", `${at}`));
  }
  for (const caller of callers) {
    caller.drain();
    bench.settle();
    t.same(caller.takeEvents().sort(), ["set b/а 59 r59", "set b/я 59 r59"]);
  }
  const { filters } = bench.hub["feed"];
  t.ok(filters.get(WatchKind.prefix, "b/")?.changed, "the second one read these names alone");
  t.end();
});

t.test("W6 W13 two watches of one filter on one stream: each that is behind is compared", (t) => {
  const bench = new WatchBench(2, { historyBytes: 2000 });
  const caller = new WatchCaller(bench.watches);
  for (const id of [1, 2]) caller.stream.create(id, watchRequest(WatchKind.prefix, "k"));
  bench.settle();
  caller.take();
  caller.full = true;
  bench.apply(2, set("k-last", "1"));
  for (let at = 0; at < 100; at++) bench.apply(1, set(`k${at % 7}`, `${at}`));
  caller.drain();
  bench.settle();
  const newest = (id: number): ReadonlyMap<string, string> => {
    const mine = caller.messages.filter(({ watchIds }) => watchIds.includes(id));
    const events = mine.flatMap((message) => message.events);
    return new Map(events.map(({ name, value }) => [name, Buffer.from(value ?? []).toString()]));
  };
  for (const id of [1, 2]) {
    t.equal(newest(id).get("k-last"), "1", `watch ${id}: what another partition has, too`);
    t.same([newest(id).size, newest(id).get("k1")], [8, "99"]);
  }
  t.end();
});

t.test("W6 W13 whoever is compared with what others found knows the newest state", (t) => {
  let shared = 0;
  const { behind } = ChangedNames.prototype;
  ChangedNames.prototype.behind = function (since, partition) {
    const names = behind.call(this, since, partition);
    if (names !== null) shared++;
    return names;
  };
  t.teardown(() => void Object.assign(ChangedNames.prototype, { behind }));
  for (let seed = 1; seed <= 20; seed++) {
    const random = new Prng(seed);
    const bench = new WatchBench(2, { historyBytes: 8000 });
    const change = (id: number): void => {
      const key = `p/${id}/${random.below(700)}`;
      const kind = random.below(5);
      const expiresMs = kind === 0 ? 1 + random.below(200) : 0;
      // Some so large that few fit a message.
      const value = String(random.below(1 << 20)).padEnd(seed % 10 === 0 ? 20_000 : 0, ".");
      const { rows } = bench.group(id);
      rows.apply(bench.timer.nowMs, kind === 1 ? remove(key) : set(key, value, { expiresMs }));
    };
    for (let at = 0; at < 1500; at++) change(1 + (at % 2));
    const callers = Array.from({ length: 12 }, () => watcher(bench));
    bench.settle();
    for (let round = 0; round < 400; round++) {
      change(1 + random.below(2));
      const caller = callers[random.below(callers.length)];
      if (random.below(4) === 0) caller?.drain(random.below(3));
      else if (random.below(3) === 0 && caller !== undefined) caller.full = true;
      if (random.below(10) === 0) bench.timer.nowMs += random.below(60);
      for (let steps = random.below(4); steps > 0; steps--) bench.timer.step();
    }
    for (const caller of callers) caller.drain();
    bench.pass(400);
    for (const id of [1, 2]) bench.apply(id, { kind: "advance-clock" });
    // What nobody watched from the beginning is known to all of them in one state, or in none.
    const first = new Map<string, string>();
    for (const [at, caller] of callers.entries()) {
      const known = new Map<string, string>();
      const revisions = new Map<string, number>();
      for (const { events } of caller.messages) {
        for (const event of events) {
          const { name, revision } = event;
          if (revision < (revisions.get(name) ?? 0)) t.fail(`seed ${seed}: ${name} goes back`);
          revisions.set(name, revision);
          known.set(name, shortEvent(event));
        }
      }
      for (const [name, state] of known) {
        const { rows } = bench.group(Number(name[2]));
        const row = rows.machine.reads.watched.key(textToByteKey(name));
        const { leaseMs } = rows.machine;
        const now = row === null ? "" : shortEvent(keyEvent(name, row, leaseMs));
        if (state !== now) t.fail(`seed ${seed}: ${at} knows ${state}, there is ${now}`);
      }
      if (at === 0) for (const [name, state] of known) first.set(name, state);
      for (const name of first.keys()) {
        if (!known.has(name)) t.fail(`seed ${seed}: ${at} was never told of ${name}`);
      }
    }
    t.ok(first.size > 100, `seed ${seed}: ${first.size} names changed`);
  }
  t.ok(shared > 100, `${shared} readings of names alone`);
  t.end();
});
