/** The client in front of several nodes: it learns who serves what, and no single node's loss reaches its callers. */
import { createServer, type Socket } from "node:net";
import t from "tap";
import { SvcClient, type RoutingMetadata } from "../../../src/client/mod.js";
import { parseEndpoint } from "../../../src/client/values/options.js";
import { Targets } from "../../../src/client/call/endpoints.js";
import type { Target } from "../../../src/client/call/try.js";
import { systemPlatform } from "../../../src/client/time/system-platform.js";
import { HINT_LIFE_MS, RouteCache } from "../../../src/client/metadata/route-cache.js";
import type { TransportNode } from "../../../src/client/call/try.js";
import { hashPartition, keyHashText, sequenceHashText } from "../../../src/base/routing.js";
import { sleep } from "../../process/cluster/server-process.js";
import { failure } from "../../doubles/client/failure.js";
import { StandIn } from "../../doubles/server/stand-in.js";
import { StandInCluster } from "../../doubles/server/cluster.js";
import { VirtualTime } from "../../doubles/client/virtual-time.js";

/** Of the tests in which no node dies: connections are made again in real time. */
const time = new VirtualTime();

t.setTimeout(120_000);
t.teardown(() => time.stop());

async function until(done: () => boolean, what: string): Promise<void> {
  const begin = performance.now();
  while (!done()) {
    if (performance.now() - begin > 10_000) throw new Error(`never: ${what}`);
    await sleep(5);
  }
}

/** Calls on many objects until none of them takes a detour any more. */
async function learned(client: SvcClient, cluster: StandInCluster, names: string[]): Promise<void> {
  const begin = performance.now();
  for (;;) {
    cluster.forwarded = 0;
    for (const name of names) await client.sequences.next(name);
    if (cluster.forwarded === 0) return;
    if (performance.now() - begin > 10_000) throw new Error("detours do not end");
    await sleep(10);
  }
}

const names = Array.from({ length: 40 }, (_, at) => `s${at}`);

t.test(
  "hints are followed: one configured endpoint, all three nodes used, no detour",
  async (t) => {
    const cluster = await StandInCluster.open(3);
    const client = new SvcClient({ endpoints: cluster.addresses[0] as string }, time);
    await learned(client, cluster, names);
    for (const node of cluster.nodes) node.asked.length = 0;
    cluster.forwarded = 0;
    await Promise.all(names.map((name) => client.sequences.next(name)));
    t.equal(cluster.forwarded, 0);
    for (const node of cluster.nodes) {
      t.ok(node.asked.length > 0);
      t.ok(
        node.asked.every((asked) => !asked.alone),
        "batched per endpoint",
      );
    }
    await until(() => cluster.nodes.some((node) => node.metadataAsked > 0), "metadata");
    await time.sleep(50);
    cluster.forwarded = 0;
    for (let at = 0; at < 20; at++) {
      await client.sequences.next(`new${at}`);
      await client.kv.set(`new/${at}/x`, "v");
      await client.locks.tryLock(`new${at}`, { owner: "me", leaseMs: 1000 });
    }
    t.equal(cluster.forwarded, 0, "objects never seen go to their partition's leader");
    await client.close();

    const plain = new SvcClient(
      {
        endpoints: cluster.addresses[0] as string,
        followRoutes: false,
      },
      time,
    );
    for (const node of cluster.nodes) node.asked.length = 0;
    for (const name of names) await plain.sequences.next(name);
    t.equal(cluster.nodes[0]?.asked.length, names.length, "followRoutes: false");
    await plain.close();

    cluster.describes = false;
    const blind = new SvcClient({ endpoints: cluster.addresses.join() }, time);
    await learned(blind, cluster, names);
    t.pass("hints do without metadata");
    await blind.close();
    cluster.close();
  },
);

