/**
 * Clients that ask and do not read: what the gRPC front end holds for them, and what others notice.
 */
import type { ClientHttp2Stream } from "node:http2";
import t, { type Test } from "tap";
import { NO_STAMP } from "../../../src/base/hlc.js";
import { UnsentBytes } from "../../../src/base/unsent.js";
import { LargeAnswers } from "../../../src/grpc/calls/large-answers.js";
import type { DataAnswer, DataRequest } from "../../../src/operations/api/requests.js";
import { decodeMessage, encodeMessage } from "../../../src/proto/codec.js";
import type { MessageCodec } from "../../../src/proto/codec.js";
import * as kv from "../../../src/proto/generated/keyvalues.js";
import { blankAnswer } from "../../doubles/front/operations.js";
import {
  call,
  connectAgain,
  eventually,
  openStream,
  rawSession,
  sleep,
  start,
  type Started,
} from "./harness.js";

const KEYS = "/KeyValuer/BatchClientKeyValueRequests";
const MIB = 1024 * 1024;
const MUST_RETRY = 101;
const GOT = 3;

const sizes: Readonly<Record<string, number>> = { big: MIB, small: 10, medium: 10_000 };

/** Answers gets by the name of the key. */
function valueOf(request: DataRequest): DataAnswer {
  const key = "key" in request ? request.key : "small";
  const value = Buffer.alloc(sizes[key] ?? 0, 7);
  if (request.kind === "kv-bucket") {
    const item = { key, value: Buffer.alloc(12 * MIB), revision: 0, state: 1 };
    const items = [{ ...item, expires: NO_STAMP, lastModified: NO_STAMP }];
    return { ...blankAnswer(request.kind, GOT), items } as DataAnswer;
  }
  return { ...blankAnswer(request.kind, GOT), value } as DataAnswer;
}

const getItem = (id: number, key: string): kv.GrpcBatchClientKeyValueRequest =>
  ({ Type: 5, RequestId: id, TryGetKeyValue: { Key: key } }) as never;

function message<Q>(codec: MessageCodec<Q>, value: Q): Buffer {
  const bytes = encodeMessage(codec, value as never);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

const get = (id: number, key: string): Buffer =>
  message(kv.GrpcBatchClientKeyValueRequest, getItem(id, key));

/** A call on a connection that takes no answer bytes. */
async function deafCall(t: Test, started: Started, path: string): Promise<ClientHttp2Stream> {
  const session = await rawSession(started.port, { settings: { initialWindowSize: 0 } });
  session.on("error", () => undefined);
  t.teardown(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => undefined);
  return stream;
}

async function settled(started: Started): Promise<number> {
  await eventually(() => started.operations.recorded.length > 0);
  let last = -1;
  while (last !== started.operations.recorded.length) {
    last = started.operations.recorded.length;
    await sleep(150);
  }
  return last;
}

t.test("P-200 reads start only while there is room for their answers", async (t) => {
  const unsent = new UnsentBytes();
  const started = await start(t, { unsent });
  started.operations.script = valueOf;
  const deaf = await deafCall(t, started, KEYS);
  for (let id = 1; id <= 800; id++) deaf.write(get(id, "big"));
  const begun = await settled(started);
  t.ok(begun <= 20, `${begun} of 800 reads were begun`);
  t.ok(unsent.bytes <= 20 * MIB, `${unsent.bytes} bytes wait`);
  deaf.close();
  await eventually(() => unsent.bytes === 0);
  t.pass("what waited is forgotten with its stream");
  t.strictSame(started.faults, []);
});

t.test("P-200 a reader that reads gets all of it, paced", async (t) => {
  const unsent = new UnsentBytes();
  const started = await start(t, { unsent });
  started.operations.script = valueOf;
  const stream = openStream(started.client, KEYS);
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, unsent.bytes)), 1);
  t.teardown(() => clearInterval(watch));
  const items = Array.from({ length: 100 }, (_, at) => getItem(at + 1, at % 10 ? "small" : "big"));
  const frame = { Type: 15, Frame: { Items: items } } as never;
  stream.call.write(encodeMessage(kv.GrpcBatchClientKeyValueRequest, frame));
  for (let id = 101; id <= 200; id++) {
    stream.call.write(encodeMessage(kv.GrpcBatchClientKeyValueRequest, getItem(id, "big")));
  }
  stream.call.end();
  t.equal(await stream.ended, 0);
  const answers = stream.messages.flatMap((bytes) => {
    const answer = decodeMessage(kv.GrpcBatchClientKeyValueResponse, bytes);
    return answer?.Frame?.Items ?? (answer === null ? [] : [answer]);
  });
  t.equal(new Set(answers.map((answer) => answer.RequestId)).size, 200, "each item once");
  t.equal(answers.length, 200);
  t.ok(
    answers.every((answer) => Number(answer.TryGetKeyValue?.Type) === GOT),
    "none is refused",
  );
  t.ok(most <= 24 * MIB, `${most} bytes waited at most`);
  await eventually(() => unsent.bytes === 0);
});

