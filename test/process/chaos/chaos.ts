/**
 * A chaos run: real nodes, clients that record what they see, faults one after the other, a quiet end in which everything
 * is read once more, and the verdict of each checker. `npm run chaos -- --minutes M --seed S [--nodes N] [--factor F]`.
 *
 * Invariants: 1. Only processes of this run are touched. 2. The run is green only when every checker passes: too little
 * seen, or undecided, is not green (P-166, P-167).
 */
import { createWriteStream, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Prng } from "../../../src/base/prng.js";
import { sleep } from "../cluster/server-process.js";
import { HISTORY_CHECKS, checkHistory, withDrift } from "../../judge/checkers/history-checks.js";
import { Findings, type Verdict, allPass, verdictText } from "../../judge/checkers/verdict.js";
import { type History, HistoryRecorder, attemptLine } from "../../judge/history.js";
import { ChaosFaults, type FaultKind } from "./faults.js";
import { BLOCK_SIZE, ChaosNodes, WIPED_WORDS } from "./nodes.js";
import { ChaosWorkload } from "./workload.js";

/** Share of the objects whose history may need more than the budget of the search. */
const OPEN_SHARE = 0.05;

export interface ChaosOptions {
  readonly seed: number;
  readonly nodes: number;
  /** Replicas of each partition; 0 = every node has all. */
  readonly factor?: number;
  readonly durationMs: number;
  /** Exactly these, one after the other; else what is drawn until the time is over. */
  readonly kinds?: readonly FaultKind[];
  readonly clients: number;
  readonly say: (text: string) => void;
}

export interface ChaosReport {
  readonly verdicts: readonly Verdict[];
  readonly history: History;
  readonly passed: boolean;
  /** Operations, faults, unknowns and verdicts as text. */
  readonly text: string;
}

/** Rate by which one clock of one machine may differ from itself between processes. */
const DRIFT = 0.001;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, say } = options;
  const prng = new Prng(seed);
  const nodes = await ChaosNodes.start(options.nodes, options.factor);
  say(`${options.nodes} nodes are ready, seed ${seed}`);
  try {
    const history = new HistoryRecorder(2_000_000);
    const workload = new ChaosWorkload(nodes, history, prng.fork("workload"));
    const faults = new ChaosFaults(nodes, prng.fork("faults"), say);
    const termsBefore = await nodes.terms();
    const deadline = performance.now() + options.durationMs;
    const clients = workload.run(options.clients);
    const pace = prng.fork("pace");
    const stuck = await disturb(faults, options.kinds ?? null, deadline, pace);
    const termsAfter = await nodes.terms();
    const losesDisk = options.nodes > 1 && stuck === null;
    const wiped = losesDisk ? [await loseDisk(nodes, 1 + pace.below(nodes.count), say)] : [];
    workload.stop();
    await clients;
    const unserved = await workload.sweep();
    workload.close();
    const recorded = history.history(performance.now());
    const verdicts = [
      ...judge(recorded),
      workload.store.verdict(),
      effects(options, faults, nodes, termsAfter - termsBefore),
      served(unserved, stuck),
      ...wiped,
    ];
    return report(options, nodes, workload, faults, verdicts, recorded);
  } finally {
    await nodes.end();
  }
}

/** All checkers over the history of real clients. */
function judge(history: History): Verdict[] {
  const base = withDrift(DRIFT, HISTORY_CHECKS);
  const { linearizability } = base;
  const sequence = { ...linearizability.sequence, defaultBlockSize: BLOCK_SIZE };
  // Many answers are lost in these runs, and a search costs little beside the run itself.
  const budget = { stepsMax: 3_000_000, memoryMax: 1_500_000 };
  const judged = { ...linearizability, sequence, budget };
  return checkHistory(history, { ...base, linearizability: judged });
}

/** Faults until the deadline. Says what went wrong when the nodes did not come back after one; null when they did. */
async function disturb(
  faults: ChaosFaults,
  kinds: readonly FaultKind[] | null,
  deadlineMs: number,
  pace: Prng,
): Promise<string | null> {
  try {
    await sleep(1000);
    for (const kind of kinds ?? []) await faults.inject(kind);
    while (kinds === null && performance.now() < deadlineMs) {
      await faults.inject();
      await sleep(500 + pace.below(2000));
    }
    await sleep(1000);
    return null;
  } catch (error) {
    return String(error);
  }
}

