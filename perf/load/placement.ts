/**
 * Placement with real processes: a node of five leaves (drain), joins again empty (join, balance), and callers of the
 * others write all the time; rest, drain and balance take turns in one run. Factor 3.
 * Run: npm run perf -- load/placement (SVC_PERF_ROUNDS: turns, 2; SVC_PERF_PARTITIONS: 64; SVC_PERF_MIB: data of each, 4;
 * SVC_PERF_CALLERS: callers in a closed loop, 4: a node whose loop is behind takes no part in balance; SVC_PERF_RATE: sets per
 * second that all callers offer together, at planned times from which they are timed, 0: as many as are answered)
 */
import { KvType, typeNames } from "../../src/base/result-types.js";
import { hashPartition, keySpaceHashText } from "../../src/base/routing.js";
import { type Elections, ElectionTally } from "../../test/process/cluster/elections.js";
import { endAll, sleep } from "../../test/process/cluster/server-process.js";
import { LocalNodes } from "./local-nodes.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 2);
const MIB_EACH = Number(process.env["SVC_PERF_MIB"] ?? 4);
const NODES = 5;
const LEAVER = 5;
const PARTITIONS = Number(process.env["SVC_PERF_PARTITIONS"] ?? 64);
const FACTOR = 3;
const CALLERS = Number(process.env["SVC_PERF_CALLERS"] ?? 4);
const RATE = Number(process.env["SVC_PERF_RATE"] ?? 0);
/** Between the planned times of one caller (ms); 0 = it asks again at once. */
const BETWEEN_MS = RATE > 0 ? (1000 * CALLERS) / RATE : 0;
const VALUE_BYTES = 64 << 10;
/** Longer than a node lets a request wait (--request-timeout): what fails, the cluster refused. */
const TRY_MS = 15_000;
const TYPE_NAMES = typeNames(KvType);
/** A node gets replicas when it has been live for so long (ms). */
const LIVE_MS = 32_000;
const GIVE_UP_MS = 1000 * Number(process.env["SVC_PERF_GIVE_UP_SECONDS"] ?? 240);

/** Key spaces by partition, one each. */
function namesByPartition(): Map<number, string> {
  const names = new Map<number, string>();
  for (let at = 0; names.size < PARTITIONS; at++) {
    const partition = hashPartition(keySpaceHashText(`space-${at}`), PARTITIONS);
    if (!names.has(partition)) names.set(partition, `space-${at}`);
  }
  return names;
}

async function post(port: number, path: string, body: object, timeoutMs: number): Promise<object> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMs),
  });
  return (await answer.json()) as object;
}

/** "" when it is done; else what came of it. */
async function set(port: number, key: string, value: string): Promise<string> {
  try {
    const answer = await post(port, "/v1/kv/try-set", { key, value }, TRY_MS);
    const { type, code } = answer as { type?: number; code?: string };
    if (type === 0) return "";
    return TYPE_NAMES.get(type ?? -1) ?? code ?? JSON.stringify(answer);
  } catch (error) {
    // What fetch fails with is told by its cause.
    const { name, cause } = error as { name?: string; cause?: { code?: string } };
    return cause?.code ?? name ?? "error";
  }
}

interface Placement {
  readonly partitions: readonly {
    readonly replicas: readonly { readonly endpoint: string; readonly role: string }[];
  }[];
}

/** Replicas by peer endpoint; null while one is on its way. */
async function counts(nodes: LocalNodes, asked: number): Promise<Map<string, number> | null> {
  const answer = await fetch(`http://127.0.0.1:${nodes.portsOf(asked).http}/v1/cluster/placement`);
  const { partitions } = (await answer.json()) as Placement;
  const found = new Map([...nodes.ports.values()].map(({ peer }) => [`127.0.0.1:${peer}`, 0]));
  for (const { replicas } of partitions) {
    for (const { endpoint, role } of replicas) {
      if (role !== "Voter") return null;
      found.set(endpoint, (found.get(endpoint) ?? 0) + 1);
    }
  }
  return found;
}

