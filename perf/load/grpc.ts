/**
 * gRPC under load from a lean driver in another process: values per second and durable operations
 * per second through the batch streams, unary `next` against a no-op method, and how many commands
 * share one durable write. Run: npm run perf -- load/grpc
 */
import {
  ServerProcess,
  endAll,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { type DriverReport, drive } from "./drive.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const ROUNDS = 3;
const seconds = phaseSeconds(4);
const UNARY = ["--mode", "unary", "--inflight", "64"];

type Counters = ReadonlyMap<string, number>;

async function counters(http: string): Promise<Counters> {
  const text = await (await fetch(`http://${http}/metrics`)).text();
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [name, value] = line.split(" ");
    if (name !== undefined && value !== undefined) found.set(name, Number(value));
  }
  return found;
}

function grown(before: Counters, after: Counters, name: string): number {
  return (after.get(name) ?? 0) - (before.get(name) ?? 0);
}

interface Shape {
  readonly title: string;
  readonly flags: readonly string[];
}

const STREAMS: readonly Shape[] = [
  {
    title: "next, stream, 1024 in flight, frames of 128",
    flags: ["--kind", "next", "--inflight", "1024", "--frame", "128"],
  },
  {
    title: "lock + unlock, durable, stream, 256 in flight",
    flags: ["--kind", "lock", "--inflight", "256", "--frame", "64"],
  },
  {
    title: "set 100 B, durable, stream, 256 in flight",
    flags: ["--kind", "set", "--inflight", "256", "--frame", "64"],
  },
  {
    title: "get, stream, 1024 in flight, frames of 128",
    flags: ["--kind", "get", "--inflight", "1024", "--frame", "128"],
  },
];

const directory = temporaryDirectory();
try {
  printMachine();
  const server = new ServerProcess([
    "--grpc-port=0",
    "--http-port=0",
    "--https-port=off",
    "--benchmark-routes",
    "--log-level=warn",
    `--storage-path=${directory.path}`,
  ]);
  const { grpc, http } = await server.ready();
  const rows: string[][] = [];
  for (const { title, flags } of STREAMS) {
    const reports: DriverReport[] = [];
    const before = await counters(http);
    for (let round = 0; round < ROUNDS; round++) reports.push(await drive(grpc, seconds, flags));
    const after = await counters(http);
    const syncs = grown(before, after, "svc_wal_sync_duration_seconds_count");
    const commands = grown(before, after, "svc_raft_batch_entries_sum");
    const rate = median(reports.map((report) => report.operationsPerSecond));
    rows.push([
      title,
      thousands(rate),
      median(reports.map((report) => report.latencyMs.p50)).toFixed(2),
      median(reports.map((report) => report.latencyMs.p99)).toFixed(2),
      syncs > 0 && commands > 0 ? (commands / syncs).toFixed(1) : "",
      JSON.stringify(reports[0]?.outcomes),
    ]);
  }
  const unary = { noop: [] as number[], next: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const kind of ["noop", "next"] as const) {
      const report = await drive(grpc, seconds, [...UNARY, "--kind", kind]);
      unary[kind].push(report.operationsPerSecond);
    }
  }
  const share = median(unary.next) / median(unary.noop);
  rows.push(["no-op, unary, 64 in flight", thousands(median(unary.noop)), "", "", "", ""]);
  rows.push([
    `next, unary, 64 in flight: ${(share * 100).toFixed(0)} % of the no-op`,
    thousands(median(unary.next)),
    "",
    "",
    "",
    "",
  ]);
  printTable(
    ["gRPC", "operations/s", "p50 ms", "p99 ms", "commands/sync", "outcomes by type"],
    rows,
  );
  const end = await counters(http);
  const lag = (name: string): string => ((end.get(name) ?? Number.NaN) * 1000).toFixed(1);
  console.log(
    `event loop lag over the run: p99 ${lag("svc_event_loop_lag_p99_seconds")} ms, ` +
      `max ${lag("svc_event_loop_lag_max_seconds")} ms; resident ` +
      `${((end.get("process_resident_memory_bytes") ?? 0) / 1024 ** 2).toFixed(0)} MiB`,
  );
  await server.stop();
} finally {
  await endAll();
  directory.remove();
}
