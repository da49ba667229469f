/**
 * Register, split, merge and unregister by hand under load through every node: while no process dies callers see a pause
 * and never an error.
 */
import t from "tap";
import { allPass, verdictText } from "../../judge/checkers/verdict.js";
import { RangeSpaces } from "../chaos/range-clients.js";
import { rangeFlags } from "../chaos/ranges.js";
import { endAll, sleep } from "../cluster/server-process.js";
import { RangedRun } from "./ranged-run.js";

t.setTimeout(240_000);
t.teardown(endAll);

/** Changes by hand that are wanted at least, and how long they are waited for at most (ms). */
const WANTED = { split: 6, merge: 1, unregister: 2 } as const;
const PATIENCE_MS = 90_000;
/** Longer than neighbours rest before they are merged (ms). */
const REST_MS = 40_000;

t.test("P-100 P-101 K13 K15 K16 moves by hand under load cost no caller an error", async (t) => {
  const run = await RangedRun.start({
    seed: 14,
    // An even number: nothing is split but by hand.
    flags: rangeFlags(14),
    spaces: new RangeSpaces(),
    say: (text) => t.comment(text),
  });
  t.teardown(() => run.end());
  const { ranges } = run;
  run.work(12);
  const changes = ranges.run();
  const endMs = performance.now() + PATIENCE_MS;
  const isEnough = (): boolean =>
    ranges.doneOf("split") >= WANTED.split &&
    ranges.doneOf("merge") >= WANTED.merge &&
    ranges.doneOf("unregister") >= WANTED.unregister;
  while (!isEnough() && performance.now() < endMs) await sleep(100);
  ranges.stop();
  await changes;
  await ranges.mergeRested(performance.now() + REST_MS);
  t.ok(isEnough(), `seen: ${JSON.stringify([...ranges.answers])}`);
  const verdicts = await run.judge();
  t.same(await run.failures(), [], "no call failed or was sent back");
  t.ok(run.answered > 500, `${run.answered} calls answered`);
  for (const verdict of verdicts) t.equal(verdict.kind, "pass", verdictText(verdict));
  t.ok(allPass(verdicts));
  t.equal(await ranges.rest(), null, "no move is left");
  t.same(await run.differences("ranged-"), [], "every node shows the same");
  t.comment(JSON.stringify([...ranges.answers]), `${run.answered} calls`);
});
