/** Watches of the client, over real front ends whose nodes tell what a test says. */
import t, { type Test } from "tap";
import { WatchEnd, WatchEventType, WatchMessageType } from "../../../src/base/result-types.js";
import {
  AccessError,
  CancelledError,
  ClosedError,
  InvalidInputError,
  SvcClient,
  type Watch,
  type WatchBatch,
} from "../../../src/client/mod.js";
import { RouteProvenance } from "../../../src/operations/api/requests.js";
import { failure } from "../../doubles/client/failure.js";
import type { FakeOperations } from "../../doubles/front/operations.js";
import { watchEvent, type FakeWatchStream } from "../../doubles/front/watches.js";
import { eventually, start, sleep } from "../grpc/harness.js";
import { startRig } from "../rest/harness.js";

const { created, mark, synced, ended } = WatchMessageType;

t.setTimeout(100_000);

interface Front {
  readonly client: SvcClient;
  readonly operations: FakeOperations;
  readonly address: string;
  /** The `count`-th stream or poll that came. */
  opened(count: number): Promise<FakeWatchStream>;
}

function openedAt(operations: FakeOperations, count: number): Promise<FakeWatchStream> {
  const { streams } = operations.watches;
  return eventually(() => (streams[count - 1]?.calls.length ?? 0) > 0).then(
    () => streams[count - 1] as FakeWatchStream,
  );
}

async function grpcFront(t: Test): Promise<Front> {
  const { operations, port } = await start(t, { watchStreamBufferBytes: 64 * 1024 });
  const client = new SvcClient({ endpoints: `127.0.0.1:${port}`, deadlineMs: 5000 });
  t.teardown(() => client.close());
  const address = `127.0.0.1:${port}`;
  return { client, operations, address, opened: (count) => openedAt(operations, count) };
}

async function restFront(t: Test): Promise<Front> {
  const rig = await startRig();
  t.teardown(() => rig.close());
  const endpoints = `127.0.0.1:${rig.httpPort}`;
  const client = new SvcClient({ endpoints, deadlineMs: 5000, transport: "rest" });
  t.teardown(() => client.close());
  const opened = (count: number): Promise<FakeWatchStream> => openedAt(rig.port, count);
  return { client, operations: rig.port, address: endpoints, opened };
}

async function taken(watch: Watch): Promise<WatchBatch> {
  const { value, done } = await watch.next();
  if (done === true) throw new Error("the watch has ended");
  return value;
}

t.test("every kind asks as it was asked, over both wires", async (t) => {
  for (const front of [await grpcFront(t), await restFront(t)]) {
    const { client, opened } = front;
    const all = { initial: true, cursor: "c", noValues: true, only: ["set", "locked"] } as const;
    const watches = [
      client.watch.key("k", { ...all, fromRevision: 2n ** 60n }),
      client.watch.prefix("ключ"),
      client.watch.bucket("b"),
      client.watch.lock("r"),
      client.watch.lockPrefix(""),
      client.watch.sequence("s"),
    ];
    const requests: unknown[] = [];
    for (const [at, watch] of watches.entries()) {
      watch.started().catch(() => undefined);
      const [call] = (await opened(at + 1)).calls;
      if (call?.did === "create") requests.push({ ...call.request, progressMs: 0, eventsMax: 0 });
      await watch.return();
    }
    const least = { cursor: null, fromRevision: null, initial: false, noValues: false, only: 0 };
    const given = { cursor: "c", fromRevision: 2n ** 60n, initial: true, noValues: true };
    t.strictSame(requests, [
      { kind: 1, name: "k", ...given, only: 2 + 16, progressMs: 0, eventsMax: 0 },
      ...["ключ", "b", "r", "", "s"].map((name, at) => ({
        kind: at + 2,
        name,
        ...least,
        progressMs: 0,
        eventsMax: 0,
      })),
    ]);
    await eventually(() => front.operations.watches.streams.every(({ isClosed }) => isClosed));
  }
});

