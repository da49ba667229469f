/**
 * Batch streams over a real connection: matching, half-close, frames and their bounds, unsupported
 * items, flow control.
 */
import { status } from "@grpc/grpc-js";
import fc from "fast-check";
import t, { type Test } from "tap";
import type { DataAnswer, DataRequest } from "../../../src/operations/api/requests.js";
import { decodeMessage, encodeMessage } from "../../../src/proto/codec.js";
import type { Encodable } from "../../../src/proto/codec.js";
import * as kv from "../../../src/proto/generated/keyvalues.js";
import * as locks from "../../../src/proto/generated/locks.js";
import * as sequences from "../../../src/proto/generated/sequences.js";
import { blankAnswer } from "../../doubles/front/operations.js";
import { connectAgain, eventually, openStream, sleep, start, type OpenStream } from "./harness.js";

const SEQUENCES = "/Sequencer/BatchClientSequenceRequests";
const LOCKS = "/Locker/BatchClientLockRequests";
const SERVER_LOCKS = "/Locker/BatchServerLockRequests";
const KEYS = "/KeyValuer/BatchClientKeyValueRequests";

type SequenceItem = Encodable<sequences.GrpcBatchClientSequenceRequest>;
type SequenceAnswer = sequences.GrpcBatchClientSequenceResponse;

const sequenceBytes = (item: SequenceItem): Buffer =>
  encodeMessage(sequences.GrpcBatchClientSequenceRequest, item);

const next = (id: number, name = `s${id}`): SequenceItem => ({
  Type: 4,
  RequestId: id,
  NextSequenceValue: { Name: name, Durability: 1 },
});

const frameOf = (items: readonly SequenceItem[]): Buffer =>
  sequenceBytes({ Type: 15, Frame: { Items: items } });

/** All items of the messages that arrived, frames opened. */
function answers(stream: OpenStream): SequenceAnswer[] {
  return stream.messages.flatMap((bytes) => {
    const message = decodeMessage(sequences.GrpcBatchClientSequenceResponse, bytes);
    if (message === null) throw new Error("malformed response");
    return message.Frame === null ? [message] : [...message.Frame.Items];
  });
}

function frames(stream: OpenStream): number {
  return stream.messages.filter((bytes) => bytes[0] === 0x08 && bytes[1] === 15).length;
}

t.test(
  "B1 B2 B3 every item gets one answer with its type and id; half-close ends with OK",
  async (t) => {
    const { client, operations } = await start(t);
    operations.script = () => null;
    const stream = openStream(client, SEQUENCES);
    t.strictSame((await stream.headers).get("svc-batch-frames"), ["1"]);
    const types = [1, 2, 3, 4, 5, 6];
    const payload: SequenceItem[] = [
      { CreateSequence: { Name: "a" } },
      { UpdateSequence: { Name: "b" } },
      { GetSequence: { Name: "c" } },
      { NextSequenceValue: { Name: "d" } },
      { ReserveSequenceRange: { Name: "e", Count: 2 } },
      { DeleteSequence: { Name: "f" } },
    ];
    for (const [at, one] of payload.entries()) {
      stream.call.write(sequenceBytes({ Type: types[at] ?? 0, RequestId: -at, ...one }));
    }
    stream.call.end();
    await eventually(() => operations.recorded.length === 6);
    t.strictSame(
      operations.recorded.map(({ request }) => request.kind),
      [
        "create-sequence",
        "update-sequence",
        "get-sequence",
        "next-sequence",
        "reserve-sequence",
        "delete-sequence",
      ],
    );
    t.equal(stream.messages.length, 0);
    for (const { request, done } of [...operations.recorded].reverse()) {
      done(blankAnswer(request.kind, 1));
      await sleep(2);
    }
    t.equal(await stream.ended, status.OK);
    const found = answers(stream);
    t.strictSame(
      found.map((one) => one.RequestId),
      [-5, -4, -3, -2, -1, 0],
      "in the order of completion",
    );
    t.strictSame(
      found.map((one) => one.Type),
      [6, 5, 4, 3, 2, 1],
    );
    t.strictSame(
      found.map((one) => (one.Sequence === null ? "allocation" : "sequence")),
      ["sequence", "allocation", "allocation", "sequence", "sequence", "sequence"],
    );
    for (const one of found) t.equal((one.Sequence ?? one.Allocation)?.Type, 1);
    t.equal(frames(stream), 0, "no frame before a frame was received");
  },
);

