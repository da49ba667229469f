/**
 * kill -9 of each node that takes part in a move, at each step of it, on one cluster of real processes under writers. A
 * part of the table each day; SVC_MOVE_STEPS=all plays it whole.
 */
import t from "tap";
import { PartOfDay } from "../../doubles/part-of-day.js";
import { endAll } from "../cluster/server-process.js";
import { Load } from "./load.js";
import { MoveSteps, PARTS, cellText } from "./move-steps.js";
import { PlacedNodes } from "./placed-nodes.js";

const parts = new PartOfDay("SVC_MOVE_STEPS", PARTS.length);
const cells = parts.of(PARTS).flat();

t.setTimeout(parts.isAll ? 900_000 : 300_000);
t.teardown(endAll);

const FLAGS = [
  "--raft-replication-factor=3",
  "--initial-cluster-partitions=5",
  "--raft-placement-pass-interval=1s",
];
/** What is to be sent to a replica that comes, over all partitions. */
const VALUES = 160;
const VALUE_BYTES = 64 * 1024;
/** A quarter of the steps may be over before anybody looks. */
const SEEN_LEAST = 0.75;

t.test("P-094 P-097 a move survives the death of each node in it, at each step", async (t) => {
  t.comment(parts.text);
  const nodes = await PlacedNodes.start(5, 0, FLAGS);
  t.teardown(() => nodes.end());
  const load = await Load.start(nodes, 6, 57);
  const value = Buffer.alloc(VALUE_BYTES, 7).toString("base64");
  for (let at = 0; at < VALUES; at++) {
    await nodes.call(1 + (at % 5), "/v1/kv/try-set", { key: `ballast-${at}/x`, value });
  }
  const steps = new MoveSteps(nodes, load, (text) => t.comment(text));
  await steps.prepare();
  let seen = 0;
  for (const cell of cells) {
    const beganMs = performance.now();
    const isSeen = await steps.play(cell);
    if (isSeen) seen++;
    else t.comment(`not seen in time: ${cellText(cell)}`);
    t.same(await load.look(), [], cellText(cell));
    t.comment(`${Math.round(performance.now() - beganMs)} ms`);
  }
  t.ok(seen >= cells.length * SEEN_LEAST, `${seen} of ${cells.length} steps were seen`);
  await load.goesOn(100);
  t.same(await load.judge(), []);
  const { compared, unknowns } = load.findings;
  t.comment(JSON.stringify(compared), `unknown ${unknowns}`);
  for (const check of [
    "value unique",
    "token grows",
    "one holder",
    "write kept",
    "sequence kept",
  ]) {
    t.ok((compared[check] ?? 0) > 10, `${check}: not vacuous`);
  }
});
