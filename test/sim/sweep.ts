/**
 * Many seeds on both cores: child processes take seeds in turn, the parent counts, prints a line of
 * progress, and ends with a summary.
 *
 * Invariants: 1. Which child ran a seed changes nothing of its result. 2. Every tenth seed runs
 * twice: another trace hash the second time fails the sweep. 3. A checker that saw too little over
 * the whole sweep fails it.
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { judge } from "./judge.js";
import { type PlanOverrides, planOf } from "./plan.js";
import { replayCommand } from "./report.js";

export interface SweepOptions {
  readonly firstSeed: number;
  readonly seeds: number;
  readonly profile: string;
  readonly overrides: PlanOverrides;
  readonly workers: number;
}

/** What a child tells of one seed. */
export interface SeedReport {
  readonly seed: number;
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

export function runSeed(seed: number, profile: string, overrides: PlanOverrides): SeedReport {
  const plan = planOf(seed, profile, overrides);
  const startedMs = usedMs();
  const judged = judge(plan);
  const tookMs = usedMs() - startedMs;
  const { result } = judged;
  const violations = [...judged.violations];
  if (seed % TWICE_EVERY === 0) {
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

function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export interface SweepResult {
  readonly failed: readonly SeedReport[];
  readonly seeds: number;
  readonly simulatedMs: number;
  readonly events: number;
  /** Processor time of the run alone (ms). */
  readonly runMs: number;
  /** Processor time with the checkers (ms). */
  readonly usedMs: number;
  readonly numbers: ReadonlyMap<string, number>;
  readonly evidence: ReadonlyMap<string, number>;
  readonly undecided: number;
  /** Evidence that all seeds together have too little of. */
  readonly vacuous: readonly string[];
}

/** In the child: seeds come as messages, reports go back. */
export function serveSeeds(profile: string, overrides: PlanOverrides): void {
  process.on("message", (seed: number) => {
    if (seed < 0) process.exit(0);
    process.send?.(runSeed(seed, profile, overrides));
  });
  process.send?.(null);
}

/** `progress` is called with every report. */
export function sweep(
  options: SweepOptions,
  workerArguments: readonly string[],
  progress: (report: SeedReport, done: number) => void,
): Promise<SweepResult> {
  const { firstSeed, seeds, workers } = options;
  const numbers = new Map<string, number>();
  const evidence = new Map<string, number>();
  const minimum: Record<string, number> = {};
  const failed: SeedReport[] = [];
  let next = firstSeed;
  let done = 0;
  let simulatedMs = 0;
  let events = 0;
  let undecided = 0;
  let runMs = 0;
  let allMs = 0;
  const take = (report: SeedReport): void => {
    done++;
    simulatedMs += report.simulatedMs;
    events += report.events;
    undecided += report.undecided.length;
    runMs += report.runMs;
    allMs += report.usedMs;
    add(numbers, report.numbers);
    add(evidence, report.evidence);
    Object.assign(minimum, report.minimum);
    if (report.violations.length > 0) failed.push(report);
    progress(report, done);
  };
  const path = fileURLToPath(new URL("./worker.js", import.meta.url));
  return new Promise((resolve, reject) => {
    let open = workers;
    for (let number = 0; number < workers; number++) {
      const child = fork(path, [...workerArguments], {
        stdio: ["ignore", "inherit", "inherit", "ipc"],
      });
      let running = -1;
      child.on("message", (report: SeedReport | null) => {
        if (report !== null) take(report);
        running = next < firstSeed + seeds ? next++ : -1;
        child.send(running);
      });
      child.on("error", reject);
      child.on("exit", (code) => {
        if (code !== 0) reject(new Error(`seed ${running} ended its process with code ${code}`));
        else if (--open === 0) {
          resolve({
            failed,
            seeds: done,
            simulatedMs,
            events,
            runMs,
            usedMs: allMs,
            numbers,
            evidence,
            undecided,
            vacuous: Object.keys(minimum).filter(
              (name) => (evidence.get(name) ?? 0) < (minimum[name] ?? 0),
            ),
          });
        }
      });
    }
  });
}

function add(into: Map<string, number>, from: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(from)) into.set(name, (into.get(name) ?? 0) + count);
}