t.test("P-150 a hinted node that dies, refuses, is closed or silent costs no call", async (t) => {
  const cluster = await StandInCluster.open(3);
  const endpoints = cluster.addresses[0] as string;
  const client = new SvcClient({ endpoints, deadlineMs: 9000 });
  await learned(client, cluster, names);
  // Dies.
  cluster.stopNode(1);
  const values = await Promise.all(names.map((name) => client.sequences.next(name)));
  t.equal(values.length, names.length, "a dead node");
  await cluster.startNode(1);
  await learned(client, cluster, names);
  // Refuses: it is not the leader any more, and nobody told the client.
  let refusals = 0;
  cluster.before = (asked, at) => {
    if (at !== 2 || asked.method === "metadata") return null;
    refusals += 1;
    return { type: 5 };
  };
  cluster.leader = (partition) => (partition % 3 === 2 ? 1 : partition % 3);
  // No answer says who leads now: only forgetting helps.
  cluster.hints = false;
  await Promise.all(names.map((name) => client.sequences.next(name)));
  t.ok(refusals > 0 && refusals <= names.length, `${refusals} refusals`);
  refusals = 0;
  await Promise.all(names.map((name) => client.sequences.next(name)));
  t.equal(refusals, 0, "a refused hint is not followed again");
  cluster.hints = true;
  cluster.before = () => null;
  cluster.leader = (partition) => cluster.natural(partition);
  await learned(client, cluster, names);
  await client.close();
  // Silent: it takes requests and never answers.
  const patient = new SvcClient({ endpoints, deadlineMs: 9000 }, time);
  await learned(patient, cluster, names);
  const begin = time.nowMs();
  cluster.before = (_asked, at) => (at === 1 ? "silence" : null);
  cluster.leader = (partition) => (partition % 3 === 1 ? 0 : partition % 3);
  await Promise.all(names.map((name) => patient.sequences.next(name)));
  const tookMs = time.nowMs() - begin;
  t.ok(tookMs > 2500 && tookMs < 8000, `one attempt deadline: ${Math.round(tookMs)} ms`);
  await patient.sequences.next(names[0] as string);
  await patient.close();
  cluster.close();
});

t.test("hints that lead nowhere: closed ports, wrong nodes, other schemes", async (t) => {
  const cluster = await StandInCluster.open(2);
  const closed = await StandIn.open(() => "silence");
  closed.stop();
  // Takes connections and says nothing on them.
  const sockets: Socket[] = [];
  const deaf = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
  await new Promise<void>((resolve) => deaf.listen(0, "127.0.0.1", resolve));
  const deafAddress = deaf.address();
  const deafPort = typeof deafAddress === "object" && deafAddress !== null ? deafAddress.port : 0;
  cluster.leader = () => 1;
  cluster.describes = false;
  const nowhere = [
    closed.endpoint,
    `http://127.0.0.1:${deafPort}`,
    `https://${cluster.nodes[1]?.address}`,
    "nonsense:",
    "",
  ];
  for (const name of nowhere) {
    cluster.endpointOf = () => name;
    const client = new SvcClient({ endpoints: cluster.addresses[0] as string });
    const begin = performance.now();
    for (let round = 0; round < 3; round++) {
      await Promise.all(names.map((one) => client.sequences.next(one)));
    }
    t.ok(performance.now() - begin < 2500, `not waited for ${name}`);
    await client.close();
  }
  for (const socket of sockets) socket.destroy();
  deaf.close();
  // A stale hint: node 0 says node 1 leads, which says node 0 does.
  cluster.endpointOf = (at) => (cluster.nodes[at] as StandIn).endpoint;
  cluster.leader = (_partition, at) => 1 - at;
  const client = new SvcClient({ endpoints: cluster.addresses[0] as string });
  for (const node of cluster.nodes) node.asked.length = 0;
  for (let round = 0; round < 50; round++) await client.sequences.next("s");
  const asked = cluster.nodes.reduce((sum, node) => sum + node.asked.length, 0);
  t.equal(asked, 50, "each call costs one request, however wrong the hints");
  await client.close();
  cluster.close();
});

t.test("P-149 a storm of MustRetry: another endpoint is asked after a few", async (t) => {
  const cluster = await StandInCluster.open(2);
  cluster.before = (asked, at) => (at === 0 && asked.method !== "metadata" ? { type: 5 } : null);
  cluster.leader = () => 1;
  const client = new SvcClient({ endpoints: cluster.addresses.join(), startAt: "first" });
  t.equal(await client.sequences.next("s"), 1n);
  t.equal(cluster.nodes[0]?.count("next"), 3, "not at once");
  cluster.before = () => ({ type: 6 });
  for (const node of cluster.nodes) node.asked.length = 0;
  const aborted = await failure(client.sequences.next("s"));
  t.same([aborted.code, aborted.outcome], ["aborted", "none"]);
  t.same(
    cluster.nodes.map((node) => node.count("next")),
    [1, 1],
    "a node that stops leaves the call to another",
  );
  await client.close();
  cluster.close();
});

/** What is called between two steps of a rolling restart. */
const CALLS_PER_STEP = 400;