/** What the allocator says, and how busy the nodes are: why nothing moves. */
async function told(nodes: LocalNodes): Promise<string> {
  const lines: string[] = [];
  for (const id of nodes.ids) {
    for (const [name, value] of await nodes.metrics(id)) {
      const isAsked = /^svc_(placement_(waiting|in_flight)|event_loop_lag_p99)/.test(name);
      if (isAsked && value > 0) lines.push(`node ${id}: ${name} ${value}`);
    }
  }
  return lines.join("\n");
}

/** Waits until no node has two replicas more than another; how long it took (ms), if it came to that. */
async function balanced(nodes: LocalNodes, sinceMs: number): Promise<number> {
  for (;;) {
    const found = await counts(nodes, 1);
    const all = [...(found?.values() ?? [])];
    if (all.length > 0 && Math.max(...all) - Math.min(...all) < 2)
      return performance.now() - sinceMs;
    if (performance.now() - sinceMs > GIVE_UP_MS) {
      console.log(`replicas are not spread evenly:\n${await told(nodes)}`);
      return Infinity;
    }
    await sleep(250);
  }
}

/** Callers on the nodes that stay: each asks again when it is answered, or at its planned times. */
class Foreground {
  private times: number[] = [];
  /** By the kind of answer: how many, and how long the longest took (ms). */
  private failed = new Map<string, { count: number; longestMs: number }>();
  private readonly elections: ElectionTally;
  private sinceMs = performance.now();
  private isOver = false;
  private readonly loops: Promise<void>[];

  constructor(nodes: LocalNodes, ports: readonly number[], names: readonly string[]) {
    this.elections = new ElectionTally(nodes);
    this.loops = Array.from({ length: CALLERS }, (_, at) => this.loop(at, ports, names));
  }

  private async loop(
    at: number,
    ports: readonly number[],
    names: readonly string[],
  ): Promise<void> {
    const value = Buffer.alloc(100, 1).toString("base64");
    let plannedMs = performance.now() + (at * BETWEEN_MS) / CALLERS;
    for (let call = at; !this.isOver; call++) {
      const aheadMs = plannedMs - performance.now();
      if (BETWEEN_MS > 0 && aheadMs > 0) await sleep(aheadMs);
      // What waits for a slow answer before it waits itself: it is timed from when it should have been asked.
      const beganMs = BETWEEN_MS > 0 ? plannedMs : performance.now();
      plannedMs += BETWEEN_MS;
      const port = ports[call % ports.length] as number;
      const end = await set(port, `${names[call % names.length]}/fg-${at}`, value);
      const tookMs = performance.now() - beganMs;
      if (end === "") this.times.push(tookMs);
      else this.fail(end, tookMs);
    }
  }

  private fail(end: string, tookMs: number): void {
    const { count, longestMs } = this.failed.get(end) ?? { count: 0, longestMs: 0 };
    this.failed.set(end, { count: count + 1, longestMs: Math.max(longestMs, tookMs) });
  }

  /** What happened since the last call, as a row. */
  async take(name: string): Promise<Window> {
    const elections = await this.elections.take();
    const nowMs = performance.now();
    const sorted = this.times.sort((a, b) => a - b);
    const seconds = (nowMs - this.sinceMs) / 1000;
    const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
    const window = {
      ...{ name, seconds, perSecond: sorted.length / seconds },
      ...{
        p50: at(0.5),
        p99: at(0.99),
        failed: [...this.failed]
          .map(([end, { count, longestMs }]) => `${count} x ${end} (${longestMs.toFixed(0)} ms)`)
          .join(", "),
        elections,
      },
    };
    this.times = [];
    this.failed = new Map();
    this.sinceMs = nowMs;
    return window;
  }

  async end(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.loops);
  }
}

interface Window {
  readonly name: string;
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly failed: string;
  readonly elections: Elections;
}

async function fill(nodes: LocalNodes, names: readonly string[]): Promise<number> {
  const value = Buffer.alloc(VALUE_BYTES, 7).toString("base64");
  const each = Math.round((MIB_EACH * 2 ** 20) / VALUE_BYTES);
  const keys = names.flatMap((name) =>
    Array.from({ length: each }, (_, at) => `${name}/data-${at}`),
  );
  const beganMs = performance.now();
  let next = 0;
  const writer = async (): Promise<void> => {
    for (let at = next++; at < keys.length; at = next++) {
      const port = nodes.portsOf(1 + (at % (NODES - 1))).http;
      while ((await set(port, keys[at] as string, value)) !== "") await sleep(50);
    }
  };
  await Promise.all(Array.from({ length: 8 }, writer));
  return performance.now() - beganMs;
}

