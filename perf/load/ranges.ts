/**
 * Moves of key ranges with real processes: a range is split in halves under load, and merged again
 * when it is small. What a split takes, for how long writers into the range are held up, and what others feel.
 * Run: npm run perf -- load/ranges (SVC_PERF_ROUNDS: splits, 5; SVC_PERF_KEYS: keys of the range, 100000;
 * SVC_PERF_WRITES: writes per second into the range, 2000)
 */
import { SvcClient } from "../../src/client/mod.js";
import { endAll, sleep } from "../../test/process/cluster/server-process.js";
import { LocalNodes } from "./local-nodes.js";
import { median, printMachine, printTable } from "./report.js";

const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 5);
const KEYS = Number(process.env["SVC_PERF_KEYS"] ?? 100_000);
const WRITES_PER_SECOND = Number(process.env["SVC_PERF_WRITES"] ?? 2000);
const VALUE = Buffer.alloc(100, 7);
const BATCH_MS = 5;
/** Ranges are left alone for so long after they changed (ms). */
const SETTLES_MS = 10_500;

function keyOf(space: string, at: number): string {
  return `${space}/${String(at).padStart(6, "0")}`;
}

/** Writes at a steady rate, however long answers take, and remembers how long each took. */
class Writer {
  private times: number[] = [];
  private failed = 0;
  private isOver = false;
  private readonly done: Promise<void>;

  constructor(
    private readonly client: SvcClient,
    private readonly nextKey: (at: number) => string,
    private readonly perSecond: number,
  ) {
    this.done = this.loop();
  }

  private async loop(): Promise<void> {
    const beganMs = performance.now();
    for (let at = 0; !this.isOver;) {
      const due = ((performance.now() - beganMs) / 1000) * this.perSecond;
      for (; at < due; at++) void this.write(this.nextKey(at));
      await sleep(BATCH_MS);
    }
  }

  private async write(key: string): Promise<void> {
    const beganMs = performance.now();
    try {
      await this.client.kv.set(key, VALUE);
      this.times.push(performance.now() - beganMs);
    } catch {
      this.failed++;
    }
  }

  /** Since the last call: writes, percentiles (ms), failed ones. */
  take(): Taken {
    const sorted = this.times.sort((a, b) => a - b);
    const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
    const taken = {
      writes: sorted.length,
      p50: at(0.5),
      p99: at(0.99),
      max: sorted.at(-1) ?? 0,
      failed: this.failed,
    };
    this.times = [];
    this.failed = 0;
    return taken;
  }

  async end(): Promise<void> {
    this.isOver = true;
    await this.done;
  }
}

interface Taken {
  readonly writes: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly failed: number;
}

function row(name: string, seconds: number, { writes, p50, p99, max, failed }: Taken): string[] {
  const times = [p50, p99, max].map((ms) => ms.toFixed(1));
  return [name, seconds.toFixed(1), (writes / seconds).toFixed(0), ...times, String(failed)];
}

/** A counter, over all nodes. */
async function total(nodes: LocalNodes, name: RegExp): Promise<number> {
  let sum = 0;
  for (const id of nodes.ids) {
    for (const [each, value] of await nodes.metrics(id)) if (name.test(each)) sum += value;
  }
  return sum;
}

function msSince(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): string {
  const took = [...now].map(([step, seconds]) => {
    return `${step} ${(1000 * (seconds - (before.get(step) ?? 0))).toFixed(0)}`;
  });
  return took.join(", ");
}

/** Asks each node until one does it: only the leader of meta does. */
async function atLeader<Result extends { readonly status: string }>(
  clients: readonly SvcClient[],
  call: (client: SvcClient) => Promise<Result>,
): Promise<{ readonly result: Result; readonly tookMs: number }> {
  for (;;) {
    for (const client of clients) {
      const beganMs = performance.now();
      const result = await call(client);
      if (result.status !== "NotLeader") return { result, tookMs: performance.now() - beganMs };
    }
    await sleep(100);
  }
}

