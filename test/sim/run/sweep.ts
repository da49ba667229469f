/**
 * Many seeds on both cores: child processes take seeds in turn, the parent counts.
 *
 * Invariants: 1. Which child ran a seed changes nothing of its result. 2. A child that dies costs
 * its seed, which has failed then, and nothing else. 3. A checker that saw too little over the
 * whole sweep is told as vacuous, and so is what a profile expects of so many seeds.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { PlanOverrides } from "../plan/plan.js";
import { PROFILES, expectedOf } from "../plan/profiles.js";
import { type SeedReport, lostSeed, runSeed } from "./seedrun.js";

export interface SweepOptions {
  readonly firstSeed: number;
  readonly seeds: number;
  /** One profile, or several with commas that take turns. */
  readonly profile: string;
  readonly overrides: PlanOverrides;
  readonly workers: number;
  /** Once this says so, seeds that run are brought to their end and no others begin. */
  readonly isOver?: () => boolean;
}

export interface SweepResult {
  readonly failed: readonly SeedReport[];
  readonly seeds: number;
  readonly simulatedMs: number;
  readonly events: number;
  /** Processor time of the runs alone (ms). */
  readonly runMs: number;
  /** Processor time with the checkers (ms). */
  readonly usedMs: number;
  readonly numbers: ReadonlyMap<string, number>;
  readonly evidence: ReadonlyMap<string, number>;
  readonly undecided: number;
  /** Evidence that all seeds together have too little of. */
  readonly vacuous: readonly string[];
}

/** A child is replaced after so many seeds, so that nothing that it gathers adds up for hours. */
const SEEDS_PER_CHILD = 400;
/** Most of what a run allocates dies young: a larger nursery is cleaned a tenth as often. */
const CHILD_FLAGS = ["--max-semi-space-size=64"];

/** In the child: seeds come as messages, reports go back. */
export function serveSeeds(profile: string, overrides: PlanOverrides): void {
  // The parent decides when it is over; without it nobody wants the reports.
  process.on("SIGINT", () => undefined);
  process.on("disconnect", () => process.exit(0));
  process.on("message", (seed: number) => {
    if (seed < 0) process.exit(0);
    process.send?.(runSeed(seed, profile, overrides));
  });
  process.send?.(null);
}

/** Adds up what the seeds say. */
class Tally {
  readonly numbers = new Map<string, number>();
  readonly evidence = new Map<string, number>();
  private readonly minimum: Record<string, number> = {};
  private readonly failed: SeedReport[] = [];
  private readonly seedsOf = new Map<string, number>();
  seeds = 0;
  private simulatedMs = 0;
  private events = 0;
  private undecided = 0;
  private runMs = 0;
  private usedMs = 0;

  take(report: SeedReport): void {
    this.seeds++;
    add(this.seedsOf, { [report.profile]: 1 });
    this.simulatedMs += report.simulatedMs;
    this.events += report.events;
    this.undecided += report.undecided.length;
    this.runMs += report.runMs;
    this.usedMs += report.usedMs;
    add(this.numbers, report.numbers);
    add(this.evidence, report.evidence);
    Object.assign(this.minimum, report.minimum);
    if (report.violations.length > 0) this.failed.push(report);
  }

  /** What the profiles that ran are expected to show. */
  private expected(): Record<string, number> {
    const expected = new Map<string, number>();
    for (const [name, seeds] of this.seedsOf) {
      const profile = PROFILES[name];
      if (profile !== undefined) add(expected, expectedOf(profile, seeds));
    }
    return Object.fromEntries(expected);
  }

  result(): SweepResult {
    const { failed, seeds, simulatedMs, events, runMs, usedMs, undecided } = this;
    const { numbers, evidence } = this;
    const minimum = { ...this.minimum, ...this.expected() };
    const vacuous = Object.keys(minimum).filter(
      (name) => (evidence.get(name) ?? 0) < (minimum[name] ?? 0),
    );
    const times = { simulatedMs, events, runMs, usedMs };
    return { failed, seeds, ...times, numbers, evidence, undecided, vacuous };
  }
}

/** `progress` is called with every report. */
export function sweep(
  options: SweepOptions,
  workerArguments: readonly string[],
  progress: (report: SeedReport, done: number) => void,
): Promise<SweepResult> {
  const { firstSeed, seeds, profile } = options;
  const tally = new Tally();
  const path = fileURLToPath(new URL("./worker.js", import.meta.url));
  let next = firstSeed;
  const hasMore = (): boolean => next < firstSeed + seeds && options.isOver?.() !== true;
  const take = (report: SeedReport): void => {
    tally.take(report);
    progress(report, tally.seeds);
  };
  return new Promise((resolve, reject) => {
    let open = 0;
    const begin = (): void => {
      open++;
      const child: ChildProcess = fork(path, [...workerArguments], {
        stdio: ["ignore", "inherit", "inherit", "ipc"],
        execArgv: CHILD_FLAGS,
      });
      let running = -1;
      let given = 0;
      child.on("message", (report: SeedReport | null) => {
        if (report !== null) take(report);
        running = hasMore() && given < SEEDS_PER_CHILD ? next++ : -1;
        given++;
        child.send(running);
      });
      child.on("error", reject);
      child.on("exit", (code, signal) => {
        open--;
        if (running >= 0) {
          const why = `its process ended with ${signal ?? `code ${code}`}`;
          take(lostSeed(running, profile, why));
        }
        if (hasMore()) begin();
        else if (open === 0) resolve(tally.result());
      });
    };
    for (let number = 0; number < Math.min(options.workers, seeds); number++) begin();
  });
}

function add(into: Map<string, number>, from: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(from)) into.set(name, (into.get(name) ?? 0) + count);
}