t.test(
  "B6 frames: answers given together travel together, in frames, after a frame came",
  async (t) => {
    const { client, operations } = await start(t);
    const stream = openStream(client, SEQUENCES);
    stream.call.write(frameOf(Array.from({ length: 200 }, (_, id) => next(id))));
    await stream.until(() => answers(stream).length === 200);
    t.equal(stream.messages.length, 1, "one turn of answers is one frame");
    t.equal(frames(stream), 1);
    t.strictSame(new Set(answers(stream).map((one) => one.RequestId)).size, 200);
    t.equal(operations.recorded.length, 200);
    stream.call.write(sequenceBytes(next(777)));
    await stream.until(() => answers(stream).length === 201);
    t.equal(frames(stream), stream.messages.length, "from then on everything is framed");
    stream.call.end();
    t.equal(await stream.ended, status.OK);
  },
);

t.test(
  "B6 a frame holds 256 items and 1 MiB, more is answered MustRetry and not done",
  async (t) => {
    const { client, operations } = await start(t);
    const stream = openStream(client, SEQUENCES);
    stream.call.write(frameOf(Array.from({ length: 300 }, (_, id) => next(id))));
    await stream.until(() => answers(stream).length === 300);
    t.equal(operations.recorded.length, 256);
    const refused = answers(stream).filter((one) => one.Allocation?.Type === 5);
    t.strictSame(
      refused.map((one) => one.RequestId).sort((a, b) => a - b),
      Array.from({ length: 44 }, (_, at) => 256 + at),
    );
    for (const bytes of stream.messages) {
      const message = decodeMessage(sequences.GrpcBatchClientSequenceResponse, bytes);
      t.ok((message?.Frame?.Items.length ?? 0) <= 256, "response frames keep the bound too");
    }
    stream.call.end();
    await stream.ended;

    const large = openStream(client, KEYS);
    const Items = Array.from({ length: 5 }, (_, id) => ({
      Type: 1,
      RequestId: id,
      TrySetKeyValue: { Key: `k${id}`, Value: Buffer.alloc(300 * 1024) },
    }));
    const before = operations.recorded.length;
    const codec = kv.GrpcBatchClientKeyValueRequest;
    large.call.write(encodeMessage(codec, { Type: 15, Frame: { Items } }));
    large.call.end();
    t.equal(await large.ended, status.OK);
    t.equal(operations.recorded.length - before, 3, "900 KiB fit, the rest does not");
    const outcome = large.messages.flatMap((bytes) => {
      const { Frame } = decodeMessage(kv.GrpcBatchClientKeyValueResponse, bytes) ?? {};
      return (Frame?.Items ?? []).map((one) => [one.RequestId, one.TrySetKeyValue?.Type]);
    });
    t.strictSame(outcome.sort(), [
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 101],
      [4, 101],
    ]);
  },
);

