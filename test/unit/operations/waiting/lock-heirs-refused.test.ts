/**
 * Heirs of locks where something that was proposed for them comes to nothing, or comes late, and
 * the leader stays.
 */
import t from "tap";
import { Int64 } from "../../../../src/base/int64.js";
import { LockType } from "../../../../src/base/result-types.js";
import { partitionId } from "../../../../src/base/ids.js";
import type {
  Decision,
  LockCall,
  LockDecisions,
} from "../../../../src/host/waiting/lock-decisions.js";
import { LockSteps, Step } from "../../../../src/host/waiting/lock-steps.js";
import type { Queue } from "../../../../src/host/waiting/queue.js";
import { type ListedHeir, Succession } from "../../../../src/host/waiting/succession.js";
import type { WaitingPorts } from "../../../../src/host/waiting/waiting.js";
import type { LockAnswer } from "../../../../src/operations/api/requests.js";
import type { Serving } from "../../../../src/operations/serving/serving.js";
import { Bench, info, lock, unlock } from "../../../doubles/operations/fixture.js";
import {
  LEASE_MS,
  type Wait,
  extension,
  goOn,
  hold,
  hot,
  isTold,
  listOf,
  release,
  releaseOf,
  tokenOf,
  wait,
} from "../../../doubles/operations/heirs.js";
import { Trio } from "../../../doubles/operations/trio.js";

const REFUSED = { status: "refused", reason: "overloaded" } as const;

function groupOf(bench: Bench) {
  return bench.group(partitionId(bench.partitionOf("r")));
}

t.test("a release that is refused was no step: there are steps as before", (t) => {
  const { bench, holder, heirs } = hot(3);
  const [first] = heirs as [Wait];
  bench.faults.propose = ({ kind }) => (kind === "unlock-grant" ? REFUSED : null);
  t.match(bench.ask(release(holder.owner, tokenOf(holder))), { type: LockType.mustRetry });
  t.notOk(isTold(first));
  bench.faults.propose = null;
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.ok(isTold(first));
  goOn(bench);
  t.end();
});

t.test("Q3 a release that is refused keeps nobody from the lock when the lease is over", (t) => {
  const { bench, holder, heirs } = hot(3);
  bench.faults.propose = ({ kind }) => (kind === "unlock-grant" ? REFUSED : null);
  t.match(bench.ask(release(holder.owner, tokenOf(holder))), { type: LockType.mustRetry });
  bench.faults.propose = null;
  bench.world.pass(LEASE_MS + 100);
  t.ok(isTold(heirs[0] as Wait));
  t.end();
});

t.test("Q3 lists that are cleared for a move that comes to nothing are none", (t) => {
  const { bench, holder, heirs } = hot(3);
  const [first, second] = heirs as [Wait, Wait];
  groupOf(bench).runStopHooks(bench.nowMs + 5000);
  bench.world.settle();
  t.same(listOf(bench), []);
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.notOk(isTold(first), "nobody is told along a list that is gone");
  goOn(bench);
  t.ok(isTold(first));
  t.match(bench.ask(info("r")), { type: LockType.got, owner: Buffer.from("h1") });
  t.notOk(isTold(second));
  t.end();
});

t.test("lists that could not be cleared hold nobody up", (t) => {
  for (const how of [REFUSED, { status: "unknown" } as const]) {
    const { bench, heirs } = hot(3);
    bench.faults.final = ({ kind }) => (kind === "set-heirs" ? how : null);
    groupOf(bench).runStopHooks(bench.nowMs + 5000);
    bench.world.settle();
    bench.faults.final = null;
    bench.world.pass(LEASE_MS + 100);
    t.ok(isTold(heirs[0] as Wait), how.status);
  }
  t.end();
});

t.test("Q11 whoever was told keeps its place in the list when the leadership is handed on", (t) => {
  const { bench, holder, heirs } = hot(3);
  hold(bench);
  bench.send(extension(holder.owner, tokenOf(holder)));
  bench.world.settle();
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.ok(isTold(heirs[0] as Wait));
  bench.world.log.sync(1);
  bench.world.settle();
  const finals: unknown[] = [];
  bench.faults.final = (command) => {
    finals.push(command);
    return REFUSED;
  };
  groupOf(bench).runStopHooks(bench.nowMs + 5000);
  t.match(finals, [
    { kind: "set-heirs", token: BigInt(tokenOf(holder)), kept: 1 },
    { kind: "set-heirs", token: BigInt(tokenOf(heirs[0] as Wait)), kept: 0 },
  ]);
  goOn(bench);
  t.end();
});

