/** Watches of single names, on the real host and machine of one node. */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import type { DataRequest } from "../../../../src/operations/api/requests.js";
import {
  Bench,
  create,
  extendLock,
  lock,
  next,
  set,
  unlock,
} from "../../../doubles/operations/fixture.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

function del(key: string): DataRequest {
  return { kind: "kv-delete", key, durability: 1, plain: true };
}

function extendKey(key: string, expiresMs: number): DataRequest {
  return { kind: "kv-extend", key, expiresMs, durability: 1, plain: true };
}

/** A caller that has begun to watch. */
function watching(bench: Bench, kind: number, name: string, rest = {}): WatchCaller {
  const caller = new WatchCaller(bench.operations);
  caller.stream.create(1, watchRequest(kind, name, rest));
  t.same(caller.take(), [], "nothing is told in the turn of the call");
  bench.world.settle();
  return caller;
}

t.test("W1 W2 W4 a key: from now on, each change in its order", (t) => {
  const bench = new Bench();
  bench.ask(set("k", "before"));
  const caller = watching(bench, WatchKind.key, "k");
  t.same(caller.take(), ["created"]);
  bench.ask(set("k", "1"));
  bench.ask(set("other", "x"));
  bench.ask(set("k", "2"));
  bench.ask(del("k"));
  t.same(caller.take(), ["set k 1 r1", "set k 2 r2", "deleted k r3"]);
  t.equal(bench.operations.watches.tally.events[1], 2, "of what is watched alone");
  t.end();
});

t.test("W4 Initial: the present state, then a mark, also when there is none", (t) => {
  const bench = new Bench();
  const none = watching(bench, WatchKind.key, "k", { initial: true });
  t.same(none.take(), ["created", "mark"]);
  t.ok(none.cursor !== null, "the mark has a cursor");
  bench.ask(set("k", "v"));
  const some = watching(bench, WatchKind.key, "k", { initial: true });
  t.same(some.take(), ["created", "INITIAL set k v", "mark"]);
  t.same(none.take(), ["set k v"]);
  bench.ask(del("k"));
  const gone = watching(bench, WatchKind.key, "k", { initial: true });
  t.same(gone.take(), ["created", "mark"], "a deleted key is none");
  t.end();
});

t.test("W1 a lock: grants, releases and hand-overs", (t) => {
  const bench = new Bench();
  const caller = watching(bench, WatchKind.lock, "r", { initial: true });
  bench.ask(lock("r", "a", 60_000));
  bench.ask(lock("r", "a", 60_000));
  bench.ask(lock("r", "b", 60_000));
  bench.ask(unlock("r", "a"));
  t.same(caller.take(), ["created", "mark", "locked r t0 a", "unlocked r t0 a"]);
  t.end();
});

t.test("W12 a sequence: definitions and what is reserved", (t) => {
  const bench = new Bench();
  const caller = watching(bench, WatchKind.sequence, "  s ", { initial: true });
  bench.ask(create("s"));
  bench.ask(next("s"));
  t.same(caller.take(), ["created", "mark", "sequenceCreated s =0", "sequenceReserved s r1 =1000"]);
  t.end();
});

t.test("W11 the end of a lease is told within 150 ms, and not before", (t) => {
  const bench = new Bench();
  const key = watching(bench, WatchKind.key, "k");
  const held = watching(bench, WatchKind.lock, "r");
  bench.ask(set("k", "v", { expiresMs: 1000 }));
  bench.ask(lock("r", "a", 1000));
  t.same([...key.take(), ...held.take()], ["created", "set k v", "created", "locked r t0 a"]);
  bench.world.pass(990);
  t.same([...key.take(), ...held.take()], []);
  bench.world.pass(160);
  t.same([...key.take(), ...held.take()], ["expired k", "lockExpired r t0 a"]);
  bench.ask(lock("r", "b", 1000));
  bench.ask(unlock("r", "b"));
  t.same(held.take(), ["locked r t1 b", "unlocked r t1 b"]);
  bench.world.pass(3000);
  t.same(held.take(), [], "what was released does not end again");
  t.end();
});

