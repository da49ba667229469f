/**
 * From the SIGKILL of a node to the first acknowledged write on every partition that it led, at
 * default timeouts. Run: npm run perf -- load/failover (SVC_PERF_KILLS: how many kills, 20;
 * SVC_PERF_NODES and SVC_PERF_FACTOR: of placed partitions).
 *
 * A writer per partition asks the two other nodes in turn, over REST, each try with a deadline of
 * its own; the time of a kill is that of its slowest partition.
 */
import { endAll, sleep } from "../../test/process/cluster/server-process.js";
import { hashPartition, keySpaceHashText } from "../../src/base/routing.js";
import { median, printMachine, printTable } from "./report.js";
import { LocalNodes } from "./local-nodes.js";

const KILLS = Number(process.env["SVC_PERF_KILLS"] ?? 20);
const NODES = Number(process.env["SVC_PERF_NODES"] ?? 3);
/** Replicas of each partition; 0 = on every node. */
const FACTOR = Number(process.env["SVC_PERF_FACTOR"] ?? 0);
const PARTITIONS = 16;
const TRY_MS = 1000;
const GIVE_UP_MS = 20_000;

/** One key of each partition. */
function keysByPartition(): Map<number, string> {
  const keys = new Map<number, string>();
  for (let at = 0; keys.size < PARTITIONS; at++) {
    const partition = hashPartition(keySpaceHashText(`failover-${at}`), PARTITIONS);
    if (!keys.has(partition)) keys.set(partition, `failover-${at}`);
  }
  return keys;
}

async function set(port: number, key: string): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/kv/try-set`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key, value: "eA==" }),
      signal: AbortSignal.timeout(TRY_MS),
    });
    const body = (await answer.json()) as { type: number };
    return answer.status === 200 && body.type === 0;
  } catch {
    return false;
  }
}

/** Milliseconds from `startMs` until a write of `key` is acknowledged. */
async function firstWriteMs(ports: readonly number[], key: string, startMs: number) {
  for (let at = 0; ; at++) {
    if (await set(ports[at % ports.length] as number, key)) return performance.now() - startMs;
    if (performance.now() - startMs > GIVE_UP_MS) throw new Error(`${key}: no write in time`);
    await sleep(5);
  }
}

printMachine();
const keys = keysByPartition();
const nodes = await LocalNodes.start([`--raft-replication-factor=${FACTOR}`], NODES);
const rows: string[][] = [];
const times: number[] = [];
try {
  for (let kill = 0; kill < KILLS; kill++) {
    const leaders = await nodes.leaders(1);
    const led = (id: number): number[] =>
      [...leaders].filter(([partition, node]) => partition > 0 && node === id).map(([p]) => p);
    const victim = [...nodes.ids].sort((a, b) => led(b).length - led(a).length)[0] ?? 1;
    const partitions = led(victim);
    const others = nodes.ids.filter((id) => id !== victim).map((id) => nodes.portsOf(id).http);
    for (const partition of partitions) await set(others[0] as number, keys.get(partition) ?? "");
    const startMs = performance.now();
    const killed = nodes.kill(victim);
    const each = await Promise.all(
      partitions.map((partition) => firstWriteMs(others, keys.get(partition) ?? "", startMs)),
    );
    await killed;
    times.push(...each);
    rows.push([
      `kill ${kill + 1}: node ${victim}`,
      String(partitions.length),
      median(each).toFixed(0),
      Math.max(...each).toFixed(0),
    ]);
    nodes.begin(victim);
    await nodes.ready();
    await sleep(500);
  }
  printTable(["failover", "partitions led", "median ms", "slowest ms"], rows);
  const sorted = [...times].sort((a, b) => a - b);
  console.log(
    `${KILLS} kills, ${times.length} partitions: median ${median(times).toFixed(0)} ms, ` +
      `p90 ${(sorted[Math.floor(sorted.length * 0.9)] ?? 0).toFixed(0)} ms, ` +
      `maximum ${(sorted[sorted.length - 1] ?? 0).toFixed(0)} ms`,
  );
  printMachine();
} finally {
  await nodes.end();
  await endAll();
}
