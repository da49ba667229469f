/**
 * Watches against real nodes: every kind over gRPC, REST polls and server-sent events, and a client
 * that goes on while nodes of its cluster go away.
 */
import { join } from "node:path";
import t from "tap";
import { EventSource } from "undici";
import { SvcClient, type Watch, type WatchEvent } from "../../../src/client/mod.js";
import {
  endAll,
  foundersOf,
  freePorts,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";

const NODES = 3;
const directory = temporaryDirectory();

t.setTimeout(240_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

const ports = await freePorts(2 * NODES);
const start = (at: number): ServerProcess =>
  new ServerProcess([
    `--grpc-port=${ports[at]}`,
    "--http-port=0",
    "--https-port=off",
    `--peer-port=${ports[NODES + at]}`,
    `--raft-nodeid=${at + 1}`,
    `--initial-cluster=${foundersOf(ports.slice(NODES))}`,
    "--initial-cluster-partitions=4",
    `--storage-path=${join(directory.path, `node-${at + 1}`)}`,
    "--log-level=warn",
  ]);
const nodes = Array.from({ length: NODES }, (_, at) => start(at));
const addresses = await Promise.all(nodes.map((node) => node.ready()));
const endpoints = ports.slice(0, NODES).map((port) => `127.0.0.1:${port}`);
const writer = new SvcClient({ endpoints });
t.teardown(() => writer.close());

/** Gathers the events of a watch until `count` are there. */
async function gather(watch: Watch, count: number): Promise<WatchEvent[]> {
  const all: WatchEvent[] = [];
  while (all.length < count) {
    const { value, done } = await watch.next();
    if (done === true) throw new Error(`the watch ended after ${all.length} events`);
    all.push(...value.events);
  }
  return all;
}

for (const transport of ["grpc", "rest"] as const) {
  t.test(`${transport}: keys, prefixes, buckets, locks and sequences are told`, async (t) => {
    const own = transport === "grpc" ? endpoints : addresses.map(({ http }) => http ?? "");
    const client = new SvcClient({ endpoints: own, transport });
    const p = `w-${transport}`;
    const watches = {
      key: client.watch.key(`${p}/k`),
      prefix: client.watch.prefix(`${p}/`),
      bucket: client.watch.bucket(p),
      lock: client.watch.lock(p),
      lockPrefix: client.watch.lockPrefix(p),
      sequence: client.watch.sequence(p),
    };
    await Promise.all(Object.values(watches).map((watch) => watch.started()));
    await writer.kv.set(`${p}/k`, "one");
    await writer.kv.set(`${p}/k`, "two");
    await writer.kv.delete(`${p}/k`);
    const lock = await writer.locks.acquire(p, { leaseMs: 60_000, note: "busy" });
    await lock.release();
    await writer.sequences.create(p, { blockSize: 10 });
    await writer.sequences.next(p);
    const told = ["set", "set", "deleted"];
    for (const kind of ["key", "prefix", "bucket"] as const) {
      const events = await gather(watches[kind], 3);
      t.same(
        events.map(({ type }) => type),
        told,
        kind,
      );
      t.same(
        events.map(({ text }) => text),
        ["one", "two", null],
        kind,
      );
    }
    for (const kind of ["lock", "lockPrefix"] as const) {
      const [granted, released] = await gather(watches[kind], 2);
      const { fencingToken, ownerText } = lock;
      t.match(granted, { type: "locked", name: p, fencingToken, ownerText, noteText: "busy" });
      t.match(released, { type: "unlocked", name: p, fencingToken });
    }
    const [made, reserved] = await gather(watches.sequence, 2);
    t.match(made, { type: "sequence-created", sequence: { name: p, blockSize: 10 } });
    t.equal(reserved?.type, "sequence-reserved");
    await client.close();
  });

  t.test(`${transport}: the state first, a cursor goes on, sync is a barrier`, async (t) => {
    const own = transport === "grpc" ? endpoints : addresses.map(({ http }) => http ?? "");
    const client = new SvcClient({ endpoints: own, transport });
    const p = `s-${transport}/`;
    for (let at = 0; at < 20; at++) await writer.kv.set(`${p}${at}`, `${at}`);
    const watch = client.watch.prefix(p, { initial: true });
    const first = await gather(watch, 20);
    t.equal(new Set(first.map(({ name }) => name)).size, 20);
    while (watch.cursor === null) await watch.next();
    const { cursor } = watch;
    await watch.return();
    await writer.kv.set(`${p}late`, "x");
    const again = client.watch.prefix(p, { cursor });
    t.match(await gather(again, 1), [{ name: `${p}late`, text: "x" }]);
    await writer.kv.set(`${p}barrier`, "y");
    const barrier = again.sync();
    t.match(await gather(again, 1), [{ name: `${p}barrier` }]);
    await barrier;
    await client.close();
  });
}

t.test("a real EventSource follows a key of a real node", async (t) => {
  const source = new EventSource(
    `http://${addresses[0]?.http}/v1/watch/stream?kind=key&name=sse%2Fk&initial=true`,
  );
  const seen: Record<string, unknown>[] = [];
  let marks = 0;
  source.addEventListener("events", (message) => {
    const { data } = message as unknown as { data: string };
    seen.push(...(JSON.parse(data) as { events: Record<string, unknown>[] }).events);
  });
  source.addEventListener("mark", () => marks++);
  while (marks === 0) await sleep(10);
  await writer.kv.set("sse/k", "v");
  while (seen.length === 0) await sleep(10);
  t.match(seen, [{ type: "set", name: "sse/k", value: "dg==" }]);
  source.close();
});

t.test("P-150 a watch and a cache lose nothing while nodes go away in turn", async (t) => {
  const client = new SvcClient({ endpoints, keepAliveMs: 1000 });
  const cache = client.cache("roll/");
  const watch = client.watch.key("roll/counter");
  await Promise.all([cache.ready(), watch.started()]);
  let isOver = false;
  const revisions: bigint[] = [];
  const reading = (async () => {
    for await (const { events } of watch) {
      for (const { revision } of events) revisions.push(revision);
    }
  })();
  let written = 0;
  const writing = (async () => {
    for (; !isOver; written++) {
      await writer.kv.set("roll/counter", String(written));
      await sleep(20);
    }
  })();
  for (let at = 0; at < NODES; at++) {
    const before = written;
    await nodes[at]?.kill();
    while (written < before + 20) await sleep(20);
    nodes[at] = start(at);
    await nodes[at]?.ready();
    while (written < before + 60) await sleep(20);
  }
  isOver = true;
  await writing;
  await cache.sync();
  t.equal(cache.get("roll/counter")?.text, String(written - 1), "level");
  await watch.sync();
  const last = (await writer.kv.get("roll/counter"))?.revision;
  while (revisions.at(-1) !== last) await sleep(10);
  t.ok(
    revisions.every((revision, at) => at === 0 || revision > (revisions[at - 1] ?? 0n)),
    "W2",
  );
  t.comment(`${revisions.length} events of ${written} changes`);
  await watch.return();
  await reading;
  await client.close();
});