t.test("W11 a lease that runs already when the watch begins, and one that is extended", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 1000));
  const caller = watching(bench, WatchKind.lock, "r");
  bench.world.pass(500);
  bench.ask(extendLock("r", "a", 2000));
  bench.world.pass(1900);
  t.same(caller.take(), ["created"]);
  bench.world.pass(260);
  t.same(caller.take(), ["lockExpired r t0 a"]);
  t.end();
});

t.test("W11 an extend replaces the end: by a sooner one, and of a key that had none", (t) => {
  const bench = new Bench();
  const held = watching(bench, WatchKind.lock, "r");
  const key = watching(bench, WatchKind.key, "k");
  bench.ask(lock("r", "a", 600_000));
  bench.ask(extendLock("r", "a", 1000));
  bench.ask(set("k", "v"));
  bench.ask(extendKey("k", 1000));
  t.same([...held.take(), ...key.take()], ["created", "locked r t0 a", "created", "set k v"]);
  bench.world.pass(1160);
  t.same([...held.take(), ...key.take()], ["lockExpired r t0 a", "expired k"]);
  t.end();
});

t.test(
  "W2 W11 the end of a lease is told once, also by a watch that had not read what is there",
  (t) => {
    const bench = new Bench();
    const caller = watching(bench, WatchKind.key, "k");
    t.same(caller.take(), ["created"]);
    const slow = new WatchCaller(bench.operations);
    slow.full = true;
    slow.stream.create(1, watchRequest(WatchKind.prefix, "k"));
    bench.world.settle();
    bench.ask(set("k", "v", { expiresMs: 200 }));
    bench.world.pass(1000);
    slow.drain();
    bench.world.settle();
    t.same(slow.takeEvents(), ["set k v", "expired k"]);
    t.end();
  },
);

t.test(
  "W2 W11 an end that the next grant, or the next value, writes over is told before it (seed 8310157)",
  (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 200));
    bench.ask(set("r", "v", { expiresMs: 200 }));
    const slow = [WatchKind.lockPrefix, WatchKind.prefix].map((kind) => {
      const caller = new WatchCaller(bench.operations);
      caller.full = true;
      caller.stream.create(1, watchRequest(kind, "r"));
      return caller;
    });
    bench.world.settle();
    bench.world.pass(1000);
    bench.ask(lock("r", "b", 60_000));
    bench.ask(set("r", "w"));
    for (const caller of slow) caller.drain();
    bench.world.settle();
    const told = slow.map((caller) => caller.takeEvents());
    t.same(told, [
      ["lockExpired r t0 a", "locked r t1 b"],
      ["expired r", "set r w r1"],
    ]);
    t.end();
  },
);

t.test("W9 SYNCED comes behind all that was answered before it was asked for", (t) => {
  const bench = new Bench();
  const caller = watching(bench, WatchKind.key, "k");
  bench.send(set("k", "1"));
  bench.ask(set("k", "2"));
  caller.stream.sync(7, 0);
  bench.world.settle();
  const told = caller.take().join("; ");
  t.equal(told, "created; set k 1; set k 2 r1; synced 7");
  caller.stream.sync(8, 99);
  bench.world.settle();
  t.same(caller.take(), ["synced 8 #"], "of no watch: at once");
  t.end();
});

t.test("W13 a full stream is given no end of a barrier either", (t) => {
  const bench = new Bench();
  const caller = watching(bench, WatchKind.key, "k");
  caller.take();
  caller.room = 1;
  caller.stream.sync(7, 0);
  caller.stream.sync(8, 0);
  bench.world.settle();
  t.same(caller.take(), ["synced 7"]);
  caller.drain();
  bench.world.settle();
  t.same(caller.take(), ["synced 8"]);
  t.end();
});

t.test("W10 marks come when nothing else does, with a cursor", (t) => {
  const bench = new Bench();
  const caller = watching(bench, WatchKind.key, "k", { progressMs: 500 });
  bench.world.pass(400);
  bench.ask(set("k", "1"));
  bench.world.pass(400);
  t.same(caller.take(), ["created", "set k 1"], "an event is as good as a mark");
  bench.world.pass(200);
  t.same(caller.take(), ["mark"]);
  caller.allowed = false;
  bench.world.pass(600);
  t.same(caller.take(), ["ended forbidden"], "the role is looked at again");
  t.end();
});