t.test("P-150 a rolling restart: no call fails, no value twice", async (t) => {
  for (const configured of [1, 3]) {
    const cluster = await StandInCluster.open(3);
    const client = new SvcClient({ endpoints: cluster.addresses.slice(0, configured).join() });
    const seen = new Set<string>();
    const failures: unknown[] = [];
    let calls = 0;
    let running = true;
    const loop = async (step: (round: number) => Promise<unknown>): Promise<void> => {
      for (let round = 0; running; round++) {
        try {
          await step(round);
          calls += 1;
        } catch (error) {
          failures.push(error);
        }
      }
    };
    const loops = names.slice(0, 12).flatMap((name, at) => [
      loop(async () => {
        const value = await client.sequences.next(name);
        if (seen.has(`${name} ${value}`)) failures.push(new Error(`twice: ${name} ${value}`));
        seen.add(`${name} ${value}`);
      }),
      loop(() => client.kv.set(`roll/${at}/x`, "v")),
      loop(() => client.kv.get(`roll/${at}/x`)),
      loop(() => client.locks.tryLock(`roll/${at}`, { owner: `o${at}`, leaseMs: 60_000 })),
    ]);
    const goesOn = async (): Promise<void> => {
      const enough = calls + CALLS_PER_STEP;
      await until(() => calls >= enough, "further calls");
    };
    const handle = await client.locks.acquire("through", { leaseMs: 3000 });
    // With one configured endpoint that one stays: others are known by hints only.
    for (let at = configured === 1 ? 1 : 0; at < 3; at++) {
      await goesOn();
      cluster.stopNode(at);
      await goesOn();
      await cluster.startNode(at);
    }
    await goesOn();
    const extended = (): boolean => cluster.nodes.some((one) => one.count("extend") > 0);
    await until(extended, "renewed");
    running = false;
    await Promise.all(loops);
    t.same(failures, [], `${configured} configured, ${calls} calls`);
    t.ok(calls > 60, `${calls} calls`);
    t.equal(handle.held, true, "a lock is held through all restarts");
    t.equal(await handle.release(), true);
    await client.close();
    cluster.close();
  }
});

class NoNode implements TransportNode {
  watch(): null {
    return null;
  }

  ready = true;
  closed = false;
  warm(): void {}
  send(): void {}
  suspect(): void {}
  close(): Promise<void> {
    this.closed = true;
    this.ready = false;
    return Promise.resolve();
  }
}

function targets(urls: string[], learns = true, hasToken = false): Targets {
  return new Targets(
    systemPlatform,
    urls.map(parseEndpoint),
    () => new NoNode(),
    learns,
    0,
    hasToken,
  );
}

t.test("P-198 a token goes in clear text to configured hosts only", (t) => {
  const cleartext = targets(["http://10.0.0.1:8083", "http://db2:8083"], true, true);
  const [first] = cleartext.configured;
  if (first === undefined) throw new Error("a target is configured");
  t.equal(cleartext.named("http://10.6.6.6:8083", first), null, "an address nobody named");
  t.equal(cleartext.named("http://db3:8083", first), null, "a name nobody named");
  t.ok(cleartext.named("http://DB2:9083", first), "another port of a configured host");
  t.ok(cleartext.named("http://db2:8083", first)?.configured);
  const secure = targets(["https://10.0.0.1:8082"], true, true);
  const [tls] = secure.configured;
  if (tls === undefined) throw new Error("a target is configured");
  t.ok(secure.named("https://10.0.0.2:8082", tls), "over TLS the certificate says who it is");
  const open = targets(["http://10.0.0.1:8083"]);
  const [plain] = open.configured;
  if (plain === undefined) throw new Error("a target is configured");
  t.ok(open.named("http://10.0.0.2:8083", plain), "without a token there is nothing to lose");
  t.end();
});

t.test("targets: names of nodes, balancers, schemes, bounds", (t) => {
  const all = targets(["http://localhost:1", "http://other:1"]);
  const [first, second] = all.configured as [Target, Target];
  t.equal(all.executed(first, "http://127.0.0.1:1"), first, "its own name, no new endpoint");
  t.equal(all.count, 2);
  t.equal(all.forwarded(second, "http://127.0.0.1:1"), first, "known by that name");
  t.equal(all.forwarded(second, "http://third:1")?.configured, false);
  t.equal(all.count, 3);
  t.equal(all.forwarded(second, "http://third:1"), all.named("http://third:1", first));
  t.equal(all.forwarded(first, "http://other:1"), second, "the configured one");
  t.equal(all.forwarded(first, "https://third:2"), null, "another scheme");
  t.equal(all.forwarded(first, ""), null);
  t.equal(all.executed(second, ""), second, "executed there, whatever it is called");
  // A balancer: two nodes answer at one address.
  const behind = all.executed(first, "http://node-b:1");
  t.same([first.many, behind?.endpoint.host], [true, "node-b"]);
  t.equal(all.executed(first, "http://127.0.0.1:1")?.endpoint.host, "127.0.0.1");
  t.equal(all.executed(first, ""), null);
  const secure = targets(["https://a:1"]);
  t.equal(
    secure.forwarded(secure.configured[0] as Target, "http://b:1"),
    null,
    "nothing leaves in clear text that was configured over TLS",
  );
  const rest = targets(["http://a:1", "http://b:1"], false);
  const [restFirst, restSecond] = rest.configured as [Target, Target];
  t.equal(rest.forwarded(restFirst, "http://c:8083"), null, "that is where gRPC is spoken");
  rest.executed(restSecond, "http://b:8083");
  t.equal(rest.forwarded(restFirst, "http://b:8083"), restSecond);
  for (let at = 0; at < 300; at++) all.forwarded(second, `http://many-${at}:1`);
  t.ok(all.count <= 66, `${all.count} targets`);
  t.end();
});

