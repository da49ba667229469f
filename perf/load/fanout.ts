/**
 * What watches and waiters cost: one key told to many, of three nodes and of etcd, clusters side by
 * side and loaded in turns by the same driver; writes while others watch other keys; memory of what
 * only waits; the holder's extends while many wait for its lock. Run: npm run perf -- load/fanout;
 * SVC_PERF_ROUNDS (3), SVC_PERF_SECONDS (2) and SVC_PERF_PARTS ("fanout,writes,memory,waiters").
 *
 * Invariants: 1. What was not told to all within a second is told beside the figure. 2. Memory is
 * measured after two collections of garbage on both sides of the difference, over all three nodes. 3.
 * What is compared with "nobody" is measured in turns with it.
 */
import { loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endAll, serverMain, sleep } from "../../test/process/cluster/server-process.js";
import { drive, driveWatches, type FanoutReport, Held } from "./drive.js";
import { EtcdNodes, etcdVersion } from "./etcd-nodes.js";
import { LocalNodes } from "./local-nodes.js";
import { processorMs, residentBytes } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 3);
const PARTS = (process.env["SVC_PERF_PARTS"] ?? "fanout,writes,memory,waiters").split(",");
const seconds = phaseSeconds(2);
const collecting = join(dirname(fileURLToPath(import.meta.url)), "collect-garbage.js");

interface Side {
  readonly name: string;
  readonly service: "own" | "etcd";
  readonly pids: readonly number[];
  readonly addresses: readonly string[];
}

/** watchers, streams, and sets that are on their way at a time. */
const SHAPES = [
  [1000, 10, 1],
  [1000, 10, 4],
  [10_000, 100, 1],
  [10_000, 100, 4],
  [1000, 1000, 1],
  [1000, 1000, 4],
] as const;
let windows = 0;

function fanout(side: Side, [watchers, streams, window]: (typeof SHAPES)[number]) {
  return driveWatches([
    ...["--address", side.addresses.join(","), "--service", side.service],
    ...["--watchers", String(watchers), "--streams", String(streams), "--window", String(window)],
    ...["--seconds", String(seconds), "--pids", side.pids.join(","), "--key", `key-${windows++}`],
  ]);
}

async function measureFanout(sides: readonly Side[]): Promise<void> {
  // Young code runs in the interpreter.
  for (const side of sides) {
    for (const shape of SHAPES) await fanout(side, shape);
  }
  const rows: string[][] = [];
  for (const shape of SHAPES) {
    const found = new Map<Side, FanoutReport[]>(sides.map((side) => [side, []]));
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of sides) found.get(side)?.push(await fanout(side, shape));
    }
    const [watchers, streams, window] = shape;
    for (const [{ name }, all] of found) {
      const rates = all.map(({ deliveredPerSecond }) => deliveredPerSecond);
      rows.push([
        `${thousands(watchers)} on ${thousands(streams)}, ${window} on the way`,
        ...[name, thousands(median(rates))],
        `${thousands(Math.min(...rates))}-${thousands(Math.max(...rates))}`,
        median(all.map(({ p50Ms }) => p50Ms)).toFixed(2),
        median(all.map(({ p99Ms }) => p99Ms)).toFixed(2),
        median(all.map(({ processorUs }) => processorUs)).toFixed(2),
        String(all.reduce((sum, { missing }) => sum + missing, 0)),
        (loadavg()[0] ?? 0).toFixed(1),
      ]);
    }
  }
  const figures = ["events/s", "of the rounds", "p50 ms", "p99 ms", "us each"];
  printTable(["watchers of one key", "of", ...figures, "missing", "load"], rows);
}

async function measureWrites(side: Side): Promise<void> {
  const watchers = [
    { title: "nobody watches", flags: null },
    { title: "1,000 watch other keys", flags: ["--names", "own"] },
    { title: "1,000 watch other prefixes", flags: ["--names", "prefix"] },
  ];
  const found = new Map(watchers.map(({ title }) => [title, [] as number[]]));
  const shape = ["--mode", "stream", "--kind", "set", "--inflight", "256", "--connections", "3"];
  const address = side.addresses.join(",");
  await drive(address, seconds, [...shape, "--frame", "32"]);
  for (let round = 0; round < 2 * ROUNDS; round++) {
    for (const { title, flags } of watchers) {
      const own = ["--address", address, "--watchers", "1000", "--streams", "3"];
      const held = flags === null ? null : await Held.begin([...own, ...flags]);
      await sleep(500);
      const report = await drive(address, seconds, [...shape, "--frame", "32"]);
      found.get(title)?.push(report.operationsPerSecond);
      await held?.end();
    }
  }
  const base = found.get("nobody watches") as readonly number[];
  const rows = [...found].map(([title, rates]) => {
    const shares = rates.map((rate, round) => rate / (base[round] as number));
    const range = `${Math.min(...shares).toFixed(2)}-${Math.max(...shares).toFixed(2)}`;
    return [title, thousands(median(rates)), median(shares).toFixed(2), range];
  });
  printTable(["sets of 100 B, 256 in flight", "sets/s", "ratio", "of the rounds"], rows);
}

/** Bytes of all three processes, and of their heaps, with nothing left to collect. */
async function memoryOf(pids: readonly number[], nodes: LocalNodes | null) {
  for (let time = 0; time < 2; time++) {
    if (nodes !== null) for (const pid of pids) process.kill(pid, "SIGUSR2");
    await sleep(700);
  }
  let heap = 0;
  for (const id of nodes?.ids ?? []) {
    heap += (await (nodes as LocalNodes).metrics(id)).get("nodejs_heap_used_bytes") ?? 0;
  }
  return { resident: residentBytes(pids), heap };
}

