/**
 * Three real nodes are upgraded one after the other while programs of the library wait for locks and watch, all the time: it
 * proves what `in-use.ts` holds them to (Q11, W14, U1). While a node of the earlier program is there, nodes pass no wait on: the
 * library asks again and again, and stands in no queue.
 */
import { join } from "node:path";
import t from "tap";
import { type Command, PRESENT, Rolling } from "../../cluster/rolling.js";
import { endAll, serverModules } from "../../cluster/server-process.js";
import { ALL, usedWhile } from "./in-use.js";

t.setTimeout(240_000);
t.teardown(endAll);

const preload = join(import.meta.dirname, "..", "..", "cluster", "earlier-program.js");
const EARLIER: Command = [process.execPath, "--import", preload, serverModules];

t.test("Q11 W14 U1 an upgrade of all nodes loses nobody who waits or watches", async (t) => {
  const rolling = new Rolling(["--initial-cluster-partitions=4"], EARLIER);
  t.teardown(() => rolling.end());
  await rolling.start();
  await usedWhile(t, rolling, { grants: 10, "handed over": 2 }, async () => {
    for (const id of ALL) await rolling.restart(id, PRESENT);
  });
});