t.test("W5 a cursor: exactly what came behind it", (t) => {
  const bench = new Bench();
  const first = watching(bench, WatchKind.key, "k");
  bench.ask(set("k", "1"));
  const { cursor } = first;
  bench.ask(set("k", "2"));
  first.stream.close();
  bench.ask(set("k", "3"));
  bench.ask(set("k", "4"));
  bench.world.pass(50_000);
  const second = watching(bench, WatchKind.key, "k", { cursor });
  t.same(second.take(), ["created", "set k 2 r1; set k 3 r2; set k 4 r3"]);
  bench.ask(set("k", "5"));
  t.same(second.take(), ["set k 5 r4"]);
  t.same(first.takeEvents().length, 2, "a closed stream is told nothing");
  t.end();
});

t.test("W6 a cursor from beyond memory: the newest state, marked so", (t) => {
  const bench = new Bench();
  const first = watching(bench, WatchKind.key, "k");
  bench.ask(set("k", "1"));
  const { cursor } = first;
  first.stream.close();
  bench.ask(set("k", "2"));
  bench.ask(set("k", "3"));
  bench.world.pass(200_000);
  const second = watching(bench, WatchKind.key, "k", { cursor });
  t.same(second.take(), ["created", "MERGED set k 3 r2", "mark"]);
  const level = second.cursor;
  second.stream.close();
  bench.world.pass(200_000);
  const third = watching(bench, WatchKind.key, "k", { cursor: level });
  t.same(third.take(), ["created"], "nothing changed, and it is known");
  third.stream.close();
  bench.ask(del("k"));
  bench.world.pass(200_000);
  const fourth = watching(bench, WatchKind.key, "k", { cursor: level });
  t.same(fourth.take(), ["created", "MERGED deleted k r3", "mark"]);
  t.end();
});

t.test("W5 W11 an end that one watch found in the rows comes to others too (seed 8320104)", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 200));
  const first = new WatchCaller(bench.operations);
  first.room = 1;
  first.stream.create(1, watchRequest(WatchKind.lockPrefix, "r"));
  bench.world.settle();
  t.same(first.take(), ["created"]);
  bench.world.pass(1000);
  // Refused: it moves the clock of the lock's partition, and nothing else.
  bench.ask(extendLock("r", "b", 1000));
  for (const who of ["second", "third"]) {
    const caller = watching(bench, WatchKind.lockPrefix, "r", { cursor: first.cursor });
    t.same(caller.takeEvents(), ["lockExpired r t0 a"], who);
    bench.world.pass(15_000);
  }
  first.drain();
  bench.world.settle();
  t.same(first.takeEvents(), ["lockExpired r t0 a"]);
  t.end();
});

t.test("W8 FromRevision: the retained ones above it, then what comes", (t) => {
  const bench = new Bench();
  for (let number = 0; number < 5; number++) bench.ask(set("k", `v${number}`));
  const caller = watching(bench, WatchKind.key, "k", { fromRevision: 1n });
  bench.ask(set("k", "v5"));
  t.same(caller.take(), ["created", "set k v2 r2; set k v3 r3; set k v4 r4", "set k v5 r5"]);
  bench.ask(del("k"));
  bench.ask(set("k", "v7"));
  const second = watching(bench, WatchKind.key, "k", { fromRevision: 4n });
  t.same(second.take(), ["created", "MERGED set k v5 r5; set k v7 r7"], "one is gone");
  const level = watching(bench, WatchKind.key, "k", { fromRevision: 7n });
  t.same(level.take(), ["created"]);
  t.end();
});

t.test("W13 a full stream holds nothing, and goes on where it stood", (t) => {
  const bench = new Bench();
  const caller = watching(bench, WatchKind.key, "k");
  caller.take();
  caller.full = true;
  for (let number = 0; number < 3; number++) bench.ask(set("k", `${number}`));
  t.same(caller.take(), []);
  caller.drain();
  bench.world.settle();
  t.same(caller.take(), ["set k 0; set k 1 r1; set k 2 r2"]);
  t.end();
});