t.test("events are the same over both wires, exact", async (t) => {
  const seen: unknown[] = [];
  for (const { client, opened } of [await grpcFront(t), await restFront(t)]) {
    const watch = client.watch.lockPrefix("", { cursor: "a" });
    const first = watch.next();
    const stream = await opened(1);
    const record = {
      ...{ name: "s", currentValue: 2n ** 62n, initialValue: 0n, increment: -1n, maxValue: 5n },
      ...{ blockSize: 7, incarnation: 3, revision: 4, createdAt: { n: 1, l: 2, c: 3 } },
      updatedAt: { n: 4, l: 5, c: 6 },
    };
    const event = watchEvent({
      ...{ type: WatchEventType.lockExpired, name: "r", value: new Uint8Array([255]) },
      ...{ revision: 2 ** 52, stamp: { n: 3, l: 4, c: 5 }, token: 2n ** 62n, forced: true },
      ...{ owner: Buffer.from("me"), note: Buffer.from("base64:x"), sequence: record },
    });
    stream.deliver({ type: created, cursor: "a" });
    stream.deliver({ events: [event, watchEvent({ value: Buffer.from("v") })], cursor: "b" });
    const { value } = await first;
    seen.push(value);
    t.equal(watch.cursor, "b");
    await watch.return();
    t.strictSame(await watch.next(), { done: true, value: undefined });
  }
  t.match(seen[0], {
    events: [
      {
        ...{ type: "lock-expired", name: "r", text: null, revision: 2n ** 52n, forced: true },
        ...{ fencingToken: 2n ** 62n, ownerText: "me", noteText: "base64:x" },
        sequence: { currentValue: 2n ** 62n, maxValue: 5n, durability: "persistent" },
      },
      { type: "set", text: "v", owner: null, sequence: null },
    ],
    ...{ cursor: "b", initial: false, merged: false, reset: false },
  });
  t.same(seen[1], seen[0]);
});

t.test(
  "W14 a node that has no replica names one that has, and the watch goes on there",
  async (t) => {
    const [first, second] = [await grpcFront(t), await start(t)];
    const route = { partitionId: 3, endpoint: `http://127.0.0.1:${second.port}` };
    const hint = { ...route, provenance: RouteProvenance.forwarded, generation: 0 };
    const { client, opened } = first;
    const watch = client.watch.key("k");
    const begun = watch.started();
    const near = await opened(1);
    near.deliver({ type: ended, end: WatchEnd.notHosted, partition: 3 }, hint);
    const far = await openedAt(second.operations, 1);
    far.deliver({ type: created, cursor: "a" });
    await begun;
    const next = taken(watch);
    far.deliver({ events: [watchEvent({})], cursor: "b" });
    t.match(await next, { cursor: "b" });
    far.deliver({ type: ended, end: WatchEnd.notHosted, partition: 3 });
    const again = await opened(2);
    t.match(again.calls[0], { did: "create", request: { cursor: "b" } }, "nobody named: as ever");
    await watch.return();
    const port = new URL(`http://${first.address}`).port;
    const stubborn = new SvcClient({ endpoints: `127.0.0.1:${port}`, followRoutes: false });
    t.teardown(() => stubborn.close());
    const own = stubborn.watch.key("k");
    own.started().catch(() => undefined);
    (await opened(3)).deliver({ type: ended, end: WatchEnd.notHosted, partition: 3 }, hint);
    await opened(4);
    t.equal(second.operations.watches.streams.length, 1, "it follows no routes");
    await own.return();
  },
);

t.test(
  "W8 a mark that says that revisions are gone: the next batch does, on other nodes too",
  async (t) => {
    const { client, opened } = await grpcFront(t);
    const watch = client.watch.key("k", { fromRevision: 3n });
    const first = taken(watch);
    const near = await opened(1);
    near.deliver({ type: created });
    near.deliver({ type: mark, cursor: "a", merged: true });
    near.deliver({ type: ended, end: WatchEnd.shuttingDown });
    const far = await opened(2);
    t.match(far.calls[0], { request: { cursor: "a", fromRevision: null } });
    far.deliver({ type: created, cursor: "a" });
    const part = { events: [watchEvent({})], more: true };
    far.deliver(part);
    far.deliver({ events: [watchEvent({ name: "l" })], cursor: "b" });
    t.match(await first, { events: [{ name: "k" }, { name: "l" }], merged: true });
    far.deliver({ events: [watchEvent({})], cursor: "c" });
    t.match(await taken(watch), { merged: false });
    await watch.return();
  },
);