/** The node crashes, of what is not durable nothing is; it leads again, and serves when told to. */
function unserving(before: Bench, lockSuccession: boolean): Bench {
  const { world } = before;
  world.crash();
  hold(before);
  const next = new Bench({ lockSuccession }, world, false);
  for (let round = 0; round < 50 && !groupOf(next).isLeader(); round++) {
    world.settle();
    world.log.sync(1);
  }
  return next;
}

t.test("Q3 a leader that does not serve yet knows nothing of who holds the lock", (t) => {
  for (const lockSuccession of [true, false]) {
    const before = new Bench({ lockSuccession });
    const taken = before.ask(lock("r", "a", 60_000));
    before.node.stop(before.nowMs + 5000, () => undefined);
    before.world.settle();
    before.world.crash();
    const middle = new Bench({ lockSuccession }, before.world);
    middle.ask(release("a", taken.fencingToken.toNumber()));
    const next = unserving(middle, lockSuccession);
    t.match([groupOf(next).isLeader(), groupOf(next).isServing()], [true, false]);
    const waiting = wait(next, "b");
    goOn(next);
    t.ok(isTold(waiting), lockSuccession ? "with heirs" : "without");
  }
  t.end();
});

t.test("Q15 a list that a leader without heirs finds when it serves costs it no entries", (t) => {
  const { bench } = hot(3);
  const next = unserving(bench, false);
  t.same(listOf(next), [], "as far as it was applied");
  const waiting = wait(next, "z");
  goOn(next);
  t.same(listOf(next), ["h1", "h2", "h3"]);
  next.world.pass(LEASE_MS);
  t.notOk(isTold(waiting));
  next.world.pass(2200);
  t.ok(isTold(waiting));
  const tries = next.commands.filter(({ kind }) => kind === "try-lock" || kind === "lock-heir");
  t.ok(tries.length <= 4, `${tries.length} tries`);
  t.end();
});

t.test("Q14 a lower try that comes late is told nothing, and is no heir", (t) => {
  const { bench, holder, heirs } = hot(2);
  const [first] = heirs as [Wait];
  const higher = wait(bench, "h1", 2);
  t.match(first.answers, [{ type: LockType.aborted }]);
  higher.control?.leave("left");
  const late = wait(bench, "h1", 1);
  t.match(late.answers, [{ type: LockType.aborted }]);
  const latest = wait(bench, "h1", 3);
  t.match(bench.ask(release(holder.owner, tokenOf(holder))), { type: LockType.unlocked });
  t.ok(isTold(latest), "its place was kept");
  t.end();
});

t.test("Q14 of tries that came before there were heirs the highest alone is told", (t) => {
  const bench = new Bench();
  const holder = bench.ask(lock("r", "a", LEASE_MS));
  const lower = wait(bench, "b", 1);
  const higher = wait(bench, "b", 2);
  const { serving } = bench.operations as unknown as { readonly serving: Serving };
  (serving["settings"] as { lockSuccession: boolean }).lockSuccession = true;
  wait(bench, "c");
  t.match(lower.answers, [{ type: LockType.aborted }]);
  bench.ask(release("a", holder.fencingToken.toNumber()));
  t.ok(isTold(higher));
  t.end();
});

t.test("P-183 an heir's lease that is over before that of its predecessor is looked at", (t) => {
  const { bench, holder } = hot(0);
  const first = wait(bench, "h1", 1, 300);
  const second = wait(bench, "h2");
  t.same(listOf(bench), ["h1", "h2"]);
  bench.world.pass(1000);
  bench.ask(release(holder.owner, tokenOf(holder)));
  t.ok(isTold(first));
  bench.world.pass(400);
  t.ok(isTold(second));
  t.end();
});

t.test("Q8 who comes back to its place has its turn, though others were named meanwhile", (t) => {
  const { bench, holder } = hot(0);
  const { control } = wait(bench, "h1");
  control?.leave("left");
  bench.world.settle();
  const second = wait(bench, "h2");
  t.same(listOf(bench).at(-1), "h2");
  const back = wait(bench, "h1", 2);
  bench.ask(release(holder.owner, tokenOf(holder)));
  t.same([isTold(back), isTold(second)], [true, false]);
  t.end();
});

