/**
 * kill -9 of each node that takes part in a backup, at each step of it, on one cluster of real processes under writers. A
 * part of the table each day; SVC_BACKUP_STEPS=all plays it whole.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { PartOfDay } from "../../doubles/part-of-day.js";
import { endAll, temporaryDirectory } from "../cluster/server-process.js";
import { Load } from "../placement/load.js";
import { PlacedNodes } from "../placement/placed-nodes.js";
import { TAKING_CELLS, TakingSteps, takingText } from "./taking-steps.js";

/** Of the cells, so many are played each day. */
const PARTS = 7;

const parts = new PartOfDay("SVC_BACKUP_STEPS", PARTS);
const cells = parts.of(TAKING_CELLS);
const directory = temporaryDirectory();
const backups = join(directory.path, "backups");

t.setTimeout(parts.isAll ? 900_000 : 300_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

const FLAGS = [
  "--raft-replication-factor=3",
  "--initial-cluster-partitions=6",
  `--pitr-backup-dir=${backups}`,
  "--pitr-backup-cluster-id=test",
];
/** What images have to ship, over all partitions. */
const VALUES = 120;
const VALUE_BYTES = 64 * 1024;
/** A part of the steps may be over before anybody looks. */
const SEEN_LEAST = 0.3;
/** How a cut may end that lost its leaders. */
const LOST = ["RetryableLeadershipLoss", "ExactCheckpointUnavailable"];

t.test("P-132 P-135 P-140 whoever dies at whatever step, it is whole or nothing", async (t) => {
  t.comment(parts.text);
  mkdirSync(backups, { mode: 0o700 });
  const preload = new URL("slow-archive.js", import.meta.url).href;
  const nodes = await PlacedNodes.start(4, 0, FLAGS, preload);
  t.teardown(() => nodes.end());
  const load = await Load.start(nodes, 4, 71);
  const value = Buffer.alloc(VALUE_BYTES, 7).toString("base64");
  for (let at = 0; at < VALUES; at++) {
    await nodes.call(1 + (at % 4), "/v1/kv/try-set", { key: `ballast-${at}/x`, value });
  }
  const steps = new TakingSteps(nodes, load, backups, (text) => t.comment(text));
  await steps.prepare();
  let seen = 0;
  for (const cell of cells) {
    const beganMs = performance.now();
    const { isSeen, ended } = await steps.play(cell);
    const what = `${takingText(cell)}: ${JSON.stringify(ended)}`;
    if (isSeen) seen++;
    else t.comment(`not seen in time: ${takingText(cell)}`);
    if (ended === null) t.ok(isSeen && diesWithCaller(cell), what);
    else if ("outcome" in ended) {
      t.ok(cell.kind === "coordinated" && LOST.includes(ended.outcome), what);
    } else t.pass(what);
    t.ok((await steps.verify()) > 0, "whatever has a manifest is whole");
    t.same(await load.look(), [], takingText(cell));
    t.comment(`${Math.round(performance.now() - beganMs)} ms`);
  }
  t.ok(seen >= cells.length * SEEN_LEAST, `${seen} of ${cells.length} steps were seen`);
  await steps.rest();
  t.same(await steps.collected(), [], "nothing stays of what dead keepers began");
  t.same(await load.judge(), []);
});

/** The caller of a keeper that dies hears nothing. */
function diesWithCaller({ kind, victim }: (typeof cells)[number]): boolean {
  return victim === "keeper" || (kind === "coordinated" && victim === "leader of meta");
}
