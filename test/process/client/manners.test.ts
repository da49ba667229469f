/** How the client behaves beside its calls: what it says, where it begins, what it sends unasked (P-202 and kin). */
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import { parseJson } from "../../../src/client/values/json.js";
import { sleep } from "../cluster/server-process.js";
import { failure } from "../../doubles/client/failure.js";
import { Proxy } from "../../doubles/server/proxy.js";
import { StandIn, type Asked, type Reply } from "../../doubles/server/stand-in.js";
import { VirtualTime } from "../../doubles/client/virtual-time.js";

/** Of the tests whose time is the client's own, not that of sockets and probes. */
const time = new VirtualTime();

t.setTimeout(120_000);
t.teardown(() => time.stop());

const GOT = 3;
const SET = 0;

function answer({ method }: Asked): Reply {
  if (method === "set") return { type: SET, value: 1 };
  return { type: GOT, value: 1, bytes: Buffer.from("v"), keys: [] };
}

async function portOf(server: {
  listen(port: number, host: string, done: () => void): unknown;
  address(): unknown;
}) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

t.test("a supply forgets a failure that nobody waited for", async (t) => {
  let up = false;
  const node = await StandIn.open(() => (up ? { type: 0, value: 7 } : { type: 99 }));
  const client = new SvcClient({ endpoints: node.address }, time);
  const supply = client.sequence("s").prefetch(1, { deadlineMs: 2000 });
  while (node.count("reserve") === 0) await time.sleep(5);
  await time.sleep(100);
  up = true;
  t.equal(await supply.next(), 7n, "the service is back");
  up = false;
  const waiting = [supply.next(), supply.next(), supply.next()];
  const results = await Promise.allSettled(waiting);
  t.ok(
    results.some(({ status }) => status === "rejected"),
    "who waited is told",
  );
  supply.close();
  await client.close();
  node.stop();
});

t.test("what only reads fails without a doubt; what writes keeps its doubt", async (t) => {
  const node = await StandIn.open(() => "silence");
  const client = new SvcClient({ endpoints: node.address, deadlineMs: 300 }, time);
  const reads: (() => Promise<unknown>)[] = [
    () => client.kv.get("a"),
    () => client.kv.scanPage("a"),
    () => client.sequences.get("a"),
  ];
  for (const read of reads) t.match(await failure(read()), { code: "timeout", outcome: "none" });
  t.match(await failure(client.kv.set("a", "v")), { code: "timeout", outcome: "unknown" });
  const stop = new AbortController();
  const cancelled = client.kv.get("a", { signal: stop.signal, deadlineMs: 5000 });
  time.after(100, () => stop.abort());
  t.match(await failure(cancelled), { code: "cancelled", outcome: "none" });
  const [read, written] = [client.kv.get("a"), client.kv.set("a", "v")].map(failure);
  await time.sleep(100);
  await client.close();
  t.match(await read, { code: "client-closed", outcome: "none" });
  t.match(await written, { code: "client-closed", outcome: "unknown" });
  node.stop();
});

t.test("close may wait for the calls under way, in bounded time", async (t) => {
  let slowMs = 300;
  const node = await StandIn.open(async (asked) => {
    await time.sleep(slowMs);
    return answer(asked);
  });
  const patient = new SvcClient({ endpoints: node.address }, time);
  const calls = [patient.kv.set("a", "v"), patient.kv.get("a"), patient.kv.scanPage("a")];
  await time.sleep(50);
  await patient.close({ drainMs: 20_000 });
  t.same(
    (await Promise.allSettled(calls)).map(({ status }) => status),
    ["fulfilled", "fulfilled", "fulfilled"],
  );
  slowMs = 60_000;
  const hasty = new SvcClient({ endpoints: node.address }, time);
  const call = failure(hasty.kv.set("a", "v"));
  await time.sleep(50);
  await hasty.close({ drainMs: 100 });
  t.match(await call, { code: "client-closed" });
  node.stop();
});

t.test("calls that fail together keep their own outcomes", async (t) => {
  const lost = (): Reply => ({ status: 14 });
  const node = await StandIn.open(lost);
  const client = new SvcClient({ endpoints: node.address, idempotency: "off" }, time);
  const results = await Promise.all([
    failure(client.sequences.next("a")),
    failure(client.sequences.get("a", { deadlineMs: 500 })),
  ]);
  t.same(
    results.map(({ outcome }) => outcome),
    ["unknown", "none"],
  );
  await client.close();
  node.stop();
});

