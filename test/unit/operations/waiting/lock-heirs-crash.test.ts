/**
 * Lists of heirs of a leader that is gone: what its successor makes of who comes back, row by row,
 * and after a crash between every two effects.
 */
import t, { type Test } from "tap";
import { assert } from "../../../../src/base/assert.js";
import { LockType } from "../../../../src/base/result-types.js";
import type { LockAnswer } from "../../../../src/operations/api/requests.js";
import { Bench, info, lock } from "../../../doubles/operations/fixture.js";
import {
  LEASE_MS,
  type Hot,
  type Wait,
  extension,
  hold,
  hot,
  isTold,
  listOf,
  release,
  releaseOf,
  tokenOf,
  wait,
} from "../../../doubles/operations/heirs.js";

const SETTINGS = { lockSuccession: true };
/** Beyond the longest lease of a list it binds for so long (ms). */
const HORIZON_MS = 2000;

/** The node crashes, of what is not durable `also` writes are, and it leads again. */
function crash({ bench }: Hot, also = 0): Bench {
  bench.world.log.automatic = true;
  bench.world.crash(also);
  return new Bench(SETTINGS, bench.world);
}

/** Of heirs h1 to h3, h1 was told, and nobody but it knows. */
function told(): Hot & { readonly next: Bench } {
  const all = hot(3);
  hold(all.bench);
  releaseOf(all.bench, all.holder, tokenOf(all.holder));
  all.bench.world.settle();
  assert(isTold(all.heirs[0] as Wait), "the first heir is told");
  return { ...all, next: crash(all) };
}

t.test("Q15 who holds the lock is not known: MustRetry for readers, Busy for others", (t) => {
  const { next, holder } = told();
  t.match(next.ask(info("r")), { type: LockType.mustRetry });
  t.match(next.ask(lock("r", holder.owner)), { type: LockType.mustRetry });
  t.match(next.ask(lock("r", "z")), { type: LockType.busy });
  const z = wait(next, "z");
  next.world.pass(LEASE_MS);
  t.same(z.answers, [], "nobody else before the list is over");
  next.world.pass(HORIZON_MS + 200);
  t.ok(isTold(z), "then");
  t.match(next.ask(info("r")), { type: LockType.got, owner: Buffer.from("z") });
  t.end();
});

t.test("Q15 an heir that was told extends: it holds the lock, those behind it follow", (t) => {
  const { next, heirs } = told();
  const [first, second, third] = heirs as [Wait, Wait, Wait];
  const back = wait(next, "h2", 2);
  const other = wait(next, "h3", 2);
  t.match(next.ask(extension("h1", tokenOf(first))), { type: LockType.extended });
  t.match(next.ask(info("r")), { type: LockType.got, owner: Buffer.from("h1") });
  t.match(next.ask(release("h1", tokenOf(first))), { type: LockType.unlocked });
  t.ok(isTold(back), "it came back before, in its turn");
  t.notOk(isTold(other));
  t.notOk(isTold(second) || isTold(third));
  t.ok(tokenOf(back) > tokenOf(first));
  t.end();
});

t.test("Q14 Q15 the base that asks again is told the same grant, and its heirs stay", (t) => {
  const all = hot(3);
  const next = crash(all);
  const again = wait(next, all.holder.owner, 2);
  t.ok(isTold(again));
  t.equal(tokenOf(again), tokenOf(all.holder));
  t.same(listOf(next), ["h1", "h2", "h3"]);
  t.match(next.ask(lock("r", "z")), { type: LockType.busy });
  t.end();
});

t.test("Q6 who waits is told of no longer lease than it asked for, though the list binds", (t) => {
  const { next, heirs } = told();
  t.match(next.ask(release("h1", tokenOf(heirs[0] as Wait))), { type: LockType.unlocked });
  const back = wait(next, "h2", 2);
  t.ok(isTold(back), "as the first of the list");
  const leftMs = back.answers[0]?.leaseLeftMs ?? 0;
  t.ok(leftMs > LEASE_MS - 100 && leftMs <= LEASE_MS, `${leftMs} ms`);
  t.end();
});

t.test("Q14 Q15 an heir that asks again was not told: it and those behind it are no heirs", (t) => {
  const { next } = told();
  const second = wait(next, "h2", 2);
  t.same(listOf(next), ["h1"]);
  const first = wait(next, "h1", 2);
  t.same(listOf(next), [], "each of them, whoever waits already");
  t.same([first.answers, second.answers], [[], []]);
  next.world.pass(LEASE_MS + 200);
  t.ok(isTold(second), "the first to come is the first to be granted it");
  t.end();
});