printMachine();
const nodes = await LocalNodes.start([
  "--range-split-threshold=0",
  "--range-collection-interval=1h",
]);
const clients = nodes.ids.map(
  (id) => new SvcClient({ endpoints: `http://127.0.0.1:${nodes.portsOf(id).grpc}` }),
);
const client = new SvcClient({
  endpoints: nodes.ids.map((id) => `http://127.0.0.1:${nodes.portsOf(id).grpc}`),
});
try {
  const frozenMs = async (): Promise<number> =>
    1000 * (await total(nodes, /^svc_range_frozen_seconds_sum/));
  const windows: string[][] = [];
  const frozen: number[] = [];
  /** Of the moves, from the first copy to the cut. */
  const phaseSeconds = async (): Promise<Map<string, number>> => {
    const sums = new Map<string, number>();
    for (const id of nodes.ids) {
      for (const [name, value] of await nodes.metrics(id)) {
        const phase = /^svc_range_move_phase_seconds_sum\{phase="([^"]+)"/.exec(name)?.[1];
        if (phase !== undefined) sums.set(phase, (sums.get(phase) ?? 0) + value);
      }
    }
    return sums;
  };
  const phases: string[][] = [];
  const splits: string[][] = [];
  const splitSeconds: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const space = `space-${round}`;
    for (const each of clients) await each.ranges.register(space);
    const filling: Promise<unknown>[] = [];
    for (let at = 0; at < KEYS; at++) {
      filling.push(client.kv.set(keyOf(space, at), VALUE));
      if (filling.length >= 1000) await Promise.all(filling.splice(0));
    }
    await Promise.all(filling);
    const inside = new Writer(client, (at) => keyOf(space, (at * 7919) % KEYS), WRITES_PER_SECOND);
    const beside = new Writer(client, (at) => `other-${at % 64}/key`, WRITES_PER_SECOND / 4);
    await sleep(3000);
    inside.take();
    beside.take();
    await sleep(5000);
    windows.push(row(`${round} rest, inside`, 5, inside.take()));
    windows.push(row(`${round} rest, beside`, 5, beside.take()));
    const bytesBefore = await total(nodes, /^svc_range_moved_bytes_total/);
    const frozenBeforeMs = await frozenMs();
    const phasesBefore = await phaseSeconds();
    const middle = keyOf(space, KEYS / 2);
    const split = await atLeader(clients, (each) => each.ranges.split(space, middle));
    const seconds = split.tookMs / 1000;
    windows.push(row(`${round} split, inside`, seconds, inside.take()));
    windows.push(row(`${round} split, beside`, seconds, beside.take()));
    const bytes = (await total(nodes, /^svc_range_moved_bytes_total/)) - bytesBefore;
    frozen.push((await frozenMs()) - frozenBeforeMs);
    splitSeconds.push(seconds);
    phases.push([`split ${round}`, msSince(phasesBefore, await phaseSeconds())]);
    splits.push([
      String(round),
      split.result.status,
      seconds.toFixed(2),
      (bytes / 2 ** 20).toFixed(1),
      (frozen.at(-1) ?? 0).toFixed(1),
    ]);
    await inside.end();
    await beside.end();
    await sleep(1000);
    for (const each of clients) await each.ranges.unregister(space);
  }
  printTable(["window", "s", "writes/s", "p50 ms", "p99 ms", "longest ms", "failed"], windows);
  printTable(["split", "status", "s", "MiB moved", "frozen ms"], splits);
  console.log(`a split of ${KEYS} keys: ${median(splitSeconds).toFixed(2)} s (median)`);
  const longestMs = Math.max(...frozen);
  console.log(
    `keys frozen: ${median(frozen).toFixed(1)} ms (median), ${longestMs.toFixed(1)} at most`,
  );
  const small: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const space = `small-${round}`;
    for (const each of clients) await each.ranges.register(space);
    for (let at = 0; at < 12; at++) await client.kv.set(keyOf(space, at), VALUE);
    await atLeader(clients, (each) => each.ranges.split(space, keyOf(space, 6)));
    for (let at = 0; at < 4; at++) await client.kv.delete(keyOf(space, at));
  }
  await sleep(SETTLES_MS);
  const phasesBefore = await phaseSeconds();
  const merged = await atLeader(clients, (each) => each.ranges.merge());
  small.push(merged.tookMs / Math.max(1, merged.result.merges));
  phases.push([`${merged.result.merges} merges`, msSince(phasesBefore, await phaseSeconds())]);
  printTable(["move", "ms of each step"], phases);
  console.log(`${merged.result.merges} merges of 8 keys: ${median(small).toFixed(0)} ms each`);
} finally {
  await Promise.all([...clients, client].map((each) => each.close()));
  await nodes.end();
  await endAll();
}
