/**
 * What a node knew, or did not know, of a key space when it was registered costs a way and never an answer: a node that was
 * down, and one whose mode flag differs.
 */
import t from "tap";
import { allPass, verdictText } from "../../judge/checkers/verdict.js";
import { RangeSpaces } from "../chaos/range-clients.js";
import { rangeFlags } from "../chaos/ranges.js";
import { endAll, sleep } from "../cluster/server-process.js";
import { eventually } from "../placement/placed-nodes.js";
import { RangedRun } from "./ranged-run.js";

t.setTimeout(240_000);
t.teardown(endAll);

const ERA_MS = 3_600_000;
/** Nobody works in it but the test. */
const APART = "apart";
const CALLS = 300;
const PATIENCE_MS = 60_000;

t.test(
  "P-107 P-109 C8 nodes that disagree on the mode of a key space serve it alike",
  async (t) => {
    const spaces = new RangeSpaces(ERA_MS);
    const say = (text: string): void => t.comment(text);
    const run = await RangedRun.start({ seed: 16, flags: rangeFlags(16), spaces, say });
    t.teardown(() => run.end());
    const { nodes, ranges, asking } = run;
    const [first, second] = spaces.of() as [string, string];
    const mode = async (node: number, name: string): Promise<unknown> => {
      const listed = (await ranges.listed(node, name)) as readonly unknown[];
      return (listed[0] as { readonly routingMode?: unknown } | undefined)?.routingMode;
    };

    // One node is down as spaces are registered, and one of them is split.
    await nodes.kill(3);
    for (const keySpace of [first, APART]) {
      await eventually("a space is registered without a node", async () => {
        return /Seeded/.test(await run.change("register", { keySpace }, 1));
      });
    }
    for (let at = 0; at < 24; at++) {
      const body = { key: `${APART}/z${at}`, value: "YQ==" };
      await eventually("a key is set", async () => {
        return (await asking.ask(1 + (at % 2), "/v1/kv/try-set", body))?.["type"] === 0;
      });
    }
    await eventually("it is split without that node", async () => {
      const [listed] = await ranges.listed(1, APART);
      if ((listed?.descriptors.length ?? 0) > 1) return true;
      await run.change("split", { keySpace: APART, splitKey: `${APART}/z12` });
      return false;
    });
    nodes.launch(3);
    await nodes.allReady();
    await eventually("it knows the ranges", async () => (await mode(3, APART)) === "KeyRange");

    // Another is cut off as it is asked to register the other space: its own flag alone says so.
    const others = nodes.all.filter((each) => each !== 2);
    for (const other of others) {
      nodes.network.hold(2, other);
      nodes.network.hold(other, 2);
    }
    const answer = await asking.ask(2, "/v1/ranges/register", { keySpace: second });
    t.match(answer, { success: false, status: "Indeterminate" });
    t.equal(await mode(2, second), "KeyRange", "the flag of the node that was cut off");
    for (const other of others) nodes.network.cut(2, other);
    nodes.network.release();
    await nodes.allReady();
    t.comment(
      `modes of ${second}: ${String(await mode(1, second))}, ${String(await mode(2, second))}`,
    );

    // Faults before may still cost an answer; from here on none may.
    await eventually("all nodes serve", async () => {
      const all = await Promise.all(
        nodes.all.map((node) => asking.ask(node, "/v1/kv/try-get", { key: `${APART}/z20` })),
      );
      return all.every((one) => one?.["type"] === 3);
    });
    await sleep(1000);
    run.work(9);
    const endMs = performance.now() + PATIENCE_MS;
    while (run.answered < CALLS && performance.now() < endMs) await sleep(100);
    t.match(await run.change("register", { keySpace: second }, 3), /Seeded/);
    const splitKey = spaces.key(second, 12);
    t.match(
      await run.change("split", { keySpace: second, splitKey }),
      /Succeeded|BelowMinRangeSize/,
    );
    while (run.answered < 2 * CALLS && performance.now() < endMs) await sleep(100);
    const verdicts = await run.judge();
    t.same(await run.failures(), [], "no call failed or was sent back");
    t.ok(run.answered >= CALLS, `${run.answered} calls`);
    for (const verdict of verdicts) t.equal(verdict.kind, "pass", verdictText(verdict));
    t.ok(allPass(verdicts));
    for (let at = 0; at < 24; at++) {
      for (const node of nodes.all) {
        const found = await asking.ask(node, "/v1/kv/try-get", { key: `${APART}/z${at}` });
        t.match(found, { type: 3, revision: 0 }, `z${at} at node ${node}`);
      }
    }
    t.same(await run.differences("ranged-"), [], "every node shows the same");
    for (const keySpace of [first, second, APART]) {
      t.equal(await run.change("unregister", { keySpace }, 2), "Removed");
    }
    t.same(await run.differences("ranged-"), [], "every node shows the same");
  },
);
