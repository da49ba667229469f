/** Requests that wait for locks, on the real host and machine of one node. */
import t from "tap";
import { assert } from "../../../../src/base/assert.js";
import { GATHERING_MAX_MS } from "../../../../src/base/limits.js";
import { LockType } from "../../../../src/base/result-types.js";
import type { LockAnswer, WaitControl } from "../../../../src/operations/api/requests.js";
import type { TryLockRequest } from "../../../../src/operations/api/requests.js";
import { Bench, info, lock, unlock } from "../../../doubles/operations/fixture.js";

interface Wait {
  readonly answers: LockAnswer[];
  readonly control: WaitControl | null;
}

function waiting(owner: string, waitMs: number, durability = 1, expiresMs = 1000): TryLockRequest {
  return { ...lock("r", owner, expiresMs, durability), waitMs };
}

/** Sends a request that may wait, and lets the world come to rest. */
function send(bench: Bench, request: TryLockRequest, withinMs = 1e7): Wait {
  const wait = start(bench, request, withinMs);
  bench.world.settle();
  return wait;
}

function start(bench: Bench, request: TryLockRequest, withinMs = 1e7): Wait {
  const answers: LockAnswer[] = [];
  const deadlineMs = bench.nowMs + withinMs;
  const context = { deadlineMs, forwardHops: 0, requestId: "t" };
  const control = bench.operations.execute(request, context, (answer) => void answers.push(answer));
  return { answers, control };
}

const token = ({ fencingToken }: LockAnswer): number => fencingToken.toNumber();

for (const durability of [0, 1]) {
  const kind = durability === 0 ? "ephemeral" : "persistent";

  t.test(`Q1 Q2 Q3 ${kind}: waiters are granted in the order in which they came`, (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 60_000, durability));
    const b = send(bench, waiting("b", 30_000, durability, 60_000));
    const c = send(bench, waiting("c", 30_000, durability, 60_000));
    t.equal(b.answers.length + c.answers.length, 0, "both wait");
    t.match(bench.ask(lock("r", "d", 1000, durability)), { type: LockType.busy, waiters: 2 });
    t.match(bench.ask({ ...info("r", durability), owner: Buffer.from("c") }), {
      type: LockType.got,
      waiters: 2,
      position: 2,
    });
    bench.world.pass(500);
    t.match(bench.ask(unlock("r", "a", durability)), { type: LockType.unlocked });
    t.match(b.answers, [{ type: LockType.locked, leaseLeftMs: 60_000, waiters: 1 }]);
    t.ok((b.answers[0]?.waitedMs ?? 0) >= 490, "the wait is told");
    t.match(bench.ask(lock("r", "d", 1000, durability)), { type: LockType.busy });
    bench.ask(unlock("r", "b", durability));
    t.match(c.answers, [{ type: LockType.locked, waiters: 0 }]);
    t.equal(token(c.answers[0] as LockAnswer), token(b.answers[0] as LockAnswer) + 1);
    t.end();
  });

  t.test(`Q3 Q6 ${kind}: the end of a lease grants to the next, whose lease begins then`, (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 1000, durability));
    const b = send(bench, waiting("b", 30_000, durability, 5000));
    bench.world.pass(900);
    t.equal(b.answers.length, 0);
    bench.world.pass(200);
    t.match(b.answers, [{ type: LockType.locked }]);
    t.ok((b.answers[0]?.leaseLeftMs ?? 0) > 4990, "its lease is a whole one");
    t.match(bench.ask(info("r", durability)), { owner: Buffer.from("b") });
    t.end();
  });

  t.test(`Q5 ${kind}: who waited in vain is told so at the end of the wait, not before`, (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 60_000, durability));
    const b = send(bench, waiting("b", 2000, durability));
    bench.world.pass(1990);
    t.equal(b.answers.length, 0);
    bench.world.pass(20);
    t.match(b.answers, [{ type: LockType.busy, position: 1, waiters: 1 }]);
    t.ok((b.answers[0]?.waitedMs ?? 0) >= 2000);
    t.end();
  });

  t.test(`Q9 P-182 ${kind}: who was cancelled is passed over, and holds nothing`, (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 60_000, durability));
    const b = send(bench, waiting("b", 30_000, durability));
    const c = send(bench, waiting("c", 30_000, durability));
    t.equal(b.control?.leave("cancelled"), true);
    bench.world.settle();
    t.match(b.answers, [{ type: LockType.aborted }]);
    t.equal(b.control?.leave("cancelled"), false, "once");
    // Cancelled between the release and the grant: it is given back.
    const release = bench.send(unlock("r", "a", durability));
    t.equal(c.control?.leave("cancelled"), true);
    bench.world.settle();
    t.match(release, [{ type: LockType.unlocked }]);
    t.match(c.answers, [{ type: LockType.aborted }]);
    t.match(bench.ask(info("r", durability)), { type: LockType.doesNotExist });
    t.end();
  });
}

