/**
 * Whether memory stays: three nodes under a steady load of sets, gets, locks and `next` in turns, and
 * what is resident of each as time goes by. Run: [SVC_PERF_MINUTES=30] npm run perf -- load/soak
 *
 * Invariants: 1. The load has few callers, so that a machine that others use can carry it. 2. The first
 * third is not judged: heaps and caches fill.
 */
import { endAll } from "../../test/process/cluster/server-process.js";
import { drive } from "./drive.js";
import { LocalNodes } from "./local-nodes.js";
import { largestResidentMiB } from "./processor.js";
import { printMachine, printTable, thousands } from "./report.js";

const MINUTES = Number(process.env["SVC_PERF_MINUTES"] ?? 1);
const KINDS = ["set", "get", "lock", "next"] as const;
const INFLIGHT = 6;
const OBJECTS = 50_000;
const PHASE_SECONDS = 5;

printMachine();
const nodes = await LocalNodes.start([]);
const rows: string[][] = [];
const seen: number[] = [];
try {
  const addresses = nodes.ids.map((id) => `127.0.0.1:${nodes.portsOf(id).grpc}`).join(",");
  const beganMs = performance.now();
  const elapsed = (): number => (performance.now() - beganMs) / 60_000;
  let operations = 0;
  let turn = 0;
  while (elapsed() < MINUTES) {
    const kind = KINDS[turn++ % KINDS.length] ?? "set";
    const shape = ["--mode", "unary", "--kind", kind, "--inflight", String(INFLIGHT)];
    const objects = kind === "next" ? "16" : String(OBJECTS);
    const flags = [...shape, "--connections", "3", "--objects", objects, "--warmup-seconds", "0"];
    operations += (await drive(addresses, PHASE_SECONDS, flags)).operations;
    if (turn % KINDS.length !== 0) continue;
    seen.push(largestResidentMiB(nodes.pids));
    const each = nodes.pids.map((pid) => largestResidentMiB([pid]).toFixed(0));
    rows.push([elapsed().toFixed(1), thousands(operations), ...each]);
  }
} finally {
  await nodes.end();
  await endAll();
}
printTable(["minutes", "operations", "node 1 MiB", "node 2 MiB", "node 3 MiB"], rows);
const judged = seen.slice(Math.floor(seen.length / 3));
const range = `${Math.min(...judged).toFixed(0)} to ${Math.max(...judged).toFixed(0)}`;
console.log(`largest resident after the first third: ${range} MiB`);