t.test("B6 large answers are spread over frames of at most 1 MiB", async (t) => {
  const { client, operations } = await start(t);
  operations.script = (request): DataAnswer => ({
    ...blankAnswer("kv-get", 3),
    kind: "kv",
    value: Buffer.alloc(request.kind === "kv-get" && request.key === "huge" ? 3e6 : 3e5),
    revision: 0,
    expires: { n: 0, l: 0, c: 0 },
    lastModified: { n: 0, l: 0, c: 0 },
    state: 1,
  });
  const stream = openStream(client, KEYS);
  const Items = Array.from({ length: 20 }, (_, id) => ({
    Type: 5,
    RequestId: id,
    TryGetKeyValue: { Key: id === 7 ? "huge" : "k" },
  }));
  const codec = kv.GrpcBatchClientKeyValueRequest;
  stream.call.write(encodeMessage(codec, { Type: 15, Frame: { Items } }));
  stream.call.end();
  t.equal(await stream.ended, status.OK);
  const ids: number[] = [];
  for (const bytes of stream.messages) {
    const { Frame } = decodeMessage(kv.GrpcBatchClientKeyValueResponse, bytes) ?? {};
    const items = Frame?.Items ?? [];
    ids.push(...items.map((one) => one.RequestId));
    t.ok(bytes.length <= 1024 * 1024 + 16 || items.length === 1, `${bytes.length} bytes`);
    for (const one of items)
      t.equal(one.TryGetKeyValue?.Value?.length, one.RequestId === 7 ? 3e6 : 3e5);
  }
  t.strictSame(
    ids.sort((a, b) => a - b),
    Array.from({ length: 20 }, (_, id) => id),
  );
});

t.test("B4 what is not served is echoed with type and id and no payload", async (t) => {
  const { client, operations } = await start(t);
  const stream = openStream(client, SEQUENCES);
  const items: SequenceItem[] = [
    { Type: 0, RequestId: 1 },
    { Type: 99, RequestId: 2, NextSequenceValue: { Name: "x" } },
    { Type: 4, RequestId: 3 },
    { Type: 4, RequestId: 4, GetSequence: { Name: "x" } },
    { Type: 15, RequestId: 5 },
    { Type: -1, RequestId: 6 },
    { Type: 15, RequestId: 7, NextSequenceValue: { Name: "x" } },
  ];
  for (const item of items) stream.call.write(sequenceBytes(item));
  await stream.until(() => stream.messages.length === items.length);
  for (const [at, item] of items.entries()) {
    const { Type = 0, RequestId = 0 } = item;
    const bytes = sequenceBytes({ Type, RequestId });
    t.strictSame(stream.messages[at], bytes, `item ${RequestId}`);
  }
  const nested = { Type: 15, RequestId: 8, Frame: { Items: [next(9)] } };
  stream.call.write(frameOf([nested, next(10), { Type: 77, RequestId: 11 }]));
  await stream.until(() => answers(stream).length === items.length + 3);
  const rest = answers(stream).slice(items.length);
  t.match(
    rest.find((one) => one.RequestId === 8),
    { Type: 15, payload: undefined },
  );
  t.match(
    rest.find((one) => one.RequestId === 11),
    { Type: 77, payload: undefined },
  );
  t.match(
    rest.find((one) => one.RequestId === 10),
    { Type: 4, Allocation: { Type: 0 } },
  );
  t.equal(operations.recorded.length, 1);
  stream.call.end();
  t.equal(await stream.ended, status.OK);

  const keys = openStream(client, KEYS);
  for (const type of [7, 8, 11, 12, 13]) {
    // Payload numbers that are reserved are unknown fields: the item has no payload.
    const item = encodeMessage(kv.GrpcBatchClientKeyValueRequest, { Type: type, RequestId: 3 });
    keys.call.write(Buffer.concat([item, Buffer.from([(9 << 3) | 2, 1, 0])]));
  }
  await keys.until(() => keys.messages.length === 5);
  const expected = [7, 8, 11, 12, 13].map((type) => [8, type, 16, 3]);
  t.strictSame(
    keys.messages.map((bytes) => [...bytes]),
    expected,
  );
  keys.call.end();
  t.equal(await keys.ended, status.OK);
});

