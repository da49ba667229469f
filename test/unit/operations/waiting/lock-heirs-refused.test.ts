/**
 * Heirs of locks where something that was proposed for them comes to nothing, or comes late, and
 * the leader stays.
 */
import t from "tap";
import { LockType } from "../../../../src/base/result-types.js";
import { partitionId } from "../../../../src/base/ids.js";
import { Bench, info, lock } from "../../../doubles/operations/fixture.js";
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
