/** The client in front of a real cluster of three nodes: routes are learned, and nodes go away one after the other. */
import { createServer } from "node:net";
import { join } from "node:path";
import t from "tap";
import { SvcClient } from "../../src/client/mod.js";
import { hashPartition, sequenceHashText } from "../../src/base/routing.js";
import { endAll, ServerProcess, sleep, temporaryDirectory } from "../cluster/server-process.js";
import { Proxy } from "./proxy.js";

const NODES = 3;
const directory = temporaryDirectory();

t.setTimeout(240_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** Ports that are free now; all members must know them before anyone listens. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

const ports = await freePorts(2 * NODES);
const grpcPort = (at: number): number => ports[at] as number;
const peers = Array.from({ length: NODES }, (_, at) => `${at + 1}=127.0.0.1:${ports[NODES + at]}`);

function start(at: number): ServerProcess {
  return new ServerProcess([
    `--grpc-port=${grpcPort(at)}`,
    "--http-port=0",
    "--https-port=off",
    `--peer-port=${ports[NODES + at]}`,
    `--raft-nodeid=${at + 1}`,
    `--initial-cluster=${peers.join()}`,
    "--initial-cluster-partitions=6",
    `--storage-path=${join(directory.path, `node-${at + 1}`)}`,
    "--log-level=warn",
  ]);
}

t.test("P-150 nodes of a cluster go away in turn: no call fails, no value twice", async (t) => {
  const beginMs = performance.now();
  const nodes = Array.from({ length: NODES }, (_, at) => start(at));
  await Promise.all(nodes.map((node) => node.ready()));
  const endpoints = Array.from({ length: NODES }, (_, at) => `127.0.0.1:${grpcPort(at)}`);
  const client = new SvcClient({ endpoints: endpoints.join(), keepAliveMs: 1000 });
  t.comment(`ready at ${Math.round(performance.now() - beginMs)} ms`);
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
    await sleep(500);
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
  await sleep(500);
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
  await Promise.all(nodes.map((node) => node.stop()));
  t.comment(`ended at ${Math.round(performance.now() - beginMs)} ms`);
});
