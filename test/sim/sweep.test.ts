/**
 * What every change has to pass: a hundred seeds of all profiles, shorter than in a long sweep,
 * and the seeds that once failed. Children run them, as in `npm run sim -- --seeds`.
 */
import { fileURLToPath } from "node:url";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fork } from "node:child_process";
import t from "tap";
import { judge } from "./run/judge.js";
import { planOf } from "./plan/plan.js";
import { record, totals } from "./run/record.js";
import { REGRESSIONS } from "./run/regressions.js";
import { lostSeed, profileOf, runSeed } from "./run/seedrun.js";
import { sweep } from "./run/sweep.js";

const PROFILES = "one,three,five,members";
const SEEDS = 100;
const TICKS = 12_000;

await t.test("P-173 P-175 a hundred seeds of all profiles", async (t) => {
  const options = { firstSeed: 1, seeds: SEEDS, profile: PROFILES, workers: 1 };
  const failures: string[] = [];
  const args = ["--profile", PROFILES, "--ticks", String(TICKS)];
  const result = await sweep({ ...options, overrides: { ticks: TICKS } }, args, (report) => {
    for (const violation of report.violations) failures.push(`${report.replay}: ${violation}`);
  });
  t.same(failures, []);
  t.equal(result.seeds, SEEDS);
  t.same(result.vacuous, [], "every checker saw enough");
  const faults = [...result.numbers.keys()].filter((name) => name.startsWith("fault "));
  t.ok(faults.length >= 30, `kinds of faults that were seen: ${faults.length}`);
  t.ok((result.numbers.get("calls ok") ?? 0) > 10_000, "enough was answered");
  const folder = mkdtempSync(join(tmpdir(), "svc-sim-"));
  const path = join(folder, "sweeps.jsonl");
  record(path, PROFILES, 1, result);
  record(path, PROFILES, 1, result);
  t.equal(readFileSync(path, "utf8").split("\n").length, 3);
  t.match(totals(path).join("\n"), /\| all \|  \| 200 \| 0 \|/);
  rmSync(folder, { recursive: true });
});

t.test("seeds that once failed", (t) => {
  for (const { seed, profile, ticks, found } of REGRESSIONS) {
    const plan = planOf(seed, profile, ticks === undefined ? {} : { ticks });
    t.same(judge(plan).violations, [], `${profile}, seed ${seed}: ${found}`);
  }
  t.end();
});

await t.test("a child that dies costs its seed, not the sweep", async (t) => {
  t.equal(profileOf(7, "one,three,five"), "three");
  t.equal(runSeed(7, "calm,calm", { ticks: 500 }).profile, "calm");
  const lost = lostSeed(7, "one,three", "its process ended with SIGKILL");
  t.equal(lost.replay, "npm run sim -- --seed 7 --profile three");
  t.same(lost.violations, ["its process ended with SIGKILL"]);
  // A worker that is told of no seed ends by itself.
  const path = fileURLToPath(new URL("./run/worker.js", import.meta.url));
  const child = fork(path, ["--profile", "calm"], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const code = await new Promise((resolve) => {
    child.once("message", () => child.send(-1));
    child.once("exit", resolve);
  });
  t.equal(code, 0);
});
