/** When a healed cluster must be at rest: what puts the end off, and that nothing does for ever. */
import t from "tap";
import { incarnation, placementGeneration } from "../../src/base/ids.js";
import type { ReplicaRecord } from "../../src/machine/commands/command.js";
import { PeaceBound, waitsForTheGone } from "./run/peace-bound.js";

const PEACE_MS = 600_000;

/** The time at which a cluster that never comes to rest is given up (ms), peace having begun at 1,000. */
function endOf(isWaiting: (nowMs: number) => boolean): number {
  const bound = new PeaceBound(1000, PEACE_MS);
  let nowMs = 1000;
  while (nowMs < bound.endMs(nowMs, isWaiting(nowMs))) nowMs += 500;
  return nowMs;
}

function record(...replicas: readonly (readonly [number, ReplicaRecord["role"]])[]) {
  const life = { incarnation: incarnation(0), since: placementGeneration(0), replaces: 0 };
  return { replicas: replicas.map(([nodeId, role]) => ({ nodeId, role, ...life })) };
}

t.test("peace ends ten minutes after it began", (t) => {
  t.equal(
    endOf(() => false),
    1000 + PEACE_MS,
  );
  t.end();
});

t.test(
  "P-091 a replica on its way to a machine that is gone puts the end off until it is given up",
  (t) => {
    const atMs = endOf((nowMs) => nowMs < 620_000);
    t.ok(Math.abs(atMs - 620_000 - PEACE_MS) <= 500, "ten minutes after that");
    t.end();
  },
);

t.test("P-091 one that is never given up ends peace all the same", (t) => {
  t.ok(endOf(() => true) < 1000 + 660_000 + PEACE_MS + 500);
  t.end();
});

t.test("P-091 only a learner on a machine that is gone counts, where nobody is ever dead", (t) => {
  const records = [record([1, "voter"], [2, "voter"]), record([1, "voter"], [3, "learner"])];
  t.ok(waitsForTheGone(records, new Set([3]), 0));
  t.notOk(waitsForTheGone(records, new Set([2]), 0), "a voter");
  t.notOk(
    waitsForTheGone([record([1, "voter"], [3, "removing"])], new Set([3]), 0),
    "on its way out",
  );
  t.notOk(waitsForTheGone(records, new Set(), 0), "a machine that runs");
  t.notOk(waitsForTheGone(records, new Set([3]), 3000), "the dead are told");
  t.end();
});