for (const isAnew of [false, true]) {
  const how = isAnew ? "written anew" : "lengthened";
  t.test(`Q8 who comes back has its turn, though the list is being ${how} past it`, (t) => {
    const { bench, holder } = hot(0);
    hold(bench);
    const before = wait(bench, "x");
    wait(bench, "h1").control?.leave("left");
    goOn(bench);
    t.match(bench.ask(release(holder.owner, tokenOf(holder))), { type: LockType.unlocked });
    t.ok(isTold(before));
    hold(bench);
    const gone = isAnew ? wait(bench, "y") : null;
    const second = wait(bench, "h2");
    gone?.control?.leave("cancelled");
    bench.world.settle();
    t.match(bench.commands.at(-1), {
      kind: isAnew ? "set-heirs" : "append-heirs",
      added: [{ owner: Buffer.from("h2") }],
    });
    const back = wait(bench, "h1", 2);
    releaseOf(bench, before, tokenOf(before));
    bench.world.settle();
    goOn(bench);
    t.same([isTold(back), isTold(second)], [true, false]);
    t.end();
  });
}

t.test("Q7 an heir that shares its place when the log makes it the holder is told", (t) => {
  const { bench, holder, heirs } = hot(2);
  hold(bench);
  // Its own try, and that of who is first, are on their way before the release.
  wait(bench, holder.owner, 2);
  bench.send(unlock("r", holder.owner));
  const shared = bench.send({ ...lock("r", "h1", LEASE_MS), waitMs: 60_000 });
  bench.world.settle();
  goOn(bench);
  t.same(heirs.map(isTold), [true, false]);
  t.match(shared, [{ type: LockType.locked }], "both are told");
  t.end();
});

t.test("P-182 Q7 whoever goes before that was told keeps nobody from the lock", (t) => {
  const { bench, holder, heirs } = hot(2);
  hold(bench);
  wait(bench, holder.owner, 2);
  bench.send(unlock("r", holder.owner));
  const request = { ...lock("r", "h1", LEASE_MS), waitMs: 60_000 };
  const context = { deadlineMs: bench.nowMs + 1e7, forwardHops: 0, requestId: "t" };
  const control = bench.operations.execute(request, context, () => undefined);
  bench.world.settle();
  for (let entry = 0; entry < 2; entry++) {
    bench.world.log.sync(1);
    bench.world.settle();
  }
  t.match(bench.commands.at(-2), { kind: "try-lock", owner: Buffer.from("h1") });
  heirs[0]?.control?.leave("cancelled");
  control?.leave("cancelled");
  bench.world.settle();
  goOn(bench);
  t.ok(isTold(heirs[1] as Wait));
  t.end();
});

t.test("Q16 the release of a step that is refused on its way goes it again", (t) => {
  const { bench, holder, heirs } = hot(3);
  const [first, second, third] = heirs as [Wait, Wait, Wait];
  const { reads } = groupOf(bench).machine;
  const named = Number(reads.succession("r")?.heirs[0]?.token);
  bench.faults.late = ({ kind }) => (kind === "unlock-grant" ? REFUSED : null);
  const released = [releaseOf(bench, holder, tokenOf(holder))];
  bench.faults.late = null;
  released.push(releaseOf(bench, first, named));
  bench.world.settle();
  t.same([first, second].map(isTold), [true, true], "both steps were made");
  bench.world.pass(200);
  t.match(released, [[{ type: LockType.unlocked }], [{ type: LockType.unlocked }]]);
  t.match(bench.ask(info("r")), { owner: Buffer.from("h2") });
  hold(bench);
  releaseOf(bench, second, tokenOf(second));
  bench.world.settle();
  t.ok(isTold(third), "and there are steps as before");
  goOn(bench);
  t.end();
});

t.test("Q15 whoever let go, and the next was told, is not told that nothing happened", (t) => {
  const refused = { kind: "refused", reason: "shutting-down" } as const;
  for (const end of [refused, { kind: "moved" }, { kind: "aborted" }] as const) {
    for (const isTold of [true, false]) {
      const { ends, answers, step, steps } = oneStep();
      t.ok(steps.send(step));
      if (isTold) steps.tell(step);
      ends[0]?.(end);
      t.match(answers, [isTold ? { kind: "unknown" } : end], end.kind);
    }
  }
  t.end();
});

/** A release on its way, of a leadership that ends before it is applied. */
function oneStep() {
  const ends: ((decision: Decision) => void)[] = [];
  const answers: Decision[] = [];
  const decisions = {
    release: ({ then }: LockCall) => ends.push(then) > 0,
  } as unknown as LockDecisions;
  const stepping = { isCurrent: () => false, note: () => undefined, stepped: () => undefined };
  const steps = new LockSteps({} as WaitingPorts, decisions, stepping);
  const call = { deadlineMs: 1000, then: (decision: Decision) => answers.push(decision) };
  const nothing = {} as Queue & ListedHeir;
  const step = new Step(nothing, new Succession(1), nothing, call as unknown as LockCall);
  return { ends, answers, step, steps };
}

