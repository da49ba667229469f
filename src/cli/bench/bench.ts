/**
 * `bench`: a measurement as a user can make it, with a picture of the latencies.
 *
 * Invariants: 1. What it made in the service is deleted afterwards, also after a failure, Ctrl+C or
 * the end of its terminal, as far as that is possible in bounded time. 2. Failed operations make
 * the exit code 1 (some) or 3 (all), a signal 128 + its number. 3. The figures say how they were
 * taken.
 */
import { setMaxListeners } from "node:events";
import { constants } from "node:os";
import { SvcClient, type SvcClientOptions } from "../../client/mod.js";
import {
  makeSubject,
  runLoad,
  type LoadPlan,
  type LoadResult,
  type Subject,
} from "./bench-load.js";
import { Clients } from "../invocation/context.js";
import {
  EXIT_DONE,
  EXIT_REFUSED,
  EXIT_UNREACHABLE,
  type ExitCode,
} from "../invocation/exit-codes.js";
import { usageError } from "../invocation/failures.js";
import { jsonText, type JsonValue } from "../terminal/format.js";
import { setLastWork, unlessEnding } from "../invocation/hang-up.js";
import { msText, pictureLines } from "../terminal/latency.js";
import { barText } from "../terminal/progress.js";
import type { Settings } from "../invocation/settings.js";
import type { OptionValues } from "../commands/values.js";

const DURATION_DEFAULT_S = 10;
const INFLIGHT_DEFAULT = 64;
const INFLIGHT_MAX = 100_000;
const CONNECTIONS_MAX = 64;
const COLUMNS_DEFAULT = 100;
const JSON_BANDS = 64;
/** Longest time for deleting what was made (ms). */
const CLEAN_MS = 30_000;
/** The same when somebody waits for the end. */
const CLEAN_AFTER_STOP_MS = 10_000;
const STOPPING: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

const PERCENTILES: readonly (readonly [string, number])[] = [
  ["p50", 0.5],
  ["p90", 0.9],
  ["p99", 0.99],
  ["p999", 0.999],
];

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  sequences: "next on one sequence",
  locks: "acquire and release in turn",
  kv: "durable sets of 100 bytes",
};

function bounded(values: OptionValues, name: string, usual: number, most: number): number {
  const value = values.number(name) ?? usual;
  if (value < 1 || value > most) throw usageError(`${name}: ${value} is not from 1 to ${most}`);
  return value;
}