/** A node whose disk was lost is not let back under its old identity, while the others go on serving. */
async function loseDisk(
  nodes: ChaosNodes,
  node: number,
  say: (text: string) => void,
): Promise<Verdict> {
  const findings = new Findings("a wiped node is not let back", { wiped: 1 });
  say(`wiped disk, node ${node}`);
  const words = await nodes.wipe(node);
  findings.count("wiped");
  if (words === null) findings.violation(`node ${node} runs under its old identity without data`);
  else if (!WIPED_WORDS.test(words)) {
    findings.violation(`node ${node} waits without saying why: ${words.slice(-300)}`);
  }
  return findings.verdict();
}

/** After the faults everything is served, even without the node whose disk was lost. */
function served(unserved: number, stuck: string | null): Verdict {
  const findings = new Findings("everything is served in the end", { sweeps: 1 });
  findings.count("sweeps");
  if (stuck !== null) findings.violation(`after a fault: ${stuck}`);
  if (unserved > 0) findings.violation(`${unserved} objects could not be read`);
  return findings.verdict();
}

/** P-167: the faults must have had an effect that can be seen. */
function effects(
  { kinds }: ChaosOptions,
  faults: ChaosFaults,
  nodes: ChaosNodes,
  termsRisen: number,
): Verdict {
  const least = nodes.count > 1 ? 1 : 0;
  const wanted = Object.fromEntries((kinds ?? []).map((kind) => [kind, 1]));
  const minimum = {
    ...{ faults: kinds?.length ?? 3, "terms risen": least, "links known": least },
    ...wanted,
  };
  const findings = new Findings("faults had effects", minimum);
  for (const [kind, count] of faults.injected) {
    findings.count("faults", count);
    findings.count(kind, count);
  }
  findings.count("terms risen", Math.max(0, termsRisen));
  findings.count("links known", nodes.network.known);
  return findings.verdict();
}

function report(
  options: ChaosOptions,
  nodes: ChaosNodes,
  workload: ChaosWorkload,
  faults: ChaosFaults,
  verdicts: readonly Verdict[],
  history: History,
): ChaosReport {
  const counts = (map: ReadonlyMap<string, number>): string =>
    [...map].map(([name, count]) => `${name} ${count}`).join(", ") || "none";
  const { ok, refused, unknown } = workload.outcomes;
  const passed = allPass(verdicts, OPEN_SHARE);
  const lines = [
    `seed ${options.seed}, ${options.nodes} nodes, factor ${nodes.factor}, ${options.clients} clients`,
    `operations ${history.attempts.length}: ok ${ok}, refused ${refused}, unknown ${unknown}`,
    `unknown because: ${counts(workload.unknownReasons)}`,
    `faults: ${counts(faults.injected)}`,
    `not available here: ${counts(faults.unavailable)}`,
    `links: ${nodes.network.known} between known nodes, ${nodes.network.strangers} of unknown diallers`,
    ...nodes.lastWords,
    ...verdicts.map(verdictText),
    passed ? "PASSED" : "NOT PASSED",
  ];
  return { verdicts, history, passed, text: lines.join("\n") };
}

function numberOf(argv: readonly string[], name: string, otherwise: number): number {
  const at = argv.indexOf(name);
  if (at < 0) return otherwise;
  const value = Number(argv[at + 1]);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`${name} needs a number above 0`);
  return value;
}

/** Returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const began = performance.now();
  const say = (text: string): void => {
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    process.stdout.write(`${seconds.padStart(7)} s  ${text}\n`);
  };
  const outcome = await runChaos({
    seed: numberOf(argv, "--seed", 1),
    nodes: numberOf(argv, "--nodes", 3),
    factor: argv.includes("--factor") ? numberOf(argv, "--factor", 3) : 0,
    durationMs: numberOf(argv, "--minutes", 1) * 60_000,
    clients: numberOf(argv, "--clients", 24),
    say,
  });
  process.stdout.write(`${outcome.text}\n`);
  if (!outcome.passed) {
    const path = join(mkdtempSync(join(tmpdir(), "svc-chaos-")), "history.jsonl");
    const file = createWriteStream(path);
    for (const attempt of outcome.history.attempts) file.write(`${attemptLine(attempt)}\n`);
    await new Promise((resolve) => file.end(resolve));
    process.stdout.write(`the history is in ${path}\n`);
  }
  return outcome.passed ? 0 : 1;
}
