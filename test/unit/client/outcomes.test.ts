/** What the client says about calls that failed in part, late or beside others: never "none" when something was done. */
import { createServer, type Server } from "node:http";
import { createServer as createTcp, type Socket } from "node:net";
import t from "tap";
import { status } from "@grpc/grpc-js";
import {
  CancelledError,
  ClosedError,
  SvcClient,
  TimeoutError,
  UnknownOutcomeError,
} from "../../../src/client/mod.js";
import { GrpcChannel } from "../../../src/client/transport/grpc-channel.js";
import { clientSettings, parseEndpoint } from "../../../src/client/values/options.js";
import { systemPlatform } from "../../../src/client/time/system-platform.js";
import { pause } from "../../../src/client/time/pause.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../../process/cluster/server-process.js";
import { failure } from "../../doubles/client/failure.js";
import { Proxy } from "../../doubles/server/proxy.js";
import { StandIn, type Asked, type Reply } from "../../doubles/server/stand-in.js";
import { VirtualTime } from "../../doubles/client/virtual-time.js";

const KV_SET = 0;
const KV_GOT = 3;
const MUST_RETRY = 101;
const LOCKED = 0;
const BUSY = 1;
const EXTENDED = 2;
const UNLOCKED = 3;
const NOT_HELD = 102;
const OTHER_OWNER = 103;

/** Of the tests whose servers are stand-ins. */
const time = new VirtualTime();

t.setTimeout(120_000);
t.teardown(() => {
  time.stop();
  return endAll();
});

function keysOf(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `k/${at}`);
}

t.test("many-calls: a part that fails leaves the results of the others", async (t) => {
  let reply: (asked: Asked, part: number) => Reply = () => "silence";
  const node = await StandIn.open((asked) => reply(asked, node.asked.length));
  const done = (asked: Asked): Reply => ({ type: 0, types: asked.keys.map(() => KV_SET) });
  const client = new SvcClient({ endpoints: node.address, deadlineMs: 1500 }, time);
  const items = keysOf(2500).map((key) => ({ key, value: "v" }));

  reply = (asked, part) => (part === 2 ? "silence" : done(asked));
  const begin = time.nowMs();
  const partial = await client.kv.setMany(items);
  t.ok(time.nowMs() - begin < 5000, "the client's own deadline holds");
  t.equal(partial.length, 2500);
  t.ok(
    partial.slice(0, 1024).every((one) => one.result?.applied === true),
    "done is told",
  );
  t.same(
    [
      ...new Set(
        partial.slice(1024, 2048).map((one) => `${one.error?.code} ${one.error?.outcome}`),
      ),
    ],
    ["timeout unknown"],
    "not answered: unknown",
  );
  t.same(
    [...new Set(partial.slice(2048).map((one) => `${one.error?.code} ${one.error?.outcome}`))],
    ["timeout none"],
    "never sent: none",
  );

  node.asked.length = 0;
  reply = (asked, part) =>
    part === 2 ? { status: status.RESOURCE_EXHAUSTED, details: "larger than max" } : done(asked);
  const refused = await client.kv.setMany(items);
  t.same(
    refused.map((one) => one.error?.code ?? "ok").filter((code, at, all) => code !== all[at - 1]),
    ["ok", "too-large", "ok"],
    "a refused part does not stop the next",
  );

  node.asked.length = 0;
  reply = () => ({ status: status.PERMISSION_DENIED });
  const none = await failure(client.kv.setMany(items));
  t.same([none.code, none.outcome], ["forbidden", "none"], "nothing answered: the call rejects");

  node.asked.length = 0;
  const stop = new AbortController();
  reply = (asked) => ({
    type: 0,
    types: asked.keys.map((key) => (key === "k/0" ? KV_SET : MUST_RETRY)),
  });
  const stopped = client.kv.setMany(items.slice(0, 3), { signal: stop.signal });
  await time.sleep(30);
  stop.abort();
  const kept = await stopped;
  t.equal(kept[0]?.result?.applied, true, "a cancelled repeat keeps what was done");
  t.same([kept[1]?.error?.name, kept[1]?.error?.outcome], ["CancelledError", "unknown"]);
  await client.close();
  node.stop();
});

