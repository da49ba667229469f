/**
 * The process that runs seeds in a tree with a planted bug: it is started there, so that everything
 * that it imports is the changed code. See `plant.ts`.
 */
import { judge } from "../run/judge.js";
import { planOf } from "../plan/plan.js";
import type { SeedOrder, SeedVerdict } from "./plant.js";

function verdictOf({ seed, profile, overrides }: SeedOrder): SeedVerdict {
  const before = process.cpuUsage();
  const judged = judge(planOf(seed, profile, overrides));
  const { user, system } = process.cpuUsage(before);
  const { violations, result } = judged;
  return { violations, usedMs: (user + system) / 1000, simulatedMs: result.simulatedMs };
}

process.on("message", (order: SeedOrder) => {
  process.send?.(verdictOf(order));
});
process.on("disconnect", () => process.exit(0));
