/** Watches over REST: polls and streams of server-sent events, through real sockets. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import t, { type Test } from "tap";
import { EventSource } from "undici";
import { WatchEnd, WatchEventType, WatchMessageType } from "../../../src/base/result-types.js";
import { UnsentBytes } from "../../../src/base/unsent.js";
import type { FakeWatchStream } from "../../doubles/front/watches.js";
import { watchEvent } from "../../doubles/front/watches.js";
import type { WatchMessage } from "../../../src/operations/api/requests.js";
import { startRig, type Rig } from "./harness.js";

t.setTimeout(300_000);

const POLL = "/v1/watch/poll";
const STREAM = "/v1/watch/stream";
const { created, events, mark, ended } = WatchMessageType;

async function rigOf(t: Test, options: Parameters<typeof startRig>[0] = {}): Promise<Rig> {
  const rig = await startRig(options);
  t.teardown(() => rig.close());
  return rig;
}

async function eventually(condition: () => boolean): Promise<void> {
  for (let round = 0; round < 2000; round++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error("the condition did not come true");
}

/** The watch that the newest request opened. */
async function opened({ port }: Rig, count: number): Promise<FakeWatchStream> {
  await eventually(() => port.watches.streams.length >= count);
  return port.watches.streams[count - 1] as FakeWatchStream;
}

const NOTHING = {
  ...{ events: [], cursor: null, initial: false, merged: false, reset: false, more: false },
  ...{ staleMs: 0, servedFrom: null },
};

t.test("3.9 a poll asks as it was asked, and tells every member", async (t) => {
  const rig = await rigOf(t);
  const all = {
    ...{ kind: "lock-prefix", name: "ключ", cursor: "c1", fromRevision: "9007199254740993" },
    ...{ initial: true, noValues: true, only: ["set", "lock-expired"], waitMs: 5000, limit: 10 },
  };
  const asked = rig.post(POLL, all);
  const watch = await opened(rig, 1);
  t.strictSame(watch.calls, [
    {
      did: "create",
      watchId: 1,
      request: {
        ...{ kind: 5, name: "ключ", cursor: "c1", fromRevision: 9007199254740993n },
        ...{ initial: true, noValues: true, only: 2 + 64, progressMs: 5000, eventsMax: 10 },
      },
    },
  ]);
  const record = {
    ...{ name: "s", currentValue: 2n ** 62n, initialValue: 0n, increment: -1n, maxValue: null },
    ...{ blockSize: 0, incarnation: 3, revision: 4, createdAt: { n: 1, l: 2, c: 3 } },
    updatedAt: { n: 4, l: 5, c: 6 },
  };
  const event = watchEvent({
    ...{ type: WatchEventType.lockExpired, name: '"r"', value: new Uint8Array([1]), revision: 5 },
    ...{ stamp: { n: 3, l: 4, c: 5 }, token: 2n ** 62n, owner: Buffer.from("me"), forced: true },
    ...{ note: new Uint8Array([255]), sequence: record },
  });
  watch.deliver({ type: created, cursor: "c1" });
  watch.deliver({ type: events, events: [event], merged: true, more: true });
  watch.deliver({ type: events, events: [watchEvent({})], cursor: "c2" });
  const { status, body, text } = await asked;
  t.equal(status, 200);
  t.ok(text.includes('"fencingToken":4611686018427387904,'), "exact");
  t.match(body, { ...NOTHING, events: [{}, {}], merged: true, cursor: "c2" });
  t.strictSame((body?.["events"] as unknown[])[0], {
    ...{ type: "lock-expired", name: '"r"', value: "AQ==", revision: 5, fencingToken: 2 ** 62 },
    ...{ stamp: { n: 3, l: 4, c: 5 }, owner: "me", note: "base64:/w==" },
    sequence: {
      ...{ name: "s", currentValue: 2 ** 62, initialValue: 0, increment: -1, maxValue: null },
      ...{ blockSize: 0, incarnation: 3, revision: 4, durability: "Persistent" },
      ...{ createdAt: { n: 1, l: 2, c: 3 }, updatedAt: { n: 4, l: 5, c: 6 } },
    },
    forced: true,
  });
  t.equal(watch.isClosed, true);
});

