/** The stream of watches over a real connection: requests, messages, slow readers, its ends. */
import { status } from "@grpc/grpc-js";
import fc from "fast-check";
import t from "tap";
import { WatchEnd, WatchEventType, WatchMessageType } from "../../../src/base/result-types.js";
import { UnsentBytes } from "../../../src/base/unsent.js";
import type { FakeWatchStream } from "../../doubles/front/watches.js";
import { watchEvent } from "../../doubles/front/watches.js";
import { bigIntToHalves, decodeMessage, encodeMessage } from "../../../src/proto/codec.js";
import type { Encodable } from "../../../src/proto/codec.js";
import * as watch from "../../../src/proto/generated/watch.js";
import { eventually, openStream, sleep, start, type OpenStream, type Started } from "./harness.js";

const PATH = "/Watcher/Watch";
const BUFFER_BYTES = 64 * 1024;

const requestBytes = (request: Encodable<watch.GrpcWatchRequest>): Buffer =>
  encodeMessage(watch.GrpcWatchRequest, request);

function responses({ messages }: OpenStream): watch.GrpcWatchResponse[] {
  return messages.map((bytes) => {
    const message = decodeMessage(watch.GrpcWatchResponse, bytes);
    if (message === null) throw new Error("malformed response");
    return message;
  });
}

async function opened({ client, operations }: Started): Promise<[OpenStream, FakeWatchStream]> {
  const stream = openStream(client, PATH);
  await stream.headers;
  const fake = operations.watches.streams.at(-1);
  if (fake === undefined) throw new Error("no stream was opened");
  return [stream, fake];
}

t.test(
  "a request arrives as it was sent, with exact numbers and absent fields absent",
  async (t) => {
    const [stream, fake] = await opened(await start(t));
    const least = { WatchId: 1, Kind: 1, Name: "k" };
    const most = {
      ...{ WatchId: 2_147_483_647, Kind: 6, Name: "ключ", Cursor: "c", Initial: true },
      ...{
        FromRevision: bigIntToHalves(2n ** 53n + 1n),
        NoValues: true,
        Only: 1024,
        ProgressMs: 7,
      },
    };
    for (const request of [
      { Create: least },
      { Create: most },
      { Cancel: { WatchId: -3 } },
      { Sync: { SyncId: 9, WatchId: 2 } },
    ])
      stream.call.write(requestBytes(request));
    await eventually(() => fake.calls.length === 4);
    const nothing = { cursor: null, fromRevision: null, initial: false, noValues: false };
    t.strictSame(fake.calls, [
      {
        did: "create",
        watchId: 1,
        request: { kind: 1, name: "k", ...nothing, only: 0, progressMs: 0 },
      },
      {
        did: "create",
        watchId: 2_147_483_647,
        request: {
          ...{ kind: 6, name: "ключ", cursor: "c", fromRevision: 2n ** 53n + 1n, initial: true },
          ...{ noValues: true, only: 1024, progressMs: 7 },
        },
      },
      { did: "cancel", watchId: -3 },
      { did: "sync", syncId: 9, watchId: 2 },
    ]);
    stream.call.cancel();
    await eventually(() => fake.isClosed);
  },
);

