/**
 * What the web console costs a node: its files in memory, processor time and memory of a process while nobody looks, and
 * processor time while pages are open. Run: npm run perf -- load/console
 */
import { setFlagsFromString } from "node:v8";
import { readConsoleFiles } from "../../src/server/listeners/console-files.js";
import { consoleRoutes } from "../../src/rest/routes/console-routes.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  sleep,
} from "../../test/process/cluster/server-process.js";
import { largestResidentMiB, processorMs } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable } from "./report.js";

const ROUNDS = 3;
const SETTLE_MS = 3000;
const PAGES_OPEN = 10;
const PAGE_EVERY_MS = 2000;

setFlagsFromString("--expose-gc");

/** Heap that one copy of the table and its routes takes (bytes). */
function tableBytes(): number {
  const copies = 200;
  const kept: unknown[] = [];
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < copies; at++) {
    const files = readConsoleFiles();
    if (files !== null) kept.push(files, consoleRoutes(files));
  }
  globalThis.gc?.();
  const after = process.memoryUsage().heapUsed;
  return kept.length === 0 ? Number.NaN : (after - before) / copies;
}

const KINDS: readonly (readonly [name: string, flags: readonly string[], pages: number])[] = [
  ["--console=false", ["--console=false"], 0],
  ["--console, nobody looks", ["--console"], 0],
  ["--console-port, nobody looks", ["--console-port=0"], 0],
  [`--console, ${PAGES_OPEN} overviews open`, ["--console"], PAGES_OPEN],
];

/** Asks as a page does that somebody sees. */
async function look(http: string, untilMs: number): Promise<void> {
  while (performance.now() < untilMs) {
    await (await fetch(`http://${http}/v1/cluster/overview`)).text();
    await sleep(PAGE_EVERY_MS);
  }
}

interface Cost {
  readonly processorMs: number;
  readonly residentMiB: number;
}

async function costOf(flags: readonly string[], pages: number, seconds: number): Promise<Cost> {
  const server = new ServerProcess(nodeFlags("/tmp/unused", "--storage=memory", ...flags));
  const { http } = await server.ready();
  const { pid } = server.child;
  if (pid === undefined) throw new Error("the server did not start");
  await sleep(SETTLE_MS);
  const before = processorMs([pid]);
  const end = performance.now() + seconds * 1000;
  const looking = Array.from({ length: pages }, () => look(http, end));
  await Promise.all([sleep(seconds * 1000), ...looking]);
  const cost = {
    processorMs: (processorMs([pid]) - before) / seconds,
    residentMiB: largestResidentMiB([pid]),
  };
  await server.stop();
  return cost;
}

printMachine();
console.log(`the table of files and its routes: ${(tableBytes() / 1024).toFixed(1)} KiB of heap`);
const seconds = phaseSeconds(15);
const costs = KINDS.map((): Cost[] => []);
try {
  // One after the other in each round, so that other work on the machine falls on all alike.
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, [, flags, pages]] of KINDS.entries()) {
      costs[at]?.push(await costOf(flags, pages, seconds));
    }
  }
} finally {
  await endAll();
}
const rows = KINDS.map(([name], at) => {
  const of = (read: (cost: Cost) => number): string =>
    median((costs[at] ?? []).map(read)).toFixed(1);
  return [name, of((cost) => cost.processorMs), of((cost) => cost.residentMiB)];
});
printTable(["one node alone", "ms of processor time a second", "resident MiB"], rows);