/** Until the node is listed as a voter, as node 1 knows; the time since it was started (ms). */
async function joined(nodes: LocalNodes, id: number, sinceMs: number): Promise<number> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${nodes.portsOf(1).http}/v1/cluster/membership`);
    const { members } = (await answer.json()) as { members: { nodeId: number; role: string }[] };
    if (members.some(({ nodeId, role }) => nodeId === id && role === "Voter")) {
      return performance.now() - sinceMs;
    }
    if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error("the node does not join");
    await sleep(50);
  }
}

printMachine();
const nodes = await LocalNodes.start(
  [`--initial-cluster-partitions=${PARTITIONS}`, `--raft-replication-factor=${FACTOR}`],
  NODES,
);
try {
  const names = [...namesByPartition().values()];
  const filledMs = await fill(nodes, names);
  console.log(
    `${PARTITIONS} partitions of ${MIB_EACH} MiB written in ${(filledMs / 1000).toFixed(1)} s`,
  );
  await sleep(LIVE_MS);
  const ports = nodes.ids.filter((id) => id !== LEAVER).map((id) => nodes.portsOf(id).http);
  const windows: Window[] = [];
  const moves: string[][] = [];
  const foreground = new Foreground(nodes, ports, names);
  await sleep(3000);
  await foreground.take("warm-up");
  for (let round = 1; round <= ROUNDS; round++) {
    await sleep(phaseSeconds(10) * 1000);
    windows.push(await foreground.take("rest"));
    const leftAtMs = performance.now();
    const answer = await post(nodes.portsOf(LEAVER).http, "/v1/cluster/leave", {}, GIVE_UP_MS);
    const drainMs = performance.now() - leftAtMs;
    windows.push(await foreground.take("drain"));
    const { outcome, drained } = answer as { outcome: string; drained: boolean };
    if (outcome !== "Committed") throw new Error(`the leave ended with ${outcome}`);
    await nodes.stop(LEAVER);
    const beganMs = performance.now();
    await nodes.join(LEAVER);
    const joinMs = await joined(nodes, LEAVER, beganMs);
    await nodes.ready([LEAVER]);
    const readyMs = performance.now() - beganMs;
    await foreground.take("join");
    await sleep(LIVE_MS);
    await foreground.take("until it is live for 30 s");
    const spreadMs = await balanced(nodes, beganMs);
    windows.push(await foreground.take("balance"));
    moves.push([
      `round ${round}`,
      `${(drainMs / 1000).toFixed(1)}${drained ? "" : " (not drained)"}`,
      ...[joinMs, readyMs, spreadMs].map((ms) => (ms / 1000).toFixed(1)),
    ]);
  }
  await foreground.end();
  printTable(["", "drain s", "voter after s", "ready after s", "even after s"], moves);
  console.log("");
  const head = [
    `sets of 100 B, ${CALLERS} callers${RATE > 0 ? `, ${RATE} offered` : ""}`,
    "seconds",
    "per second",
    "p50 ms",
    "p99 ms",
    "failed",
    "terms, ordered",
    "stood still",
  ];
  printTable(
    head,
    windows.map(({ name, seconds, perSecond, p50, p99, failed, elections }) => [
      ...[name, seconds.toFixed(0), thousands(perSecond)],
      ...[p50.toFixed(1), p99.toFixed(1), failed === "" ? "0" : failed],
      ...[`${elections.terms}, ${elections.ordered}`, `${elections.stills}`],
    ]),
  );
  const of = (name: string, read: (window: Window) => number): number =>
    median(windows.filter((window) => window.name === name).map(read));
  for (const name of ["drain", "balance"]) {
    const throughput = of(name, (each) => each.perSecond) / of("rest", (each) => each.perSecond);
    const p99 = of(name, (each) => each.p99) / of("rest", (each) => each.p99);
    const share = `${(100 * throughput).toFixed(0)} % of the throughput at rest`;
    console.log(`${name}: ${share}, p99 ${p99.toFixed(2)} times that at rest`);
  }
  printMachine();
} finally {
  await nodes.end();
  await endAll();
}
