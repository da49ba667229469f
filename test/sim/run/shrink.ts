/**
 * Makes a failing run smaller: shorter, fewer clients, fewer faults, as long as it fails in the same
 * way.
 *
 * Pure but for the runs. Invariants: 1. The result fails like the original. 2. The number of runs
 * is bounded.
 */
import type { Plan } from "../plan/plan.js";
import { type RunResult, runPlan } from "./run.js";

const RUNS_MAX = 60;

/** What makes two failures the same: the first line without its numbers. */
export function kindOfFailure(violation: string): string {
  const line = violation.split("\n")[0] as string;
  return line
    .replace(/[0-9a-f]{16}/g, "#")
    .replace(/\d+/g, "#")
    .slice(0, 70);
}

export interface Shrunk {
  readonly plan: Plan;
  readonly result: RunResult;
  readonly runs: number;
}

/** `check`: all violations of a run, those of the checkers included. */
export function shrink(
  failed: RunResult,
  check: (plan: Plan) => { result: RunResult; violations: readonly string[] } = (plan) => {
    const result = runPlan(plan);
    return { result, violations: result.violations };
  },
  failedWith: readonly string[] = failed.violations,
): Shrunk {
  const kind = kindOfFailure(failedWith[0] ?? "");
  let best = failed.plan;
  let result = failed;
  let runs = 0;
  const attempt = (change: Partial<Plan>): boolean => {
    if (runs >= RUNS_MAX) return false;
    runs++;
    const plan = { ...best, ...change };
    const tried = check(plan);
    if (!tried.violations.some((violation) => kindOfFailure(violation) === kind)) return false;
    best = plan;
    result = tried.result;
    return true;
  };
  const end = Math.ceil(failed.simulatedMs);
  if (end < best.ticks) attempt({ ticks: end });
  for (let part = 2; part <= 8; part *= 2) attempt({ ticks: Math.ceil(best.ticks / 2) });
  while (best.clients > 1 && attempt({ clients: Math.floor(best.clients / 2) }));
  while (best.clients > 1 && attempt({ clients: best.clients - 1 }));
  dropFaults(
    () => best,
    () => result,
    attempt,
  );
  return { plan: best, result, runs };
}

/** Leaves out halves, quarters and so on of the faults, then single ones. */
function dropFaults(
  plan: () => Plan,
  result: () => RunResult,
  attempt: (change: Partial<Plan>) => boolean,
): void {
  const left = (): number[] => {
    const all: number[] = [];
    for (let number = 1; number <= result().faultsDrawn; number++) {
      if (!plan().without.includes(number)) all.push(number);
    }
    return all;
  };
  for (let parts = 1; ; parts *= 2) {
    const numbers = left();
    if (numbers.length === 0 || parts > 2 * numbers.length) return;
    const size = Math.max(1, Math.ceil(numbers.length / parts));
    for (let at = 0; at < numbers.length; at += size) {
      attempt({ without: [...plan().without, ...numbers.slice(at, at + size)] });
    }
    if (size === 1) return;
  }
}
