/**
 * Worlds of three nodes under all faults, in which an administrator ends grants by force: nothing
 * newer than what he names, and every release told by one row. `SVC_FORCING_SEEDS=FIRST-LAST` runs
 * others.
 */
import t from "tap";
import { checkAuditExact } from "../judge/checkers/locks/audit-exact.js";
import { checkForceCompares } from "../judge/checkers/locks/force-compares.js";
import { verdictText } from "../judge/checkers/verdict.js";
import { LockAdmin } from "./forcing/lock-admin.js";
import { planOf } from "./plan/plan.js";
import { runPlan } from "./run/run.js";

const TICKS = 20_000;

t.setTimeout(3_600_000);

const [first = 1, last = 2] = (process.env["SVC_FORCING_SEEDS"] ?? "")
  .split("-")
  .flatMap((text) => {
    return text === "" ? [] : [Number(text)];
  });

t.test("F3 F5 P-069 forced releases compare, and the audit is exact", (t) => {
  const seen: Record<string, number> = {};
  for (let seed = first; seed <= last; seed++) {
    const plan = planOf(seed, "three", { ticks: TICKS, clients: 1 });
    let admin: LockAdmin | null = null;
    const { violations } = runPlan(plan, {
      prepare: (world, servers) => {
        admin = new LockAdmin(world, servers, plan.ticks);
        admin.start();
      },
    });
    const { events, rows } = admin as unknown as LockAdmin;
    t.same(violations, [], `seed ${seed}`);
    for (const verdict of [checkForceCompares(events, {}), checkAuditExact(events, rows, {})]) {
      t.equal(verdict.kind, "pass", `seed ${seed}: ${verdictText(verdict)}`);
      for (const [name, count] of Object.entries(verdict.seen)) {
        seen[name] = (seen[name] ?? 0) + count;
      }
    }
  }
  t.comment(JSON.stringify(seen));
  for (const name of ["releases", "refused", "changes after", "rows", "told releases"]) {
    t.ok((seen[name] ?? 0) >= 5 * (last - first + 1), `${name}: ${seen[name]}`);
  }
  t.end();
});
