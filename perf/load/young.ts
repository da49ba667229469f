/**
 * What a server that was just started costs more than a warm one: processor time of three servers for
 * each of the first sets after they are ready, and when they have done many. Clusters one after the other, in turns: this tree, another built one, and this tree with words for Node.
 * Run: [SVC_PERF_BASE=<built tree>] [SVC_PERF_NODE="--always-sparkplug;--no-opt"] npm run perf -- load/young
 *
 * Invariants: 1. The first figure begins with the first operation that the servers are asked for. 2.
 * Young and warm are counted in operations, not in time: a machine that others use does fewer. 3. What a start takes until it is ready is told too.
 */
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { endAll, serverMain } from "../../test/process/cluster/server-process.js";
import { drive } from "./drive.js";
import { LocalNodes } from "./local-nodes.js";
import { processorMs } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable } from "./report.js";

const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 3);
const WARM_OPERATIONS = Number(process.env["SVC_PERF_WARM"] ?? 40_000);
const INFLIGHT = 64;
const YOUNG_OPERATIONS = Number(process.env["SVC_PERF_YOUNG"] ?? 12_000);
const secondsMax = phaseSeconds(60);

interface Side {
  readonly name: string;
  readonly main: string;
  readonly words: readonly string[];
}

interface Figures {
  readonly startMs: number;
  readonly youngMs: number;
  readonly youngUs: number;
  readonly warmUs: number;
}

/** Processor time of all three for each of so many sets (us). */
async function perSetUs(nodes: LocalNodes, operations: number): Promise<number> {
  const addresses = nodes.ids.map((id) => `127.0.0.1:${nodes.portsOf(id).grpc}`).join(",");
  const shape = ["--mode", "unary", "--kind", "set", "--warmup-seconds", "0"];
  const load = ["--inflight", String(INFLIGHT), "--connections", "3"];
  const flags = [...shape, ...load, "--operations", String(operations)];
  const beforeMs = processorMs(nodes.pids);
  const report = await drive(addresses, secondsMax, flags);
  return ((processorMs(nodes.pids) - beforeMs) * 1000) / report.operations;
}

async function measure({ main, words }: Side): Promise<Figures> {
  const nodes = await LocalNodes.start([], 3, main, words);
  try {
    const startMs = processorMs(nodes.pids);
    const beganMs = performance.now();
    const youngUs = await perSetUs(nodes, YOUNG_OPERATIONS);
    const youngMs = performance.now() - beganMs;
    await perSetUs(nodes, WARM_OPERATIONS);
    return { startMs, youngMs, youngUs, warmUs: await perSetUs(nodes, YOUNG_OPERATIONS) };
  } finally {
    await nodes.end();
  }
}

function row({ name }: Side, all: readonly Figures[]): string[] {
  const ratios = all.map(({ youngUs, warmUs }) => youngUs / warmUs);
  return [
    name,
    median(all.map(({ startMs }) => startMs / 3)).toFixed(0),
    (median(all.map(({ youngMs }) => youngMs)) / 1000).toFixed(1),
    median(all.map(({ youngUs }) => youngUs)).toFixed(0),
    median(all.map(({ warmUs }) => warmUs)).toFixed(0),
    median(ratios).toFixed(2),
    `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`,
  ];
}

function sidesWanted(): Side[] {
  const sides: Side[] = [{ name: "here", main: serverMain, words: [] }];
  const baseTree = process.env["SVC_PERF_BASE"] ?? "";
  const base = join(baseTree, "dist", "bin", "svc-server.js");
  if (baseTree !== "" && existsSync(base)) sides.unshift({ name: "base", main: base, words: [] });
  for (const words of (process.env["SVC_PERF_NODE"] ?? "").split(";")) {
    if (words.trim() === "") continue;
    sides.push({ name: words.trim(), main: serverMain, words: words.trim().split(/ +/) });
  }
  return sides;
}

printMachine();
const sides = sidesWanted();
const found = new Map<Side, Figures[]>(sides.map((side) => [side, []]));
try {
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of sides) {
      const figures = await measure(side);
      found.get(side)?.push(figures);
      const { youngUs, warmUs } = figures;
      const load = (loadavg()[0] ?? 0).toFixed(1);
      console.log(
        `${side.name}: ${youngUs.toFixed(0)} us, ${warmUs.toFixed(0)} warm, load ${load}`,
      );
    }
  }
} finally {
  await endAll();
}
const header = ["three nodes, set 100 B, 64 clients", "start ms of one", "young s"];
const figures = ["us of each", "warm us of each", "ratio", "of the rounds"];
printTable(
  [...header, ...figures],
  sides.map((side) => row(side, found.get(side) ?? [])),
);