t.test("messages arrive whole and in order; an event is encoded once for all", async (t) => {
  const started = await start(t);
  const [[one, first], [two, second]] = [await opened(started), await opened(started)];
  const record = {
    ...{ name: "s", currentValue: 2n ** 62n, initialValue: 0n, increment: -1n, maxValue: null },
    ...{ blockSize: 0, incarnation: 3, revision: 4, createdAt: { n: 1, l: 2, c: 3 } },
    updatedAt: { n: 4, l: 5, c: 6 },
  };
  const event = watchEvent({
    ...{ type: WatchEventType.locked, name: "r", value: new Uint8Array([]), revision: 2 ** 52 },
    ...{ stamp: { n: 3, l: 2 ** 50, c: 4_294_967_295 }, token: 2n ** 62n, forced: true },
    ...{ owner: new Uint8Array([255]), note: new Uint8Array([1]), sequence: record },
  });
  const { events, created, mark, synced, ended } = WatchMessageType;
  first.deliver({ type: created, watchIds: [1], cursor: "a" });
  first.deliver({ type: events, watchIds: [1, 300], events: [event, watchEvent({})], more: true });
  const bytes = event.bytes;
  t.ok(bytes);
  second.deliver({ type: events, events: [event], cursor: "", initial: true, merged: true });
  t.equal(event.bytes, bytes, "encoded once");
  first.deliver({ type: mark, cursor: "b", staleMs: 5, reset: true });
  first.deliver({ type: synced, syncId: 6, watchIds: [1] });
  const route = { partitionId: 4, endpoint: "h:1", provenance: 1, generation: 2 } as const;
  first.deliver({ type: ended, watchIds: [1], end: WatchEnd.notHosted }, route);
  await one.until(() => one.messages.length === 5);
  await two.until(() => two.messages.length === 1);
  const [stands, told, marked, done, over] = responses(one);
  t.match(stands, { Type: 1, WatchIds: [1], Cursor: "a", Events: [], Route: null });
  t.match(told, { Type: 0, WatchIds: [1, 300], Cursor: null, More: true, Initial: false });
  t.match(told?.Events[0], {
    ...{ Type: 4, Name: "r", Value: Buffer.alloc(0), Owner: Buffer.from([255]), Forced: true },
    ...{ StampNode: 3, StampCounter: 4_294_967_295, Note: Buffer.from([1]) },
    ...{ FencingToken: bigIntToHalves(2n ** 62n), Revision: bigIntToHalves(2n ** 52n) },
    Sequence: { CurrentValue: bigIntToHalves(2n ** 62n), MaxValue: null, BlockSize: 0 },
  });
  t.match(told?.Events[1], { Type: 1, Name: "k", Value: null, Owner: null, Sequence: null });
  t.match(marked, { Type: 2, Cursor: "b", StaleMs: 5, Reset: true });
  t.match(done, { Type: 3, SyncId: 6 });
  t.match(over, { Type: 4, End: 6, Route: { PartitionId: 4, Endpoint: "h:1" } });
  t.match(responses(two)[0], { Cursor: "", Initial: true, Merged: true, Events: [{ Name: "r" }] });
  t.ok(started.operations.watches.tally.sentBytes > 0);
});

t.test(
  "P-185 W13 a slow reader is full at its buffer, not read, and told when it is not",
  async (t) => {
    const unsent = new UnsentBytes();
    const started = await start(t, { unsent, watchStreamBufferBytes: BUFFER_BYTES });
    const [stream, fake] = await opened(started);
    const { tally } = started.operations.watches;
    stream.call.pause();
    let delivered = 0;
    // Until it stays full: what is below takes some of it at first.
    for (let fullRounds = 0; fullRounds < 10;) {
      for (; !fake.receiver.isFull(); delivered++) {
        const value = Buffer.alloc(16 * 1024, delivered);
        fake.deliver({ events: [watchEvent({ value })], cursor: String(delivered) });
        fullRounds = 0;
        if (delivered > 10_000) throw new Error("never full");
      }
      await sleep(10);
      fullRounds++;
    }
    const ready = fake.calls.filter(({ did }) => did === "ready").length;
    t.ok(tally.bufferBytes >= BUFFER_BYTES && tally.bufferBytes < BUFFER_BYTES + 64 * 1024);
    t.equal(unsent.bytes, tally.bufferBytes, "counted for the node too");
    const before = fake.calls.length;
    // More than the transport takes in beside what is handed out.
    const flood = requestBytes({ Create: { WatchId: 1, Kind: 1, Name: "n".repeat(500) } });
    for (let at = 0; at < 200; at++) stream.call.write(flood);
    await new Promise((resolve) => setTimeout(resolve, 100));
    t.equal(fake.calls.length, before, "its requests wait as well");
    stream.call.resume();
    await eventually(() => fake.calls.filter(({ did }) => did === "ready").length > ready);
    await eventually(() => fake.calls.length >= before + 201);
    await stream.until(() => stream.messages.length === delivered);
    const order = responses(stream).map(({ Cursor }) => Number(Cursor));
    t.ok(
      order.every((cursor, at) => cursor === at),
      "nothing is lost or overtaken",
    );
    t.same([unsent.bytes, tally.bufferBytes, fake.receiver.isFull()], [0, 0, false]);
  },
);

