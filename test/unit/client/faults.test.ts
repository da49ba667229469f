/** The client library under faults: servers killed mid-call, stalled and slow connections, storms, dead endpoints. */
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import t from "tap";
import {
  CancelledError,
  SvcClient,
  SvcError,
  TimeoutError,
  UnknownOutcomeError,
} from "../../../src/client/mod.js";
import { Backoff } from "../../../src/client/time/backoff.js";
import { Deadlines, type Expiring } from "../../../src/client/time/deadlines.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../../process/cluster/server-process.js";
import { failure } from "../../doubles/client/failure.js";
import { StandIn } from "../../doubles/server/stand-in.js";
import { Proxy } from "../../doubles/server/proxy.js";
import { VirtualTime } from "../../doubles/client/virtual-time.js";

const SUCCESS = 0;
const MUST_RETRY = 5;
const ABORTED = 6;
const ERROR = 99;

/** Of the tests whose servers are stand-ins. */
const time = new VirtualTime();

/** A node for the tests that leave it standing. */
const standing = temporaryDirectory();
const flags = nodeFlags(standing.path).filter((flag) => !flag.startsWith("--https-port"));
const addresses = await new ServerProcess([...flags, "--https-port=0"]).ready();

t.setTimeout(300_000);
t.teardown(async () => {
  time.stop();
  await endAll();
  standing.remove();
});

async function eventually(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !condition(); tries++) await sleep(20);
}

t.test(
  "P-147 a node killed and restarted under load: no value twice, keyed calls exact, locks survive",
  async (t) => {
    const directory = temporaryDirectory();
    let server = new ServerProcess(nodeFlags(directory.path));
    let { grpc, http } = await server.ready();
    const proxy = await Proxy.open(grpc);
    const restProxy = await Proxy.open(http);
    const client = new SvcClient({ endpoints: proxy.address });
    const strict = new SvcClient({ endpoints: proxy.address, idempotency: "off" });
    const rest = new SvcClient({ endpoints: restProxy.address, transport: "rest" });
    await client.sequences.create("load");
    await client.sequences.create("dense", { blockSize: 1 });
    const values: bigint[] = [];
    const dense: bigint[] = [];
    const unknown: SvcError[] = [];
    let running = true;
    const loop = async (step: () => Promise<void>): Promise<void> => {
      while (running) await step();
    };
    const loops = [
      ...Array.from({ length: 64 }, () =>
        loop(async () => void values.push(await client.sequences.next("load"))),
      ),
      ...Array.from({ length: 8 }, () =>
        loop(async () => void values.push(await rest.sequences.next("load"))),
      ),
      ...Array.from({ length: 8 }, () =>
        loop(
          async () =>
            void dense.push(await client.sequences.next("dense", { idempotency: "always" })),
        ),
      ),
      ...Array.from({ length: 8 }, () =>
        loop(async () => {
          try {
            values.push(await strict.sequences.next("load"));
          } catch (error) {
            unknown.push(error as SvcError);
          }
        }),
      ),
    ];
    const lock = await client.locks.acquire("through", { leaseMs: 60_000 });
    const goesOn = async (): Promise<void> => {
      const enough = values.length + 1000;
      while (values.length < enough) await sleep(5);
    };
    for (let round = 0; round < 2; round++) {
      await goesOn();
      await server.kill();
      proxy.cut();
      restProxy.cut();
      server = new ServerProcess(nodeFlags(directory.path));
      ({ grpc, http } = await server.ready());
      proxy.retarget(grpc);
      restProxy.retarget(http);
    }
    await goesOn();
    running = false;
    await Promise.all(loops);
    t.ok(values.length > 80, `${values.length} values`);
    t.equal(new Set(values).size, values.length, "no value twice");
    t.ok(unknown.length > 0, "without keys some calls end in doubt");
    for (const error of unknown)
      t.same([error.outcome, error.retryable], ["unknown", true], error.code);
    t.equal(new Set(dense).size, dense.length);
    dense.sort((a, b) => (a < b ? -1 : 1));
    t.equal(dense.at(-1), BigInt(dense.length), "with keys not even one is skipped");
    t.equal(await lock.extend(), true, "the lock outlived both restarts");
    t.equal(await lock.release(), true);
    for (const one of [client, strict, rest]) await one.close();
    await proxy.close();
    await restProxy.close();
    await server.stop();
    directory.remove();
  },
);

