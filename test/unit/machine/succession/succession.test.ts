/**
 * Heirs of a lock, Q14 to Q16: random histories and all orders of small cases, a bounded part of
 * each. `npm run heirs` is the long form.
 */
import t from "tap";
import { newWorld, search } from "./histories.js";
import { SMALL_CASES, explore } from "./small-cases.js";

t.setTimeout(300_000);

const HISTORIES = 30_000;
/** Small cases are gone through to two levels less than in the long form. */
const LESS_DEEP = 2;
const STATES_MAX = 12_000;

t.test("Q14 Q15 Q16 no history of heirs has two holders, loses a grant or hangs", (t) => {
  const world = newWorld();
  const { violation, number } = search(world, 1, 0, HISTORIES);
  t.equal(violation, null, `${number} histories`);
  const { counts } = world;
  t.ok(counts.steps >= 5000, "hand-overs in memory");
  t.ok(counts.deposedSteps >= 50, "of them, by leaders that were deposed");
  t.ok(counts.stepsInAppend >= 50, "of them, while the list is lengthened");
  t.ok(counts.setsInList >= 50, "lists that are written anew behind one on its way");
  t.ok(counts.ownTries >= 5, "grants that another acquire of their owner is told");
  t.ok(counts.orphaned >= 1000, "lists that outlive their leader");
  t.ok(counts.learnt >= 100, "entries that a deposed leader learns of late");
  const { claims, returns, voids, mustRetry, forcedOrphans, vague } = counts;
  const fewest = Math.min(claims, returns, voids, mustRetry, forcedOrphans);
  t.ok(fewest >= 20, "each kind of what members of such a list do");
  t.ok(vague >= 5, "of them, without a token");
  t.ok(Math.min(counts.givenBack, counts.lapses, counts.forced, counts.extended) >= 500, "others");
  t.ok(counts.peaces >= 3000, "peace, in which all are served");
  t.end();
});

t.test("Q14 Q15 Q16 three clients, two heirs, three terms: all orders, to a depth", (t) => {
  for (const plan of SMALL_CASES) {
    const found = explore(newWorld(), { ...plan, depth: plan.depth - LESS_DEEP }, STATES_MAX);
    t.equal(found.violation, null, `${plan.name}: ${JSON.stringify(found.way)}`);
    t.ok(found.states >= 2000, `${plan.name}: ${found.states} states`);
  }
  t.end();
});

t.test("the same histories for the same seed", (t) => {
  const one = newWorld();
  const other = newWorld();
  search(one, 5, 100, 300);
  search(other, 5, 100, 300);
  t.same(one.counts, other.counts);
  t.end();
});
