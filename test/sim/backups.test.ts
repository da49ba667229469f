/**
 * Backups, restores and the clusters that come of them, in a few short seeds: what every change has to
 * pass; `npm run sim -- --profile backup` runs more of them.
 */
import t from "tap";
import { sweep } from "./run/sweep.js";

const SEEDS = 8;
const TICKS = 9000;
/** What so many seeds show at least. */
const SEEN = {
  "what backups went through: coordinated cuts": 10,
  "what backups went through: increments": 5,
  "what backups went through: restores": 10,
  "what backups went through: second restores": 1,
  "what backups went through: forced clusters": 1,
  "restored clusters go on from their state: operations": 500,
};

t.setTimeout(300_000);

await t.test(
  "P-132 P-134 P-137 P-140 L14 S6 backups are what there was, and so is what they bring back",
  async (t) => {
    const options = { firstSeed: 1, seeds: SEEDS, profile: "backup", workers: 1 };
    const failures: string[] = [];
    const args = ["--profile", "backup", "--ticks", String(TICKS)];
    const result = await sweep({ ...options, overrides: { ticks: TICKS } }, args, (report) => {
      for (const violation of report.violations) failures.push(`${report.replay}: ${violation}`);
    });
    t.same(failures, []);
    t.equal(result.seeds, SEEDS);
    for (const [name, least] of Object.entries(SEEN)) {
      const count = result.evidence.get(name) ?? 0;
      t.ok(count >= least, `${name}: ${count}, at least ${least}`);
    }
  },
);
