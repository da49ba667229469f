/** Requests that wait for locks at the front end: counted apart, cancelled, left with their caller. */
import { Metadata, status } from "@grpc/grpc-js";
import t from "tap";
import { LockType } from "../../../src/base/result-types.js";
import { decodeMessage, encodeMessage } from "../../../src/proto/codec.js";
import * as locks from "../../../src/proto/generated/locks.js";
import { blankAnswer } from "../../doubles/front/operations.js";
import {
  eventually,
  identity,
  openStream,
  rawSession,
  rawSocket,
  start,
  type OpenStream,
  type Started,
} from "./harness.js";

const LOCKS = "/Locker/BatchClientLockRequests";
const SERVER_LOCKS = "/Locker/BatchServerLockRequests";
const KEYS = "/KeyValuer/BatchClientKeyValueRequests";
const TRY_LOCK = "/Locker/TryLock";

type LockItem = Parameters<typeof encodeMessage<locks.GrpcBatchClientLockRequest>>[1];

const bytesOf = (item: LockItem): Buffer =>
  Buffer.from(encodeMessage(locks.GrpcBatchClientLockRequest, item));

const tryLock = (WaitMs: number) => {
  return { Resource: "r", Owner: Buffer.from("o"), ExpiresMs: 1000, Durability: 1, WaitMs };
};
const waitItem = (id: number): Buffer =>
  bytesOf({ Type: 1, RequestId: id, TryLock: tryLock(60_000) });

function answers(stream: OpenStream): locks.GrpcBatchClientLockResponse[] {
  return stream.messages.map((bytes) => {
    const message = decodeMessage(locks.GrpcBatchClientLockResponse, bytes);
    if (message === null) throw new Error("malformed response");
    return message;
  });
}

/** A front end whose requests stay open, and a stream on which `ids` wait. */
async function waiting(
  started: Started,
  ids: readonly number[],
  stream = openStream(started.client, LOCKS),
): Promise<OpenStream> {
  started.operations.script = () => null;
  for (const id of ids) stream.call.write(waitItem(id));
  await eventually(() => started.operations.waits.length >= ids.length);
  return stream;
}

function message(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

t.test("B7 streams say whether their items may wait", async (t) => {
  const { client } = await start(t);
  for (const [path, expected] of [
    [LOCKS, ["1"]],
    [SERVER_LOCKS, ["1"]],
    [KEYS, []],
  ] as const) {
    const stream = openStream(client, path);
    t.strictSame((await stream.headers).get("svc-lock-wait"), expected, path);
    stream.call.cancel();
  }
});

t.test("B5 P-181 waiting items take no place of those in flight", async (t) => {
  const started = await start(t, { maxInflightPerStream: 2 });
  const stream = await waiting(started, [1, 2, 3, 4, 5]);
  const unlock = { Resource: "r", Owner: Buffer.from("o"), Durability: 1 };
  stream.call.write(bytesOf({ Type: 3, RequestId: 6, Unlock: unlock }));
  await eventually(() => started.operations.recorded.length === 6);
  t.equal(started.operations.recorded.at(-1)?.request.kind, "try-unlock");
  stream.call.cancel();
});

t.test(
  "B7 a cancel item names the newest wait of its id, and says whether it found one",
  async (t) => {
    const started = await start(t);
    const stream = await waiting(started, [1, 2]);
    const { waits, recorded } = started.operations;
    const cancel = (id: number, of: number): void => {
      stream.call.write(bytesOf({ Type: 5, RequestId: id, CancelWait: { RequestId: of } }));
    };
    cancel(10, 2);
    cancel(11, 3);
    await stream.until(() => stream.messages.length === 2);
    t.strictSame(
      answers(stream).map(({ RequestId, CancelWait }) => [RequestId, CancelWait?.Cancelled]),
      [
        [10, true],
        [11, false],
      ],
    );
    t.strictSame(
      waits.map(({ leaving }) => leaving),
      [null, "cancelled"],
    );
    recorded[0]?.done({ ...blankAnswer("try-lock", LockType.locked) });
    await stream.until(() => stream.messages.length === 3);
    cancel(12, 1);
    await stream.until(() => stream.messages.length === 4);
    t.equal(answers(stream)[3]?.CancelWait?.Cancelled, false, "it had ended");
    stream.call.cancel();
  },
);

t.test("Q9 a stream that is reset cancels all that wait on it, also those of one id", async (t) => {
  const started = await start(t);
  const stream = await waiting(started, [1, 2, 2]);
  stream.call.cancel();
  const { waits } = started.operations;
  await eventually(() => waits.every(({ leaving }) => leaving !== null));
  t.strictSame(
    waits.map(({ leaving }) => leaving),
    ["cancelled", "cancelled", "cancelled"],
  );
  for (const { done } of started.operations.recorded) done(blankAnswer("try-lock", 0));
  t.strictSame(started.faults, []);
});

t.test("Q8 with the connection they are left: who lost it may come back", async (t) => {
  const started = await start(t);
  started.operations.script = () => null;
  const socket = await rawSocket(started.port);
  const session = await rawSession(started.port, { createConnection: () => socket });
  session.on("error", () => undefined);
  const open = (path: string) => {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.on("error", () => undefined);
    return stream;
  };
  open(LOCKS).write(message(waitItem(1)));
  open(TRY_LOCK).end(
    message(Buffer.from(encodeMessage(locks.GrpcTryLockRequest, tryLock(60_000)))),
  );
  const { waits } = started.operations;
  await eventually(() => waits.length === 2);
  // Nothing is said any more, as by a machine that died.
  socket.destroy();
  await eventually(() => waits.every(({ leaving }) => leaving !== null));
  t.strictSame(
    waits.map(({ leaving }) => leaving),
    ["left", "left"],
  );
});

t.test("Q9 a cancelled call is a cancelled wait; one that was answered is none", async (t) => {
  const started = await start(t);
  const { operations, client } = started;
  operations.script = () => null;
  const bytes = Buffer.from(encodeMessage(locks.GrpcTryLockRequest, tryLock(60_000)));
  const ask = (done: (code: number) => void) =>
    client.makeUnaryRequest(TRY_LOCK, identity, identity, bytes, new Metadata(), {}, (error) => {
      done(error?.code ?? status.OK);
    });
  const codes: number[] = [];
  const first = ask((code) => codes.push(code));
  await eventually(() => operations.waits.length === 1);
  first.cancel();
  await eventually(() => operations.waits[0]?.leaving === "cancelled");
  ask((code) => codes.push(code));
  await eventually(() => operations.recorded.length === 2);
  operations.recorded[1]?.done(blankAnswer("try-lock", LockType.locked));
  await eventually(() => codes.length === 2);
  t.strictSame(codes, [status.CANCELLED, status.OK]);
  t.strictSame(started.faults, []);
});

t.test("5 a try-lock may stay open for its wait and the time of a request", async (t) => {
  const started = await start(t, { requestTimeoutMs: 1000 });
  const before = performance.now();
  const stream = await waiting(started, [1]);
  const deadlineMs = started.operations.recorded[0]?.context.deadlineMs ?? 0;
  t.ok(deadlineMs >= before + 61_000 && deadlineMs <= performance.now() + 61_000);
  stream.call.cancel();
});