t.test("route cache: hashes, ranges, generations, expiry, bounds", (t) => {
  interface Spot {
    hinted: boolean;
    readonly name: string;
  }
  const spot = (name: string): Spot => ({ hinted: false, name });
  const [a, b] = [spot("a"), spot("b")];
  const hint = (partitionId: number, generation = 0) => ({
    partitionId,
    generation,
    endpoint: "",
    provenance: 1,
  });
  const cache = new RouteCache<Spot>();
  t.equal(cache.find("keys", "k", 0), null);
  cache.learn("keys", "k", hint(3), a, 0);
  t.equal(cache.find("keys", "k", 1), a);
  t.equal(cache.find("locks", "k", 1), null, "another kind of object");
  t.equal(cache.find("keys", "k", HINT_LIFE_MS), null, "expired");
  cache.learn("keys", "k2", hint(3), b, HINT_LIFE_MS);
  t.equal(
    cache.find("keys", "k", HINT_LIFE_MS + 1),
    b,
    "what one object tells serves its partition",
  );
  cache.forget("keys", "k");
  t.equal(cache.find("keys", "k2", HINT_LIFE_MS + 1), null, "forgotten after a refusal");
  cache.learn("keys", "k", hint(5, 7), a, 0);
  cache.learn("keys", "k", hint(4, 6), b, 1);
  t.equal(cache.find("keys", "k", 2), a, "P-109 an older generation does not win");
  cache.learn("keys", "k", hint(6, 8), b, 2);
  t.equal(cache.find("keys", "k", 3), b);
  cache.forgetTarget(b);
  t.same([cache.find("keys", "k", 3), b.hinted], [null, false]);
  for (let at = 0; at < 10_000; at++) cache.learn("keys", `many${at}`, hint(1), a, 0);
  t.equal(cache.find("keys", "many0", 1), null, "bounded");
  t.equal(cache.find("keys", "many9999", 1), a);

  const spots = new Map<string, Spot>();
  const targetOf = (name: string): Spot => {
    const known = spots.get(name) ?? spot(name);
    spots.set(name, known);
    return known;
  };
  const metadata: RoutingMetadata = {
    initialized: true,
    schemaVersion: 1,
    hashAlgorithm: "svc.bucket-jump-xxh32-v1",
    prefixSeparator: "/",
    groupSeparator: "|",
    hashPoolSize: 16,
    hashPartitionOffset: 1,
    sequenceStorageKeyFormat: "__svc:sequences:{0}",
    reservedKeyPrefix: "__svc:",
    localEndpoint: "",
    snapshotVersion: 1n,
    coherent: true,
    keySpaces: [
      {
        keySpace: "logs",
        routingMode: "KeyRange",
        ranges: [
          { startKey: null, endKey: "logs/m", partitionId: 20, generation: 2n },
          { startKey: "logs/m", endKey: null, partitionId: 21, generation: 2n },
        ],
      },
    ],
    leaders: Array.from({ length: 30 }, (_, at) => ({ partitionId: at, endpoint: `n${at}` })),
  };
  const mapped = new RouteCache<Spot>();
  mapped.take(metadata, targetOf, 0);
  const serving = (space: "keys" | "sequences" | "locks", name: string): string | undefined =>
    mapped.find(space, name, 1)?.name;
  t.equal(serving("sequences", " orders "), `n${hashPartition(sequenceHashText("orders"), 16)}`);
  t.equal(serving("keys", "users|eu/1"), `n${hashPartition(keyHashText("users|eu/1"), 16)}`);
  t.equal(serving("locks", "abc"), "n3", "the vectors of the contract: index 2");
  t.same(
    [serving("keys", "logs/a"), serving("keys", "logs/m"), serving("keys", "logs/z")],
    ["n20", "n21", "n21"],
  );
  for (const unknown of [
    { ...metadata, schemaVersion: 2 },
    { ...metadata, hashAlgorithm: "other" },
    { ...metadata, initialized: false },
  ]) {
    const blind = new RouteCache<Spot>();
    blind.take(unknown, targetOf, 0);
    t.equal(blind.find("locks", "abc", 1), null, "a map of an unknown kind is not used");
  }
  const incoherent = new RouteCache<Spot>();
  incoherent.take({ ...metadata, coherent: false }, targetOf, 0);
  t.equal(incoherent.find("keys", "logs/a", 1)?.name, `n${hashPartition("logs", 16)}`);
  t.end();
});