t.test("Q15 with the flag off the list of a former leader binds as well", (t) => {
  const all = hot(3);
  all.bench.world.crash();
  const next = new Bench({}, all.bench.world);
  const again = wait(next, "h1", 2);
  t.same(listOf(next), []);
  t.match(next.ask(info("r")), { type: LockType.got, owner: Buffer.from(all.holder.owner) });
  next.world.pass(LEASE_MS + 200);
  t.ok(isTold(again));
  t.end();
});

t.test("the gauge of lists of former leaders goes up and down", (t) => {
  const { next } = told();
  t.equal(next.operations.waitTally.orphanedLists, 0, "nobody waits");
  wait(next, "z");
  t.equal(next.operations.waitTally.orphanedLists, 1);
  next.world.pass(LEASE_MS + HORIZON_MS + 200);
  t.equal(next.operations.waitTally.orphanedLists, 0);
  t.end();
});

/** Who speaks at the next leader, and in which order. */
const RETURNS = ["holder first", "waiters first", "waiters, and no holder"] as const;

interface Case {
  /** Releases that were made. */
  readonly steps: number;
  /** After which of them the log was durable, as bits. */
  readonly synced: number;
  /** Writes that are durable beyond that. */
  readonly also: number;
  readonly returns: (typeof RETURNS)[number];
}

function cases(): Case[] {
  const all: Case[] = [];
  for (let steps = 0; steps <= 3; steps++)
    for (let synced = 0; synced < 2 ** steps; synced++)
      for (const also of [0, 1])
        for (const returns of RETURNS) all.push({ steps, synced, also, returns });
  return all;
}

/** Everybody of `waits` is told in the end, once at a time, by tokens above `above`. */
function serve(t: Test, next: Bench, waits: readonly Wait[], above: number, what: string): void {
  let last = above;
  const open = new Set(waits);
  for (let at = 0; at < 200 && open.size > 0; at++) {
    const holders = [...open].filter(isTold);
    if (holders.length > 1) return void t.fail(`two hold it: ${what}`);
    for (const one of holders) {
      if (tokenOf(one) <= last) return void t.fail(`token ${tokenOf(one)} after ${last}: ${what}`);
      last = tokenOf(one);
      open.delete(one);
      next.ask(release(one.owner, last));
    }
    if (holders.length === 0) next.world.pass(50);
  }
  if (open.size > 0) t.fail(`${open.size} wait for ever: ${what}`);
}

t.test(
  "P-182 Q15 a crash between every two effects: nobody is lost, nobody holds it twice",
  (t) => {
    let orphans = 0;
    for (const one of cases()) {
      const what = JSON.stringify(one);
      const all = hot(4);
      const { bench, heirs } = all;
      hold(bench);
      const line = [all.holder, ...heirs];
      const releases: LockAnswer[][] = [];
      for (let at = 0; at < one.steps; at++) {
        const holder = line[at] as Wait;
        releases.push(releaseOf(bench, holder, tokenOf(holder)));
        bench.world.settle();
        if ((one.synced & (1 << at)) !== 0) {
          bench.world.log.sync();
          bench.world.settle();
        }
      }
      const holder = line[one.steps] as Wait;
      t.ok(isTold(holder), what);
      const token = tokenOf(holder);
      const next = crash(all, one.also);
      if (next.ask(info("r")).type === LockType.mustRetry) orphans++;
      const extend = (): void => {
        t.match(next.ask(extension(holder.owner, token)), { type: LockType.extended }, what);
      };
      if (one.returns === "holder first") extend();
      const waits = line.slice(one.steps + 1).map(({ owner }) => wait(next, owner, 2));
      waits.push(wait(next, "z"));
      t.notOk(waits.some(isTold), `nobody but who was told: ${what}`);
      if (one.returns === "waiters first") extend();
      // Who heard nothing of its release repeats it: that ends nobody else's grant.
      for (const [at, answers] of releases.entries()) {
        if (answers.length > 0) continue;
        const { owner } = line[at] as Wait;
        next.ask(release(owner, tokenOf(line[at] as Wait)));
      }
      t.notOk(waits.some(isTold), `nor upon what was released before: ${what}`);
      if (one.returns !== "waiters, and no holder") {
        extend();
        t.match(next.ask(release(holder.owner, token)), { type: LockType.unlocked }, what);
      }
      serve(t, next, waits, token, what);
      t.match(next.ask(info("r")), { type: LockType.doesNotExist }, what);
    }
    t.ok(orphans > 50, `${orphans} lists were orphaned`);
    t.end();
  },
);
