/** Requests that wait for locks at a node that does not lead. */
import t from "tap";
import { Int64 } from "../../../../src/base/int64.js";
import { LockType } from "../../../../src/base/result-types.js";
import { WaitControl } from "../../../../src/operations/api/context.js";
import type { LockAnswer } from "../../../../src/operations/api/requests.js";
import { NOWHERE, endAnswer } from "../../../../src/operations/api/shapes.js";
import { HeardWaits } from "../../../../src/operations/forwarding/heard-waits.js";
import type { CallAnswer } from "../../../../src/operations/wire/calls.js";
import { info, lock, unlock } from "../../../doubles/operations/fixture.js";
import { Trio } from "../../../doubles/operations/trio.js";

const LEASE_MS = 60_000;

interface Wait {
  readonly answers: LockAnswer[];
  readonly control: WaitControl | null;
}

/** Node 1 leads; "a" holds the lock. */
function held(): Trio {
  const trio = new Trio();
  trio.moveAll(1);
  trio.ask(1, lock("r", "a", LEASE_MS));
  return trio;
}

function waitAt(trio: Trio, at: number, owner: string, withinMs = 1e7): Wait {
  const answers: LockAnswer[] = [];
  const request = { ...lock("r", owner, LEASE_MS), waitMs: 30_000 };
  const deadlineMs = trio.world.timer.nowMs + withinMs;
  const context = { deadlineMs, forwardHops: 0, requestId: "t" };
  const control = trio.node(at).execute(request, context, (answer) => void answers.push(answer));
  trio.world.settle();
  return { answers, control };
}

/** Has `then` called when an answer of node 1 that grants the lock is on its way to `to`. */
function whenGranted(trio: Trio, to: number, then: () => void): void {
  trio.fate = ({ from, to: at, frame }) => {
    if (from !== 1 || at !== to || frame.direction !== "answers") return "arrives";
    const grants = frame.items.some(
      ({ content }) => content?.kind === "lock" && content.type === LockType.locked,
    );
    if (!grants) return "arrives";
    trio.fate = () => "arrives";
    then();
    return "arrives";
  };
}

t.test("Q1 Q6 a wait at another node is granted, and counts from when that took it in", (t) => {
  const trio = held();
  const b = waitAt(trio, 2, "b");
  t.match(trio.ask(3, lock("r", "c", 1000)), { type: LockType.busy, waiters: 1 });
  trio.world.pass(500);
  trio.ask(3, unlock("r", "a"));
  trio.world.settle();
  t.match(b.answers, [{ type: LockType.locked, leaseLeftMs: LEASE_MS }]);
  t.ok((b.answers[0]?.waitedMs ?? 0) >= 490);
  t.end();
});

t.test("Q14 whoever is asked next for a wait is asked by a higher try, and once", (t) => {
  const trio = held();
  const request = { ...lock("r", "b", LEASE_MS), waitMs: 30_000 };
  const named = { waitId: Int64.fromNumber(7), tryNumber: new Int64(0, -2) };
  const context = { deadlineMs: trio.world.timer.nowMs + 1e7, forwardHops: 0, requestId: "t" };
  const answers: LockAnswer[] = [];
  trio.node(2).execute({ ...request, ...named }, context, (answer) => void answers.push(answer));
  trio.world.settle();
  for (const leader of [3, 2, 1]) {
    trio.moveAll(leader);
    trio.world.pass(100);
  }
  const tries = trio.sent.flatMap(({ frame }) => {
    const calls = frame.direction === "calls" ? frame.items : [];
    return calls.flatMap(({ content }) => {
      const asked = content?.request;
      return asked?.kind === "try-lock" ? [asked.tryNumber?.toBigInt() ?? 0n] : [];
    });
  });
  t.equal(tries[0], 0xffff_ffffn, "one more than its own number was asked of itself");
  t.ok(tries.length >= 3, "they were asked one after the other");
  t.same(tries, [...new Set(tries)].sort(), "each by a higher one");
  trio.ask(1, unlock("r", "a"));
  trio.world.settle();
  t.match(answers, [{ type: LockType.locked }]);
  t.end();
});

t.test("Q9 a wait at another node that is cancelled is over at the leader", (t) => {
  const trio = held();
  const b = waitAt(trio, 2, "b");
  t.equal(b.control?.leave("cancelled"), true);
  trio.world.settle();
  t.match(b.answers, [{ type: LockType.aborted }]);
  t.match(trio.ask(1, info("r")), { owner: Buffer.from("a"), waiters: 0 });
  t.end();
});