t.test("W4 a state is told in parts, and whole when a batch has a cursor", async (t) => {
  const { client, opened } = await grpcFront(t);
  const watch = client.watch.prefix("", { initial: true });
  const started = watch.started();
  const stream = await opened(1);
  stream.deliver({ type: created });
  await started;
  stream.deliver({ events: [watchEvent({})], initial: true });
  stream.deliver({ type: mark, cursor: "whole" });
  t.match(await taken(watch), { events: [{}], initial: true, cursor: null });
  t.match(await taken(watch), { events: [], cursor: "whole", initial: false });
  stream.deliver({ type: mark, cursor: "later" });
  stream.deliver({ reset: true, initial: true });
  t.match(await taken(watch), { reset: true, cursor: null });
  t.equal(watch.cursor, "later", "a mark moves it");
  stream.deliver({ type: mark, cursor: "again" });
  t.match(await taken(watch), { events: [], cursor: "again" });
  await watch.return();
});

t.test("it goes on by itself at another node, behind what was told", async (t) => {
  const fronts = [await start(t), await start(t)];
  const endpoints = fronts.map(({ port }) => `127.0.0.1:${port}`);
  const client = new SvcClient({ endpoints, deadlineMs: 5000 });
  t.teardown(() => client.close());
  const counts = [0, 0];
  /** The next stream, wherever it comes. */
  const next = async (): Promise<[number, FakeWatchStream]> => {
    let found = -1;
    const has = (at: number): boolean =>
      (fronts[at]?.operations.watches.streams[counts[at] ?? 0]?.calls.length ?? 0) > 0;
    await eventually(() => (found = [0, 1].findIndex(has)) >= 0);
    const streams = fronts[found]?.operations.watches.streams ?? [];
    const at = counts[found] ?? 0;
    counts[found] = at + 1;
    return [found, streams[at] as FakeWatchStream];
  };
  const watch = client.watch.key("k");
  const first = watch.next();
  let [at, stream] = await next();
  stream.deliver({ type: created, cursor: "a" });
  stream.deliver({ events: [watchEvent({ revision: 1 })], cursor: "b" });
  t.match((await first).value, { events: [{ revision: 1n }] });
  // Half of a log entry comes again whole.
  stream.deliver({ events: [watchEvent({ revision: 2 })], more: true });
  for (const end of [
    WatchEnd.stale,
    WatchEnd.overloaded,
    WatchEnd.shuttingDown,
    WatchEnd.notHosted,
  ]) {
    stream.deliver({ type: ended, end });
    const before = at;
    [at, stream] = await next();
    t.not(at, before, "another node");
    t.match(stream.calls[0], { request: { cursor: "b" } });
    stream.deliver({ type: created, cursor: "b" });
  }
  stream.deliver({
    events: [watchEvent({ revision: 2 }), watchEvent({ revision: 3 })],
    cursor: "d",
  });
  t.match((await taken(watch)).events, [{ revision: 2n }, { revision: 3n }]);
  await fronts[at]?.server.close(0);
  const before = at;
  [at, stream] = await next();
  t.not(at, before, "also when its node is gone");
  t.match(stream.calls[0], { request: { cursor: "d" } });
  stream.deliver({ type: created, cursor: "d" });
  stream.deliver({ events: [watchEvent({ revision: 4 })], cursor: "e", merged: true });
  t.match(await taken(watch), { events: [{ revision: 4n }], merged: true });
  await watch.return();
});

t.test("a state that was told in part is told anew, as a reset", async (t) => {
  const { client, opened } = await grpcFront(t);
  const watch = client.watch.prefix("", { initial: true });
  const first = watch.next();
  const lost = await opened(1);
  lost.deliver({ type: created });
  lost.deliver({ events: [watchEvent({ name: "a" })], initial: true });
  t.match((await first).value, { events: [{ name: "a" }] });
  lost.deliver({ type: ended, end: WatchEnd.stale });
  const stream = await opened(2);
  t.match(stream.calls[0], { request: { initial: true, cursor: null } });
  stream.deliver({ type: created });
  stream.deliver({ events: [watchEvent({ name: "b" })], initial: true });
  stream.deliver({ type: mark, cursor: "x" });
  t.match(await taken(watch), { events: [{ name: "b" }], initial: true, reset: true });
  t.match(await taken(watch), { cursor: "x", reset: false });
  await watch.return();
});

