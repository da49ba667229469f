/**
 * A chaos run: real nodes, clients that record what they see, faults one after the other, a quiet end in which everything
 * is read once more, and the verdict of each checker. `npm run chaos -- --help` tells what it can be given.
 *
 * Invariants: 1. Only processes of this run are touched. 2. The run is green only when every checker passes: too little
 * seen, or undecided, is not green (P-166, P-167).
 */
import { createWriteStream, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Prng } from "../../../src/base/prng.js";
import { ElectionTally } from "../cluster/elections.js";
import { sleep } from "../cluster/server-process.js";
import { LINEARIZABILITY } from "../../judge/checkers/clients/linearizability.js";
import {
  HISTORY_CHECKS,
  type HistoryCheckOptions,
  checkHistory,
  withDrift,
} from "../../judge/checkers/history-checks.js";
import { Findings, type Verdict, allPass, verdictText } from "../../judge/checkers/verdict.js";
import { type ToldStream, checkToldStreams } from "../../judge/checkers/watches/told-streams.js";
import { type History, HistoryRecorder, attemptLine } from "../../judge/history.js";
import { BackupPlace, ChaosBackups } from "./backups.js";
import { ChaosFaults, type FaultKind, isRangeKind } from "./faults.js";
import { isManyRead } from "./many.js";
import { BLOCK_SIZE, ChaosNodes, WIPED_WORDS } from "./nodes.js";
import { ChaosRanges, rangeFlags } from "./ranges.js";
import { judgeRestored } from "./restored.js";
import { HeirTally, heirFlags } from "./waiting/heir-tally.js";
import { WaitingClients } from "./waiting/waiting-clients.js";
import { ChaosWatchers } from "./waiting/watchers.js";
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
  /** False: key ranges are left alone; else they are not, unless `kinds` names none of theirs. */
  readonly ranges?: boolean;
  /** Backups are taken all the time, and of the last ones so many are restored in the end; 0: there are none. */
  readonly backups?: number;
  readonly say: (text: string) => void;
}

export interface ChaosReport {
  readonly verdicts: readonly Verdict[];
  readonly history: History;
  readonly streams: readonly ToldStream[];
  readonly passed: boolean;
  /** Operations, faults, unknowns and verdicts as text. */
  readonly text: string;
}

/** Of ten things that a client does so many are done in key spaces of ranges. */
const RANGE_SHARE = 4;
/** What is seen of a restored cluster at least: it begins where its backup was taken, and clients use it for seconds. */
const RESTORED_CHECKS = {
  linearizability: { ...LINEARIZABILITY, minimum: { lock: 20, sequence: 20, key: 20 } },
  minimum: {
    ...HISTORY_CHECKS.minimum,
    ...{ answers: 50, allocations: 10, orders: 5, replays: 1, tokens: 10, beliefs: 5, reads: 20 },
  },
};
/** Programs that wait for locks, and that watch. */
const WAITING = 6;
const WATCHERS = 7;
/** Clients go on with each restored cluster for so long. */
const GO_ON_MS = 6000;
/** Rate by which one clock of one machine may differ from itself between processes. */
const DRIFT = 0.001;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, say } = options;
  const prng = new Prng(seed);
  const isRanged = options.ranges ?? options.kinds?.some(isRangeKind) ?? true;
  const restores = options.backups ?? 0;
  const place = restores > 0 ? new BackupPlace() : null;
  const ofRanges = isRanged ? rangeFlags(seed) : [];
  const flags = [...ofRanges, ...heirFlags(seed), ...(place?.flags ?? [])];
  const nodes = await ChaosNodes.start(options.nodes, options.factor, flags);
  say(`${options.nodes} nodes are ready, seed ${seed}`);
  try {
    const history = new HistoryRecorder(2_000_000);
    const workload = new ChaosWorkload(
      ...([nodes, history, prng.fork("workload")] as const),
      isRanged ? RANGE_SHARE : 0,
    );
    const ranges = isRanged
      ? new ChaosRanges(nodes, workload.spaces, prng.fork("ranges"), say)
      : null;
    const faults = new ChaosFaults(nodes, prng.fork("faults"), say, ranges);
    const elections = new ElectionTally(nodes);
    await elections.take();
    const deadline = performance.now() + options.durationMs;
    const clients = workload.run(options.clients);
    const waits = new Waits(nodes, workload, prng, isRanged, options);
    const changes = ranges?.run();
    const backups =
      place === null ? null : new ChaosBackups(nodes, place, prng.fork("backups"), isRanged);
    const takings = backups?.run();
    const pace = prng.fork("pace");
    const stuck = await disturb(faults, options.kinds ?? null, deadline, pace);
    backups?.stop();
    await takings;
    await backups?.takeLate();
    const { terms } = await elections.take();
    const losesDisk = options.nodes > 1 && stuck === null;
    const wiped = losesDisk ? [await loseDisk(nodes, 1 + pace.below(nodes.count), say)] : [];
    workload.stop();
    ranges?.stop();
    await Promise.all([clients, changes, waits.end()]);
    const unserved = await workload.sweep();
    const peace = await waits.rest(history.history());
    workload.close();
    const recorded = history.history(performance.now());
    const verdicts = [
      ...judge(recorded, isRanged),
      ...[peace, ...waits.verdicts(recorded)],
      workload.store.verdict(),
      effects(options, faults, nodes, terms),
      served(unserved, stuck),
      ...(ranges === null ? [] : [await rangesMoved(ranges, recorded)]),
      ...wiped,
      ...(backups === null ? [] : await restored(options, nodes, workload, backups, recorded)),
    ];
    const done = { faults, ranges, backups };
    const told = report(options, nodes, workload, done, verdicts, recorded);
    return { ...told, streams: waits.streams };
  } finally {
    await nodes.end();
    place?.remove();
  }
}