t.test("many-calls: doubt of a lost answer reaches the items", async (t) => {
  const node = await StandIn.open((asked) => {
    const first = node.asked.length === 1;
    if (first) return { status: status.UNAVAILABLE };
    return { type: 0, types: asked.keys.map(() => 103) };
  });
  const client = new SvcClient({ endpoints: node.address });
  const [deleted] = await client.kv.deleteMany(["k"]);
  t.same(
    [deleted?.result?.deleted, deleted?.result?.doubtful],
    [false, true],
    "the lost try may have deleted it",
  );
  await client.close();
  node.stop();
});

t.test(
  "a stream ended by a status: neighbours are unknown, each gets its own verdict",
  async (t) => {
    for (const code of [
      status.PERMISSION_DENIED,
      status.INVALID_ARGUMENT,
      status.RESOURCE_EXHAUSTED,
    ]) {
      const node = await StandIn.open(async (asked) => {
        if (asked.name === "forbidden") {
          await time.sleep(30);
          return { status: code, details: "this item" };
        }
        // The permitted ones are slow on the stream: they are in flight when it ends.
        if (!asked.alone && asked.name !== "warm") return "silence";
        return { type: 0, value: 7 };
      });
      const client = new SvcClient({ endpoints: node.address, channels: 1 }, time);
      await client.sequences.next("warm");
      const permitted = client.sequences.next("permitted");
      const strict = failure(client.sequences.next("strict", { idempotency: "off" }));
      const refused = failure(client.sequences.next("forbidden"));
      t.equal(await permitted, 7n, "the permitted one is served");
      t.ok(node.asked.some((one) => one.name === "permitted" && one.alone && one.key !== null));
      t.same([(await strict).retryable, (await strict).outcome], [true, "unknown"]);
      const own = await refused;
      t.not(own.code, "connection-lost", "the refused one is told why");
      t.notOk(own.retryable);
      const single = await failure(client.sequences.next("forbidden"));
      t.same(
        [single.code, single.outcome],
        [own.code, "none"],
        "alone on the stream: its own verdict",
      );
      await client.close();
      node.stop();
    }
  },
);

t.test("a stream ended by a status: what a cancelled neighbour caused says nothing", async (t) => {
  const node = await StandIn.open(async (asked) => {
    if (asked.name === "forbidden") {
      await time.sleep(60);
      return { status: status.PERMISSION_DENIED, details: "this item" };
    }
    if (!asked.alone && asked.name !== "warm") return "silence";
    return { type: 0, value: 7 };
  });
  const client = new SvcClient({ endpoints: node.address, channels: 1 }, time);
  await client.sequences.next("warm");
  const strict = failure(client.sequences.next("strict", { idempotency: "off" }));
  const stop = new AbortController();
  const forbidden = failure(client.sequences.next("forbidden", { signal: stop.signal }));
  while (!node.asked.some((one) => one.name === "forbidden")) await time.sleep(1);
  await time.sleep(10);
  stop.abort();
  t.type(await forbidden, CancelledError);
  const { code, outcome } = await strict;
  t.same([code, outcome], ["connection-lost", "unknown"], "the server had both in flight");
  await client.close();
  node.stop();
});

t.test("ENHANCE_YOUR_CALM is the connection's business, no verdict about an item", async (t) => {
  const node = await StandIn.open((asked) => {
    const calm = {
      status: status.RESOURCE_EXHAUSTED,
      details: "Bandwidth exhausted or memory limit exceeded",
    };
    return node.asked.length <= 2 ? calm : { type: 0, value: asked.key === null ? 1 : 2 };
  });
  const client = new SvcClient({ endpoints: node.address, channels: 1 });
  t.equal(await client.sequences.next("s"), 2n, "repeated with a key");
  await client.close();
  node.stop();
});

t.test("UNIMPLEMENTED after the stream stood: what was sent is unknown", async (t) => {
  const node = await StandIn.open((asked) =>
    asked.name === "warm" ? { type: 0, value: 1 } : { status: status.UNIMPLEMENTED },
  );
  const client = new SvcClient({ endpoints: node.address, channels: 1 });
  await client.sequences.next("warm");
  const error = await failure(client.sequences.next("s", { idempotency: "off" }));
  t.equal(error.outcome, "unknown");
  t.equal(node.count("next"), 2, "an allocation without a key is not sent again");
  await client.close();
  node.stop();
});