function showProgress(share: number, done: number): void {
  if (!process.stderr.isTTY) return;
  const columns = Math.max(40, process.stderr.columns || 80);
  const bar = barText(Math.min(1, share), Math.min(50, columns - 34));
  process.stderr.write(`\r\x1b[K${bar} ${done} operations`);
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

interface Report {
  readonly subject: string;
  readonly plan: LoadPlan;
  readonly connections: number;
  readonly result: LoadResult;
}

function document({ subject, plan, connections, result }: Report): JsonValue {
  const { latencies, failures, elapsedMs, cpuMicros } = result;
  const operations = latencies.count;
  const percentiles = PERCENTILES.map(
    ([name, share]) => [name, rounded(latencies.percentileMs(share), 4)] as const,
  );
  return {
    subject,
    connections,
    inflight: plan.inflight,
    rate: plan.rate,
    latencyFrom: plan.rate === null ? "send" : "intended-start",
    elapsedMs: rounded(elapsedMs, 1),
    operations,
    failures: Object.fromEntries(failures),
    perSecond: rounded((operations * 1000) / elapsedMs, 1),
    clientCpuMicrosPerOperation: operations === 0 ? null : rounded(cpuMicros / operations, 2),
    latencyMs: {
      mean: rounded(latencies.meanMs, 4),
      ...Object.fromEntries(percentiles),
      max: rounded(latencies.maxMs, 4),
    },
    histogram: latencies.bands(JSON_BANDS).map(({ fromMs, toMs, count }) => ({
      fromMs: rounded(fromMs, 4),
      toMs: rounded(toMs, 4),
      count,
    })),
  };
}

function lines({ subject, plan, connections, result }: Report): string[] {
  const { latencies, failures, elapsedMs, cpuMicros } = result;
  const rate = plan.rate === null ? "as fast as answers come" : `${plan.rate}/s planned`;
  const output = [
    `${subject}: ${DESCRIPTIONS[subject]}; ${connections} connection(s), ${plan.inflight} in flight, ${rate}`,
    `${latencies.count} operations in ${(elapsedMs / 1000).toFixed(2)} s: ` +
      `${((latencies.count * 1000) / elapsedMs).toFixed(0)}/s, ` +
      `${(cpuMicros / Math.max(1, latencies.count)).toFixed(1)} µs CPU of this client each`,
  ];
  for (const [code, count] of failures) output.push(`failed: ${count} with ${code}`);
  if (latencies.count === 0) return output;
  const from = plan.rate === null ? "from sending" : "from the planned start";
  const percentiles = PERCENTILES.map(
    ([name, share]) => `${name} ${msText(latencies.percentileMs(share))}`,
  );
  output.push(
    `latency (ms, ${from}): ${percentiles.join("  ")}  max ${msText(latencies.maxMs)}`,
    "",
    ...pictureLines(latencies, Math.min(120, process.stdout.columns || COLUMNS_DEFAULT)),
  );
  return output;
}

function exitOf(result: LoadResult): ExitCode {
  if (result.failures.size === 0) return EXIT_DONE;
  return result.latencies.count === 0 ? EXIT_UNREACHABLE : EXIT_REFUSED;
}

function planOf(values: OptionValues): LoadPlan {
  return {
    durationMs: (values.number("--duration") ?? DURATION_DEFAULT_S) * 1000,
    rate: values.has("--rate") ? bounded(values, "--rate", 1, 10_000_000) : null,
    inflight: bounded(values, "--inflight", INFLIGHT_DEFAULT, INFLIGHT_MAX),
  };
}

/** The signals that end a measurement; a second one also ends the cleaning after it. */
class Stops {
  readonly measuring = new AbortController();
  readonly cleaning = new AbortController();
  /** The exit code that the first signal stands for, or null. */
  exit: number | null = null;
  private readonly take = (signal: NodeJS.Signals): void => {
    if (this.exit !== null) this.cleaning.abort();
    this.exit ??= 128 + constants.signals[signal];
    this.measuring.abort();
  };

  begin(): void {
    // Every connection listens while it is made.
    setMaxListeners(CONNECTIONS_MAX + 8, this.measuring.signal);
    for (const signal of STOPPING) process.on(signal, this.take);
  }

  end(): void {
    for (const signal of STOPPING) process.off(signal, this.take);
  }
}

/** Deletes what the load made, in bounded time, over a connection of its own. */
async function clean(load: Subject, options: SvcClientOptions, stops: Stops): Promise<void> {
  const limitMs = stops.exit === null ? CLEAN_MS : CLEAN_AFTER_STOP_MS;
  const client = new SvcClient({ ...options, deadlineMs: limitMs });
  // Ends what is under way, all at once.
  const end = (): void => void client.close();
  const timer = setTimeout(end, limitMs);
  stops.cleaning.signal.addEventListener("abort", end, { once: true });
  try {
    await load.clean(client);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    process.stderr.write(`note: not everything that was made could be deleted: ${why}\n`);
  } finally {
    clearTimeout(timer);
    await client.close();
  }
}

/** Makes what is measured, and the connections: before the clock starts. */
async function begin(
  load: Subject,
  clients: readonly SvcClient[],
  signal: AbortSignal,
  settings: Settings,
): Promise<void> {
  await new Clients(settings).whileWaiting(settings.timeoutMs, async () => {
    await load.prepare(clients[0] as SvcClient, signal);
    await Promise.all(clients.map((client) => client.cluster.membership({ signal })));
  });
}

/** Measures `subject`: sequences, locks or kv. Returns the exit code. */
export async function runBench(
  subject: string,
  values: OptionValues,
  settings: Settings,
): Promise<number> {
  const connections = bounded(values, "--connections", 1, CONNECTIONS_MAX);
  const plan = planOf(values);
  const deadlineMs = settings.timeoutMs ?? 10_000;
  const options = { ...new Clients(settings).options(settings.endpoints, 1), deadlineMs };
  const clients = Array.from({ length: connections }, () => new SvcClient(options));
  const load = makeSubject(subject);
  const stops = new Stops();
  const measure = async (): Promise<number> => {
    try {
      const { signal } = stops.measuring;
      await begin(load, clients, signal, settings);
      const result = await runLoad(load, clients, plan, signal, showProgress);
      print({ subject, plan, connections, result }, settings);
      return exitOf(result);
    } finally {
      await Promise.all(clients.map((client) => client.close()));
      await clean(load, options, stops);
    }
  };
  stops.begin();
  const measured = measure();
  // Whoever reads the figures may go away, or the terminal: what was made is deleted all the same.
  setLastWork(() => {
    stops.measuring.abort();
    return measured;
  });
  try {
    const exit = await measured;
    return stops.exit ?? exit;
  } catch (error) {
    if (stops.exit === null) throw error;
    return stops.exit;
  } finally {
    await unlessEnding();
    setLastWork(null);
    stops.end();
  }
}

function print(report: Report, settings: Settings): void {
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  const text = settings.format === "json" ? jsonText(document(report)) : lines(report).join("\n");
  process.stdout.write(`${text}\n`);
}