t.test(
  "3.9 rule 2: a poll without a cursor answers at once, others when there is something",
  async (t) => {
    const rig = await rigOf(t);
    let count = 0;
    const poll = async (more: object): Promise<[Promise<unknown>, FakeWatchStream]> => {
      const asked = rig.post(POLL, { kind: "key", name: "k", ...more }).then(({ body }) => body);
      return [asked, await opened(rig, ++count)];
    };
    const [now, first] = await poll({});
    first.deliver({ type: created, cursor: "now" });
    t.strictSame(await now, { ...NOTHING, cursor: "now" });
    const [none, second] = await poll({ cursor: "now", waitMs: 0 });
    t.match(second.calls[0], { request: { progressMs: 100 } });
    second.deliver({ type: created, cursor: "now" });
    second.deliver({ type: mark, cursor: "later", staleMs: 7 });
    t.strictSame(await none, { ...NOTHING, cursor: "later", staleMs: 7 });
    const [state, third] = await poll({ initial: true });
    third.deliver({ type: created });
    third.deliver({ events: [watchEvent({})], initial: true });
    third.deliver({ events: [watchEvent({ name: "l" })], cursor: "x" });
    third.deliver({ type: mark, cursor: "whole" });
    t.match(await state, { events: [{ name: "k" }, { name: "l" }], initial: true });
    const [anew, fourth] = await poll({ cursor: "old" });
    fourth.deliver({ type: created, cursor: "old" });
    fourth.deliver({ events: [watchEvent({ name: "void" })], more: true });
    fourth.deliver({ reset: true, initial: true });
    fourth.deliver({ events: [watchEvent({ name: "l" })], initial: true });
    fourth.deliver({ type: mark, cursor: "whole" });
    t.match(await anew, { events: [{ name: "l" }], initial: true, reset: true, cursor: "whole" });
    const [revisions, fifth] = await poll({ fromRevision: 4 });
    fifth.deliver({ type: created });
    fifth.deliver({ events: [watchEvent({ revision: 5 })], cursor: "r5" });
    t.match(await revisions, { events: [{ revision: 5 }], cursor: "r5" });
    const [gone, sixth] = await poll({ fromRevision: 4 });
    sixth.deliver({ type: created });
    sixth.deliver({ type: mark, cursor: "later", merged: true });
    t.match(await gone, { events: [], cursor: "later", merged: true }, "W8");
  },
);

t.test("3.9 a poll ends at the limit, and never within an entry", async (t) => {
  const rig = await rigOf(t);
  const events = (count: number) => Array.from({ length: count }, () => watchEvent({}));
  const poll = async (at: number, given: Partial<WatchMessage>[]) => {
    const asked = rig.post(POLL, { kind: "prefix", name: "k", cursor: "0", limit: 3 });
    const watch = await opened(rig, at);
    t.match(watch.calls, [{ request: { eventsMax: 3 } }]);
    for (const message of given) watch.deliver(message);
    const { body } = await asked;
    const { events: told, cursor, more } = body as { events: []; cursor: string; more: boolean };
    return [told.length, cursor, more];
  };
  const a = { events: events(2), cursor: "a" };
  t.same(await poll(1, [a]), [2, "a", false]);
  t.same(await poll(2, [a, { events: events(1), cursor: "b" }]), [3, "b", false]);
  t.same(await poll(3, [a, { events: events(2), cursor: "b" }]), [2, "a", false]);
  const part = { events: events(1), cursor: null, more: true };
  t.same(await poll(4, [a, part, { events: events(1), cursor: "b" }]), [2, "a", false]);
  const large = [
    { ...part, events: events(4) },
    { events: events(4), cursor: "b" },
  ];
  t.same(await poll(5, large), [8, "b", false], "one entry is told whole");
  t.same(await poll(6, [a, { events: events(1), merged: true }]), [2, "a", false]);
  const reset = [
    { events: [], reset: true, initial: true },
    { events: events(1), initial: true },
  ];
  t.same(await poll(7, [a, ...reset]), [2, "a", false], "a state is for the next poll");
});