t.test(
  "stalled and slow connections: calls end in time and say unknown; the connection is replaced",
  async (t) => {
    for (const transport of ["grpc", "rest"] as const) {
      const proxy = await Proxy.open(transport === "grpc" ? addresses.grpc : addresses.http);
      const client = new SvcClient({
        endpoints: proxy.address,
        transport,
        keepAliveMs: 600,
        channels: 1,
      });
      await client.kv.set("slow", "1");
      proxy.delayAnswers(150);
      t.equal((await client.kv.get("slow"))?.text, "1", "late is not lost");
      const late = await failure(client.kv.set("slow", "2", { deadlineMs: 50 }));
      t.same([late.name, late.outcome], ["TimeoutError", "unknown"], transport);
      proxy.delayAnswers(0);
      await sleep(200);
      t.equal((await client.kv.get("slow"))?.text, "2", "unknown it was: it happened");
      proxy.stall();
      const begin = performance.now();
      const stalled = await failure(client.kv.set("slow", "3", { deadlineMs: 150 }));
      t.same([stalled.code, stalled.outcome], ["timeout", "unknown"]);
      const stop = new AbortController();
      const cancelled = failure(client.kv.set("slow", "4", { signal: stop.signal }));
      await sleep(20);
      stop.abort();
      const error = await cancelled;
      t.type(error, CancelledError);
      t.equal(error.outcome, "unknown");
      t.equal(
        (await failure(client.kv.get("x", { signal: stop.signal }))).outcome,
        "none",
        "aborted before",
      );
      t.ok(performance.now() - begin < 5000);
      // New connections go to a second, healthy path; the stalled one is found out by its silence.
      const through = client.kv.get("slow", { deadlineMs: 10_000 });
      await sleep(500);
      if (transport === "grpc") {
        proxy.resume();
        t.ok((await through) !== null, "answered on a new or revived connection");
      } else {
        proxy.resume();
        await through;
      }
      await client.close();
      await proxy.close();
    }
    const proxy = await Proxy.open(addresses.grpc);
    const client = new SvcClient({ endpoints: proxy.address, keepAliveMs: 100, channels: 1 });
    await client.kv.set("k", "v");
    const before = proxy.accepted;
    proxy.stall();
    await failure(client.kv.set("k", "v", { deadlineMs: 800 }));
    t.ok(proxy.accepted > before, "P-147 the silent connection was given up and replaced");
    await client.close();
    await proxy.close();
  },
);