t.test("all items of the key/value and lock streams reach their operation and field", async (t) => {
  const { client, operations } = await start(t);
  const key = { Key: "k" };
  const items: [number, string, Encodable<kv.GrpcBatchClientKeyValueRequest>][] = [
    [1, "kv-set", { TrySetKeyValue: key }],
    [2, "kv-set-many", { TrySetManyKeyValue: { Items: [key] } }],
    [3, "kv-extend", { TryExtendKeyValue: key }],
    [4, "kv-delete", { TryDeleteKeyValue: key }],
    [5, "kv-get", { TryGetKeyValue: key }],
    [6, "kv-exists", { TryExistsKeyValue: key }],
    [9, "kv-bucket", { GetByBucket: { PrefixKey: "b" } }],
    [10, "kv-scan-all", { ScanByPrefix: { PrefixKey: "b" } }],
    [14, "kv-delete-many", { TryDeleteManyKeyValue: { Items: [key] } }],
  ];
  const stream = openStream(client, KEYS);
  for (const [Type, , payload] of items) {
    const item = { Type, RequestId: Type, ...payload };
    stream.call.write(encodeMessage(kv.GrpcBatchClientKeyValueRequest, item));
  }
  stream.call.end();
  t.equal(await stream.ended, status.OK);
  t.strictSame(
    operations.recorded.map(({ request }) => request.kind),
    items.map(([, kind]) => kind),
  );
  for (const bytes of stream.messages) {
    const answer = decodeMessage(kv.GrpcBatchClientKeyValueResponse, bytes);
    const [, , payload] = items.find(([type]) => type === answer?.Type) ?? [];
    t.equal(answer?.payload, Object.keys(payload ?? {})[0]);
  }
  for (const [path, forwarded] of [
    [LOCKS, 0],
    [SERVER_LOCKS, 1],
  ] as const) {
    operations.recorded.length = 0;
    const locker = openStream(client, path);
    const resource = { Resource: "r" };
    const wanted: [number, string, Encodable<locks.GrpcBatchServerLockRequest>][] = [
      [1, "try-lock", { TryLock: resource }],
      [2, "try-extend", { ExtendLock: resource }],
      [3, "try-unlock", { Unlock: resource, ForwardHops: 0 }],
      [4, "get-lock", { GetLock: resource }],
    ];
    for (const [Type, , payload] of wanted) {
      const item = { Type, RequestId: Type, ...payload };
      locker.call.write(encodeMessage(locks.GrpcBatchServerLockRequest, item));
    }
    locker.call.end();
    t.equal(await locker.ended, status.OK);
    t.strictSame(
      operations.recorded.map(({ request }) => request.kind),
      wanted.map(([, kind]) => kind),
    );
    t.strictSame(
      operations.recorded.map(({ context }) => context.forwardHops),
      Array(4).fill(forwarded),
    );
    for (const bytes of locker.messages) {
      const answer = decodeMessage(locks.GrpcBatchServerLockResponse, bytes);
      t.equal(answer?.payload, Object.keys(wanted[(answer?.Type ?? 0) - 1]?.[2] ?? {})[0]);
    }
  }
});

t.test(
  "the stream between servers counts every item as forwarded and speaks no frames",
  async (t) => {
    const { client, operations } = await start(t);
    const stream = openStream(client, SERVER_LOCKS, { "svc-forwarded": "2" });
    t.strictSame((await stream.headers).get("svc-batch-frames"), []);
    const item = (RequestId: number, ForwardHops: number): Buffer =>
      encodeMessage(locks.GrpcBatchServerLockRequest, {
        Type: 4,
        RequestId,
        GetLock: { Resource: "r" },
        ForwardHops,
      });
    stream.call.write(item(1, 5));
    stream.call.write(item(2, -9));
    const frame = encodeMessage(locks.GrpcBatchClientLockRequest, {
      Type: 15,
      RequestId: 3,
      Frame: { Items: [] },
    });
    stream.call.write(frame);
    stream.call.end();
    t.equal(await stream.ended, status.OK);
    t.strictSame(
      operations.recorded.map(({ context }) => context.forwardHops),
      [5, 2],
    );
    const echoed = stream.messages.filter((bytes) => bytes[1] === 15).map((bytes) => [...bytes]);
    t.strictSame(echoed, [[8, 15, 16, 3]], "a frame is an unsupported item");
    const client2 = openStream(client, LOCKS, { "svc-forwarded": "1", "x-request-id": "mine" });
    client2.call.write(item(1, 0));
    client2.call.end();
    t.equal(await client2.ended, status.OK);
    t.match(operations.recorded.at(-1)?.context, { forwardHops: 1, requestId: "mine/1" });
  },
);

