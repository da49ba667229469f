/**
 * One seed of a sweep: runs it, and says what it showed in numbers that add up.
 *
 * Invariants: 1. The report of a seed is a function of seed, profile and overrides, but for the
 * processor times. 2. Every tenth seed runs twice: another trace hash the second time is a
 * violation.
 */
import { judge } from "./judge.js";
import { type PlanOverrides, planOf } from "../plan/plan.js";
import { replayCommand } from "./report.js";

/** What a seed showed. */
export interface SeedReport {
  readonly seed: number;
  readonly profile: string;
  readonly violations: readonly string[];
  readonly undecided: readonly string[];
  readonly replay: string;
  readonly simulatedMs: number;
  readonly events: number;
  /** Processor time of the run alone (ms). */
  readonly runMs: number;
  /** Processor time with the checkers (ms). */
  readonly usedMs: number;
  readonly numbers: Readonly<Record<string, number>>;
  readonly evidence: Readonly<Record<string, number>>;
  readonly minimum: Readonly<Record<string, number>>;
}

/** Every so many seeds one is run twice. */
const TWICE_EVERY = 10;

/** The profile that `seed` runs with, of those that take turns. */
export function profileOf(seed: number, profiles: string): string {
  const list = profiles.split(",");
  return list[seed % list.length] as string;
}

/** `profiles`: one, or several that take turns. */
export function runSeed(seed: number, profiles: string, overrides: PlanOverrides): SeedReport {
  const profile = profileOf(seed, profiles);
  const plan = planOf(seed, profile, overrides);
  const startedMs = usedMs();
  const judged = judge(plan);
  const tookMs = usedMs() - startedMs;
  const { result } = judged;
  const violations = [...judged.violations];
  // Of the tens: the last digit would choose one profile of two or of five.
  if (Math.floor(seed / TWICE_EVERY) % TWICE_EVERY === seed % TWICE_EVERY) {
    const again = judge(plan).result.traceHash;
    if (again !== result.traceHash) {
      violations.push(`the same seed gave two traces: ${result.traceHash} and ${again}`);
    }
  }
  const numbers: Record<string, number> = { starts: result.starts, changes: result.samples };
  for (const [name, count] of Object.entries(result.clients)) numbers[`calls ${name}`] = count;
  for (const [name, count] of Object.entries(result.faults)) numbers[`fault ${name}`] = count;
  Object.assign(numbers, result.effects);
  return {
    seed,
    profile,
    violations,
    undecided: judged.undecided,
    replay: replayCommand(plan, planOf(seed, profile)),
    simulatedMs: result.simulatedMs,
    events: result.events,
    runMs: tookMs - judged.checkMs,
    usedMs: tookMs,
    numbers,
    evidence: judged.evidence,
    minimum: judged.minimum,
  };
}

/** The report of a seed whose process ended: by lack of memory, by a loop, by a bug below. */
export function lostSeed(seed: number, profiles: string, why: string): SeedReport {
  const profile = profileOf(seed, profiles);
  return {
    seed,
    profile,
    violations: [why],
    undecided: [],
    replay: `npm run sim -- --seed ${seed} --profile ${profile}`,
    simulatedMs: 0,
    events: 0,
    runMs: 0,
    usedMs: 0,
    numbers: {},
    evidence: {},
    minimum: {},
  };
}

function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