t.test("P-185 what a reader left unsent is given back when it goes", async (t) => {
  const unsent = new UnsentBytes();
  const started = await start(t, { unsent, watchStreamBufferBytes: BUFFER_BYTES });
  const [stream, fake] = await opened(started);
  stream.call.pause();
  while (!fake.receiver.isFull()) {
    fake.deliver({ events: [watchEvent({ value: Buffer.alloc(60_000) })] });
    await new Promise((resolve) => setImmediate(resolve));
  }
  stream.call.cancel();
  await eventually(() => fake.isClosed && unsent.bytes === 0);
  t.equal(started.operations.watches.tally.bufferBytes, 0);
});

t.test(
  "W10 whether the caller may read is asked of its credentials as they are then",
  async (t) => {
    let known: "reader" | null = "reader";
    const authenticator = {
      authenticate: () => (known === null ? null : { role: known, name: "rita" }),
    };
    const started = await start(t, { authenticator });
    const [, fake] = await opened(started);
    t.match(fake.caller, { name: "rita" });
    t.equal(fake.receiver.mayRead(), true);
    known = null;
    t.equal(fake.receiver.mayRead(), false);
  },
);

t.test("nobody without the role reader watches", async (t) => {
  const { client } = await start(t, { authenticator: { authenticate: () => null } });
  t.equal(await openStream(client, PATH).ended, status.UNAUTHENTICATED);
});

t.test("the stream ends with OK after the last word and the last watch", async (t) => {
  const [stream, fake] = await opened(await start(t));
  for (const WatchId of [1, 1, 2]) stream.call.write(requestBytes({ Create: { WatchId } }));
  stream.call.end();
  await eventually(() => fake.calls.length === 3);
  const { ended, mark } = WatchMessageType;
  fake.deliver({ type: ended, watchIds: [1], end: WatchEnd.invalidInput });
  fake.deliver({ type: ended, watchIds: [2], end: WatchEnd.stale });
  fake.deliver({ type: mark, watchIds: [1] });
  await stream.until(() => stream.messages.length === 3);
  fake.deliver({ type: ended, watchIds: [1], end: WatchEnd.cancelled });
  t.equal(await stream.ended, status.OK);
  t.equal(stream.messages.length, 4);
  t.equal(fake.isClosed, true);
});

t.test("a node that stops tells every watch", async (t) => {
  const started = await start(t);
  const [stream, fake] = await opened(started);
  const [idle] = await opened(started);
  for (const WatchId of [7, 8]) stream.call.write(requestBytes({ Create: { WatchId } }));
  await eventually(() => fake.calls.length === 2);
  await started.server.close(2000);
  t.same([await stream.ended, await idle.ended], [status.OK, status.OK]);
  t.match(responses(stream), [{ Type: 4, WatchIds: [7, 8], End: WatchEnd.shuttingDown }]);
  t.equal(fake.isClosed, true);
});

t.test("what is no request ends the stream as INVALID_ARGUMENT, whatever it is", async (t) => {
  const started = await start(t);
  const junk = [Buffer.from([255]), Buffer.alloc(0), Buffer.from([10, 3, 26, 1, 255])];
  const random = fc.sample(fc.uint8Array({ maxLength: 40 }), { numRuns: 60, seed: 18 });
  for (const bytes of [...junk, ...random.map((one) => Buffer.from(one))]) {
    const stream = openStream(started.client, PATH);
    await stream.headers;
    const fake = started.operations.watches.streams.at(-1);
    stream.call.write(bytes);
    stream.call.end();
    const code = await stream.ended;
    const isTaken = (fake?.calls ?? []).some(({ did }) => did !== "close");
    t.equal(code, isTaken ? status.OK : status.INVALID_ARGUMENT, bytes.toString("hex"));
    await eventually(() => fake?.isClosed === true);
  }
  t.same(started.faults, []);
});