t.test("3.9 a poll gathers what comes in one turn, to the limit", async (t) => {
  const rig = await rigOf(t);
  const asked = rig.post(POLL, { kind: "key", name: "k", cursor: "0", limit: 3 });
  const watch = await opened(rig, 1);
  for (let at = 1; at <= 5 && !watch.isClosed; at++) {
    watch.deliver({ events: [watchEvent({ revision: at })], cursor: String(at) });
  }
  const { body } = await asked;
  t.match(body, { events: [{ revision: 1 }, { revision: 2 }, { revision: 3 }], cursor: "3" });
});

t.test("3.9 rule 3: what a watch ends with before it is answered is a problem", async (t) => {
  const rig = await rigOf(t);
  const expected: readonly (readonly [number, number, string])[] = [
    [WatchEnd.invalidInput, 400, "invalid-argument"],
    [WatchEnd.forbidden, 403, "forbidden"],
    [WatchEnd.overloaded, 503, "overloaded"],
    [WatchEnd.shuttingDown, 503, "shutting-down"],
    [WatchEnd.stale, 503, "unavailable"],
    [WatchEnd.notHosted, 503, "unavailable"],
  ];
  let count = 0;
  for (const [end, status, code] of expected) {
    const polled = rig.post(POLL, { kind: "key", name: "k" });
    (await opened(rig, ++count)).deliver({ type: ended, end });
    const streamed = rig.call("GET", `${STREAM}?kind=key&name=k`);
    (await opened(rig, ++count)).deliver({ type: ended, end });
    for (const answer of [await polled, await streamed]) {
      t.match(answer, { status, body: { code } }, code);
      t.equal(answer.headers["content-type"], "application/problem+json");
    }
  }
  const wrong: readonly (readonly [object, string])[] = [
    [{ kind: "keys" }, "invalid-argument"],
    [{}, "invalid-argument"],
    [{ kind: "none" }, "invalid-argument"],
    [{ kind: "key", only: ["created"] }, "invalid-argument"],
    [{ kind: "key", only: ["none"] }, "invalid-argument"],
    [{ kind: "key", only: "set" }, "wrong-type"],
    [{ kind: "key", only: [1] }, "wrong-type"],
    [{ kind: "key", waitMs: -1 }, "invalid-argument"],
    [{ kind: "key", waitMs: 60_001 }, "invalid-argument"],
    [{ kind: "key", limit: 10_001 }, "invalid-argument"],
    [{ kind: "key", limit: -1 }, "invalid-argument"],
    [{ kind: "key", fromRevision: "9223372036854775808" }, "invalid-argument"],
    [{ kind: "key", watch: 1 }, "unknown-member"],
  ];
  for (const [body, code] of wrong) {
    t.match(await rig.post(POLL, body), { status: 400, body: { code } }, JSON.stringify(body));
  }
  for (const query of [
    "",
    "?kind=key&x=1",
    "?kind=key&initial=1",
    "?kind=key&only=a",
    "?kind=key&fromRevision=x",
  ]) {
    t.match(await rig.call("GET", STREAM + query), { status: 400 }, query);
  }
  t.equal(rig.port.watches.streams.length, count, "none of these asked anybody");
});

t.test("a poll of too much is refused, and nothing of it stays counted", async (t) => {
  const unsent = new UnsentBytes();
  const rig = await rigOf(t, { unsent, responseMaxBytes: 200_000 });
  const asked = rig.post(POLL, { kind: "prefix", name: "", initial: true });
  const watch = await opened(rig, 1);
  watch.deliver({ type: created });
  for (let at = 0; at < 4; at++) {
    watch.deliver({ events: [watchEvent({ value: Buffer.alloc(50_000) })], initial: true });
  }
  t.match(await asked, { status: 422, body: { code: "response-too-large" } });
  t.same([unsent.bytes, watch.isClosed], [0, true]);
});

