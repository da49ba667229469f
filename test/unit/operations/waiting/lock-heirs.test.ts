/** Heirs of locks that change hands often, on the real host and machine of one node. */
import t from "tap";
import { Int64 } from "../../../../src/base/int64.js";
import { LockType } from "../../../../src/base/result-types.js";
import type { GroupAccess } from "../../../../src/operations/api/host-view.js";
import type { Dispatch } from "../../../../src/operations/dispatch.js";
import type { LockAnswer } from "../../../../src/operations/api/requests.js";
import { Bench, extendLock, info, lock } from "../../../doubles/operations/fixture.js";
import {
  LEASE_MS,
  type Wait,
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

t.test("Q15 a lock that changes hands often has heirs: those who wait, in order", (t) => {
  const { bench, holder, heirs } = hot(3);
  t.ok(isTold(holder), "whoever was the fifth to wait holds it");
  t.same(listOf(bench), ["h1", "h2", "h3"]);
  t.notOk(heirs.some(isTold));
  t.end();
});

t.test("Q15 with the flag off nothing of it is there", (t) => {
  const { bench } = hot(3, new Bench());
  t.same(listOf(bench), []);
  const kinds = new Set(bench.commands.map(({ kind }) => kind));
  t.notOk(kinds.has("lock-heir") || kinds.has("append-heirs") || kinds.has("set-heirs"));
  t.end();
});

t.test("Q15 Q16 the next holder is told at once, the releaser when its release is durable", (t) => {
  const { bench, holder, heirs } = hot(3);
  const [first, second] = heirs as [Wait, Wait];
  hold(bench);
  const released = releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.match(first.answers, [{ type: LockType.locked, leaseLeftMs: LEASE_MS }]);
  t.same(released, []);
  const again = releaseOf(bench, first, tokenOf(first));
  bench.world.settle();
  t.ok(isTold(second), "and the one behind it");
  t.same(again, []);
  goOn(bench);
  t.match([released, again], [[{ type: LockType.unlocked }], [{ type: LockType.unlocked }]]);
  t.match(bench.ask(info("r")), { type: LockType.got, owner: Buffer.from("h2") });
  t.ok(tokenOf(second) > tokenOf(first) && tokenOf(first) > tokenOf(holder));
  t.end();
});

t.test("Q15 get-info waits for what was told ahead of the log", (t) => {
  const { bench, holder } = hot(2);
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  const asked = bench.send(info("r"));
  const listed = bench.send({
    ...{ kind: "list-locks", prefix: "r", durability: 1, heldOnly: true, limit: 0 },
    cursor: null,
  });
  bench.world.settle();
  t.same([asked, listed], [[], []]);
  goOn(bench);
  t.match(asked, [{ type: LockType.got, owner: Buffer.from("h1") }]);
  t.match(listed, [{ items: [{ resource: "r", owner: Buffer.from("h1") }] }]);
  t.end();
});

t.test("Q15 C9 whoever released is told by its deadline, though the log hangs", (t) => {
  const { bench, holder, heirs } = hot(2);
  hold(bench);
  const answers: LockAnswer[] = [];
  const context = { deadlineMs: bench.nowMs + 500, forwardHops: 0, requestId: "t" };
  const request = release(holder.owner, tokenOf(holder));
  bench.operations.execute(request, context, (answer) => void answers.push(answer));
  bench.world.settle();
  t.ok(isTold(heirs[0] as Wait));
  bench.world.pass(490);
  t.same(answers, []);
  bench.world.pass(20);
  t.match(answers, [{ type: LockType.mustRetry }]);
  goOn(bench);
  t.equal(answers.length, 1);
  t.match(bench.ask(info("r")), { owner: Buffer.from("h1") });
  t.end();
});

t.test("who waits and is not named is granted behind the heirs, and named as they go", (t) => {
  const { bench, holder, heirs } = hot(2);
  const late = wait(bench, "late");
  t.same(listOf(bench), ["h1", "h2", "late"], "while it is hot, at once");
  bench.world.pass(1000);
  const later = wait(bench, "later");
  t.same(listOf(bench), ["h1", "h2", "late"], "it is not hot any more");
  let token = tokenOf(holder);
  let owner = holder.owner;
  for (const next of [...heirs, late, later]) {
    bench.ask(release(owner, token));
    t.ok(isTold(next), next.owner);
    token = tokenOf(next);
    owner = next.owner;
  }
  t.match(bench.ask(release(owner, token)), { type: LockType.unlocked });
  t.match(bench.ask(info("r")), { type: LockType.doesNotExist });
  t.end();
});

t.test("an heir that went is not stepped over: it goes through the log, in one entry", (t) => {
  const { bench, holder, heirs } = hot(3);
  const [first, second] = heirs as [Wait, Wait];
  first.control?.leave("left");
  bench.world.settle();
  hold(bench);
  const released = releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.notOk(isTold(second), "not in memory");
  goOn(bench);
  t.match(released, [{ type: LockType.unlocked }]);
  t.ok(isTold(second));
  t.match(bench.ask(info("r")), { owner: Buffer.from("h2") });
  t.end();
});

t.test("Q9 an heir that is cancelled, or whose place is over, leaves the list at once", (t) => {
  const { bench, holder, heirs } = hot(4);
  const [first, second, third, fourth] = heirs as [Wait, Wait, Wait, Wait];
  third.control?.leave("left");
  first.control?.leave("cancelled");
  bench.world.settle();
  t.same(listOf(bench), ["h2", "h4"], "with who went and may come back");
  fourth.control?.leave("left");
  bench.world.pass(1900);
  t.same(listOf(bench), ["h2", "h4"], "its place is kept");
  bench.world.pass(200);
  t.same(listOf(bench), ["h2"]);
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.ok(isTold(second), "in memory");
  goOn(bench);
  t.end();
});

t.test("a later try is no heir: it is granted through the log", (t) => {
  const { bench, holder, heirs } = hot(2);
  const [first] = heirs as [Wait];
  const again = wait(bench, "h1", 2);
  t.match(first.answers, [{ type: LockType.aborted }], "nobody hears the first one any more");
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.notOk(isTold(again));
  goOn(bench);
  t.ok(isTold(again));
  t.end();
});

t.test("Q13 a second release of a grant ends no other one, and is no step", (t) => {
  const { bench, holder, heirs } = hot(3);
  const [first, second] = heirs as [Wait, Wait];
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  const again = releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.ok(isTold(first));
  releaseOf(bench, first, tokenOf(first));
  bench.world.settle();
  t.notOk(isTold(second), "while a release that makes no step is on its way");
  goOn(bench);
  t.match(again, [{ type: LockType.invalidOwner }]);
  t.ok(isTold(second), "when it is applied");
  t.end();
});

t.test("a step is not made beyond the end of the list", (t) => {
  const { bench, holder, heirs } = hot(2);
  bench.world.pass(1000);
  t.match(bench.ask({ ...extendLock("r", holder.owner, 60_000) }), { type: LockType.extended });
  bench.world.pass(1500);
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.notOk(isTold(heirs[0] as Wait), "its lease would be longer than the list");
  goOn(bench);
  t.ok(isTold(heirs[0] as Wait));
  t.end();
});

t.test("Q3 the lease of a holder ends: the first heir has the lock", (t) => {
  const { bench, heirs } = hot(2);
  bench.world.pass(LEASE_MS + 100);
  t.ok(isTold(heirs[0] as Wait));
  t.notOk(isTold(heirs[1] as Wait));
  t.end();
});

t.test("Q3 heirs that all went leave the lock as it is without them", (t) => {
  const { bench, holder, heirs } = hot(3);
  for (const { control } of heirs) control?.leave("cancelled");
  bench.world.settle();
  t.same(listOf(bench), [], "at once");
  t.match(bench.ask(release(holder.owner, tokenOf(holder))), { type: LockType.unlocked });
  t.match(bench.ask(lock("r", "z")), { type: LockType.locked });
  t.end();
});

t.test("F4 a forced release voids the heirs, and the next one is granted along with it", (t) => {
  const { bench, holder, heirs } = hot(2);
  const forced = bench.ask({
    ...{ kind: "force-unlock", resource: "r", durability: 1, reason: "test", dropWaiters: false },
    ...{ fencingToken: Int64.fromNumber(tokenOf(holder)), actor: "", nodeId: 0 },
  });
  t.match(forced, { type: LockType.unlocked });
  t.ok(isTold(heirs[0] as Wait));
  t.match(bench.ask(info("r")), { owner: Buffer.from("h1") });
  t.end();
});

t.test("P-182 an heir that cannot be told any more gives its grant back through the log", (t) => {
  const { bench, holder, heirs } = hot(3);
  const [first, second] = heirs as [Wait, Wait];
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.ok(isTold(first));
  const given: boolean[] = [];
  const { dispatch } = bench.operations as unknown as { readonly dispatch: Dispatch };
  const fencingToken = Int64.fromNumber(tokenOf(first));
  const call = { kind: "give-back", resource: "r", owner: Buffer.from("h1") } as const;
  dispatch.giveBackLed({ ...call, durability: 1, fencingToken }, (isGiven) => {
    given.push(isGiven);
  });
  bench.world.settle();
  t.notOk(isTold(second), "nobody is told on the word of a node");
  goOn(bench);
  t.same(given, [true]);
  t.ok(isTold(second));
  t.end();
});

t.test("Q11 a node that stops leaves no list behind", (t) => {
  const { bench, holder } = hot(3);
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.node.stop(bench.nowMs + 5000, () => undefined);
  bench.world.settle();
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
  const next = new Bench({ lockSuccession: true }, (bench.world.crash(), bench.world));
  t.same(listOf(next), []);
  t.match(next.ask(info("r")), { type: LockType.got, owner: Buffer.from("h1") });
  t.end();
});

t.test("Q16 a list that is not applied yet is none", (t) => {
  const { bench, holder } = hot(0);
  hold(bench);
  const next = wait(bench, "next");
  t.match(bench.commands.at(-1), { kind: "append-heirs" }, "it is on its way");
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.notOk(isTold(next));
  goOn(bench);
  t.ok(isTold(next));
  t.end();
});

t.test("Q16 no step is made while the list is being written anew", (t) => {
  const { bench, holder, heirs } = hot(1);
  hold(bench);
  heirs[0]?.control?.leave("cancelled");
  bench.world.settle();
  t.match(bench.commands.at(-1), { kind: "set-heirs", added: [] }, "it is on its way");
  const again = wait(bench, "h1");
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.notOk(isTold(again));
  goOn(bench);
  t.ok(isTold(again));
  t.end();
});

t.test("P-042 with a leadership the position in its lists ends", (t) => {
  const { bench, holder, heirs } = hot(2);
  const [first, second] = heirs as [Wait, Wait];
  hold(bench);
  releaseOf(bench, holder, tokenOf(holder));
  bench.world.settle();
  t.ok(isTold(first));
  const group = bench.group(bench.partitionOf("r"));
  bench.operations["serving"].queues(group as unknown as GroupAccess).reset();
  // It would ask again by itself, by a higher try.
  second.control?.leave("cancelled");
  bench.world.settle();
  const again = wait(bench, "h2");
  releaseOf(bench, first, tokenOf(first));
  bench.world.settle();
  t.notOk(isTold(again), "nobody knows how far it was");
  goOn(bench);
  t.ok(isTold(again));
  t.end();
});

t.test("F4 what is known of a lock with heirs is forgotten when nobody waits any more", (t) => {
  const { bench, holder, heirs } = hot(2);
  const queues = bench.operations["serving"].queues(
    bench.group(bench.partitionOf("r")) as unknown as GroupAccess,
  );
  t.ok(queues.find("r", false) !== null);
  let { owner } = holder;
  let token = tokenOf(holder);
  for (const next of heirs) {
    bench.ask(release(owner, token));
    token = tokenOf(next);
    owner = next.owner;
  }
  bench.ask({
    ...{ kind: "force-unlock", resource: "r", durability: 1, reason: "test", dropWaiters: false },
    ...{ fencingToken: Int64.fromNumber(token), actor: "", nodeId: 0 },
  });
  bench.world.pass(200);
  t.equal(queues.find("r", false), null);
  t.end();
});
