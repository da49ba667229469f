/**
 * Runs a plan with everything that judges it: the checkers of nodes while it runs, those of the
 * history after it.
 *
 * Invariants: 1. A checker that saw too little says so; whether that fails a run is decided over
 * many seeds, never over one.
 */
import type { Plan } from "./plan.js";
import { type RunOptions, type RunResult, runPlan } from "./run.js";

export interface Judged {
  readonly result: RunResult;
  /** Of the run and of all checkers. */
  readonly violations: readonly string[];
  /** Name of each checker with how much it saw. */
  readonly evidence: Readonly<Record<string, number>>;
  /** Checkers that saw too little in this run, or could not decide. */
  readonly vacuous: readonly string[];
  readonly undecided: readonly string[];
}

export function judge(plan: Plan, options: RunOptions = {}): Judged {
  const result = runPlan(plan, options);
  return { result, violations: result.violations, evidence: {}, vacuous: [], undecided: [] };
}
