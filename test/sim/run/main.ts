/**
 * `npm run sim`: runs one seed and tells what it saw, or sweeps many. See README.md beside this.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { growthHead } from "./growthtable.js";
import { type Judged, judge } from "./judge.js";
import { type GrowthSize, sizeText, type Options, USAGE, parseOptions } from "../plan/options.js";
import { planOf } from "../plan/plan.js";
import { record, totals } from "./record.js";
import { TIMELINE_LINES, replayCommand, summary, writeTimeline } from "./report.js";
import { profileOf } from "./seedrun.js";
import { shrink } from "./shrink.js";
import { type SweepResult, sweep } from "./sweep.js";

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function nowMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/** Processor time of this process (ms): what a busy machine does not blur. */
function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function explain(judged: Judged, options: Options): void {
  const drawn = planOf(options.seed, profileOf(options.seed, options.profile));
  print(`replay: ${replayCommand(judged.result.plan, drawn)}`);
  if (!options.shrinks) return;
  const small = shrink(judged.result, (plan) => judge(plan), judged.violations);
  const replay = replayCommand(small.plan, drawn);
  print(`smaller after ${small.runs} runs: ${replay}`);
  const told = judge(small.plan, { linesMax: TIMELINE_LINES });
  print(`timeline: ${writeTimeline(told, replay)}`);
  for (const line of told.result.words.slice(-15)) print(line.slice(0, 200));
}

function runOne(options: Options): number {
  const profile = profileOf(options.seed, options.profile);
  const plan = planOf(options.seed, profile, options.overrides);
  const startedMs = usedMs();
  const judged = judge(plan, { linesMax: options.words ? Infinity : 0 });
  const tookMs = usedMs() - startedMs;
  for (const line of judged.result.words) print(line);
  for (const line of summary(judged, tookMs)) print(line);
  if (judged.violations.length === 0) return 0;
  explain(judged, options);
  return 1;
}

function printSweep(result: SweepResult, tookMs: number): void {
  const names = [...result.numbers.keys()].sort();
  for (const name of names) print(`  ${name.padEnd(32)} ${result.numbers.get(name) ?? 0}`);
  for (const [name, count] of [...result.evidence].sort()) {
    print(`  saw ${name.padEnd(28)} ${count}`);
  }
  const days = result.simulatedMs / 86_400_000;
  const speed = Math.round(result.simulatedMs / result.runMs);
  const rate = Math.round((result.events / result.runMs) * 1000);
  print(`${result.seeds} seeds, ${days.toFixed(3)} simulated days, ${result.events} events`);
  const seconds = (result.usedMs / 1000).toFixed(1);
  print(`${(tookMs / 1000).toFixed(1)} s, ${seconds} s of processor time with all checkers`);
  print(`runs alone, one core: ${speed} times real time, ${rate} events/s`);
  for (const name of result.vacuous) print(`SAW TOO LITTLE over all seeds: ${name}`);
  print(`${result.undecided} undecided, ${result.failed.length} seeds with violations`);
}

async function runMany(options: Options, seeds: number, args: readonly string[]): Promise<number> {
  const startedMs = nowMs();
  const { seed: firstSeed, profile, overrides, workers } = options;
  let lastMs = startedMs;
  let failures = 0;
  let isOver = false;
  // The first interrupt ends the sweep with a summary of what it has, the second one at once.
  process.once("SIGINT", () => (isOver = true));
  process.once("SIGTERM", () => (isOver = true));
  const result = await sweep(
    { firstSeed, seeds, profile, overrides, workers, isOver: () => isOver },
    args,
    (report, done) => {
      for (const violation of report.violations) {
        failures++;
        print(`seed ${report.seed}: VIOLATION: ${violation.split("\n").slice(0, 4).join(" | ")}`);
        print(`  replay: ${report.replay}`);
      }
      if (nowMs() - lastMs < 5000) return;
      lastMs = nowMs();
      print(
        `${done}/${seeds} seeds, ${failures} violation(s), ${Math.round((lastMs - startedMs) / 1000)} s`,
      );
    },
  );
  printSweep(result, nowMs() - startedMs);
  if (options.record !== null) record(options.record, profile, firstSeed, result);
  return result.failed.length > 0 || result.vacuous.length > 0 ? 1 : 0;
}

/** Where cost goes when a cluster grows; see README.md. */
function grow(sizes: readonly GrowthSize[], seed: number): number {
  for (const line of growthHead()) print(line);
  // Each size in a process of its own: what the one before left in memory is not measured.
  const script = fileURLToPath(new URL("./growthchild.js", import.meta.url));
  for (const size of sizes) {
    const child = spawnSync(process.execPath, [script, `${seed}`, sizeText(size)]);
    print(child.status === 0 ? child.stdout.toString().trimEnd() : child.stderr.toString());
    if (child.status !== 0) return 1;
  }
  return 0;
}

/** Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = parseOptions(args);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (text === "") {
      print(USAGE);
      return 0;
    }
    process.stderr.write(`${text}\n${USAGE}\n`);
    return 2;
  }
  if (options.totals !== null) {
    for (const line of totals(options.totals)) print(line);
    return 0;
  }
  if (options.growth !== null) return grow(options.growth, options.seed);
  return options.seeds === null ? runOne(options) : runMany(options, options.seeds, args);
}