t.test("one signal ends any number of calls, without a warning", async (t) => {
  const warnings: string[] = [];
  const listen = (warning: Error): void => void warnings.push(warning.message);
  process.on("warning", listen);
  const node = await StandIn.open((asked) => (asked.name === "l" ? { type: BUSY } : "silence"));
  const client = new SvcClient({ endpoints: node.address }, time);
  const stop = new AbortController();
  const { signal } = stop;
  const calls = keysOf(30).flatMap((key) => [
    failure(client.kv.get(key, { signal })),
    failure(client.locks.acquire("l", { leaseMs: 1000, waitMs: 60_000, retryMs: 60_000, signal })),
  ]);
  await time.sleep(50);
  stop.abort();
  for (const error of await Promise.all(calls)) t.equal(error.code, "cancelled");
  await time.sleep(5);
  process.off("warning", listen);
  t.same(warnings, []);
  await client.close();
  node.stop();
});

t.test("closing releases late grants and wakes those who wait", async (t) => {
  let holds = true;
  const node = await StandIn.open(async (asked) => {
    if (asked.method === "unlock") return { type: UNLOCKED };
    if (asked.name === "late") {
      await time.sleep(150);
      return { type: LOCKED, value: 5 };
    }
    return { type: holds ? BUSY : LOCKED };
  });
  const client = new SvcClient({ endpoints: node.address }, time);
  const late = failure(client.locks.acquire("late", { leaseMs: 60_000 }));
  const waiting = failure(
    client.locks.acquire("busy", { leaseMs: 60_000, waitMs: 60_000, retryMs: 30_000 }),
  );
  await time.sleep(60);
  const begin = time.nowMs();
  await client.close();
  t.ok(time.nowMs() - begin < 1500, "close does not wait for those who wait");
  t.type(await waiting, ClosedError);
  t.type(await late, ClosedError);
  t.ok(
    node.asked.some((one) => one.method === "unlock" && one.name === "late"),
    "released",
  );
  t.type(await failure(client.locks.acquire("x", { leaseMs: 1 })), ClosedError);
  holds = false;

  const other = new SvcClient({ endpoints: node.address }, time);
  node.asked.length = 0;
  const stop = new AbortController();
  const cancelled = failure(
    other.locks.acquire("late", { leaseMs: 60_000, signal: stop.signal, waitMs: 1000 }),
  );
  await time.sleep(50);
  stop.abort();
  t.type(await cancelled, CancelledError);
  t.equal(node.count("unlock"), 0, "not released before it is granted");
  await time.sleep(250);
  const order = node.asked.map((one) => one.method);
  t.same(order, ["lock", "unlock"], "released after its late grant");
  await other.close();
  node.stop();
});

t.test("release is honest about a lost first try", async (t) => {
  let answers: Reply[] = [];
  const node = await StandIn.open((asked) => {
    if (asked.method === "lock") return { type: LOCKED, value: 1 };
    if (asked.method === "extend") return { type: EXTENDED, value: 1 };
    return answers.shift() ?? { type: NOT_HELD };
  });
  const client = new SvcClient({ endpoints: node.address }, time);
  const acquire = (leaseMs: number) => client.locks.acquire("r", { leaseMs, renew: false });
  const lost: Reply = { status: status.UNAVAILABLE };

  answers = [lost, { type: OTHER_OWNER }];
  t.equal(await (await acquire(60_000)).release(), true, "held until now, gone now");
  answers = [lost, { type: NOT_HELD }];
  t.equal(await (await acquire(60_000)).release(), true);
  answers = [{ type: OTHER_OWNER }];
  t.equal(await (await acquire(60_000)).release(), false, "no doubt: not ours");
  const short = await acquire(60);
  await time.sleep(100);
  answers = [lost, { type: OTHER_OWNER }];
  const doubt = await failure(short.release());
  t.type(doubt, UnknownOutcomeError, "not known to be held: unknown");
  const twice = await acquire(60_000);
  answers = ["silence"];
  const first = await failure(twice.release({ deadlineMs: 200 }));
  t.equal(first.outcome, "unknown");
  answers = [{ type: NOT_HELD }];
  t.equal(await twice.release(), true, "the first release may have arrived");
  await client.close();
  node.stop();
});