t.test("Q7 an heir that shares its place with who is none keeps its turn", (t) => {
  const { bench, holder, heirs } = hot(2);
  const request = { ...lock("r", "h1", LEASE_MS), waitMs: 60_000 };
  const shared = bench.send(request);
  bench.world.settle();
  bench.ask(release(holder.owner, tokenOf(holder)));
  t.same(heirs.map(isTold), [true, false]);
  t.match(shared, [{ type: LockType.locked }], "both are told");
  t.end();
});

t.test("P-182 what nobody was told is given back, though that is refused for a while", (t) => {
  const { bench, holder, heirs } = hot(2);
  const [first, second] = heirs as [Wait, Wait];
  const holderToken = BigInt(tokenOf(holder));
  bench.faults.propose = (command) => {
    const isOthers = command.kind === "unlock-grant" && command.token !== holderToken;
    return command.kind === "set-heirs" || isOthers ? REFUSED : null;
  };
  first.control?.leave("cancelled");
  bench.world.settle();
  t.match(bench.ask(release(holder.owner, tokenOf(holder))), { type: LockType.unlocked });
  bench.world.pass(500);
  t.notOk(isTold(second));
  const { length } = bench.commands;
  bench.world.pass(100);
  t.ok(bench.commands.length - length <= 10, "not in every turn");
  bench.faults.propose = null;
  bench.world.pass(50);
  t.ok(isTold(second));
  t.end();
});

t.test("a lock for which nobody waits is forgotten, though an end of it was not heard", (t) => {
  const bench = new Bench({ lockSuccession: true });
  bench.ask(lock("r", "a", 60_000));
  wait(bench, "b").control?.leave("left");
  bench.world.settle();
  const { serving } = bench.operations as unknown as { readonly serving: Serving };
  const queues = serving.queues(groupOf(bench));
  hold(bench);
  const answers = bench.send(unlock("r", "z"), [], 500);
  bench.world.pass(600);
  t.match(answers, [{ type: LockType.mustRetry }]);
  t.ok(queues.find("r", false), "somebody may come back");
  bench.world.pass(3000);
  goOn(bench);
  t.equal(queues.find("r", false), null);
  t.end();
});

/** Node 1 leads, "a" to "e" wait in turn, and the log hangs from now on. */
function trioHot(): { readonly trio: Trio; readonly holder: () => number } {
  const trio = new Trio({ lockSuccession: true });
  trio.moveAll(1);
  const told: LockAnswer[] = [];
  for (const [at, owner] of ["a", "b", "c", "d", "e", "f", "g"].entries()) {
    const named = { waitId: Int64.fromNumber(at + 1), tryNumber: Int64.fromNumber(1) };
    const request = { ...lock("r", owner, 5000), waitMs: 60_000, ...named };
    const context = { deadlineMs: trio.world.timer.nowMs + 1e7, forwardHops: 0, requestId: "t" };
    trio.node(1).execute(request, context, (answer) => void told.push(answer));
    trio.world.settle();
  }
  const holder = (): number => told.at(-1)?.fencingToken.toNumber() ?? -1;
  for (const owner of ["a", "b", "c"]) {
    trio.ask(1, release(owner, holder()));
    trio.world.settle();
  }
  return { trio, holder };
}

t.test(
  "C9 whoever released is told by its deadline, though the leadership ended meanwhile",
  (t) => {
    const { trio, holder } = trioHot();
    trio.ask(1, release("d", holder()));
    trio.world.pass(10);
    const before = holder();
    trio.world.log.automatic = false;
    const answers = trio.post(1, release("e", before), { withinMs: 500 });
    trio.world.settle();
    t.ok(holder() > before, "there was a step");
    trio.moveAll(2);
    trio.world.pass(600);
    t.match(answers, [{ type: LockType.mustRetry }]);
    t.end();
  },
);

t.test("with the leadership its lists end, whatever is decided of it later", (t) => {
  const { trio, holder } = trioHot();
  const { proposals } = trio;
  trio.world.log.automatic = false;
  trio.post(1, release("d", holder()));
  trio.world.settle();
  trio.moveAll(2);
  trio.moveAll(1);
  const { length } = proposals;
  trio.world.log.automatic = true;
  trio.world.log.sync();
  trio.world.settle();
  const kinds = proposals.slice(length).map(([, kind]) => kind);
  t.notOk(kinds.includes("append-heirs"), kinds.join());
  t.end();
});