/** Clients that wait for locks and clients that watch, from the first fault to peace. */
class Waits {
  private readonly waiting: WaitingClients;
  private readonly watchers: ChaosWatchers;
  private readonly heirs: HeirTally;
  private readonly running: Promise<unknown>;

  constructor(
    nodes: ChaosNodes,
    workload: ChaosWorkload,
    prng: Prng,
    isRanged: boolean,
    options: ChaosOptions,
  ) {
    const eraAt = (nowMs: number): number => workload.eraAt(nowMs);
    this.waiting = new WaitingClients(nodes, prng.fork("waiting"), eraAt);
    this.watchers = new ChaosWatchers(nodes, prng.fork("watchers"), eraAt, isRanged);
    this.heirs = new HeirTally(nodes, options);
    let isOver = false;
    this.running = Promise.all([
      this.waiting.run(WAITING).finally(() => (isOver = true)),
      this.watchers.run(WATCHERS),
      this.heirs.run(() => isOver),
    ]);
  }

  get streams(): readonly ToldStream[] {
    return this.watchers.streams;
  }

  /** The last wait has its end, and whoever watches stands. */
  async end(): Promise<void> {
    this.waiting.stop();
    this.watchers.stop();
    await this.running;
  }

  async rest(history: History): Promise<Verdict> {
    const verdict = await this.watchers.rest(history);
    await Promise.all([this.waiting.close(), this.watchers.close()]);
    return verdict;
  }

  verdicts(history: History): readonly Verdict[] {
    const { waiting, watchers, heirs } = this;
    const told = checkToldStreams(watchers.streams, history, waiting.grants);
    return [told, waiting.times.verdict(), heirs.verdict()];
  }
}

/** What was taken meanwhile is whole, and what is restored of it goes on as the history says. */
async function restored(
  { seed, say, backups: restores = 0 }: ChaosOptions,
  nodes: ChaosNodes,
  workload: ChaosWorkload,
  backups: ChaosBackups,
  history: History,
): Promise<readonly Verdict[]> {
  const running = nodes.all.filter((node) => nodes.isRunning(node));
  return [
    await backups.verify(running),
    ...(await judgeRestored({
      ...{ backups, running, history, say, prng: new Prng(seed).fork("restored") },
      ...{ restores, goOnMs: GO_ON_MS },
      eraAt: (nowMs) => workload.eraAt(nowMs),
      judge: (of) => judge(of, false, RESTORED_CHECKS),
    })),
  ];
}

/** All checkers over the history of real clients. */
export function judge(
  history: History,
  isRanged: boolean,
  checks: Pick<HistoryCheckOptions, "minimum" | "linearizability"> = HISTORY_CHECKS,
): Verdict[] {
  const base = withDrift(DRIFT, { ...HISTORY_CHECKS, ...checks });
  const { linearizability } = base;
  const sequence = { ...linearizability.sequence, defaultBlockSize: BLOCK_SIZE };
  // Many answers are lost in these runs, and a search costs little beside the run itself.
  const budget = { stepsMax: 3_000_000, memoryMax: 1_500_000 };
  const judged = { ...linearizability, sequence, budget };
  const scans = isRanged ? { pages: 20, rows: 50, untouched: 5 } : base.minimum.scans;
  const minimum = { ...base.minimum, scans };
  return checkHistory(history, { ...base, minimum, linearizability: judged });
}