t.test("JSON: the time for reading grows with the text, whatever it holds", (t) => {
  const timeOf = (text: string): number => {
    const before = process.cpuUsage();
    try {
      parseJson(text);
    } catch {
      // Not valid: refused in the same time.
    }
    const used = process.cpuUsage(before);
    return (used.user + used.system) / 1000;
  };
  const unterminated = (count: number): string =>
    `["a",1234567890123456789,"${'b\\"'.repeat(count)}`;
  timeOf(unterminated(1000));
  // Quadratic, this took minutes of processor time.
  t.ok(timeOf(unterminated(1_000_000)) < 5000, "a text without end");
  const long = `{"value":"${"A".repeat(20_000_000)}","revision":9223372036854775807}`;
  t.equal((parseJson(long) as { revision: bigint }).revision, 9223372036854775807n);
  const escapes = `{"a":"${"\\\\".repeat(2_000_000)}\\"9223372036854775807","n":-9223372036854775808}`;
  const parsed = parseJson(escapes) as { a: string; n: bigint };
  t.equal(parsed.n, -9223372036854775808n);
  t.ok(parsed.a.endsWith('\\"9223372036854775807'));
  t.same(parseJson('[1234567890123456789,-1,1e30,12345678901234567.5,"1234567890123456789"]'), [
    1234567890123456789n,
    -1,
    1e30,
    12345678901234567.5,
    "1234567890123456789",
  ]);
  for (const bad of ['{"a":12345678901234567', "1234567890123456789x", "01234567890123456789"]) {
    t.throws(() => parseJson(bad), SyntaxError, bad);
  }
  t.end();
});

t.test("clients with one list begin all over it; the first on demand", async (t) => {
  const nodes = await Promise.all([1, 2, 3].map(() => StandIn.open(answer)));
  const endpoints = nodes.map((node) => node.address);
  const begins = async (startAt: "random" | "first"): Promise<void> => {
    const client = new SvcClient({ endpoints, startAt, followRoutes: false });
    await client.kv.get("a");
    await client.close();
  };
  for (let at = 0; at < 5; at++) await begins("first");
  t.same(
    nodes.map((node) => node.asked.length),
    [5, 0, 0],
  );
  // All forty at the first node: a chance of 3^-40.
  for (let at = 0; at < 40; at++) await begins("random");
  t.ok((nodes[0]?.asked.length ?? 0) < 45, "not all at the first");
  t.equal(
    nodes.reduce((sum, node) => sum + node.asked.length, 0),
    45,
  );
  for (const node of nodes) node.stop();
});

t.test("a token may come later; one that fails or never comes fails the call only", async (t) => {
  const node = await StandIn.open(answer);
  const settings = { endpoints: node.address, deadlineMs: 5000, connectTimeoutMs: 200 };
  const late = new SvcClient(
    {
      ...settings,
      token: async () => {
        await time.sleep(20);
        return "secret";
      },
    },
    time,
  );
  t.equal((await late.kv.get("a"))?.text, "v");
  await late.cluster.routing().catch(() => undefined);
  await late.close();
  const tokens: (() => Promise<string>)[] = [
    () => Promise.reject(new Error("vault down")),
    () => Promise.resolve("not one\n"),
    () => new Promise(() => undefined),
  ];
  for (const token of tokens) {
    const client = new SvcClient({ ...settings, token }, time);
    for (const call of [() => client.kv.get("a"), () => client.health()]) {
      const error = await failure(call());
      t.equal(error.outcome, "none");
      t.match(error.code, /local|invalid-input/);
    }
    await client.close();
  }
  node.stop();
});

t.test(
  "an idle connection is left alone; a silent one with calls is noticed at once",
  async (t) => {
    let pings = 0;
    const sessions = new Set<ServerHttp2Session>();
    const quiet = createHttp2Server();
    quiet.on("session", (session) => {
      sessions.add(session);
      session.on("ping", () => (pings += 1));
      session.on("error", () => undefined);
    });
    quiet.on("stream", (stream) => {
      stream.on("error", () => undefined);
      stream.respond({
        ":status": 200,
        "content-type": "application/grpc",
        "svc-batch-frames": "1",
      });
    });
    const port = await portOf(quiet);
    const idle = new SvcClient({ endpoints: `127.0.0.1:${port}`, keepAliveMs: 50 });
    await failure(idle.kv.get("a", { deadlineMs: 30 }));
    await sleep(600);
    t.equal(pings, 0, "twelve times the time of a probe, with a stream open and no call on it");
    await idle.close();
    for (const session of sessions) session.destroy();
    quiet.close();

    const [one, other] = await Promise.all([StandIn.open(answer), StandIn.open(answer)]);
    const proxy = await Proxy.open(one.address);
    const endpoints = [proxy.address, other.address];
    const client = new SvcClient({ endpoints, startAt: "first", keepAliveMs: 200, channels: 1 });
    await client.kv.get("a");
    await client.cluster.routing().catch(() => undefined);
    proxy.stall();
    const startedMs = performance.now();
    const calls = [client.kv.get("a"), client.kv.scanPage("a")];
    t.equal((await Promise.all(calls)).length, 2);
    // A try without answer would be waited for 10 s.
    t.ok(performance.now() - startedMs < 5000, "long before the time of one try");
    await client.close();
    await proxy.close();
    one.stop();
    other.stop();
  },
);