for (const durability of [0, 1]) {
  const kind = durability === 0 ? "ephemeral" : "persistent";

  t.test(`P-182 ${kind}: a cancelled wait gives nothing back that its owner had before`, (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 60_000, durability));
    const again = start(bench, waiting("a", 30_000, durability));
    again.control?.leave("cancelled");
    bench.world.settle();
    t.match(again.answers, [{ type: LockType.aborted }]);
    t.match(bench.ask(info("r", durability)), { owner: Buffer.from("a") }, "still held");
    t.end();
  });

  t.test(`P-182 ${kind}: nor what another request of its owner was told meanwhile`, (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 60_000, durability));
    const b = send(bench, waiting("b", 30_000, durability));
    bench.send(unlock("r", "a", durability));
    b.control?.leave("cancelled");
    const told = bench.send(lock("r", "b", 60_000, durability));
    bench.world.settle();
    t.match(told, [{ type: LockType.locked }]);
    t.equal(b.answers.length, 1, "the wait has ended");
    t.match(bench.ask(info("r", durability)), { owner: Buffer.from("b") }, "who was told holds it");
    t.end();
  });
}

t.test("Q4 the release and the next grant are in the same entry", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const b = send(bench, waiting("b", 30_000));
  const group = bench.group(bench.partitionOf("r"));
  const before = group.machine.appliedIndex;
  bench.ask(unlock("r", "a"));
  t.equal(b.answers.length, 1);
  t.equal(group.machine.appliedIndex, before + 1);
  t.end();
});

t.test("P-182 what a slow try grants to nobody is given back, however long it took", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 1000));
  const b = send(bench, waiting("b", 60_000, 1, 60_000));
  bench.world.log.automatic = false;
  bench.world.pass(1001);
  b.control?.leave("cancelled");
  bench.world.pass(2 * bench.settings.requestTimeoutMs);
  t.same(b.answers, [], "nobody knows yet whether it was granted the lock");
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
  t.match(b.answers, [{ type: LockType.aborted }]);
  t.match(bench.ask(info("r")), { type: LockType.doesNotExist });
  t.end();
});

t.test("Q7 requests of one owner share a place and are answered alike, four at most", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const waits = Array.from({ length: 5 }, () => send(bench, waiting("b", 30_000)));
  t.match(waits[0]?.answers, [{ type: LockType.aborted }]);
  t.match(send(bench, waiting("a", 30_000)).answers, [{ type: LockType.locked }], "the holder");
  bench.ask(unlock("r", "a"));
  for (const { answers } of waits.slice(1)) t.match(answers, [{ type: LockType.locked }]);
  t.end();
});

t.test("Q6 T4 who shares a place believes no longer than the grant, which may be older", (t) => {
  const bench = new Bench();
  bench.world.log.automatic = false;
  const first = send(bench, waiting("b", 30_000, 1, 500));
  bench.world.pass(300);
  const second = send(bench, waiting("b", 29_700, 1, 500));
  bench.world.pass(50);
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
  for (const [{ answers }, askedMs] of [
    [first, 0],
    [second, 300],
  ] as const) {
    t.match(answers, [{ type: LockType.locked }]);
    const [answer] = answers;
    const untilMs = askedMs + (answer?.waitedMs ?? 0) + (answer?.leaseLeftMs ?? Infinity);
    t.ok(untilMs <= 500, `asked at ${askedMs}: believed until ${untilMs}`);
    t.ok(untilMs >= 490);
  }
  t.end();
});

t.test("Q8 a place is kept for a moment for who may come back", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const b = send(bench, waiting("b", 30_000));
  const c = send(bench, waiting("c", 30_000));
  b.control?.leave("left");
  bench.world.pass(1000);
  const again = send(bench, waiting("b", 29_000));
  bench.ask(unlock("r", "a"));
  t.match(again.answers, [{ type: LockType.locked }], "in its old turn");
  again.answers.length = 0;
  const d = send(bench, waiting("d", 30_000));
  c.control?.leave("left");
  bench.world.pass(2100);
  send(bench, waiting("c", 29_000));
  bench.ask(unlock("r", "b"));
  t.match(d.answers, [{ type: LockType.locked }], "who came too late is behind");
  t.end();
});

