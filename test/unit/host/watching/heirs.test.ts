/** What watchers are told of locks that go along a list of heirs, and when leases of heirs end. */
import t, { type Test } from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import type { Command, NewHeir } from "../../../../src/machine/commands/command.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { bytes, extendGrant, lock, unlockGrant } from "../../../doubles/machine/bench.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

function heir(owner: string, waitId: bigint, leaseMs: number): NewHeir {
  return { owner: bytes(owner), waitId, attempt: 1n, leaseMs, note: bytes(`of ${owner}`) };
}

function lockHeir(owner: string, waitId: bigint, attempt: bigint, expiresMs: number): Command {
  const who = { resource: "r", owner: bytes(owner), note: null, waitId, attempt };
  return { kind: "lock-heir", ...who, expiresMs };
}

/** Held by "a" for 50 ms, then by "b" for 30, "c" for 400. */
function begun(t: Test, kind: number): { bench: WatchBench; caller: WatchCaller } {
  const bench = new WatchBench();
  const caller = new WatchCaller(bench.watches);
  caller.stream.create(1, watchRequest(kind, "r"));
  bench.settle();
  const added = [heir("b", 8n, 30), heir("c", 9n, 400)];
  bench.apply(1, lockHeir("a", 7n, 1n, 50), {
    ...{ kind: "set-heirs", resource: "r", token: 0n, kept: 0, added, horizonMs: 2000 },
  });
  t.same(caller.takeEvents(), ["locked r t0 a"], "the list is nobody's business");
  return { bench, caller };
}

for (const kind of [WatchKind.lock, WatchKind.lockPrefix]) {
  t.test(`W1 W11 Q15 a step along the list, and the end of an heir's lease (${kind})`, (t) => {
    const { bench, caller } = begun(t, kind);
    bench.apply(1, unlockGrant("r", "a", 0n));
    t.same(caller.takeEvents(), ["unlocked r t0 a", "locked r t1 b (of b)"]);
    bench.pass(200);
    t.same(caller.takeEvents(), ["lockExpired r t1 b"], "counted from the entry of the step");
    bench.apply(1, lockHeir("c", 9n, 2n, 40));
    t.same(caller.takeEvents(), ["locked r t2 c (of c)"]);
    bench.pass(200);
    t.same(caller.takeEvents(), ["lockExpired r t2 c"]);
    t.end();
  });
}

t.test("W2 W11 Q15 of an orphaned list what its members prove is told, and each end once", (t) => {
  const { bench, caller } = begun(t, WatchKind.lock);
  bench.group(1).rows.term = 2;
  bench.apply(1, lock("r", "x", 10), lockHeir("a", 7n, 2n, 70));
  t.same(caller.takeEvents(), [], "the same grant, for longer");
  bench.pass(65);
  t.same(caller.takeEvents(), [], "it runs");
  bench.pass(200);
  t.same(caller.takeEvents(), ["lockExpired r t0 a"]);
  bench.apply(1, extendGrant("r", "c", 100, { token: 2n }));
  t.same(
    caller.takeEvents(),
    ["locked r t1 b (of b)", "unlocked r t1 b", "locked r t2 c (of c)"],
    "who came between, too",
  );
  bench.pass(300);
  t.same(caller.takeEvents(), ["lockExpired r t2 c"]);
  bench.apply(1, unlockGrant("r", "c", 2n));
  t.same(caller.takeEvents(), [], "its end was told");
  t.end();
});