t.test("a client that goes away has no watch", async (t) => {
  const rig = await rigOf(t);
  const gone = (path: string, method: string, body: string | null) => {
    const headers = { "content-type": "application/json" };
    const request = httpRequest({ port: rig.httpPort, host: "127.0.0.1", method, path, headers });
    request.on("error", () => undefined);
    request.end(body ?? undefined);
    return request;
  };
  const poll = gone(POLL, "POST", '{"kind":"key","name":"k"}');
  const watch = await opened(rig, 1);
  poll.destroy();
  await eventually(() => watch.isClosed);
  const stream = gone(`${STREAM}?kind=key&name=k`, "GET", null);
  const other = await opened(rig, 2);
  other.deliver({ type: created, cursor: "a" });
  await new Promise((resolve) => stream.once("response", resolve));
  stream.destroy();
  await eventually(() => other.isClosed && rig.server.inFlight() === 0);
  t.same(rig.faults, []);
});

function source(rig: Rig, query: string): EventSource {
  return new EventSource(`http://127.0.0.1:${rig.httpPort}${STREAM}?${query}`);
}

interface Block {
  readonly type: string;
  readonly data: Record<string, unknown>;
  readonly lastEventId: string;
}

function blocksOf(from: EventSource): Block[] {
  const blocks: Block[] = [];
  for (const type of ["created", "events", "mark", "reset", "end"]) {
    from.addEventListener(type, (message) => {
      const { data, lastEventId } = message as unknown as { data: string; lastEventId: string };
      blocks.push({ type, data: JSON.parse(data) as Record<string, unknown>, lastEventId });
    });
  }
  return blocks;
}

t.test("3.9 a real EventSource is told what happens, with ids, until the end", async (t) => {
  const rig = await rigOf(t);
  const query = "kind=key&name=a%2Fb&initial=true&only=set,deleted&fromRevision=7&noValues=true";
  const from = source(rig, query);
  const blocks = blocksOf(from);
  const watch = await opened(rig, 1);
  t.match(watch.calls[0], {
    request: {
      ...{ kind: 1, name: "a/b", cursor: null, fromRevision: 7n, initial: true },
      ...{ noValues: true, only: 6, progressMs: 0 },
    },
  });
  watch.deliver({ type: created });
  watch.deliver({ type: events, events: [watchEvent({ name: "l\n\r\u2028" })], initial: true });
  watch.deliver({ type: mark, cursor: "c1", staleMs: 3 });
  watch.deliver({ type: events, events: [watchEvent({}), watchEvent({})], cursor: "c2" });
  watch.deliver({ reset: true, initial: true });
  await eventually(() => blocks.length === 5);
  t.match(blocks, [
    { type: "created", data: { ...NOTHING }, lastEventId: "" },
    { type: "events", data: { events: [{ name: "l\n\r\u2028" }], initial: true } },
    { type: "mark", data: { cursor: "c1", staleMs: 3 }, lastEventId: "c1" },
    { type: "events", data: { events: [{}, {}], cursor: "c2" }, lastEventId: "c2" },
    { type: "reset", data: { reset: true }, lastEventId: "c2" },
  ]);
  const over = new Promise((resolve) => from.addEventListener("error", resolve));
  watch.deliver({ type: ended, end: WatchEnd.stale });
  await over;
  await eventually(() => blocks.length === 6 && rig.server.inFlight() === 0);
  t.strictSame(blocks.at(-1)?.data, { end: "stale" });
  // It comes back by itself, from where it was.
  const again = await opened(rig, 2);
  t.match(again.calls[0], { request: { cursor: "c2" } });
  from.close();
  await eventually(() => again.isClosed);
});

t.test("3.9 a connection that is cut is resumed by Last-Event-ID, which wins", async (t) => {
  const rig = await rigOf(t);
  const from = source(rig, "kind=key&name=k&cursor=first");
  const blocks = blocksOf(from);
  const watch = await opened(rig, 1);
  t.match(watch.calls[0], { request: { cursor: "first" } });
  watch.deliver({ type: created, cursor: "first" });
  watch.deliver({ type: events, events: [watchEvent({})], cursor: "second" });
  await eventually(() => blocks.length === 2);
  // The server's side of the connection: as when a proxy cuts it.
  const sockets = (rig.server as unknown as { listeners: { sockets: Set<IncomingMessage> }[] })
    .listeners[0]?.sockets;
  for (const socket of sockets ?? []) socket.destroy();
  const again = await opened(rig, 2);
  t.equal(watch.isClosed, true);
  t.match(again.calls[0], { request: { cursor: "second" } });
  from.close();
});

