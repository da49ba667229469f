/**
 * The client in front of a real cluster of three nodes: routes are learned, and nodes go
 * away one after the other.
 */
import { join } from "node:path";
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import { hashPartition, sequenceHashText } from "../../../src/base/routing.js";
import {
  endAll,
  freePorts,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { Proxy } from "../../doubles/server/proxy.js";

const NODES = 3;
/** What is called at least between two faults. */
const CALLS_PER_STEP = 300;
const directory = temporaryDirectory();

t.setTimeout(240_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** Three members that know each other's ports; `start` is also the restart, with the data. */
async function makeCluster() {
  const ports = await freePorts(2 * NODES);
  const peer = (at: number): string => `${at + 1}=127.0.0.1:${ports[NODES + at]}`;
  const members = Array.from({ length: NODES }, (_, at) => peer(at)).join();
  const endpoints = ports.slice(0, NODES).map((port) => `127.0.0.1:${port}`);
  const start = (at: number): ServerProcess =>
    new ServerProcess([
      `--grpc-port=${ports[at]}`,
      "--http-port=0",
      "--https-port=off",
      `--peer-port=${ports[NODES + at]}`,
      `--raft-nodeid=${at + 1}`,
      `--initial-cluster=${members}`,
      "--initial-cluster-partitions=6",
      `--storage-path=${join(directory.path, `node-${at + 1}`)}`,
      "--log-level=warn",
    ]);
  const nodes = Array.from({ length: NODES }, (_, at) => start(at));
  await Promise.all(nodes.map((node) => node.ready()));
  return { start, endpoints, nodes };
}

const { start, endpoints, nodes } = await makeCluster();

/** Waits until `count()` has grown by so much that every caller had its turn several times. */
async function goesOn(count: () => number): Promise<void> {
  const enough = count() + CALLS_PER_STEP;
  const beginMs = performance.now();
  while (count() < enough) {
    if (performance.now() - beginMs > 60_000) throw new Error("the calls do not go on");
    await sleep(10);
  }
}

t.test("P-150 nodes of a cluster go away in turn: no call fails, no value twice", async (t) => {
  const beginMs = performance.now();
  const client = new SvcClient({ endpoints: endpoints.join(), keepAliveMs: 1000 });
  const names = Array.from({ length: 8 }, (_, at) => `roll-${at}`);
  for (const name of names) await client.sequences.ensure(name);
  const seen = new Set<string>();
  const failures: unknown[] = [];
  let calls = 0;
  let slowestMs = 0;
  let running = true;
  const loop = async (step: () => Promise<unknown>): Promise<void> => {
    while (running) {
      const begin = performance.now();
      try {
        await step();
        calls += 1;
      } catch (error) {
        failures.push(error);
      }
      slowestMs = Math.max(slowestMs, performance.now() - begin);
    }
  };
  const loops = names.flatMap((name, at) => [
    loop(async () => {
      const value = `${name} ${await client.sequences.next(name)}`;
      if (seen.has(value)) failures.push(new Error(`twice: ${value}`));
      seen.add(value);
    }),
    loop(() => client.kv.set(`${name}/x`, "v")),
    loop(() => client.kv.get(`${name}/x`)),
    loop(() => client.locks.tryLock(name, { owner: `o${at}`, leaseMs: 60_000 })),
  ]);
  for (let at = 0; at < NODES; at++) {
    await goesOn(() => calls);
    const node = nodes[at] as ServerProcess;
    // One is asked to stop, one is killed, and one stands still for longer than an election.
    if (at === 2) {
      node.signal("SIGSTOP");
      await sleep(4000);
      node.signal("SIGCONT");
    } else {
      await (at === 0 ? node.stop() : node.kill());
      nodes[at] = start(at);
      await (nodes[at] as ServerProcess).ready();
    }
    t.comment(`node ${at + 1} is back at ${Math.round(performance.now() - beginMs)} ms`);
  }
  await goesOn(() => calls);
  running = false;
  await Promise.all(loops);
  t.comment(`${calls} calls, the slowest took ${Math.round(slowestMs)} ms`);
  t.same(failures, []);
  t.ok(calls > 100, `${calls} calls`);

  const { leaders, hashPoolSize } = await client.cluster.routing();
  await client.close();
  const leads = (at: number): number =>
    leaders.filter(({ endpoint }) => endpoint === `http://${endpoints[at]}`).length;
  const [least] = [0, 1, 2].sort((a, b) => leads(a) - leads(b)) as [number];

  // A client that was told one address only, and that one does not answer any more.
  const proxy = await Proxy.open(endpoints[least] as string);
  const one = new SvcClient({ endpoints: proxy.address, deadlineMs: 20_000 });
  const leaderOf = new Map(leaders.map(({ partitionId, endpoint }) => [partitionId, endpoint]));
  t.notOk(
    leaders.some(({ endpoint }) => endpoint === ""),
    "every partition has a leader",
  );
  for (let round = 0; round < 5; round++) {
    await Promise.all(names.map((name) => one.sequences.next(name)));
    await sleep(50);
  }
  proxy.stall();
  const elsewhere = names.filter((name) => {
    const leader = leaderOf.get(hashPartition(sequenceHashText(name), hashPoolSize));
    return leader !== `http://${endpoints[least]}`;
  });
  t.ok(elsewhere.length > 0, `${elsewhere.length} sequences are led elsewhere`);
  const direct = await Promise.all(elsewhere.map((name) => one.sequences.next(name)));
  t.equal(direct.length, elsewhere.length, "served without the configured endpoint");
  await one.close();
  await proxy.close();
  t.comment(`ended at ${Math.round(performance.now() - beginMs)} ms`);
});

/** What eight callers do at once until they are stopped, and what was wrong with the answers. */
class MixedLoad {
  readonly failures: unknown[] = [];
  readonly calls = { next: 0, set: 0, get: 0, tryLock: 0, unlock: 0 };
  slowestMs = 0;
  private readonly seen = new Set<string>();
  private readonly loops: Promise<void>[] = [];
  private running = true;

  constructor(private readonly client: SvcClient) {}

  async begin(names: readonly string[]): Promise<void> {
    for (const name of names) await this.client.sequences.ensure(name);
    for (const name of names) {
      this.loops.push(this.sequence(name), this.keys(name), this.lock(name));
    }
  }

  /** Calls that were answered. */
  get count(): number {
    return Object.values(this.calls).reduce((sum, one) => sum + one, 0);
  }

  async end(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  private async call<T>(kind: keyof MixedLoad["calls"], call: () => Promise<T>): Promise<T | null> {
    const beginMs = performance.now();
    try {
      const answer = await call();
      this.calls[kind] += 1;
      return answer;
    } catch (error) {
      this.failures.push({ kind, error });
      return null;
    } finally {
      this.slowestMs = Math.max(this.slowestMs, performance.now() - beginMs);
    }
  }

  private async sequence(name: string): Promise<void> {
    while (this.running) {
      const value = await this.call("next", () => this.client.sequences.next(name));
      if (value === null) continue;
      if (this.seen.has(`${name} ${value}`)) this.failures.push(`twice: ${name} ${value}`);
      this.seen.add(`${name} ${value}`);
    }
  }

  private async keys(name: string): Promise<void> {
    const key = `${name}/key`;
    for (let turn = 1; this.running; turn++) {
      const written = await this.call("set", () => this.client.kv.set(key, String(turn)));
      const entry = await this.call("get", () => this.client.kv.get(key));
      const read = entry?.text ?? null;
      // Whoever wrote last reads what it wrote: nobody else writes this key.
      if (written !== null && read !== String(turn)) this.failures.push({ key, turn, read });
    }
  }

  private async lock(name: string): Promise<void> {
    const owner = `owner of ${name}`;
    let last = -1n;
    while (this.running) {
      const lease = { owner, leaseMs: 60_000 };
      const grant = await this.call("tryLock", () => this.client.locks.tryLock(name, lease));
      if (grant === null) continue;
      const isNew = grant.acquired && grant.fencingToken > last;
      if (!isNew) this.failures.push({ name, last, grant });
      last = grant.fencingToken;
      const ended = await this.call("unlock", () => this.client.locks.unlock(name, { owner }));
      if (ended !== null && !ended.unlocked && !ended.doubtful) this.failures.push({ name, ended });
    }
  }
}

t.test("P-150 all nodes are restarted in turn by SIGTERM: no call fails", async (t) => {
  const client = new SvcClient({ endpoints: endpoints.join() });
  const load = new MixedLoad(client);
  await load.begin(Array.from({ length: 8 }, (_, at) => `rolling-${at}`));
  await goesOn(() => load.count);
  for (let at = 0; at < NODES; at++) {
    const before = { ...load.calls };
    const beginMs = performance.now();
    const ended = await (nodes[at] as ServerProcess).stop();
    const stoppedMs = performance.now() - beginMs;
    t.strictSame(ended, { code: 0, signal: null }, `node ${at + 1} ends as it was asked to`);
    nodes[at] = start(at);
    await (nodes[at] as ServerProcess).ready();
    const readyMs = performance.now() - beginMs - stoppedMs;
    t.comment(
      `node ${at + 1} stopped in ${Math.round(stoppedMs)} ms, ready after ${Math.round(readyMs)} ms;` +
        ` slowest call so far ${Math.round(load.slowestMs)} ms`,
    );
    for (const kind of ["next", "set", "get", "tryLock", "unlock"] as const) {
      t.ok(load.calls[kind] > before[kind], `${kind} went on meanwhile`);
    }
  }
  await goesOn(() => load.count);
  await load.end();
  t.comment(`calls: ${JSON.stringify(load.calls)}`);
  t.same(load.failures.slice(0, 5), []);
  await client.close();
  await Promise.all(nodes.map((node) => node.stop()));
});