t.test("Q8 a place is kept no longer by a node that stood still meanwhile", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const b = send(bench, waiting("b", 30_000));
  const c = send(bench, waiting("c", 30_000));
  b.control?.leave("left");
  bench.world.settle();
  // The time passes, and no timer has run.
  Object.assign(bench.world.timer, { nowMs: bench.nowMs + 2001 });
  const again = start(bench, waiting("b", 28_000));
  bench.world.settle();
  bench.ask(unlock("r", "a"));
  t.match(c.answers, [{ type: LockType.locked }]);
  t.same(again.answers, []);
  t.end();
});

t.test("Q8 a place is kept also if a try of it was on its way when its connection broke", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const b = start(bench, waiting("b", 30_000));
  b.control?.leave("left");
  bench.world.settle();
  t.match(b.answers, [{ type: LockType.aborted }]);
  const c = send(bench, waiting("c", 30_000));
  bench.world.pass(1000);
  const again = send(bench, waiting("b", 29_000));
  bench.ask(unlock("r", "a"));
  t.match(again.answers, [{ type: LockType.locked }], "in its old turn");
  t.equal(c.answers.length, 0);
  t.end();
});

t.test(
  "Q10 extend is never held up, moves the end that is waited for and tells of waiters",
  (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 1000));
    const b = send(bench, waiting("b", 30_000));
    bench.world.pass(900);
    const extend = { ...lock("r", "a", 2000), kind: "try-extend" } as const;
    t.match(bench.ask(extend), { type: LockType.extended, waiters: 1, leaseLeftMs: 2000 });
    bench.world.pass(1900);
    t.equal(b.answers.length, 0);
    bench.world.pass(200);
    t.match(b.answers, [{ type: LockType.locked }]);
    t.end();
  },
);

t.test("Q3 nobody finds the lock free while somebody waits, whatever the lease", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 1000));
  const b = send(bench, waiting("b", 30_000));
  // The clock passes the end of the lease, and no timer has run.
  Object.assign(bench.world.timer, { nowMs: bench.nowMs + 1001 });
  const tried = bench.send(lock("r", "c", 1000));
  const asked = bench.send(info("r"));
  bench.world.settle();
  t.match(b.answers, [{ type: LockType.locked }]);
  t.match(tried, [{ type: LockType.busy }]);
  t.match(asked, [{ type: LockType.got, owner: Buffer.from("b") }]);
  t.end();
});

t.test("Q3 who waits and cannot be granted the lock does not leave it free for readers", (t) => {
  const bench = new Bench();
  const partition = bench.partitionOf("r");
  const other = ["s", "t", "u", "v", "w", "x", "y", "z"].find(
    (name) => bench.partitionOf(name) === partition,
  );
  assert(other !== undefined, "two names are in one partition");
  bench.ask(lock("r", "a", 1000));
  const b = send(bench, waiting("b", 30_000));
  bench.faults.propose = (command) => {
    const isOfWaiter = command.kind === "try-lock" && command.resource === "r";
    return isOfWaiter ? { status: "refused", reason: "overloaded" } : null;
  };
  bench.world.pass(1001);
  // The lease is over in the log too.
  t.match(bench.ask(lock(other, "a", 1000)), { type: LockType.locked });
  t.match(bench.ask(info("r")), { type: LockType.mustRetry, refusal: "overloaded" });
  t.equal(b.answers.length, 0);
  bench.faults.propose = null;
  bench.world.pass(100);
  t.match(b.answers, [{ type: LockType.locked }]);
  t.match(bench.ask(info("r")), { type: LockType.got, owner: Buffer.from("b") });
  t.end();
});

t.test("C9 who reads a lock while a try is on its way is told by its deadline", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 1000));
  send(bench, waiting("b", 30_000));
  bench.world.log.automatic = false;
  bench.world.pass(1001);
  const answers: LockAnswer[] = [];
  const context = { deadlineMs: bench.nowMs + 500, forwardHops: 0, requestId: "t" };
  bench.operations.execute(info("r"), context, (answer) => void answers.push(answer));
  bench.world.pass(490);
  t.same(answers, []);
  bench.world.pass(20);
  t.match(answers, [{ type: LockType.aborted }]);
  bench.world.log.sync();
  bench.world.settle();
  t.equal(answers.length, 1);
  t.end();
});

t.test("P-182 a place is not granted the lock a second time after its first lease", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 1000));
  const b = send(bench, waiting("b", 30_000, 1, 500));
  // The disk stands still: the try at the end of the lease is in the log, and the release behind it.
  bench.world.log.automatic = false;
  bench.world.pass(1001);
  bench.world.pass(600);
  const release = bench.send(unlock("r", "a"));
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
  bench.world.pass(GATHERING_MAX_MS);
  t.match(release, [{ type: LockType.invalidOwner }]);
  t.match(b.answers, [{ type: LockType.locked }]);
  t.match(
    bench.ask(info("r")),
    { type: LockType.doesNotExist },
    "nobody was told of another grant",
  );
  t.end();
});