t.test("wrong leases reject, long waits wait", async (t) => {
  const node = await StandIn.open((asked) => {
    if (asked.method === "lock") return { type: asked.name === "busy" ? BUSY : LOCKED, value: 1 };
    return { type: UNLOCKED };
  });
  const client = new SvcClient({ endpoints: node.address });
  const lock = await client.locks.acquire("l", { leaseMs: 60_000, waitMs: 2 ** 31 - 1 });
  t.equal(lock.acquired, true, "a wait near 2^31 ms");
  let thrown = false;
  let rejected: Promise<unknown> = Promise.resolve();
  try {
    rejected = lock.extend(0);
  } catch {
    thrown = true;
  }
  t.equal(thrown, false, "extend does not throw");
  t.equal((await failure(rejected)).code, "invalid-input");
  const stop = new AbortController();
  const long = failure(
    client.locks.acquire("busy", {
      leaseMs: 1000,
      waitMs: 2 ** 31 - 1,
      retryMs: 2 ** 31 - 1,
      signal: stop.signal,
    }),
  );
  await sleep(50);
  t.ok(node.asked.filter((one) => one.name === "busy").length <= 2, "no timer fired at once");
  stop.abort();
  await long;
  const end = new AbortController();
  let over = false;
  const paused = pause(systemPlatform, 2 ** 32, end.signal).then(
    () => (over = true),
    () => undefined,
  );
  await sleep(20);
  end.abort();
  await paused;
  t.equal(over, false, "a pause beyond 2^31 - 1 ms");
  await client.close();
  node.stop();
});

t.test("the deadline of an acquire covers the extend that confirms a late grant", async (t) => {
  const node = await StandIn.open(async (asked) => {
    if (asked.method === "extend") return "silence";
    if (asked.method === "unlock") return { type: UNLOCKED };
    await time.sleep(700);
    return { type: LOCKED, value: 1 };
  });
  const client = new SvcClient({ endpoints: node.address }, time);
  const begin = time.nowMs();
  const options = { leaseMs: 60_000, owner: "mine", deadlineMs: 1000 };
  const error = await failure(client.locks.acquire("r", options));
  t.type(error, TimeoutError);
  t.equal(error.outcome, "unknown", "it was granted");
  const tookMs = time.nowMs() - begin;
  t.ok(tookMs < 1500, `${Math.round(tookMs)} ms`);
  await client.close();
  t.equal(node.count("unlock"), 1, "given back");
  node.stop();
});

t.test("deadlines cover a whole ensure and, when asked, a whole scan", async (t) => {
  const node = await StandIn.open(async (asked) => {
    if (asked.method === "scan") {
      await time.sleep(40);
      return { type: KV_GOT, keys: [`k${node.asked.length}`], more: true };
    }
    await time.sleep(120);
    return { type: asked.method === "createSequence" ? 2 : 1 };
  });
  const client = new SvcClient({ endpoints: node.address }, time);
  const begin = time.nowMs();
  const error = await failure(client.sequences.ensure("never", {}, { deadlineMs: 300 }));
  t.type(error, TimeoutError);
  t.ok(time.nowMs() - begin < 1500, "one deadline for all its steps");
  const seen: string[] = [];
  const scanned = await failure(
    (async () => {
      for await (const { key } of client.kv.scan("k", { overallDeadlineMs: 200 })) seen.push(key);
    })(),
  );
  t.type(scanned, TimeoutError);
  t.ok(seen.length >= 1 && seen.length < 8, `${seen.length} pages`);
  await client.close();
  node.stop();
});

