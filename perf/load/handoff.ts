/**
 * How often one lock changes hands while many wait for it, of three nodes and of etcd: every slot
 * takes the lock and lets it go, over and over, with no time in between. Clusters side by side,
 * loaded in turns by the same driver; each gets connections to all three nodes. Then the same with 20
 * ms between grant and release. Both as started without flags, and with `--lock-succession` ("heirs").
 * Beside it the latency of one durable set by one client, and the
 * processor time of the servers for one hand-off. Run: npm run perf -- load/handoff; SVC_PERF_WAITERS
 * names other numbers of waiters ("16,256"), SVC_PERF_HELD=0 leaves the held ones out, SVC_PERF_ETCD=0
 * etcd; SVC_PERF_BASE names other built trees beside this one ("/a:/b"), then ephemeral locks are left
 * out.
 *
 * Invariants: 1. A hand-off is a grant and the release before it: two operations of the driver. 2.
 * Outcomes other than Locked and Unlocked are told beside the figure. 3. Waiters of one window leave
 * before the next one begins; each window has a lock of its own.
 */
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import { basename, join } from "node:path";
import { endAll, serverMain, sleep } from "../../test/process/cluster/server-process.js";
import { drive } from "./drive.js";
import { EtcdNodes, etcdVersion } from "./etcd-nodes.js";
import { LocalNodes } from "./local-nodes.js";
import { processorMs } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 5);
const WAITERS = (process.env["SVC_PERF_WAITERS"] ?? "16,256,4096").split(",").map(Number);
/** Streams that one connection carries, at most. */
const STREAMS_MAX = 100;
/** Waiters, and how long each holds the lock. */
const HELD = process.env["SVC_PERF_HELD"] === "0" ? [] : ([[16, 20]] as const);
const WARM_WINDOWS = 3;
const PAUSE_MS = 500;
const seconds = phaseSeconds(3);

interface Side {
  readonly name: string;
  readonly flags: readonly string[];
  readonly pids: readonly number[];
  readonly addresses: readonly string[];
}