/** Keys did move while clients worked, and in the end no move is left. */
async function rangesMoved(ranges: ChaosRanges, history: History): Promise<Verdict> {
  const minimum = { splits: 1, unregistered: 1, "reads of many keys": 20 };
  const findings = new Findings("ranges move and come to rest", minimum);
  findings.count("splits", ranges.doneOf("split"));
  findings.count("merges", ranges.doneOf("merge"));
  findings.count("unregistered", ranges.doneOf("unregister"));
  const reads = history.attempts.filter(({ operation, outcome }) => {
    return outcome?.kind === "ok" && isManyRead(operation);
  });
  findings.count("reads of many keys", reads.length);
  const left = await ranges.rest();
  if (left !== null) findings.violation(`still under way: ${left}`);
  return findings.verdict();
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
  // The faults of a list tell by themselves that they struck; not each of them makes somebody vote.
  const risen = kinds === undefined ? least : 0;
  const minimum = {
    ...{ faults: kinds?.length ?? 3, "terms risen": risen, "links known": least },
    ...wanted,
  };
  const findings = new Findings("faults had effects", minimum);
  for (const [kind, count] of faults.injected) {
    findings.count("faults", count);
    findings.count(kind, count);
  }
  findings.count("terms risen", termsRisen);
  findings.count("links known", nodes.network.known);
  return findings.verdict();
}

interface Disturbers {
  readonly faults: ChaosFaults;
  readonly ranges: ChaosRanges | null;
  readonly backups: ChaosBackups | null;
}

function report(
  options: ChaosOptions,
  nodes: ChaosNodes,
  workload: ChaosWorkload,
  { faults, ranges, backups }: Disturbers,
  verdicts: readonly Verdict[],
  history: History,
): Omit<ChaosReport, "streams"> {
  const counts = (map: ReadonlyMap<string, number>): string =>
    [...map].map(([name, count]) => `${name} ${count}`).join(", ") || "none";
  const { ok, refused, unknown } = workload.outcomes;
  const passed = allPass(verdicts, OPEN_SHARE);
  const lines = [
    `seed ${options.seed}, ${options.nodes} nodes, factor ${nodes.factor}, ${options.clients} clients`,
    `operations ${history.attempts.length}: ok ${ok}, refused ${refused}, unknown ${unknown}`,
    `unknown because: ${counts(workload.unknownReasons)}`,
    `refused because: ${counts(workload.refusedReasons)}`,
    `faults: ${counts(faults.injected)}`,
    `not available here: ${counts(faults.unavailable)}`,
    `changes of ranges: ${counts(ranges?.answers ?? new Map<string, number>())}`,
    `backups: ${counts(backups?.answers ?? new Map<string, number>())}`,
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

const HELP = `npm run chaos -- [options]: a cluster of real processes under faults, judged by what its clients saw.

  --minutes M   how long faults are injected (1)
  --seed S      what is drawn (1); with an odd one key ranges also split and merge by themselves, at a few keys
                with 2, 3, 6, 7, ... (where 2 is part of it) locks may have heirs
  --nodes N     nodes (3)
  --factor F    replicas of each partition; without it every node has all
  --clients C   clients (24)
  --no-backups  no backups are taken; else coordinated ones and incrementals every 5 s, and the last of each is restored
                into a new cluster, which is judged together with the history
  --no-ranges   key ranges are left alone; else spaces are registered, split, merged and unregistered beside all faults,
                and four tenths of the work are conditional writes, leases, buckets, scans and pages in them

Ends with 0 when every checker passes, else with 1 and the path of the history.
`;

/** Writes the history of a run, and beside it what watchers were told; the path of the history. */
export async function keep({ history, streams }: ChaosReport): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "svc-chaos-"));
  const path = join(directory, "history.jsonl");
  await writeLines(path, history.attempts.map(attemptLine));
  await writeLines(
    join(directory, "streams.jsonl"),
    streams.flatMap((stream) => [...stream.lines()]),
  );
  return path;
}

async function writeLines(path: string, lines: readonly string[]): Promise<void> {
  const file = createWriteStream(path);
  for (const line of lines) file.write(`${line}\n`);
  await new Promise((resolve) => file.end(resolve));
}

/** Returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  if (argv.includes("--help")) {
    process.stdout.write(HELP);
    return 0;
  }
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
    ranges: !argv.includes("--no-ranges"),
    backups: argv.includes("--no-backups") ? 0 : 2,
    say,
  });
  process.stdout.write(`${outcome.text}\n`);
  if (!outcome.passed) process.stdout.write(`the history is in ${await keep(outcome)}\n`);
  return outcome.passed ? 0 : 1;
}