t.test("each item has an id of its own: that of its stream and its number on it", async (t) => {
  const { client, operations } = await start(t);
  const stream = openStream(client, SEQUENCES, { "x-request-id": "mine" });
  stream.call.write(frameOf([next(7), { Type: 99, RequestId: 8 }, next(7)]));
  stream.call.write(sequenceBytes(next(0)));
  stream.call.end();
  t.equal(await stream.ended, status.OK);
  const ids = (): string[] => operations.recorded.map(({ context }) => context.requestId);
  t.strictSame(ids(), ["mine/1", "mine/3", "mine/4"], "an item that is no request counts too");
  for (let round = 0; round < 2; round++) {
    const unnamed = openStream(client, SEQUENCES);
    unnamed.call.write(frameOf([next(1), next(2)]));
    unnamed.call.end();
    t.equal(await unnamed.ended, status.OK);
  }
  t.equal(new Set(ids()).size, 7, "also where the caller names none");
});

t.test("C9 an item's deadline is its stream's, and never behind the server's bound", async (t) => {
  const boundMs = 20_000;
  const { client, operations } = await start(t, { requestTimeoutMs: boundMs });
  /**
   * When an item has to be answered, as seen from before it was sent and from behind its answer.
   */
  const left = async (deadlineMs: number | null): Promise<[latest: number, earliest: number]> => {
    const options = deadlineMs === null ? {} : { deadline: Date.now() + deadlineMs };
    const stream = openStream(client, SEQUENCES, {}, options);
    await stream.headers;
    await sleep(20);
    const before = performance.now();
    stream.call.write(frameOf([next(1)]));
    stream.call.end();
    t.equal(await stream.ended, status.OK);
    const givenMs = operations.recorded.at(-1)?.context.deadlineMs ?? NaN;
    return [givenMs - before, givenMs - performance.now()];
  };
  for (const given of [null, 60_000]) {
    const [latest, earliest] = await left(given);
    t.ok(latest >= boundMs, "the server's own bound begins with the item, not with its stream");
    t.ok(earliest <= boundMs, "a longer deadline does not extend it");
  }
  const [latest, earliest] = await left(10_000);
  t.ok(latest <= 10_000, "a shorter deadline begins with the stream");
  t.ok(earliest > 0, "and has not passed");
});

async function checkFlow(t: Test, framed: boolean): Promise<void> {
  const { client, operations } = await start(t, { maxInflightPerStream: 10 });
  operations.script = () => null;
  const stream = openStream(client, SEQUENCES);
  const items = Array.from({ length: 100 }, (_, id) => next(id));
  if (framed) stream.call.write(frameOf(items));
  else for (const item of items) stream.call.write(sequenceBytes(item));
  await eventually(() => operations.recorded.length === 10);
  await sleep(30);
  t.equal(operations.recorded.length, 10, "no more than the bound in flight");
  let done = 0;
  while (done < 100) {
    await eventually(() => operations.recorded.length > done);
    t.ok(operations.recorded.length - done <= 10);
    const { request, done: give } = operations.recorded[done++] ?? {};
    if (request !== undefined) give?.(blankAnswer(request.kind, 0));
  }
  stream.call.end();
  t.equal(await stream.ended, status.OK);
  t.equal(answers(stream).length, 100);
}

t.test("B5 at most max-inflight-per-stream items in flight, also inside one frame", async (t) => {
  await checkFlow(t, false);
  await checkFlow(t, true);
});

