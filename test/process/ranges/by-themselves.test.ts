/** Ranges that the leader of meta splits and merges by itself, at small thresholds and a short interval, under load. */
import t from "tap";
import { allPass, verdictText } from "../../judge/checkers/verdict.js";
import { RangeSpaces } from "../chaos/range-clients.js";
import { rangeFlags } from "../chaos/ranges.js";
import { endAll } from "../cluster/server-process.js";
import { eventually } from "../placement/placed-nodes.js";
import { RangedRun } from "./ranged-run.js";

t.setTimeout(300_000);
t.teardown(endAll);

/** Both spaces are used to the end. */
const ERA_MS = 3_600_000;

t.test("P-105 P-106 C8 ranges split and merge by themselves under load", async (t) => {
  const spaces = new RangeSpaces(ERA_MS);
  const run = await RangedRun.start({
    seed: 15,
    flags: rangeFlags(15),
    spaces,
    say: (text) => t.comment(text),
  });
  t.teardown(() => run.end());
  const { ranges, nodes } = run;
  run.work(10);
  const [first, second] = spaces.of() as [string, string];
  for (const keySpace of [first, second]) {
    t.equal(await run.change("register", { keySpace }, 2), "Seeded");
  }
  const counts = async (): Promise<readonly number[]> => {
    const listed = await ranges.listed(1);
    return [first, second].map(
      (name) => listed.find(({ keySpace }) => keySpace === name)?.descriptors.length ?? 0,
    );
  };
  const told = async (): Promise<string> => JSON.stringify(await ranges.listed(1));
  await eventually(
    "both spaces are split by themselves",
    async () => (await counts()).every((count) => count > 1),
    told,
  );
  const verdicts = await run.judge();
  t.same(await run.failures(), [], "no call failed or was sent back");
  for (const verdict of verdicts) t.equal(verdict.kind, "pass", verdictText(verdict));
  t.ok(allPass(verdicts));
  t.same(await run.differences("ranged-"), [], "every node shows the same");
  // Nearly all of one space goes: what is left of it is merged, and the other one stays as it is.
  for (let at = 0; at < 23; at++) {
    await run.asking.ask(1 + (at % nodes.count), "/v1/kv/try-delete", {
      key: spaces.key(first, at),
    });
  }
  await eventually("what is left is merged by itself", async () => (await counts())[0] === 1, told);
  t.ok(((await counts())[1] ?? 0) > 1, "the other space is not merged");
  t.equal(await ranges.rest(), null, "no move is left");
  t.equal(await run.change("unregister", { keySpace: second }, 3), "Removed");
  // The node asked did not answer the change: it shows what it has applied.
  await eventually("the space is gone", async () => (await counts())[1] === 0, told);
  t.same(await run.differences("ranged-"), [], "every node shows the same");
});