t.test("Q2 who comes back while its grant is given back stands behind all others", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 1000));
  const b = send(bench, waiting("b", 30_000, 1, 60_000));
  const c = send(bench, waiting("c", 30_000, 1, 300));
  const d = send(bench, waiting("d", 30_000, 1, 60_000));
  bench.world.log.automatic = false;
  bench.world.pass(1001);
  b.control?.leave("left");
  // It is granted the lock, and nobody waits for it: that is given back, to the next one.
  bench.world.log.sync();
  bench.world.settle();
  bench.world.pass(400);
  const again = send(bench, waiting("b", 29_000, 1, 60_000));
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
  bench.world.pass(GATHERING_MAX_MS);
  t.match(c.answers, [{ type: LockType.locked }]);
  t.match(d.answers, [{ type: LockType.locked }], "its lease was over, and the next one has it");
  t.same(again.answers, []);
  bench.ask(unlock("r", "d"));
  t.match(again.answers, [{ type: LockType.locked }]);
  t.end();
});

t.test("Q7 L2 the holder is told at once, in front of whoever waits", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const b = send(bench, waiting("b", 30_000));
  const again = send(bench, waiting("a", 30_000));
  t.match(again.answers, [{ type: LockType.locked }]);
  t.same(b.answers, []);
  t.end();
});

t.test("Q3 a release while the first try is on its way: the next one follows it", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  bench.world.log.automatic = false;
  const b = send(bench, waiting("b", 30_000));
  bench.world.pass(5);
  const release = bench.send(unlock("r", "a"));
  const newcomer = bench.send(lock("r", "c", 1000));
  const reader = bench.send(info("r"));
  bench.world.settle();
  t.match([release, b.answers].flat(), [], "nothing is durable");
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
  bench.world.pass(GATHERING_MAX_MS);
  t.match(release, [{ type: LockType.unlocked }]);
  t.match(b.answers, [{ type: LockType.locked }]);
  t.match(newcomer, [{ type: LockType.busy }]);
  t.match(reader, [{ type: LockType.got }]);
  t.end();
});

t.test("waiters beyond a bound are refused at once, and count as nothing else", (t) => {
  const bench = new Bench({ lockWaitersPerLockMax: 2, lockWaitersMax: 3, inflightMax: 4 });
  bench.ask(lock("r", "a", 60_000));
  for (const owner of ["b", "c"]) send(bench, waiting(owner, 30_000));
  const d = send(bench, waiting("d", 30_000));
  t.match(d.answers, [{ type: LockType.mustRetry, refusal: "overloaded" }], "of one lock");
  bench.ask(lock("s", "a", 60_000));
  send(bench, { ...waiting("b", 30_000), resource: "s" });
  const c = send(bench, { ...waiting("c", 30_000), resource: "s" });
  t.match(c.answers, [{ type: LockType.mustRetry, refusal: "overloaded" }], "of the node");
  t.equal(bench.operations.inflight, 0);
  t.end();
});

t.test("Q5 thousands whose waits are over at once all end, each once and with its place", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const waits = Array.from({ length: 1300 }, (_, at) => start(bench, waiting(`w${at}`, 1000)));
  bench.world.settle();
  t.equal(waits.flatMap(({ answers }) => answers).length, 0, "all wait");
  bench.world.pass(1100);
  const answers = waits.map((wait) => wait.answers[0]);
  t.ok(answers.every((answer) => answer?.type === LockType.busy));
  const positions = answers.map((answer) => answer?.position ?? 0);
  t.ok(positions.every((position, at) => position >= 1 && position <= at + 1));
  // Those of later turns are further in front: others went meanwhile.
  t.ok(positions.some((position, at) => position < at + 1));
  t.ok(waits.every((wait) => wait.answers.length === 1));
  t.match(bench.ask(unlock("r", "a")), { type: LockType.unlocked });
  t.match(bench.ask(lock("r", "b", 1000)), { type: LockType.locked });
  t.end();
});

t.test("Q1 a shorter deadline of the caller ends the wait before it", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const b = send(bench, waiting("b", 30_000), 1000);
  bench.world.pass(970);
  t.match(b.answers, [{ type: LockType.busy }]);
  t.end();
});

t.test("a node that stops lets nobody wait", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  const b = send(bench, waiting("b", 30_000));
  bench.operations.endWaits();
  bench.world.settle();
  t.match(b.answers, [{ type: LockType.mustRetry }]);
  t.match(send(bench, waiting("c", 30_000)).answers, [{ refusal: "shutting-down" }]);
  t.end();
});
