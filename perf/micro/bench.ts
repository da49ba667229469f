/**
 * The harness of the micro benchmarks: runs rivals that do the same work in turns and prints a
 * table.
 *
 * Owns nothing. May call the clock and print.
 *
 * A benchmark file exports `comparisons(tiny)` and calls `runAsProgram` at its end. The test suite
 * calls the same function with tiny inputs and `proof`, so that a benchmark that stopped working,
 * or whose rivals no longer do the same work, fails a test.
 *
 * Invariants: 1. Rivals of one comparison return the same number, or the run stops. 2. Rounds are
 * interleaved: every rival runs once in each round, in rotating order. 3. The figure is the median
 * over rounds.
 */
import { createHash } from "node:crypto";
import { cpus } from "node:os";
import { pathToFileURL } from "node:url";

/** One way of doing the work of a comparison. */
export interface Rival {
  readonly name: string;
  /** Does the whole work once. Returns a number that depends on all of its results. */
  readonly run: () => number;
}

export interface Comparison {
  readonly name: string;
  /**
   * Operations that one `run` does; the table shows nanoseconds and millions per second of these.
   */
  readonly operations: number;
  /** Bytes that one `run` works on, when throughput in bytes means something. */
  readonly bytes?: number;
  /** The first one is the base of the ratios. */
  readonly rivals: readonly Rival[];
}

export interface Figure {
  readonly name: string;
  readonly rival: string;
  /** Median over rounds. */
  readonly nanosecondsEach: number;
  readonly megabytesPerSecond: number | undefined;
  /** How many times as fast as the first rival. */
  readonly ratio: number;
}

export interface BenchOptions {
  readonly rounds: number;
  /** Aim for the time of one rival in one round. */
  readonly roundMs: number;
}

const usual: BenchOptions = { rounds: 7, roundMs: 30 };

function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

/** Runs every rival once and returns a hash over all results. Throws when rivals disagree. */
export function proof(comparisons: readonly Comparison[]): string {
  const hash = createHash("sha256");
  for (const { name, rivals } of comparisons) {
    const results = rivals.map((rival) => rival.run());
    for (const [at, result] of results.entries()) {
      if (result !== results[0]) {
        throw new Error(`${name}: ${String(rivals[at]?.name)} does other work than its rivals`);
      }
    }
    hash.update(`${name}=${String(results[0])};`);
  }
  return hash.digest("hex").slice(0, 16);
}

function timeOnce(rival: Rival, times: number): number {
  const begin = process.hrtime.bigint();
  for (let time = 0; time < times; time++) rival.run();
  return Number(process.hrtime.bigint() - begin);
}

function timesFor(rival: Rival, roundMs: number): number {
  let times = 1;
  for (;;) {
    const spent = timeOnce(rival, times);
    if (spent > roundMs * 250_000 || times > 1 << 24) {
      return Math.max(1, Math.round((times * roundMs * 1_000_000) / Math.max(spent, 1)));
    }
    times *= 2;
  }
}

/** Measures one comparison. */
export function measure(comparison: Comparison, options: BenchOptions = usual): Figure[] {
  const { rivals, operations, bytes } = comparison;
  const times = rivals.map((rival) => timesFor(rival, options.roundMs));
  const samples: number[][] = rivals.map(() => []);
  for (let round = 0; round < options.rounds; round++) {
    for (let turn = 0; turn < rivals.length; turn++) {
      const at = (turn + round) % rivals.length;
      const spent = timeOnce(rivals[at] as Rival, times[at] as number);
      samples[at]?.push(spent / (times[at] as number));
    }
  }
  const base = median(samples[0] as number[]);
  return rivals.map((rival, at) => {
    const nanoseconds = median(samples[at] as number[]);
    return {
      name: comparison.name,
      rival: rival.name,
      nanosecondsEach: nanoseconds / operations,
      megabytesPerSecond: bytes === undefined ? undefined : (bytes * 1000) / nanoseconds,
      ratio: base / nanoseconds,
    };
  });
}

function cell(text: string, width: number): string {
  return text.padStart(width);
}

function line(figure: Figure, nameWidth: number): string {
  const rate = figure.megabytesPerSecond;
  return [
    `| ${figure.name.padEnd(nameWidth)}`,
    figure.rival.padEnd(10),
    cell(figure.nanosecondsEach.toFixed(1), 10),
    cell((1000 / figure.nanosecondsEach).toFixed(3), 10),
    cell(rate === undefined ? "" : rate.toFixed(0), 8),
    `${cell(figure.ratio.toFixed(2), 6)} |`,
  ].join(" | ");
}

/** Measures all and prints one Markdown table. */
export function printTable(title: string, comparisons: readonly Comparison[]): void {
  const model = cpus()[0]?.model ?? "unknown processor";
  const width = Math.max(...comparisons.map(({ name }) => name.length));
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  print(`\n### ${title}\n`);
  print(`${model}, ${String(cpus().length)} cores, Node ${process.version}\n`);
  print(`| ${"work".padEnd(width)} | rival      |      ns/op |  million/s |     MB/s |  ratio |`);
  print(`| ${"-".repeat(width)} | ---------- | ---------: | ---------: | -------: | -----: |`);
  for (const comparison of comparisons) {
    for (const figure of measure(comparison)) print(line(figure, width));
  }
  print(`\nresult hash ${proof(comparisons)}`);
}

/**
 * To be called at the end of a benchmark file: measures when that file is the program that was
 * started, with tiny inputs and without measuring when `--tiny` is given.
 */
export function runAsProgram(
  url: string,
  title: string,
  comparisons: (tiny: boolean) => Comparison[],
): void {
  const started = process.argv[1];
  if (started === undefined || pathToFileURL(started).href !== url) return;
  if (process.argv.includes("--tiny")) {
    process.stdout.write(`${title}: result hash ${proof(comparisons(true))}\n`);
    return;
  }
  printTable(title, comparisons(false));
}