t.test("P-153 a client that does not take its answers is not read any further", async (t) => {
  const { client, operations, port } = await start(t);
  operations.script = (request): DataAnswer => ({
    ...blankAnswer(request.kind, 3),
    kind: "kv",
    value: Buffer.alloc(64 * 1024),
    revision: 0,
    expires: { n: 0, l: 0, c: 0 },
    lastModified: { n: 0, l: 0, c: 0 },
    state: 1,
  });
  const other = await connectAgain(port);
  t.teardown(() => other.close());
  const stream = openStream(other, KEYS);
  await stream.headers;
  stream.call.pause();
  const item = encodeMessage(kv.GrpcBatchClientKeyValueRequest, {
    Type: 5,
    RequestId: 1,
    TryGetKeyValue: { Key: "k" },
  });
  for (let count = 0; count < 4000; count++) stream.call.write(item);
  await eventually(() => operations.recorded.length > 0);
  let last = -1;
  while (last !== operations.recorded.length) {
    last = operations.recorded.length;
    await sleep(100);
  }
  t.ok(last < 2500, `stopped after ${last} of 4000 items`);
  const second = openStream(client, SEQUENCES);
  operations.script = (request) => blankAnswer(request.kind, 0);
  second.call.write(sequenceBytes(next(1)));
  second.call.end();
  t.equal(await second.ended, status.OK, "others are served meanwhile");
  stream.call.resume();
  stream.call.end();
  t.equal(await stream.ended, status.OK);
  t.equal(stream.messages.length, 4000, "and nothing is lost when it reads again");
});

t.test("cancel and lost connections end a stream; late answers do no harm", async (t) => {
  const { client, operations, port, faults } = await start(t);
  operations.script = () => null;
  const stream = openStream(client, SEQUENCES);
  stream.call.write(frameOf([next(1), next(2)]));
  await eventually(() => operations.recorded.length === 2);
  stream.call.cancel();
  t.equal(await stream.ended, status.CANCELLED);
  const other = await connectAgain(port);
  const lost = openStream(other, SEQUENCES);
  lost.call.write(sequenceBytes(next(3)));
  await eventually(() => operations.recorded.length === 3);
  other.close();
  lost.call.cancel();
  await lost.ended;
  await sleep(20);
  for (const { request, done } of operations.recorded) done(blankAnswer(request.kind, 0));
  operations.script = (request) => blankAnswer(request.kind, 0);
  const again = openStream(client, SEQUENCES);
  again.call.write(sequenceBytes(next(4)));
  again.call.end();
  t.equal(await again.ended, status.OK);
  t.strictSame(faults, []);
});

t.test(
  "a payload that is malformed is that item's InvalidInput; a broken envelope ends the stream",
  async (t) => {
    const { client, operations } = await start(t);
    const stream = openStream(client, SEQUENCES);
    const bad = Buffer.from([0x08, 4, 0x10, 9, 0x32, 4, 0x0a, 2, 0xc3, 0x28]);
    stream.call.write(bad);
    await stream.until(() => stream.messages.length === 1);
    t.match(answers(stream)[0], { Type: 4, RequestId: 9, Allocation: { Type: 3 } });
    const framed = Buffer.concat([
      Buffer.from([0x08, 15, 0x8a, 1, bad.length + 2, 0x0a, bad.length]),
      bad,
    ]);
    stream.call.write(framed);
    stream.call.write(sequenceBytes(next(10)));
    await stream.until(() => answers(stream).length === 3);
    t.equal(operations.recorded.length, 1, "the stream stays open for the others");
    stream.call.write(Buffer.from([0x08, 4, 0x32, 200]));
    t.equal(await stream.ended, status.INVALID_ARGUMENT);
    const cut = openStream(client, SEQUENCES);
    const items = frameOf([next(1), next(2)]);
    cut.call.write(Buffer.concat([items.subarray(0, 5), Buffer.from([0x0a, 250])]));
    t.equal(await cut.ended, status.INVALID_ARGUMENT);
  },
);