t.test("P-200 a stream that was trusted with small values is bounded too", async (t) => {
  const unsent = new UnsentBytes();
  const started = await start(t, { unsent });
  started.operations.script = valueOf;
  const deaf = await deafCall(t, started, KEYS);
  for (let id = 1; id <= 300; id++) deaf.write(get(id, "small"));
  await eventually(() => started.operations.recorded.length === 300);
  started.operations.script = () => null;
  for (let id = 301; id <= 1300; id++) deaf.write(get(id, "big"));
  await eventually(() => started.operations.recorded.length > 800);
  const open = started.operations.recorded.slice(300);
  t.ok(open.length > 500, "many are in flight: the answers were small so far");
  for (const { request, done } of open) done(valueOf(request));
  await sleep(100);
  t.ok(unsent.bytes <= 40 * MIB, `${unsent.bytes} bytes wait, the others were refused`);
  deaf.close();
  await eventually(() => unsent.bytes === 0);
  t.strictSame(started.faults, []);
});

t.test("P-200 beyond the node's count new requests are overload, until readers go", async (t) => {
  const unsent = new UnsentBytes(40 * MIB);
  const started = await start(t, { unsent });
  started.operations.script = valueOf;
  const bucket = message(kv.GrpcGetByBucketRequest, { Prefix: "b", Bucket: "b" } as never);
  const deaf: ClientHttp2Stream[] = [];
  for (let count = 0; count < 8; count++) {
    const stream = await deafCall(t, started, "/KeyValuer/GetByBucket");
    stream.end(bucket);
    deaf.push(stream);
  }
  await settled(started);
  await eventually(() => unsent.bytes > 30 * MIB);
  t.ok(unsent.bytes <= 40 * MIB, `${unsent.bytes} bytes wait for unary calls`);
  unsent.take(40 * MIB - unsent.bytes);
  const before = started.operations.recorded.length;
  const ask = (): Promise<kv.GrpcTryGetKeyValueResponse> =>
    call(
      started.client,
      "/KeyValuer/TryGetKeyValue",
      kv.GrpcTryGetKeyValueRequest,
      { Key: "small" },
      kv.GrpcTryGetKeyValueResponse,
    );
  t.equal(Number((await ask()).Type), MUST_RETRY, "a unary call");
  const other = await connectAgain(started.port);
  t.teardown(() => other.close());
  const stream = openStream(other, KEYS);
  stream.call.write(encodeMessage(kv.GrpcBatchClientKeyValueRequest, getItem(1, "small")));
  await stream.until(() => stream.messages.length === 1);
  const [bytes] = stream.messages;
  const item = decodeMessage(kv.GrpcBatchClientKeyValueResponse, bytes as Buffer);
  t.equal(Number(item?.TryGetKeyValue?.Type), MUST_RETRY, "an item of a stream");
  t.equal(started.operations.recorded.length, before, "neither reached an operation");
  for (const one of deaf) one.close();
  await eventually(() => unsent.bytes < 30 * MIB);
  t.equal(Number((await ask()).Type), GOT, "room again");
  t.strictSame(started.faults, []);
});

t.test("P-200 a turn encodes a few large answers", async (t) => {
  const call = { whenGone: () => undefined, cut: () => undefined };
  const large = new LargeAnswers(new UnsentBytes());
  const perTurn: number[] = [0];
  const count = (): void => void (perTurn[perTurn.length - 1] = (perTurn.at(-1) ?? 0) + 1);
  for (let at = 0; at < 40; at++) large.encodeLater(MIB, count);
  for (let at = 0; at < 3; at++) large.encodeLater(16 * MIB, count);
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    perTurn.push(0);
  }
  t.same(
    perTurn.filter((one) => one > 0),
    [8, 8, 8, 8, 8, 1, 1, 1],
  );
  t.notOk(new LargeAnswers(new UnsentBytes(10)).hold(call, 11), "no room");
});