t.test("Q5 Q8 Q9 who waited by a link that is gone is granted nothing, and asks again", (t) => {
  const trio = held();
  const b = waitAt(trio, 2, "b");
  trio.node(1).linkDown(2);
  trio.world.settle();
  t.match(b.answers, [{ type: LockType.mustRetry }], "nobody cancelled it");
  trio.ask(1, unlock("r", "a"));
  trio.world.settle();
  t.match(trio.ask(1, info("r")), { type: LockType.doesNotExist });
  t.end();
});

t.test("Q5 Q9 a wait that was cancelled is so, also if the link goes before that is told", (t) => {
  for (const [isCancelled, type] of [
    [true, LockType.aborted],
    [false, LockType.mustRetry],
  ] as const) {
    const waits = new HeardWaits();
    const answers: CallAnswer[] = [];
    const control = new WaitControl(0, 1000);
    const finish = waits.begin(2, "1/1", control, (answer) => void answers.push(answer));
    if (isCancelled) waits.leave(2, "1/1", "cancelled");
    waits.linkDown(2);
    finish(endAnswer("try-lock", "aborted", NOWHERE, null));
    t.match(answers, [{ type }]);
  }
  t.end();
});

t.test("P-181 however many wait for a leader, there is a place for the release", (t) => {
  const trio = new Trio({ inflightMax: 4 });
  trio.moveAll(1);
  trio.ask(1, lock("r", "a", LEASE_MS));
  trio.moveAll(0);
  const waits = Array.from({ length: 8 }, (_, at) => waitAt(trio, 2, `b${at}`));
  const released = trio.post(2, unlock("r", "a"));
  trio.world.settle();
  t.equal(released.length, 0, "it waits for the next leader, as they do");
  trio.moveAll(3);
  trio.world.pass(100);
  t.match(released, [{ type: LockType.unlocked }]);
  t.match(waits[0]?.answers, [{ type: LockType.locked }]);
  t.end();
});

/** Node 1 hands over to node 2 as planned: to its hooks, and then in fact. */
function handOver(trio: Trio): void {
  for (const group of trio.groups[0]?.values() ?? []) {
    for (const hook of group.moveHooks) hook(2, () => undefined);
  }
  trio.world.settle();
  trio.termsBehind++;
  trio.moveAll(2);
  trio.world.pass(100);
}

/** Owners in the order in which they are granted the lock, each letting go at once. */
function grantedAt(trio: Trio, leader: number, waits: ReadonlyMap<string, Wait>): string[] {
  const order: string[] = [];
  let holder = "a";
  for (let count = 0; count < waits.size; count++) {
    trio.ask(leader, unlock("r", holder));
    trio.world.settle();
    const next = [...waits].find(([owner, { answers }]) => {
      return answers.length > 0 && !order.includes(owner);
    });
    holder = next?.[0] ?? "";
    order.push(holder);
  }
  return order;
}

t.test("Q11 a planned move takes the queue along, in its order", (t) => {
  const waitsOf = (trio: Trio): ReadonlyMap<string, Wait> => {
    const owners = ["b", "c", "d", "e", "f", "g"];
    return new Map(owners.map((owner, at) => [owner, waitAt(trio, 3 - (at % 2), owner)]));
  };
  const carried = held();
  const waits = waitsOf(carried);
  handOver(carried);
  t.same(grantedAt(carried, 2, waits), ["b", "c", "d", "e", "f", "g"]);
  const lost = held();
  const others = waitsOf(lost);
  lost.fate = ({ from, to, frame }) =>
    from === 1 && to === 2 && frame.direction === "calls" ? "lost" : "arrives";
  handOver(lost);
  t.same(
    grantedAt(lost, 2, others).sort(),
    ["b", "c", "d", "e", "f", "g"],
    "nobody is lost with it",
  );
  const older = held();
  const late = waitsOf(older);
  older.termsBehind--;
  for (const group of older.groups[0]?.values() ?? []) {
    for (const hook of group.moveHooks) hook(2, () => undefined);
  }
  older.world.settle();
  older.termsBehind += 2;
  older.moveAll(2);
  older.world.pass(100);
  const order = grantedAt(older, 2, late);
  t.not(order.join(), "b,c,d,e,f,g", "that of an older leadership is none");
  t.same(order.sort(), ["b", "c", "d", "e", "f", "g"]);
  t.end();
});

t.test("Q11 who does not come back after a planned move delays nobody", (t) => {
  const trio = held();
  const gone = waitAt(trio, 3, "b");
  const c = waitAt(trio, 2, "c");
  for (const group of trio.groups[0]?.values() ?? []) {
    for (const hook of group.moveHooks) hook(2, () => undefined);
  }
  trio.world.settle();
  gone.control?.leave("cancelled");
  trio.world.settle();
  trio.termsBehind++;
  trio.moveAll(2);
  trio.world.pass(100);
  t.equal(trio.node(2)["serving"].waitTally.placesLeft, 1);
  trio.ask(2, unlock("r", "a"));
  trio.world.settle();
  t.match(c.answers, [{ type: LockType.locked }]);
  trio.world.pass(2500);
  t.equal(trio.node(2)["serving"].waitTally.placesLeft, 0);
  t.end();
});