t.test(
  "P-185 W13 a stream that is not read is full at its buffer, and told when it is not",
  async (t) => {
    const unsent = new UnsentBytes();
    const rig = await rigOf(t, { unsent });
    const path = `${STREAM}?kind=key&name=k`;
    const request = httpRequest({ port: rig.httpPort, host: "127.0.0.1", path }).end();
    const watch = await opened(rig, 1);
    watch.deliver({ type: created, cursor: "0" });
    const response = await new Promise<IncomingMessage>((resolve) =>
      request.on("response", resolve),
    );
    response.pause();
    const { tally } = rig.port.watches;
    let delivered = 0;
    for (let fullRounds = 0; fullRounds < 10;) {
      for (; !watch.receiver.isFull(); delivered++) {
        watch.deliver({ events: [watchEvent({ value: Buffer.alloc(16_000) })], cursor: "1" });
        fullRounds = 0;
        if (delivered > 10_000) throw new Error("never full");
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
      fullRounds++;
    }
    t.ok(tally.bufferBytes >= 64 * 1024 && tally.bufferBytes < 128 * 1024, "bounded");
    t.equal(unsent.bytes, tally.bufferBytes);
    const ready = watch.calls.length;
    response.resume();
    await eventually(() => watch.calls.slice(ready).some(({ did }) => did === "ready"));
    await eventually(() => unsent.bytes === 0 && tally.bufferBytes === 0);
    t.equal(watch.receiver.isFull(), false);
    response.pause();
    while (!watch.receiver.isFull()) {
      watch.deliver({ events: [watchEvent({ value: Buffer.alloc(60_000) })], cursor: "2" });
      await new Promise((resolve) => setImmediate(resolve));
    }
    request.destroy();
    await eventually(() => watch.isClosed && unsent.bytes === 0 && tally.bufferBytes === 0);
  },
);

t.test("W10 credentials are asked for again; nobody without the role watches", async (t) => {
  let known: "reader" | null = "reader";
  const authenticator = {
    authenticate: () => (known === null ? null : ({ role: known, name: "rita" } as const)),
  };
  const rig = await rigOf(t, { authenticator });
  const asked = rig.post(POLL, { kind: "key", name: "k" });
  const watch = await opened(rig, 1);
  t.match(watch.caller, { name: "rita" });
  t.equal(watch.receiver.mayRead(), true);
  known = null;
  t.equal(watch.receiver.mayRead(), false);
  watch.deliver({ type: ended, end: WatchEnd.forbidden });
  t.equal((await asked).status, 403);
  t.equal((await rig.post(POLL, { kind: "key", name: "k" })).status, 401);
  t.equal((await rig.call("GET", `${STREAM}?kind=key&name=k`)).status, 401);
});

t.test("a node that stops tells streams and polls, and waits for neither", async (t) => {
  const rig = await rigOf(t);
  const from = source(rig, "kind=key&name=k");
  const blocks = blocksOf(from);
  const watch = await opened(rig, 1);
  watch.deliver({ type: created, cursor: "a" });
  await eventually(() => blocks.length === 1);
  const polled = rig.post(POLL, { kind: "key", name: "k", cursor: "a" });
  await opened(rig, 2);
  const startedMs = performance.now();
  await rig.server.close(20_000);
  t.ok(performance.now() - startedMs < 10_000);
  t.match(await polled, { status: 503, body: { code: "shutting-down" } });
  await eventually(() => blocks.length === 2);
  t.strictSame(blocks[1]?.data, { end: "shutting-down" });
  from.close();
});

t.test("3.9 HEAD of the stream tells its type, and opens no watch", async (t) => {
  const rig = await rigOf(t);
  const answer = await rig.call("HEAD", `${STREAM}?kind=key&name=k`);
  t.match(answer, { status: 200, headers: { "content-type": "text/event-stream" } });
  t.equal(rig.port.watches.streams.length, 0);
});
