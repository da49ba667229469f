/**
 * Three nodes under load from a lean driver in another process, which speaks to one of them: two of
 * three operations are forwarded. And one client alone, with its latency. Beside it the same on a
 * three-node etcd, where etcd is installed. Run: npm run perf -- load/cluster
 */
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endAll, sleep } from "../../test/cluster/server-process.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";
import { ThreeNodes } from "./three-nodes.js";

const ROUNDS = 3;
const driver = join(dirname(fileURLToPath(import.meta.url)), "grpc-driver.js");

interface Report {
  readonly operationsPerSecond: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly errors: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number };
}

/** Runs the driver as a process of its own and returns what it printed. */
function drive(port: number, flags: readonly string[]): Promise<Report> {
  return new Promise((resolve, reject) => {
    const seconds = String(phaseSeconds(4));
    const all = [driver, "--address", `127.0.0.1:${port}`, "--seconds", seconds, ...flags];
    const child = spawn(process.execPath, all, { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    child.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(output) as Report);
      else reject(new Error(`the driver ended with ${String(code)}: ${output}`));
    });
  });
}

interface Shape {
  readonly title: string;
  readonly flags: readonly string[];
}

function unary(kind: string, inflight: number, ...more: string[]): string[] {
  return ["--mode", "unary", "--kind", kind, "--inflight", String(inflight), ...more];
}

function streamed(kind: string, inflight: number, frame: number, ...more: string[]): string[] {
  return ["--kind", kind, "--inflight", String(inflight), "--frame", String(frame), ...more];
}

const SHAPES: readonly Shape[] = [
  { title: "set 100 B, 1 client, unary", flags: unary("set", 1) },
  { title: "set 100 B, 64 clients, unary", flags: unary("set", 64) },
  { title: "set 100 B, 256 clients, unary", flags: unary("set", 256) },
  { title: "set 100 B, 256 in flight, batched", flags: streamed("set", 256, 64) },
  { title: "lock + unlock, 64 clients, unary", flags: unary("lock", 64) },
  { title: "lock + unlock, 256 in flight, batched", flags: streamed("lock", 256, 64) },
  {
    title: "next, one hot sequence, 64 clients, unary",
    flags: unary("next", 64, "--objects", "1"),
  },
  {
    title: "next, one hot sequence, 256 in flight, batched",
    flags: streamed("next", 256, 64, "--objects", "1"),
  },
  { title: "get (linearizable), 64 clients, unary", flags: unary("get", 64) },
  { title: "get (linearizable), 256 in flight, batched", flags: streamed("get", 256, 64) },
];

function etcdIsInstalled(): boolean {
  return spawnSync("etcd", ["--version"], { stdio: "ignore" }).status === 0;
}

printMachine();
const nodes = await ThreeNodes.start([]);
try {
  await sleep(1000);
  const rows: string[][] = [];
  for (const { title, flags } of SHAPES) {
    const reports: Report[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      reports.push(await drive(nodes.portsOf((round % 3) + 1).grpc, flags));
    }
    const rates = reports.map((report) => report.operationsPerSecond);
    rows.push([
      title,
      thousands(median(rates)),
      `${thousands(Math.min(...rates))}-${thousands(Math.max(...rates))}`,
      median(reports.map((report) => report.latencyMs.p50)).toFixed(2),
      median(reports.map((report) => report.latencyMs.p99)).toFixed(2),
      JSON.stringify(reports[0]?.outcomes),
    ]);
  }
  const header = ["three nodes", "operations/s", "spread", "p50 ms", "p99 ms", "outcomes by type"];
  printTable(header, rows);
  console.log(`resident after the load: ${await nodes.residentMiB()}`);
  console.log(
    etcdIsInstalled()
      ? "etcd is installed: start three nodes of it and compare by its own benchmark tool"
      : "SKIPPED: the comparison with etcd, which is not installed on this machine",
  );
  printMachine();
} finally {
  await nodes.end();
  await endAll();
}