t.test("W9 sync resolves behind what was told, also after a loss", async (t) => {
  const { client, opened } = await grpcFront(t);
  const watch = client.watch.key("k");
  const synced1 = watch.sync();
  const first = await opened(1);
  first.deliver({ type: created, cursor: "a" });
  await eventually(() => first.calls.some(({ did }) => did === "sync"));
  first.deliver({ type: ended, end: WatchEnd.stale });
  const second = await opened(2);
  second.deliver({ type: created, cursor: "a" });
  await eventually(() => second.calls.some(({ did }) => did === "sync"));
  t.match(second.calls[1], { did: "sync", syncId: 1, watchId: 1 });
  second.deliver({ events: [watchEvent({})], cursor: "b" });
  second.deliver({ type: synced, syncId: 1 });
  await synced1;
  t.match(await taken(watch), { cursor: "b" });
  const pending = watch.sync();
  await watch.return();
  t.type(await failure(pending), ClosedError);
});

t.test("P-185 what the reader does not take pushes back to the node, and goes on", async (t) => {
  const { client, opened, operations } = await grpcFront(t);
  const watch = client.watch.prefix("");
  const started = watch.started();
  const stream = await opened(1);
  stream.deliver({ type: created, cursor: "0" });
  await started;
  let told = 0;
  for (let fullRounds = 0; fullRounds < 10;) {
    for (; !stream.receiver.isFull() && told < 10_000; told++) {
      const value = Buffer.alloc(16_000);
      stream.deliver({ events: [watchEvent({ value, revision: told })], cursor: String(told) });
      fullRounds = 0;
    }
    await sleep(10);
    fullRounds++;
  }
  t.ok(told < 10_000, `full after ${told}`);
  for (let at = 0; at < told; at++) {
    const { events } = await taken(watch);
    if (events[0]?.revision !== BigInt(at)) throw new Error(`${at} came as ${events[0]?.revision}`);
  }
  await eventually(() => operations.watches.tally.bufferBytes === 0);
  t.ok(stream.calls.some(({ did }) => did === "ready"));
  await watch.return();
});

t.test("ends: what no node would give, signals, the client", async (t) => {
  for (const front of [await grpcFront(t), await restFront(t)]) {
    const { client, opened } = front;
    let count = 0;
    for (const [end, kind] of [
      [WatchEnd.invalidInput, InvalidInputError],
      [WatchEnd.forbidden, AccessError],
    ] as const) {
      const watch = client.watch.key("k", { cursor: "bad" });
      const [first, started] = [failure(watch.next()), failure(watch.started())];
      (await opened(++count)).deliver({ type: ended, end });
      t.type(await first, kind);
      t.type(await started, kind);
      t.strictSame(await watch.next(), { done: true, value: undefined });
    }
    const stop = new AbortController();
    const watch = client.watch.key("k", { signal: stop.signal });
    const first = failure(watch.next());
    const stream = await opened(++count);
    stop.abort();
    t.type(await first, CancelledError);
    await eventually(() => stream.isClosed);
    t.type(await failure(client.watch.key("k", { signal: stop.signal }).next()), CancelledError);
    const last = client.watch.key("k");
    const lastNext = failure(last.next());
    await opened(++count);
    await client.close();
    t.type(await lastNext, ClosedError);
    t.type(await failure(client.watch.key("k").started()), ClosedError);
  }
});