t.test("Q11 with a leadership its places end: who comes back is behind who came first", (t) => {
  const trio = held();
  const b = waitAt(trio, 1, "b");
  b.control?.leave("left");
  trio.world.settle();
  trio.moveAll(2);
  trio.moveAll(1);
  trio.world.settle();
  const c = waitAt(trio, 1, "c");
  const again = waitAt(trio, 1, "b");
  trio.ask(1, unlock("r", "a"));
  trio.world.settle();
  t.match(c.answers, [{ type: LockType.locked }]);
  t.equal(again.answers.length, 0);
  t.end();
});

for (const how of ["cancelled", "left"] as const) {
  t.test(`P-182 ${how} while the grant is on its way: it is given back`, (t) => {
    const trio = held();
    const b = waitAt(trio, 2, "b");
    whenGranted(trio, 2, () => b.control?.leave(how));
    const next = waitAt(trio, 3, "c");
    trio.ask(1, unlock("r", "a"));
    trio.world.settle();
    t.match(b.answers, [{ type: LockType.aborted }]);
    t.match(next.answers, [{ type: LockType.locked }], "the next one has it");
    t.end();
  });

  t.test(`P-182 ${how}: not if another request of its owner was granted it as well`, (t) => {
    const trio = held();
    const b = waitAt(trio, 2, "b");
    const again = waitAt(trio, 3, "b");
    whenGranted(trio, 2, () => b.control?.leave(how));
    trio.ask(1, unlock("r", "a"));
    trio.world.settle();
    t.match(again.answers, [{ type: LockType.locked }]);
    t.match(b.answers, [{ type: LockType.mustRetry }], "nobody says that it has nothing");
    t.match(trio.ask(1, info("r")), { owner: Buffer.from("b") }, "who was told holds it");
    t.end();
  });

  t.test(`P-182 ${how}: nor if one asks before the grant came back`, (t) => {
    const trio = held();
    const b = waitAt(trio, 2, "b");
    const told: LockAnswer[] = [];
    whenGranted(trio, 2, () => {
      b.control?.leave(how);
      trio.post(1, lock("r", "b", LEASE_MS), {}, told);
    });
    trio.ask(1, unlock("r", "a"));
    trio.world.settle();
    t.match(told, [{ type: LockType.locked }]);
    t.match(trio.ask(1, info("r")), { owner: Buffer.from("b") }, "who was told holds it");
    t.end();
  });
}

t.test("P-182 a grant is not given back to a leader that does not know who was told", (t) => {
  const trio = held();
  const b = waitAt(trio, 2, "b");
  whenGranted(trio, 2, () => {
    b.control?.leave("cancelled");
    trio.moveAll(3);
  });
  trio.ask(1, unlock("r", "a"));
  trio.world.settle();
  t.match(b.answers, [{ type: LockType.mustRetry }]);
  t.match(trio.ask(1, info("r")), { owner: Buffer.from("b") }, "until its lease is over");
  t.end();
});

t.test("C9 P-182 the answer comes in its time, whatever becomes of what is given back", (t) => {
  const trio = held();
  const b = waitAt(trio, 2, "b", 32_000);
  whenGranted(trio, 2, () => {
    b.control?.leave("cancelled");
    // Nothing that is asked from now on arrives, and no link breaks.
    trio.fate = ({ from }) => (from === 2 ? "lost" : "arrives");
  });
  trio.world.pass(29_000);
  trio.ask(1, unlock("r", "a"));
  trio.world.settle();
  t.equal(b.answers.length, 0);
  trio.world.pass(3100);
  t.match(b.answers, [{ type: LockType.mustRetry }], "nobody knows");
  t.end();
});

t.test("C9 a wait whose answer is lost ends by its deadline, not when it is looked at", (t) => {
  const trio = held();
  const first = waitAt(trio, 2, "b", 32_000);
  trio.fate = ({ from }) => (from === 1 ? "lost" : "arrives");
  trio.world.pass(170);
  const second = waitAt(trio, 2, "c", 32_000);
  trio.world.pass(31_780);
  t.equal(first.answers.length, 0);
  trio.world.pass(80);
  t.match(first.answers, [{ type: LockType.mustRetry }]);
  t.equal(second.answers.length, 0);
  trio.world.pass(170);
  t.match(second.answers, [{ type: LockType.mustRetry }]);
  t.end();
});