t.test("a call that takes long on a connection that answers is not cut", async (t) => {
  const node = await StandIn.open(async (asked) => {
    await time.sleep(16_000);
    return answer(asked);
  });
  const settings = { endpoints: node.address, deadlineMs: 60_000, keepAliveMs: 2000 };
  const client = new SvcClient(settings, time);
  t.equal((await client.kv.get("a"))?.text, "v");
  t.equal(node.count("get"), 1, "not repeated");
  await client.close();
  node.stop();
});

t.test("an endpoint that is another service is passed over", async (t) => {
  const node = await StandIn.open(answer);
  const strange = createHttp2Server();
  strange.on("stream", (stream) => {
    stream.on("error", () => undefined);
    stream.respond({ ":status": 404, "content-type": "text/html" });
    stream.end("<h1>not here</h1>");
  });
  const port = await portOf(strange);
  const endpoints = [`127.0.0.1:${port}`, node.address];
  const client = new SvcClient({ endpoints, startAt: "first", deadlineMs: 8000 }, time);
  t.equal((await client.kv.get("a"))?.text, "v");
  t.equal((await client.kv.scanPage("a")).items.length, 0);
  await client.close();
  const alone = new SvcClient({ endpoints: `127.0.0.1:${port}`, deadlineMs: 500 }, time);
  const error = await failure(alone.kv.set("a", "v"));
  t.match(error, { code: "timeout", outcome: "none", message: /HTTP 404/ });
  await alone.close();
  strange.close();
  node.stop();
});

t.test("REST: a 404 that is not the service's own is passed over", async (t) => {
  const strange = createHttpServer((_request, response) => {
    response.writeHead(404, { "content-type": "text/html" }).end("<h1>not here</h1>");
  });
  const good: Server = createHttpServer((request, response) => {
    request.resume();
    const stamp = { n: 0, l: 0, c: 0 };
    const body = { type: GOT, revision: 1, value: "dg==", expires: stamp, lastModified: stamp };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  const endpoints = [`127.0.0.1:${await portOf(strange)}`, `127.0.0.1:${await portOf(good)}`];
  const client = new SvcClient({ endpoints, startAt: "first", transport: "rest" });
  t.equal((await client.kv.get("a"))?.text, "v");
  await client.close();
  strange.close();
  good.close();
});

t.test(
  "a refused connection to the only endpoint ends a call at once, if that is wished",
  async (t) => {
    const closed = createHttpServer();
    const port = await portOf(closed);
    await new Promise((resolve) => closed.close(resolve));
    for (const transport of ["grpc", "rest"] as const) {
      const settings = { endpoints: `127.0.0.1:${port}`, transport, deadlineMs: 20_000 };
      const hasty = new SvcClient({ ...settings, failWhenRefused: true });
      const startedMs = performance.now();
      t.match(await failure(hasty.kv.set("a", "v")), { code: "unreachable", outcome: "none" });
      t.ok(performance.now() - startedMs < 10_000, "not at the deadline");
      await hasty.close();
      const patient = new SvcClient(settings);
      const error = await failure(patient.kv.set("a", "v", { deadlineMs: 300 }));
      t.match(error, { code: "timeout", outcome: "none" });
      await patient.close();
    }
  },
);

t.test("a wrong port says what it is", async (t) => {
  const http1 = createHttpServer((_request, response) => response.end("hello"));
  const port = await portOf(http1);
  const wrong = new SvcClient({ endpoints: `http://127.0.0.1:${port}` });
  const plain = await failure(wrong.kv.get("a", { deadlineMs: 1500 }));
  t.match(plain.message, /does not speak gRPC in clear text/);
  t.notMatch(plain.message, /Resolution note/);
  await wrong.close();
  const secure = new SvcClient({ endpoints: `https://127.0.0.1:${port}` });
  const tls = await failure(secure.kv.get("a", { deadlineMs: 1500 }));
  t.match(tls.message, /does not speak TLS/);
  await secure.close();
  http1.closeAllConnections();
  http1.close();
});