t.test(
  "W6 W13 P-185 a stream that is full for longer than memory is told the newest state",
  (t) => {
    const bench = new Bench({ watchHistoryBytes: 4000 });
    const caller = watching(bench, WatchKind.key, "k");
    caller.take();
    caller.full = true;
    for (let number = 0; number < 100; number++) bench.ask(set("k", `${number}`));
    const { tally } = bench.operations.watches;
    t.ok(tally.historyBytes <= 4000, "bounded");
    caller.drain();
    bench.world.settle();
    t.same(caller.take(), ["MERGED set k 99 r99", "mark"]);
    t.equal(tally.merged.get("behind"), 1);
    t.equal(tally.behind, 0);
    bench.ask(set("k", "x"));
    t.same(caller.take(), ["set k x r100"], "live again");
    t.end();
  },
);

t.test("W16 what is no watch, and what is one too many", (t) => {
  const bench = new Bench({ watchMaxWatchers: 2 });
  const caller = new WatchCaller(bench.operations);
  const { stream } = caller;
  const bad = [
    watchRequest(0, "k"),
    watchRequest(WatchKind.key, ""),
    watchRequest(WatchKind.lock, "r", { fromRevision: 1n }),
    watchRequest(WatchKind.key, "k", { only: 1 << 11 }),
    watchRequest(WatchKind.key, "k", { progressMs: 99 }),
    watchRequest(WatchKind.key, "k", { cursor: "AAAA" }),
    watchRequest(WatchKind.key, "k", { cursor: "A".repeat(9000) }),
  ];
  bad.forEach((request, at) => stream.create(at + 1, request));
  bench.world.settle();
  t.same(
    caller.take(),
    bad.map((_, at) => (at === 0 ? "ended invalidInput" : `ended invalidInput #${at + 1}`)),
  );
  stream.create(1, watchRequest(WatchKind.key, "k"));
  stream.create(1, watchRequest(WatchKind.key, "j"));
  stream.create(2, watchRequest(WatchKind.key, "k"));
  stream.create(3, watchRequest(WatchKind.key, "k"));
  bench.world.settle();
  t.same(caller.take().sort(), [
    "created",
    "created #2",
    "ended invalidInput",
    "ended overloaded #3",
  ]);
  bench.ask(set("k", "1"));
  t.same(caller.take(), ["#1,2 set k 1"], "one message for both");
  stream.cancel(2);
  stream.cancel(77);
  bench.world.settle();
  t.same(caller.take(), ["ended cancelled #2"]);
  t.end();
});

t.test("only and noValues: what is wanted, and the cursor moves on all the same", (t) => {
  const bench = new Bench();
  const caller = new WatchCaller(bench.operations);
  caller.stream.create(1, watchRequest(WatchKind.key, "k", { only: 1 << 2 }));
  caller.stream.create(2, watchRequest(WatchKind.key, "k", { noValues: true }));
  bench.world.settle();
  caller.take();
  bench.ask(set("k", "1"));
  bench.ask(del("k"));
  t.same(caller.take(), ["#2 set k", "deleted k r1", "#2 deleted k r1"]);
  t.end();
});

t.test("W15 without watches nothing is looked at, made or kept", (t) => {
  const bench = new Bench();
  const tapped = (): boolean => bench.node.groups().some(({ machine }) => machine.tap !== null);
  t.equal(tapped(), false);
  const caller = watching(bench, WatchKind.key, "k");
  t.equal(tapped(), true);
  caller.stream.close();
  bench.world.pass(70_000);
  t.equal(tapped(), false, "a minute after the last one");
  t.equal(bench.operations.watches.tally.streams, 0);
  t.end();
});

t.test("a stop ends every watch, and none begins", (t) => {
  const bench = new Bench();
  const caller = watching(bench, WatchKind.key, "k");
  bench.operations.endWaits();
  caller.stream.create(2, watchRequest(WatchKind.key, "k"));
  bench.world.settle();
  t.same(caller.take(), ["created", "ended shuttingDown", "ended shuttingDown #2"]);
  t.end();
});