for (const secure of [false, true]) {
  const name = `P-147 who accepts and never speaks is left for another${secure ? ", over TLS" : ""}`;
  t.test(name, async (t) => {
    const scheme = secure ? "https" : "http";
    const [host, targetPort] = (secure ? addresses.https : addresses.grpc).split(":");
    const open = new Set<Socket>();
    let accepted = 0;
    const server = createServer((near) => {
      open.add(near);
      near.on("error", () => undefined).on("close", () => open.delete(near));
      if (accepted++ === 0) return void near.resume();
      const far = connect(Number(targetPort), host);
      far.on("error", () => undefined);
      near.pipe(far).pipe(near);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const client = new SvcClient({
      endpoints: `${scheme}://127.0.0.1:${port}`,
      connectTimeoutMs: 300,
      channels: 1,
      tls: { insecure: true },
    });
    await client.kv.set("heard", "at last", { deadlineMs: 20_000 });
    t.ok(accepted >= 2, "the connection on which nothing came was given up");
    await client.close();

    accepted = 0;
    const late = new SvcClient({
      endpoints: `${scheme}://127.0.0.1:${port}`,
      tls: { insecure: true },
      channels: 1,
    });
    await failure(late.kv.set("not heard", "", { deadlineMs: 300 }));
    await late.close();
    await eventually(() => open.size === 0);
    t.equal(open.size, 0, "and a closed client leaves none of them behind");
    server.close();
  });
}

t.test(
  "P-149 a storm of MustRetry: repeated with growing waits, the deadline kept, effects not doubled",
  async (t) => {
    const at: number[] = [];
    let until = 6;
    const node = await StandIn.open((_asked, { asked: { length: number } }) => {
      at.push(time.nowMs());
      return number < until ? { type: MUST_RETRY } : { type: SUCCESS, value: number };
    });
    const client = new SvcClient({ endpoints: node.address }, time);
    t.equal(await client.sequences.next("s"), 6n);
    const waits = at.slice(1).map((time, index) => time - (at[index] as number));
    for (const [index, wait] of waits.entries()) {
      const ceiling = Math.min(1000, 10 * 2 ** index);
      t.ok(wait >= Math.max(9, ceiling / 2 - 2), `wait ${index}: ${wait.toFixed(1)} ms`);
    }
    const keys = node.asked.map((call) => call.key);
    t.equal(keys[0], null, "the first try travels without a key");
    t.ok(
      keys[1] !== null && new Set(keys.slice(1)).size === 1,
      "every repeat carries the same key",
    );
    node.asked.length = 0;
    t.ok(await client.sequences.next("s", { idempotencyKey: "mine" }));
    t.equal(node.asked[0]?.key, "mine");
    await client.sequences.reserve("s", 3);
    t.type(node.asked.at(-1)?.key, "string", "reserve carries a key from the start");
    until = Infinity;
    node.asked.length = 0;
    const begin = time.nowMs();
    const error = await failure(client.sequences.next("s", { deadlineMs: 250 }));
    t.type(error, TimeoutError);
    t.equal(error.outcome, "unknown");
    t.equal((error.cause as SvcError).code, "must-retry");
    t.ok(time.nowMs() - begin >= 249);
    t.ok(node.asked.length <= 12, "not spent in one instant, not without pause");
    node.asked.length = 0;
    const off = await failure(client.sequences.next("s", { idempotency: "off" }));
    t.same([off.code, off.outcome, off.retryable], ["must-retry", "unknown", true]);
    t.equal(node.asked.length, 1, "without keys it is not repeated");
    await client.close();
    node.stop();
  },
);

t.test(
  "what the service raises is raised: Errored unknown, Aborted none, neither repeated",
  async (t) => {
    let type = ERROR;
    const node = await StandIn.open(() => ({ type }));
    const client = new SvcClient({ endpoints: node.address });
    const errored = await failure(client.sequences.next("s"));
    t.same([errored.code, errored.outcome], ["server-error", "unknown"]);
    type = ABORTED;
    const aborted = await failure(client.sequences.next("s"));
    t.same([aborted.code, aborted.outcome, aborted.retryable], ["aborted", "none", true]);
    type = 42;
    t.equal((await failure(client.sequences.next("s"))).code, "protocol");
    t.equal(node.asked.length, 3);
    await client.close();
    node.stop();
  },
);

t.test(
  "P-150 several endpoints: a dead, a stalled and a refusing one do not stop the client",
  async (t) => {
    const dead = await Proxy.open("127.0.0.1:1");
    for (const transport of ["grpc", "rest"] as const) {
      const good = transport === "grpc" ? addresses.grpc : addresses.http;
      const client = new SvcClient({ endpoints: `127.0.0.1:1,${dead.address},${good}`, transport });
      const begin = performance.now();
      t.equal((await client.kv.set("many", "1")).applied, true);
      for (let at = 0; at < 20; at++) await client.kv.get("many");
      t.ok(performance.now() - begin < 5000, "the good one is kept");
      await client.close();
      const none = new SvcClient({
        endpoints: "127.0.0.1:1,127.0.0.1:2",
        transport,
        deadlineMs: 200,
      });
      const error = await failure(none.kv.set("k", "v"));
      t.same([error.code, error.outcome], ["timeout", "none"], "nothing ever left");
      t.equal((error.cause as SvcError).code, "unreachable");
      await none.close();
    }
    await dead.close();
  },
);

t.test("a conditional set after a lost answer: doubt is told, never guessed", async (t) => {
  const proxy = await Proxy.open(addresses.grpc);
  const client = new SvcClient({ endpoints: proxy.address, channels: 1 });
  await client.kv.get("warm");
  await client.sequences.get("warm");
  proxy.delayAnswers(200);
  const set = failure(client.kv.set("once", "v", { ifNotExists: true }));
  const remove = client.sequences.create("gone").catch((error: unknown) => error);
  await sleep(100);
  proxy.delayAnswers(0);
  proxy.cut();
  const error = await set;
  t.type(error, UnknownOutcomeError);
  t.equal(error.outcome, "unknown");
  const created = (await remove) as SvcError;
  t.same([created.code, created.outcome], ["already-exists", "unknown"]);
  t.equal((await client.kv.get("once"))?.text, "v");
  await client.close();
  await proxy.close();
});

t.test("back-off: jittered, from 10 ms to 1 s, never below what the server asks", (t) => {
  const backoff = new Backoff(time);
  const waits = Array.from({ length: 12 }, () => backoff.nextMs(0));
  for (const [at, wait] of waits.entries()) {
    const ceiling = Math.min(1000, 10 * 2 ** at);
    t.ok(wait >= Math.max(10, ceiling / 2) && wait <= Math.max(10, ceiling));
  }
  t.ok(new Backoff(time).nextMs(2500) >= 2500);
  const many = new Set(Array.from({ length: 50 }, () => Math.round(backoff.nextMs(0))));
  t.ok(many.size > 10, "callers that fail together spread");
  t.end();
});

t.test(
  "P-156 deadlines: in order, none early, none lost, answered ones spared after a blocked loop",
  async (t) => {
    const deadlines = new Deadlines(time);
    const ended: number[] = [];
    const entry = (durationMs: number): Expiring => ({
      durationMs,
      expireAtMs: 0,
      listed: false,
      previous: null,
      next: null,
      expire(): void {
        t.ok(time.nowMs() >= this.expireAtMs, "not early");
        ended.push(durationMs);
      },
      discard: () => void ended.push(-durationMs),
    });
    const spared = entry(30);
    for (const durationMs of [120, 40, 80, 40, Infinity, 2 ** 31]) deadlines.add(entry(durationMs));
    deadlines.add(spared);
    deadlines.remove(spared);
    deadlines.remove(spared);
    await time.sleep(200);
    t.same(ended, [40, 40, 80, 120]);
    const answered = entry(20);
    deadlines.add(answered);
    setImmediate(() => deadlines.remove(answered));
    time.block(100);
    await time.sleep(50);
    t.notOk(ended.includes(20), "what was answered meanwhile did not time out");
    deadlines.close();
    t.same(ended.slice(4).sort(), [-Infinity, -(2 ** 31)].sort());
  },
);