t.test("unknown fields in an item are ignored, of two payloads the last counts", async (t) => {
  const { client, operations } = await start(t);
  const stream = openStream(client, SEQUENCES);
  const unknown = Buffer.from([0xf2, 1, 2, 1, 2, 0x98, 0x06, 5]);
  stream.call.write(Buffer.concat([unknown, sequenceBytes(next(1)), unknown]));
  const two = Buffer.concat([
    sequenceBytes({ Type: 4, RequestId: 2, GetSequence: { Name: "g" } }),
    sequenceBytes({ NextSequenceValue: { Name: "n" } }),
  ]);
  stream.call.write(two);
  stream.call.end();
  t.equal(await stream.ended, status.OK);
  t.match(
    operations.recorded.map(({ request }) => request),
    [
      { kind: "next-sequence", name: "s1" },
      { kind: "next-sequence", name: "n" },
    ],
  );
});

t.test(
  "K11 K14 inside a batch: refused many-calls name their items, a bucket too large is an error",
  async (t) => {
    const { client, operations } = await start(t);
    operations.script = (request: DataRequest): DataAnswer => {
      if (request.kind !== "kv-bucket") return operations.mustRetry(request.kind, "overloaded");
      const bare = blankAnswer(request.kind, 3);
      return bare.kind === "kv-page" ? { ...bare, tooLarge: true } : bare;
    };
    const stream = openStream(client, KEYS);
    const Items = [{ Key: "a" }, { Key: "b" }];
    const send = (item: Encodable<kv.GrpcBatchClientKeyValueRequest>): boolean =>
      stream.call.write(encodeMessage(kv.GrpcBatchClientKeyValueRequest, item));
    send({ Type: 2, RequestId: 1, TrySetManyKeyValue: { Items } });
    send({ Type: 14, RequestId: 2, TryDeleteManyKeyValue: { Items } });
    send({ Type: 9, RequestId: 3, GetByBucket: { PrefixKey: "p" } });
    stream.call.end();
    t.equal(await stream.ended, status.OK);
    const found = stream.messages.map((bytes) =>
      decodeMessage(kv.GrpcBatchClientKeyValueResponse, bytes),
    );
    const refused = [
      { Key: "a", Type: 101 },
      { Key: "b", Type: 101 },
    ];
    t.match(found, [
      { TrySetManyKeyValue: { Items: refused } },
      { TryDeleteManyKeyValue: { Items: refused } },
      { GetByBucket: { Type: 99, Items: [] } },
    ]);
  },
);

t.test("any mix of items, frames and completion orders: one answer each", async (t) => {
  const { client, operations } = await start(t, { maxInflightPerStream: 16 });
  operations.recording = false;
  let order = 1;
  operations.script = () => null;
  const inner = operations.execute.bind(operations);
  operations.execute = (request, context, done) => {
    const wait = inner(request, context, done);
    const give = done as (answer: DataAnswer) => void;
    order = (order * 1_103_515_245 + 12_345) & 0x7fff_ffff;
    const delays = order % 7;
    const later = (left: number): void => {
      setImmediate(() => (left === 0 ? give(blankAnswer(request.kind, 0)) : later(left - 1)));
    };
    later(delays);
    return wait;
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 40 })), { maxLength: 12 }),
      async (shape) => {
        const stream = openStream(client, SEQUENCES);
        let id = 0;
        for (const size of shape) {
          if (size === 0) stream.call.write(sequenceBytes(next(++id)));
          else stream.call.write(frameOf(Array.from({ length: size }, () => next(++id))));
        }
        stream.call.end();
        const code = await stream.ended;
        const ids = answers(stream).map((one) => one.RequestId);
        return code === 0 && ids.length === id && new Set(ids).size === id;
      },
    ),
    { numRuns: 60 },
  );
});