t.test("polls over REST go on behind each other, and a sync begins one anew", async (t) => {
  const { client, opened } = await restFront(t);
  const watch = client.watch.key("k");
  const first = watch.next();
  (await opened(1)).deliver({ type: created, cursor: "now" });
  const second = await opened(2);
  t.match(second.calls[0], { request: { cursor: "now", progressMs: 30_000 } });
  await watch.started();
  second.deliver({ events: [watchEvent({ revision: 1 })], cursor: "b" });
  t.match((await first).value, { events: [{ revision: 1n }] });
  const third = await opened(3);
  t.match(third.calls[0], { request: { cursor: "b" } });
  const sync = watch.sync();
  const fourth = await opened(4);
  t.match(fourth.calls[0], { request: { cursor: "b", progressMs: 100 } });
  fourth.deliver({ events: [watchEvent({ revision: 2 })], cursor: "c" });
  await sync;
  t.match(await taken(watch), { events: [{ revision: 2n }], cursor: "c" });
  const fifth = await opened(5);
  fifth.deliver({ type: ended, end: WatchEnd.stale });
  const sixth = await opened(6);
  t.match(sixth.calls[0], { request: { cursor: "c" } });
  await watch.return();
  await eventually(() => sixth.isClosed);
});

t.test("a cache shows whole states, follows, and is level after a sync", async (t) => {
  for (const { client, opened } of [await grpcFront(t)]) {
    const cache = client.cache("c/");
    const stream = await opened(1);
    t.match(stream.calls[0], { request: { kind: 2, name: "c/", initial: true } });
    const set = (name: string, text: string, revision: number) =>
      watchEvent({ name, value: Buffer.from(text), revision });
    stream.deliver({ type: created });
    stream.deliver({ events: [set("c/a", "1", 1), set("c/b", "2", 1)], initial: true });
    await sleep(50);
    t.equal(cache.size, 0, "half of a state is not shown");
    stream.deliver({ type: mark, cursor: "x" });
    await cache.ready();
    t.same([...cache.keys()], ["c/a", "c/b"]);
    const sync = cache.sync();
    await eventually(() => stream.calls.some(({ did }) => did === "sync"));
    const { deleted, expired } = WatchEventType;
    const gone = watchEvent({ type: deleted, name: "c/a" });
    stream.deliver({ events: [gone, set("c/c", "3", 1)], cursor: "y" });
    stream.deliver({ type: synced, syncId: 1 });
    await sync;
    t.same(
      [...cache].map(([key, { text, revision }]) => [key, text, revision]),
      [
        ["c/b", "2", 1n],
        ["c/c", "3", 1n],
      ],
    );
    stream.deliver({ events: [watchEvent({ type: expired, name: "c/b" })], cursor: "z" });
    await eventually(() => !cache.has("c/b"));
    stream.deliver({ reset: true, initial: true });
    stream.deliver({ events: [set("c/d", "4", 1)], initial: true });
    await sleep(50);
    t.equal(cache.get("c/c")?.text, "3", "the old state until the new one is whole");
    stream.deliver({ type: mark, cursor: "w" });
    await eventually(() => cache.has("c/d"));
    t.same([...cache.keys()], ["c/d"]);
    await cache.close();
    await cache.closed();
    await eventually(() => stream.isClosed);
    const refused = client.cache("bad");
    (await opened(2)).deliver({ type: ended, end: WatchEnd.invalidInput });
    t.type(await failure(refused.ready()), InvalidInputError);
    t.type(await failure(refused.closed()), InvalidInputError);
  }
});

t.test("P-202 watches refuse values of wrong types by name, and ask nobody", async (t) => {
  const { client, operations } = await grpcFront(t);
  const wrong = (value: unknown): never => value as never;
  const refused = (name: string) => ({ code: /invalid-input|out-of-range/, message: RegExp(name) });
  t.throws(() => client.watch.key(wrong(5)), refused("name"));
  t.throws(() => client.watch.key("\ud800"), refused("name"));
  t.throws(() => client.cache(wrong(5)), refused("name"));
  for (const [options, name] of [
    [5, "options"],
    [{ initial: 1 }, "initial"],
    [{ cursor: 5 }, "cursor"],
    [{ noValues: "x" }, "noValues"],
    [{ only: "set" }, "only"],
    [{ only: ["created"] }, "only"],
    [{ only: ["none"] }, "only"],
    [{ signal: {} }, "signal"],
    [{ fromRevision: "1" }, "fromRevision"],
  ] as const) {
    t.throws(() => client.watch.key("k", wrong(options)), refused(name));
  }
  t.equal(operations.watches.streams.length, 0);
});
