/**
 * Processor time of three servers for each unary operation, of this tree, of another built one, and
 * of etcd: clusters side by side, loaded in turns by the same driver, whose connections go to all
 * three nodes. Processor time because a shared machine leaves it nearly alone; what it does to rate
 * and latency is beside it. Run: [SVC_PERF_BASE=<built tree>] npm run perf -- load/versus; of the
 * works only those that SVC_PERF_WORKS names ("set 100 B, 64;get, 64"), without etcd where
 * SVC_PERF_ETCD is 0.
 *
 * Invariants: 1. Every server is warm by operations, not by time, before its first figure. 2. What
 * the driver had answered is what the time is divided by. 3. An answer MustRetry, or an error, is
 * told beside the figure.
 */
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { endAll, serverMain, sleep } from "../../test/process/cluster/server-process.js";
import { drive } from "./drive.js";
import { EtcdNodes, etcdVersion } from "./etcd-nodes.js";
import { LocalNodes } from "./local-nodes.js";
import { largestResidentMiB, processorMs } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 5);
const WARM_OPERATIONS = Number(process.env["SVC_PERF_WARM"] ?? 25_000);
const WARM_WINDOWS_MAX = 20;
const PAUSE_MS = 500;
const seconds = phaseSeconds(3);

interface Work {
  readonly title: string;
  readonly inflight: number;
  readonly own: readonly string[];
  /** What etcd does for the same end; null: nothing of it is like this. */
  readonly etcd: readonly string[] | null;
}

const LOCKS = "lock or unlock";
let windows = 0;

const ALL_WORKS: readonly Work[] = [
  { title: "no-op", inflight: 64, own: ["--kind", "noop"], etcd: null },
  { title: "set 100 B", inflight: 64, own: ["--kind", "set"], etcd: ["--kind", "etcd-put"] },
  { title: "get", inflight: 64, own: ["--kind", "get"], etcd: ["--kind", "etcd-get"] },
  {
    title: LOCKS,
    inflight: 64,
    own: ["--kind", "lock"],
    etcd: ["--kind", "etcd-lock"],
  },
  { title: "next", inflight: 64, own: ["--kind", "next", "--objects", "1"], etcd: null },
  { title: "set 100 B", inflight: 1, own: ["--kind", "set"], etcd: ["--kind", "etcd-put"] },
  { title: "get", inflight: 1, own: ["--kind", "get"], etcd: ["--kind", "etcd-get"] },
];

const wanted = (process.env["SVC_PERF_WORKS"] ?? "").split(";");
const WORKS = ALL_WORKS.filter(({ title, inflight }) =>
  wanted.some((words) => `${title}, ${inflight} clients`.startsWith(words)),
);

/** Three servers of one kind. */
interface Side {
  readonly name: string;
  readonly isEtcd: boolean;
  readonly pids: readonly number[];
  readonly addresses: readonly string[];
  end(): Promise<void>;
}

interface Figures {
  readonly processorUs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly operations: number;
  readonly outcomes: string;
}

async function ownSide(name: string, main: string): Promise<Side> {
  const nodes = await LocalNodes.start(["--benchmark-routes"], 3, main);
  const addresses = nodes.ids.map((id) => `127.0.0.1:${nodes.portsOf(id).grpc}`);
  return { name, isEtcd: false, pids: nodes.pids, addresses, end: () => nodes.end() };
}

async function etcdSide(): Promise<Side> {
  const nodes = await EtcdNodes.start();
  const addresses = [1, 2, 3].map((id) => `127.0.0.1:${nodes.clientPort(id)}`);
  return { name: "etcd", isEtcd: true, pids: nodes.pids, addresses, end: () => nodes.end() };
}

/** One window of load. With one client the nodes are spoken to in turns. */
async function measure(side: Side, work: Work, round: number): Promise<Figures | null> {
  const flags = side.isEtcd ? work.etcd : work.own;
  if (flags === null) return null;
  const { addresses } = side;
  const isOne = work.inflight === 1;
  const address = isOne ? addresses[round % addresses.length] : addresses.join(",");
  const shape = ["--mode", "unary", "--inflight", String(work.inflight), "--warmup-seconds", "0"];
  const connections = ["--connections", isOne ? "1" : "3"];
  // What a driver still holds when its window ends is in the way of no other one.
  const names = work.title === LOCKS ? ["--prefix", `window-${(windows += 1)}`] : [];
  const beforeMs = processorMs(side.pids);
  const report = await drive(address ?? "", seconds, [
    ...shape,
    ...connections,
    ...names,
    ...flags,
  ]);
  const usedMs = processorMs(side.pids) - beforeMs;
  const outcomes = Object.entries(report.outcomes).map(([type, count]) => `${type}: ${count}`);
  return {
    processorUs: (usedMs * 1000) / report.operations,
    perSecond: report.operationsPerSecond,
    p50Ms: report.latencyMs.p50,
    operations: report.operations,
    outcomes: report.errors === 0 ? outcomes.join(", ") : `errors: ${report.errors}`,
  };
}

async function warm(side: Side): Promise<void> {
  for (const work of WORKS) {
    if (work.inflight === 1) continue;
    let operations = 0;
    for (let window = 0; window < WARM_WINDOWS_MAX && operations < WARM_OPERATIONS; window++) {
      const figures = await measure(side, work, window);
      if (figures === null) break;
      operations += figures.operations;
    }
  }
}

function row(side: Side, work: Work, all: readonly Figures[], load: string): string[] {
  const used = all.map((each) => each.processorUs);
  return [
    `${work.title}, ${work.inflight} clients`,
    side.name,
    median(used).toFixed(0),
    `${Math.min(...used).toFixed(0)}-${Math.max(...used).toFixed(0)}`,
    thousands(median(all.map((each) => each.perSecond))),
    median(all.map((each) => each.p50Ms)).toFixed(2),
    load,
    all.at(-1)?.outcomes ?? "",
  ];
}

async function versus(sides: readonly Side[]): Promise<void> {
  for (const side of sides) await warm(side);
  const rows: string[][] = [];
  for (const work of WORKS) {
    const found = new Map<Side, Figures[]>(sides.map((side) => [side, []]));
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of sides) {
        await sleep(PAUSE_MS);
        const figures = await measure(side, work, round);
        if (figures !== null) found.get(side)?.push(figures);
      }
    }
    const load = (loadavg()[0] ?? 0).toFixed(1);
    for (const [side, all] of found) if (all.length > 0) rows.push(row(side, work, all, load));
  }
  const figures = ["processor us", "of the rounds", "operations/s", "p50 ms", "load"];
  printTable(["three nodes, unary", "of", ...figures, "outcomes"], rows);
  for (const { name, pids } of sides) {
    console.log(`${name}: largest resident ${largestResidentMiB(pids).toFixed(0)} MiB`);
  }
}

printMachine();
const baseTree = process.env["SVC_PERF_BASE"] ?? "";
const base = join(baseTree, "dist", "bin", "svc-server.js");
const version = process.env["SVC_PERF_ETCD"] === "0" ? null : etcdVersion();
if (version === null) console.log("SKIPPED: etcd, which is not installed or not wanted");
const sides: Side[] = [];
try {
  if (baseTree !== "" && existsSync(base)) sides.push(await ownSide("base", base));
  sides.push(await ownSide("here", serverMain));
  if (version !== null) sides.push(await etcdSide());
  await sleep(1000);
  await versus(sides);
  printMachine();
} finally {
  for (const side of sides) await side.end();
  await endAll();
}
