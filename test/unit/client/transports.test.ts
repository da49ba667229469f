/** The inner parts of the client on their own: whose connection is dead, whose tries a closing settles, who is to blame. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { Metadata, status } from "@grpc/grpc-js";
import t from "tap";
import { BatchStream } from "../../../src/client/transport/batch-stream.js";
import { Batcher } from "../../../src/client/transport/batcher.js";
import { Call } from "../../../src/client/call/call.js";
import { UnavailableError, type SvcError } from "../../../src/client/values/errors.js";
import { GrpcChannel } from "../../../src/client/transport/grpc-channel.js";
import { GrpcNode } from "../../../src/client/transport/grpc-node.js";
import { systemPlatform } from "../../../src/client/time/system-platform.js";
import { getKey } from "../../../src/client/kv/kv-operations.js";
import { tryLock } from "../../../src/client/locks/lock-operations.js";
import type { Operation } from "../../../src/client/call/operation.js";
import { clientSettings, parseEndpoint } from "../../../src/client/values/options.js";
import { Targets } from "../../../src/client/call/endpoints.js";
import type { Target } from "../../../src/client/call/try.js";
import { neverLeft } from "../../../src/client/transport/rest-node.js";
import type { CallHost, Try } from "../../../src/client/call/try.js";
import { sleep, temporaryDirectory } from "../../process/cluster/server-process.js";
import { root } from "../../tidy/sources.js";
import { Proxy } from "../../doubles/server/proxy.js";
import { StandInCluster } from "../../doubles/server/cluster.js";
import { StandIn } from "../../doubles/server/stand-in.js";

t.setTimeout(60_000);

type Erased = Operation<unknown, unknown, unknown>;
const GET = getKey as Erased;
const LOCK_IT = tryLock as Erased;
const KEY = { key: "mute", revision: -1n, durability: 1 };
const LOCK = { resource: "mute", owner: new Uint8Array(1), expiresMs: 9, durability: 1 };

/** A try that remembers how it ended. */
class Probe implements Try {
  left = false;
  alone = false;
  ended = false;
  abandon: (() => void) | null = null;
  cancelWait: (() => void) | null = null;
  failure: SvcError | null = null;
  readonly operation: Erased;
  readonly request: unknown;

  constructor(operation: Erased, request: unknown) {
    this.operation = operation;
    this.request = request;
  }

  answered(): void {
    this.ended = true;
  }

  failed(error: SvcError): void {
    this.ended = true;
    this.failure = error;
  }

  get end(): string {
    return this.failure === null ? "" : `${this.failure.code} ${this.failure.outcome}`;
  }
}

async function until(done: () => boolean, what: string): Promise<void> {
  const begin = performance.now();
  while (!done()) {
    if (performance.now() - begin > 10_000) throw new Error(`never: ${what}`);
    await sleep(5);
  }
}