t.test("one slow answer does not cut a connection on which others are answered", async (t) => {
  const node = await StandIn.open(async (asked) => {
    if (asked.name === "slow" && asked.method === "extend") return "silence";
    if (asked.method === "get") {
      await time.sleep(asked.name === "long" ? 700 : 5);
      return { type: KV_GOT, value: 1, bytes: Buffer.from("x") };
    }
    return { type: asked.method === "lock" ? LOCKED : asked.method === "unlock" ? UNLOCKED : 2 };
  });
  const proxy = await Proxy.open(node.address);
  const client = new SvcClient({ endpoints: proxy.address, channels: 1 }, time);
  // Its renewals are never answered: each try is given up after a sixth of the lease.
  await client.locks.acquire("slow", { leaseMs: 600 });
  let running = true;
  const traffic = (async () => {
    while (running) await client.kv.get("quick");
  })();
  t.equal((await client.kv.get("long"))?.text, "x");
  running = false;
  await traffic;
  t.equal(proxy.accepted, 1, "still the first connection");
  t.equal(node.asked.filter((one) => one.name === "long").length, 1, "nothing was sent twice");
  await client.close({ releaseMs: 0 });
  await proxy.close();
  node.stop();
});

t.test("a connection given up while it is being made stays given up", async (t) => {
  let accepted = 0;
  // Accepts and says nothing: the connection is never ready.
  const sockets: Socket[] = [];
  const deaf = createTcp((socket) => {
    accepted += 1;
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => deaf.listen(0, "127.0.0.1", resolve));
  const address = deaf.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const settings = clientSettings({ endpoints: `127.0.0.1:${port}` });
  const channel = new GrpcChannel(
    systemPlatform,
    parseEndpoint(`127.0.0.1:${port}`),
    settings,
    () => undefined,
  );
  const told: unknown[] = [];
  channel.whenReady((error) => told.push(error));
  while (accepted === 0) await sleep(1);
  const before = accepted;
  channel.renew();
  await sleep(250);
  t.equal(accepted, before, "no connection is made after it was given up");
  t.equal(told.length, 1, "whoever waited is told");
  channel.close();
  for (const socket of sockets) socket.destroy();
  deaf.close();
});

t.test("an unreachable endpoint is named with the reason", async (t) => {
  const closed = await StandIn.open(() => "silence");
  closed.stop();
  for (const transport of ["grpc", "rest"] as const) {
    // In real time: a refused connection is seen by the sockets, not by the clock of the client.
    const client = new SvcClient({ endpoints: closed.address, transport, deadlineMs: 1000 });
    const error = await failure(client.kv.get("k"));
    t.type(error, TimeoutError);
    t.match(error.message, closed.address, transport);
    t.match(error.message, /connection refused/, transport);
    t.equal(error.outcome, "none");
    await client.close();
  }
});

/** An HTTP server that answers as `serve` wants. */
async function webServer(serve: Parameters<typeof createServer>[1]): Promise<[Server, string]> {
  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return [
    server,
    `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
  ];
}

t.test("REST: a failure after the request left is unknown", async (t) => {
  const [server, address] = await webServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    response.write("{");
    setTimeout(() => response.destroy(), 10);
  });
  const client = new SvcClient({ endpoints: address, transport: "rest", deadlineMs: 1000 });
  const error = await failure(client.sequences.next("s", { idempotency: "off" }));
  t.equal(error.outcome, "unknown");
  const late = new SvcClient({ endpoints: address, transport: "rest", token: () => "bad token" });
  t.equal((await failure(late.kv.get("k"))).outcome, "none", "nothing left");
  await client.close();
  await late.close();
  server.close();
});

t.test("TLS to an address: verified against the address, no deprecated server name", async (t) => {
  const warnings: string[] = [];
  const listen = (warning: Error & { code?: string }): void =>
    void warnings.push(`${warning.code}`);
  process.on("warning", listen);
  const directory = temporaryDirectory();
  const server = new ServerProcess([
    ...nodeFlags(directory.path).filter((flag) => !flag.startsWith("--https-port")),
    "--https-port=0",
  ]);
  const { https } = await server.ready();
  const refused = new SvcClient({ endpoints: `https://${https}`, deadlineMs: 300 });
  t.equal((await failure(refused.kv.get("k"))).outcome, "none");
  const open = new SvcClient({ endpoints: `https://${https}`, tls: { insecure: true } });
  t.equal(await open.kv.get("k"), null);
  await sleep(20);
  process.off("warning", listen);
  t.notOk(warnings.includes("DEP0123"), warnings.join());
  await refused.close();
  await open.close();
  await server.stop();
  directory.remove();
});