interface Figures {
  readonly perSecond: number;
  /** From the sending of a release to the arrival of the next grant. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly processorUs: number;
  readonly outcomes: string;
}

let windows = 0;

async function measure(side: Side, waiters: number, holdMs = 0): Promise<Figures> {
  const { addresses, pids } = side;
  const isUnary = side.flags.includes("unary");
  const connections = isUnary ? Math.max(3, Math.ceil(waiters / STREAMS_MAX)) : 3;
  const beforeMs = processorMs(pids);
  const report = await drive(addresses.join(","), seconds, [
    ...["--inflight", String(waiters), "--connections", String(connections)],
    ...["--warmup-seconds", "1", "--prefix", `window-${(windows += 1)}`, "--frame", "1"],
    ...["--hold-ms", String(holdMs)],
    ...side.flags,
  ]);
  const usedMs = processorMs(pids) - beforeMs;
  const handoffs = report.operations / 2;
  const outcomes = Object.entries(report.outcomes).map(([type, count]) => `${type}: ${count}`);
  return {
    perSecond: report.operationsPerSecond / 2,
    p50Ms: report.handoffMs?.p50 ?? Number.NaN,
    p99Ms: report.handoffMs?.p99 ?? Number.NaN,
    // The warm second is in the time, and what it did is not counted.
    processorUs: (usedMs * 1000 * (seconds / (seconds + 1))) / Math.max(1, handoffs),
    outcomes: report.errors === 0 ? outcomes.join(", ") : `errors: ${report.errors}`,
  };
}

async function compare(sides: readonly Side[]): Promise<void> {
  for (const side of sides) {
    for (let window = 0; window < WARM_WINDOWS; window++) await measure(side, 64);
  }
  const rows: string[][] = [];
  const works = [...WAITERS.map((waiters) => [waiters, 0] as const), ...HELD];
  for (const [waiters, holdMs] of works) {
    const found = new Map<Side, Figures[]>(sides.map((side) => [side, []]));
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of sides) {
        await sleep(PAUSE_MS);
        found.get(side)?.push(await measure(side, waiters, holdMs));
      }
    }
    const load = (loadavg()[0] ?? 0).toFixed(1);
    for (const [{ name }, all] of found) {
      const rates = all.map(({ perSecond }) => perSecond);
      rows.push([
        holdMs === 0 ? String(waiters) : `${waiters}, held for ${holdMs} ms`,
        ...[name, thousands(median(rates))],
        `${thousands(Math.min(...rates))} to ${thousands(Math.max(...rates))}`,
        median(all.map(({ p50Ms }) => p50Ms)).toFixed(2),
        median(all.map(({ p99Ms }) => p99Ms)).toFixed(2),
        median(all.map(({ processorUs }) => processorUs)).toFixed(0),
        ...[load, all.at(-1)?.outcomes ?? ""],
      ]);
    }
  }
  const figures = ["hand-offs/s", "of the rounds", "p50 ms", "p99 ms", "processor us", "load"];
  printTable(["waiters", "of", ...figures, "outcomes"], rows);
}

async function setLatency(address: string): Promise<void> {
  const report = await drive(address, seconds, [
    ...["--mode", "unary", "--inflight", "1", "--kind", "set"],
  ]);
  console.log(`one durable set by one client: p50 ${report.latencyMs.p50.toFixed(2)} ms`);
}

/** The same work asked of three nodes by both wires, and of ephemeral locks where `withEphemeral`. */
function sidesOf(name: string, nodes: LocalNodes, withEphemeral: boolean): Side[] {
  const addresses = nodes.ids.map((id) => `127.0.0.1:${nodes.portsOf(id).grpc}`);
  const own = { pids: nodes.pids, addresses };
  const streams = ["--kind", "handoff", "--mode", "stream"];
  const sides: Side[] = [
    { name: `${name}, batch streams`, flags: streams, ...own },
    { name: `${name}, unary`, flags: ["--kind", "handoff", "--mode", "unary"], ...own },
  ];
  const flags = ["--kind", "handoff-ephemeral", "--mode", "stream"];
  if (withEphemeral) sides.push({ name: `${name}, ephemeral, batch streams`, flags, ...own });
  return sides;
}

printMachine();
const trees = (process.env["SVC_PERF_BASE"] ?? "").split(":").filter((tree) => tree !== "");
const bases = new Map<string, LocalNodes>();
const nodes = await LocalNodes.start([], 3, serverMain);
const heirs = await LocalNodes.start(["--lock-succession"], 3, serverMain);
const isEtcdWanted = process.env["SVC_PERF_ETCD"] !== "0" && etcdVersion() !== null;
const etcd = isEtcdWanted ? await EtcdNodes.start() : null;
if (etcd === null) console.log("SKIPPED: etcd, which is not installed or not wanted");
try {
  for (const tree of trees) {
    const main = join(tree, "dist", "bin", "svc-server.js");
    if (existsSync(main)) bases.set(basename(tree), await LocalNodes.start([], 3, main));
    else console.log(`SKIPPED: ${tree}, which is not built`);
  }
  const sides = [...bases].flatMap(([name, each]) => sidesOf(name, each, false));
  sides.push(...sidesOf("here", nodes, bases.size === 0));
  sides.push(...sidesOf("here, heirs", heirs, false));
  if (etcd !== null) {
    const flags = ["--kind", "etcd-handoff", "--mode", "unary"];
    const etcdAddresses = [1, 2, 3].map((id) => `127.0.0.1:${etcd.clientPort(id)}`);
    sides.push({ name: "etcd, v3lock", flags, pids: etcd.pids, addresses: etcdAddresses });
  }
  await sleep(1000);
  await compare(sides);
  await setLatency(`127.0.0.1:${nodes.portsOf(1).grpc}`);
  printMachine();
} finally {
  for (const each of bases.values()) await each.end();
  await nodes.end();
  await heirs.end();
  await etcd?.end();
  await endAll();
}