/** What `count` of something take of a fresh cluster: resident and of the heap, each in bytes. */
async function costOf(isOwn: boolean, flags: readonly string[], count: number) {
  const nodes = isOwn ? await ownNodes() : null;
  const etcd = isOwn ? null : await EtcdNodes.start();
  try {
    const side = nodes === null ? etcdSide(etcd as EtcdNodes) : ownSide(nodes);
    const all = ["--address", side.addresses.join(","), "--service", side.service, ...flags];
    // What is there once for all, however many there are.
    const one = await Held.begin([...all, "--watchers", "3", "--streams", "3", "--waiters", "0"]);
    await sleep(2000);
    const before = await memoryOf(side.pids, nodes);
    const held = await Held.begin(all);
    await sleep(1000);
    const after = await memoryOf(side.pids, nodes);
    await held.end();
    await one.end();
    return [
      thousands((after.resident - before.resident) / count),
      isOwn ? thousands((after.heap - before.heap) / count) : "",
      thousands(count),
    ];
  } finally {
    await nodes?.end();
    await etcd?.end();
  }
}

async function measureMemory(): Promise<void> {
  const shapes = [
    ["watcher of one key, 3,000 to a stream", 45_000, 15, "one"],
    ["watcher of a key of its own, 3,000 to a stream", 45_000, 15, "own"],
    ["watcher on a stream of its own, 100 to a connection", 3000, 3000, "one"],
  ] as const;
  const rows: string[][] = [];
  for (const [title, watchers, streams, names] of shapes) {
    for (const isOwn of etcdVersion() === null ? [true] : [true, false]) {
      const flags = ["--watchers", String(watchers), "--streams", String(streams)];
      const cost = await costOf(isOwn, [...flags, "--names", names], watchers);
      rows.push([title, isOwn ? "here" : "etcd", ...cost]);
    }
  }
  for (const [waiters, locks] of [
    [4096, 1],
    [16_384, 4],
  ] as const) {
    const flags = ["--waiters", String(waiters), "--locks", String(locks)];
    rows.push([`waiter, ${locks} locks`, "here", ...(await costOf(true, flags, waiters))]);
  }
  printTable(["memory of one that only waits", "of", "resident B", "heap B", "count"], rows);
}

async function measureWaiters(side: Side): Promise<void> {
  const address = side.addresses.join(",");
  const ownHeld = (prefix: string, waiters: number, locks: number): Promise<Held> =>
    Held.begin([
      ...["--address", address, "--prefix", prefix],
      ...["--waiters", String(waiters), "--locks", String(locks)],
    ]);
  const few = await ownHeld("few", 1, 1);
  const many = await ownHeld("many", 4096, 1);
  const found = new Map([1, 4096].map((waiters) => [waiters, [] as number[][]]));
  for (let round = 0; round < 2 * ROUNDS; round++) {
    for (const [waiters, all] of found) {
      const { latencyMs, outcomes } = await drive(side.addresses[0] ?? "", seconds, [
        ...["--kind", "extend", "--inflight", "1", "--frame", "1", "--warmup-seconds", "0.2"],
        ...["--prefix", waiters === 1 ? "few/lock-0" : "many/lock-0"],
      ]);
      all.push([latencyMs.p50, latencyMs.p99]);
      if (Object.keys(outcomes).some((type) => type !== "2")) console.log("NOT EXTENDED", outcomes);
    }
  }
  const rows = [...found].map(([waiters, all]) => [
    thousands(waiters),
    ...[0, 1].map((at) => median(all.map((each) => each[at] as number)).toFixed(2)),
    all.map(([, p99 = 0]) => p99.toFixed(1)).join(" "),
  ]);
  printTable(["wait; the holder's extend", "p50 ms", "p99 ms", "p99 of the rounds"], rows);
  await few.end();
  await many.end();
  await sleep(2500);
  const idle: string[][] = [];
  for (const waiters of [0, 16_384]) {
    const held = waiters === 0 ? null : await ownHeld("idle", waiters, 4);
    await sleep(3000);
    const before = processorMs(side.pids);
    await sleep(2500 * seconds);
    const share = (processorMs(side.pids) - before) / (2500 * seconds);
    idle.push([thousands(waiters), (share * 100).toFixed(2)]);
    await held?.end();
  }
  printTable(["wait, nothing happens", "processor %, three nodes"], idle);
}

function ownNodes(): Promise<LocalNodes> {
  return LocalNodes.start([], 3, serverMain, ["--expose-gc", "--import", collecting]);
}

function ownSide(nodes: LocalNodes): Side {
  const addresses = nodes.ids.map((id) => `127.0.0.1:${nodes.portsOf(id).grpc}`);
  return { name: "here", service: "own", pids: nodes.pids, addresses };
}

function etcdSide(nodes: EtcdNodes): Side {
  const addresses = [1, 2, 3].map((id) => `127.0.0.1:${nodes.clientPort(id)}`);
  return { name: "etcd", service: "etcd", pids: nodes.pids, addresses };
}

printMachine();
if (PARTS.includes("memory")) await measureMemory();
const nodes = await ownNodes();
const etcd = etcdVersion() === null ? null : await EtcdNodes.start();
if (etcd === null) console.log("SKIPPED: etcd, which is not installed");
try {
  const own = ownSide(nodes);
  const sides = etcd === null ? [own] : [own, etcdSide(etcd)];
  await sleep(1000);
  if (PARTS.includes("fanout")) await measureFanout(sides);
  if (PARTS.includes("writes")) await measureWrites(own);
  if (PARTS.includes("waiters")) await measureWaiters(own);
  printMachine();
} finally {
  await nodes.end();
  await etcd?.end();
  await endAll();
}
