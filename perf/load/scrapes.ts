/**
 * What a scrape each second does to the latency of requests: p99 with one beside p99 without, in interleaved rounds of one run.
 * Run: npm run perf -- load/scrapes
 *
 * The figure is the median over rounds of the ratio of two phases that follow each other; which of them comes first changes.
 */
import {
  ServerProcess,
  endAll,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { drive } from "./drive.js";
import { median, phaseSeconds, printMachine, printTable } from "./report.js";

const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 7);
const EVERY_MS = 1000;
/** Far from all that the machine can do: the latency is that of requests, not of a queue. */
const FLAGS = ["--mode", "unary", "--inflight", "8"];
const PARTITIONS = [16, 1024];
const KINDS = ["next", "set"];
const seconds = phaseSeconds(5);

interface Phase {
  readonly p50: number;
  readonly p99: number;
}

/** Scrapes until it is stopped; says how many and how long each took in the middle (ms). */
function scraping(http: string): () => Promise<{ readonly count: number; readonly ms: number }> {
  const took: number[] = [];
  const timer = setInterval(() => {
    const beganMs = performance.now();
    void fetch(`http://${http}/metrics`)
      .then((answer) => answer.text())
      .then(() => took.push(performance.now() - beganMs));
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    return { count: took.length, ms: median(took) };
  };
}

async function measured(partitions: number): Promise<string[][]> {
  const directory = temporaryDirectory();
  const server = new ServerProcess([
    ...["--grpc-port=0", "--http-port=0", "--https-port=off", "--log-level=warn"],
    `--initial-cluster-partitions=${partitions}`,
    `--storage-path=${directory.path}`,
  ]);
  const { grpc, http } = await server.ready();
  const rows: string[][] = [];
  for (const kind of KINDS) {
    const flags = [...FLAGS, "--kind", kind];
    await drive(grpc, seconds, flags);
    const phases = { without: [] as Phase[], with: [] as Phase[] };
    const ratios: number[] = [];
    const scrapes: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const pair = { without: 0, with: 0 };
      const order =
        round % 2 === 0 ? (["without", "with"] as const) : (["with", "without"] as const);
      for (const which of order) {
        const stop = which === "with" ? scraping(http) : null;
        const { latencyMs } = await drive(grpc, seconds, flags);
        if (stop !== null) scrapes.push((await stop()).ms);
        phases[which].push(latencyMs);
        pair[which] = latencyMs.p99;
      }
      ratios.push(pair.with / pair.without);
    }
    const of = (which: "without" | "with", pick: keyof Phase): string =>
      median(phases[which].map((phase) => phase[pick])).toFixed(2);
    const sorted = [...ratios].sort((a, b) => a - b);
    rows.push([
      `${partitions + 1} partitions, ${kind}`,
      ...[of("without", "p50"), of("with", "p50"), of("without", "p99"), of("with", "p99")],
      median(ratios).toFixed(2),
      `${sorted[0]?.toFixed(2)}-${sorted.at(-1)?.toFixed(2)}`,
      median(scrapes).toFixed(1),
    ]);
  }
  await server.stop();
  directory.remove();
  return rows;
}

try {
  printMachine();
  const rows: string[][] = [];
  for (const partitions of PARTITIONS) rows.push(...(await measured(partitions)));
  printTable(
    [
      ...["unary, 8 in flight, ms", "p50 without", "p50 with", "p99 without", "p99 with"],
      ...["p99 ratio", "range", "a scrape"],
    ],
    rows,
  );
} finally {
  await endAll();
}