/** Takes connections and says nothing on them. */
async function deafServer(sockets: Socket[]): Promise<[Server, string]> {
  const server = createServer((one) => void sockets.push(one.on("error", () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("it has a port");
  return [server, `127.0.0.1:${address.port}`];
}

t.test("a dead connection is dead for all its streams, and renewed once", async (t) => {
  const node = await StandIn.open(() => "silence");
  const proxy = await Proxy.open(node.address);
  const settings = clientSettings({ endpoints: proxy.address });
  const channel = new GrpcChannel(
    systemPlatform,
    parseEndpoint(proxy.address),
    settings,
    () => undefined,
  );
  const events = {
    onRoom: () => undefined,
    onOpenFailed: () => undefined,
    onUnimplemented: () => undefined,
    sendAlone: () => undefined,
  };
  const stream = (path: string): BatchStream => new BatchStream(path, channel, null, events);
  const kv = stream("/KeyValuer/BatchClientKeyValueRequests");
  const locks = stream("/Locker/BatchClientLockRequests");
  for (const one of [kv, locks]) {
    one.open();
    await until(() => one.room > 0, "open");
  }
  const first = new Probe(GET, KEY);
  const second = new Probe(LOCK_IT, LOCK);
  kv.send([first], 0);
  locks.send([second], 0);
  await until(() => node.asked.length === 2, "asked");
  const old = channel.connection;
  kv.suspect(first);
  t.equal(first.end, "connection-lost unknown");
  const sinceMs = performance.now();
  kv.open();
  await until(() => kv.room > 0, "open again");
  t.equal(channel.aliveSince(sinceMs), true, "the new connection speaks");
  t.equal(proxy.accepted, 2);
  locks.suspect(second);
  t.equal(second.end, "connection-lost unknown", "its connection is the old one");
  locks.open();
  await until(() => locks.room > 0, "open again");
  t.equal(proxy.accepted, 2, "the new connection stays");
  const laterMs = performance.now();
  channel.alive(old);
  t.equal(channel.aliveSince(laterMs), false, "signs of life of the old connection count no more");
  kv.close();
  locks.close();
  channel.close();
  await proxy.close();
  node.stop();
});

t.test("closing a node settles what it still has: waiting, in flight, late", async (t) => {
  const sockets: Socket[] = [];
  const [deaf, deafAddress] = await deafServer(sockets);
  const node = await StandIn.open(() => "silence");
  const grpcNode = (address: string): GrpcNode =>
    new GrpcNode(
      systemPlatform,
      parseEndpoint(address),
      clientSettings({ endpoints: address, channels: 1 }),
      () => undefined,
    );
  const connecting = grpcNode(deafAddress);
  const waiting = [new Probe(GET, KEY), new Probe(GET, KEY)] as const;
  waiting[1].alone = true;
  for (const one of waiting) connecting.send(one);
  await until(() => sockets.length > 0, "connected");
  await connecting.close();
  t.equal(waiting[0].end, "connection-lost none", "waited for a stream");
  t.equal(waiting[1].failure?.outcome, "none", "waited for the connection");
  t.equal(waiting[1].failure?.retryable, true);

  const standing = grpcNode(node.address);
  const sent = [new Probe(GET, KEY), new Probe(GET, KEY)] as const;
  sent[1].alone = true;
  for (const one of sent) standing.send(one);
  await until(() => node.asked.length === 2, "both are in flight");
  await standing.close();
  for (const one of sent) t.equal(one.end, "connection-lost unknown", "may have been done");
  const late = new Probe(GET, KEY);
  standing.send(late);
  t.equal(late.end, "connection-lost none", "nothing is taken any more");
  for (const socket of sockets) socket.destroy();
  deaf.close();
  node.stop();
});

t.test("P-150 connections that fail in turn do not hold a call until its deadline", async (t) => {
  const channels = [0, 1].map(() => {
    const waiting: ((failure: SvcError | null) => void)[] = [];
    const channel = {
      platform: systemPlatform,
      connection: 0,
      watch: { began: () => undefined, ended: () => undefined },
      whenSilent: () => undefined,
      whenReady: (ready: (failure: SvcError | null) => void) => void waiting.push(ready),
    };
    return { waiting, channel: channel as unknown as GrpcChannel };
  });
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const all = channels.map(({ channel }) => channel);
  const batcher = new Batcher(systemPlatform, "kv", all, null, () => undefined);
  const call = new Probe(GET, KEY);
  batcher.push(call);
  await turn();
  for (let round = 0; round < 4 && call.failure === null; round++) {
    const ready = channels[round % 2]?.waiting.shift();
    ready?.(new UnavailableError("unreachable", "no connection in time"));
    await turn();
  }
  t.equal(call.end, "unreachable none");
  batcher.close();
});

t.test("P-150 streams that are refused in turn do not hold a call either", async (t) => {
  const calls: EventEmitter[] = [];
  const channel = {
    platform: systemPlatform,
    connection: 0,
    watch: { began: () => undefined, ended: () => undefined },
    whenSilent: () => undefined,
    whenReady: (ready: (failure: SvcError | null) => void) => ready(null),
    withMetadata: (then: (metadata: Metadata) => void) => then(new Metadata()),
    open: () => ({
      makeBidiStreamRequest: () => {
        const call = Object.assign(new EventEmitter(), { cancel: () => undefined });
        calls.push(call);
        return call;
      },
    }),
  } as unknown as GrpcChannel;
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const alone: unknown[] = [];
  const batcher = new Batcher(systemPlatform, "kv", [channel, channel], null, (one) => {
    alone.push(one);
  });
  for (const [code, ends] of [
    [status.UNAVAILABLE, 1],
    [status.UNAUTHENTICATED, 0],
  ] as const) {
    const call = new Probe(GET, KEY);
    const before = calls.length;
    batcher.push(call);
    await turn();
    for (let round = before; round < before + 6; round++) {
      calls[round]?.emit("status", { code, details: "", metadata: new Metadata() });
      await turn();
    }
    t.ok(calls.length - before <= 4, `streams made: ${calls.length - before}`);
    t.equal(call.failure === null ? 0 : 1, ends);
  }
  t.equal(alone.length, 1, "each item gets its own verdict where streams are refused");
  batcher.close();
});

t.test("a target is not blamed for what another one failed at once", async (t) => {
  const targets = new Targets(
    systemPlatform,
    ["a:1", "b:1"].map(parseEndpoint),
    () => ({
      ready: true,
      warm: () => undefined,
      watch: () => null,
      send: () => undefined,
      suspect: () => undefined,
      close: () => Promise.resolve(),
    }),
    true,
    0,
    false,
  );
  const [one, other] = targets.configured as [Target, Target];
  const blamed: Target[] = [];
  const asked: (Target | null)[] = [];
  const lost = (): UnavailableError => new UnavailableError("connection-lost", "gone");
  const host: CallHost = {
    platform: systemPlatform,
    targetCount: 2,
    failWhenRefused: false,
    dispatch(attempt, last) {
      asked.push(last);
      if (asked.length === 1) setImmediate(() => attempt.failed(lost()));
      else if (asked.length === 2) attempt.failed(lost());
      else setImmediate(() => attempt.answered({ type: 103, revision: 0n, value: null }, null));
      return asked.length === 2 ? other : one;
    },
    answered: () => undefined,
    refused: () => undefined,
    unanswered: () => undefined,
    failed: (target) => void blamed.push(target),
    suspect: () => undefined,
    watch: () => undefined,
    ended: () => undefined,
    nowMs: () => performance.now(),
  };
  await new Promise((resolve, reject) => {
    new Call(host, GET, KEY, undefined, 5000, resolve, reject).begin();
  });
  t.same(
    blamed.map((target) => target.endpoint.host),
    ["a"],
  );
  t.same(
    asked.map((target) => target?.endpoint.host ?? null),
    [null, "a", "b"],
  );
});

t.test("REST: the same code means another thing below a request", (t) => {
  for (const code of ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"]) {
    t.equal(neverLeft(code, "connect"), true, code);
    t.equal(neverLeft(code, undefined), true, "of several addresses");
    t.equal(neverLeft(code, "read"), false, "a request was under way");
    t.equal(neverLeft(code, "write"), false);
  }
  t.equal(neverLeft("ENOTFOUND", "getaddrinfo"), true);
  t.equal(neverLeft("ECONNRESET", "connect"), false);
  t.end();
});

const PROGRAM = `
const [library, address] = process.argv.slice(2);
const { SvcClient } = await import(library);
const rejections = [];
process.on("unhandledRejection", (error) => rejections.push(String(error)));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const names = Array.from({ length: 40 }, (_, at) => "s" + at);
const ends = [];
for (const stayMs of [0, 5, 400]) {
  const client = new SvcClient({ endpoints: address });
  const late = [];
  const begin = performance.now();
  const calls = [client.kv.set("mute", "x"), client.locks.tryLock("mute", { owner: "o", leaseMs: 9 })];
  const busy = async () => {
    while (performance.now() - begin < stayMs) {
      await Promise.all(names.map((name) => client.sequences.next(name)));
      await pause(5);
    }
  };
  calls.push(busy());
  await pause(stayMs);
  calls.push(client.kv.get("mute"));
  const settled = Promise.allSettled(calls);
  await client.close();
  for (const end of await settled) ends.push(end.reason?.name ?? "done");
  await client.kv.get("late").catch((error) => ends.push(error.code));
}
await pause(100);
const left = process.getActiveResourcesInfo().filter((name) => !/TTY|Pipe/.test(name));
console.log(JSON.stringify({ ends, left, rejections }));
`;

t.test("P-156 nothing is left of learned, warming and asked nodes after close", async (t) => {
  const sockets: Socket[] = [];
  const [deaf, deafAddress] = await deafServer(sockets);
  const cluster = await StandInCluster.open(3);
  // Node 2 advertises an address that takes connections and never speaks: warming never ends.
  cluster.endpointOf = (at) =>
    at === 2 ? `http://${deafAddress}` : (cluster.nodes[at] as StandIn).endpoint;
  cluster.before = ({ method, name }) =>
    method === "metadata" || name === "mute" ? "silence" : null;
  const place = temporaryDirectory();
  const program = join(place.path, "program.mjs");
  writeFileSync(program, PROGRAM);
  const library = join(root, "dist/src/client/mod.js");
  const child = spawn(process.execPath, [program, library, cluster.addresses[0] as string]);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text: Buffer) => (output += text.toString()));
  }
  const limit = setTimeout(() => child.kill("SIGKILL"), 20_000);
  const code = await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(limit);
  t.equal(code, 0, output);
  const { ends, left, rejections } = JSON.parse(output) as Record<string, string[]>;
  t.same(new Set(ends), new Set(["ClosedError", "client-closed", "done"]), output);
  t.same(left, [], "no timer, no socket");
  t.same(rejections, []);
  t.ok(cluster.nodes[0]?.metadataAsked ?? 0, "metadata was asked for, and never answered");
  t.ok(
    cluster.nodes[1]?.asked.some((one) => one.method === "next"),
    "a learned node served",
  );
  t.ok(sockets.length > 0, "a connection was being made");
  for (const socket of sockets) socket.destroy();
  deaf.close();
  cluster.close();
  place.remove();
});
