/**
 * Processor time of the server for each operation, of another built tree and of this one: fresh
 * processes in turn, each with all kinds of load one after another, and a pause before each phase so
 * that nothing is left of the one before. The driver is this tree's. Run: SVC_PERF_BASE=<built tree> npm run perf -- load/compare
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  ServerProcess,
  endAll,
  sleep,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { drive } from "./drive.js";
import { processorMs } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable } from "./report.js";

const SHAPES = {
  next: ["--kind", "next", "--inflight", "1024", "--frame", "128"],
  lock: ["--kind", "lock", "--inflight", "256", "--frame", "64"],
  set: ["--kind", "set", "--inflight", "256", "--frame", "64"],
  get: ["--kind", "get", "--inflight", "1024", "--frame", "128"],
} as const;
type Kind = keyof typeof SHAPES;
const KINDS = Object.keys(SHAPES) as Kind[];

const ROUNDS = 4;
const PAUSE_MS = 3000;
const own = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

/** Microseconds for each operation of each kind, of one life of a server of `tree`. */
async function measure(tree: string): Promise<Map<Kind, number[]>> {
  const directory = temporaryDirectory();
  const server = new ServerProcess(
    [
      ...["--grpc-port=0", "--http-port=0", "--https-port=off", "--peer-port=0"],
      ...[`--storage-path=${directory.path}`, "--log-level=error"],
    ],
    [process.execPath, join(tree, "dist", "src", "server", "main.js")],
  );
  const { grpc } = await server.addresses();
  const seconds = phaseSeconds(2);
  for (const kind of KINDS) await drive(grpc, seconds, SHAPES[kind]);
  const found = new Map<Kind, number[]>();
  for (const kind of [...KINDS, ...KINDS]) {
    await sleep(PAUSE_MS);
    const before = processorMs([server.child.pid ?? 0]);
    const { operationsPerSecond } = await drive(grpc, seconds, SHAPES[kind]);
    const usedMs = processorMs([server.child.pid ?? 0]) - before;
    found.set(kind, [
      ...(found.get(kind) ?? []),
      (usedMs * 1000) / (operationsPerSecond * seconds),
    ]);
  }
  server.child.kill("SIGTERM");
  await server.ended;
  directory.remove();
  return found;
}

async function compare(base: string): Promise<void> {
  const all = new Map<string, Map<Kind, number[]>>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const tree of round % 2 === 0 ? [base, own] : [own, base]) {
      const known = all.get(tree) ?? new Map<Kind, number[]>();
      for (const [kind, values] of await measure(tree)) {
        known.set(kind, [...(known.get(kind) ?? []), ...values]);
      }
      all.set(tree, known);
    }
  }
  const of = (tree: string, kind: Kind): number => median(all.get(tree)?.get(kind) ?? []);
  printTable(
    ["processor time per operation", "base us", "here us", "ratio"],
    KINDS.map((kind) => {
      const [before, after] = [of(base, kind), of(own, kind)];
      return [kind, before.toFixed(2), after.toFixed(2), (after / before).toFixed(3)];
    }),
  );
}

const base = process.env["SVC_PERF_BASE"] ?? "";
if (!existsSync(join(base, "dist", "src", "server", "main.js"))) {
  console.log("skipped: SVC_PERF_BASE names no built tree to compare with");
} else {
  printMachine();
  try {
    await compare(base);
  } finally {
    await endAll();
  }
}
