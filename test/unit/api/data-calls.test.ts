/**
 * Every data call, from what the client sends to the operation and back, over REST, as a unary call
 * and as an item of a batch stream.
 *
 * A new call is tested here as soon as it has its row in `every-request.ts`.
 */
import t, { type Test } from "tap";
import { Int64 } from "../../../src/base/int64.js";
import { parseJson, type JsonObject } from "../../../src/client/values/json.js";
import type { DataAnswer } from "../../../src/operations/api/requests.js";
import { ProtoWriter, protoReader } from "../../../src/proto/codec.js";
import { type FakeOperations, blankAnswer } from "../../doubles/front/operations.js";
import { type SampleCall, everyCall } from "../../doubles/operations/every-request.js";
import { callRaw, openStream, start } from "../grpc/harness.js";
import { startRig } from "../rest/harness.js";

const EXPIRES = { n: 3, l: 1_700_000_000_123, c: 4_294_967_295 };
const MODIFIED = { n: -1, l: 1_600_000_000_000, c: 7 };
const STREAMS = {
  sequences: "/Sequencer/BatchClientSequenceRequests",
  locks: "/Locker/BatchClientLockRequests",
  kv: "/KeyValuer/BatchClientKeyValueRequests",
} as const;

/** An answer with something in every member that a success may have. */
function answerTo({ request }: SampleCall): DataAnswer {
  const blank = { ...blankAnswer(request.kind, 0), servedFrom: "http://me" };
  const large = Int64.fromBigInt(2n ** 62n + 1n);
  const entry = { value: Buffer.from("v"), revision: 2 ** 40, state: 1 };
  const stamps = { expires: EXPIRES, lastModified: MODIFIED };
  const item = { key: "k", ...entry, ...stamps };
  switch (blank.kind) {
    case "lock": {
      // Over gRPC an unlock tells no token.
      const fencingToken = request.kind === "try-unlock" ? Int64.ZERO : large;
      return { ...blank, fencingToken, owner: Buffer.from("me"), expires: EXPIRES };
    }
    case "forced":
      return { ...blank, fencingToken: large, owner: Buffer.from("me"), auditId: 2 ** 40 };
    case "lock-page": {
      const held = { owner: Buffer.from("me"), held: true, note: Buffer.from("n") };
      const told = { fencingToken: large, expires: EXPIRES, expiresInMs: 5, waiters: 6 };
      const free = { owner: null, held: false, note: null };
      const items = [held, free].map((one) => ({ resource: "r", ...told, ...one }));
      return { ...blank, items, nextCursor: "c", hasMore: true };
    }
    case "lock-audit": {
      const who = { owner: Buffer.from("me"), actor: "ops", reason: "why", requestId: "q" };
      const where = { auditId: 2 ** 40, partitionId: 3, resource: "r", durability: 1, nodeId: 4 };
      const told = { fencingToken: large, stamp: EXPIRES, waitersDropped: 5 };
      return { ...blank, items: [{ ...where, ...who, ...told }], nextCursor: "c", hasMore: true };
    }
    case "sequence": {
      const times = { createdAt: EXPIRES, updatedAt: MODIFIED, incarnation: 3, revision: 9 };
      const values = { currentValue: large, initialValue: Int64.ZERO, increment: Int64.ZERO };
      const sequence = { name: "s", ...values, maxValue: null, blockSize: 7, ...times };
      return { ...blank, sequence, revision: 9 };
    }
    case "allocation": {
      const allocation = { name: "s", start: large, end: large, count: 1, revision: 6 };
      return { ...blank, allocation };
    }
    case "kv":
      return { ...blank, ...entry, ...stamps };
    case "kv-many": {
      const more = { durability: 1, type: 0, servedFrom: "", routeIndex: 0 };
      return { ...blank, items: [{ ...item, ...more }] };
    }
    case "kv-page":
      return { ...blank, items: [item], nextCursor: "c", hasMore: true };
  }
}

/** Requests and answers without the difference of buffers and other bytes. */
function comparable(told: unknown): unknown {
  return JSON.parse(
    JSON.stringify(told ?? null, (_, value: unknown) => {
      if (typeof value === "bigint") return `${value}n`;
      const { data } = (value ?? {}) as { data?: unknown };
      if (Array.isArray(data)) return Buffer.from(data as number[]).toString("hex");
      return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
    }),
  );
}

function checkAsked(t: Test, port: FakeOperations, { request }: SampleCall, how: string): void {
  const { request: asked } = port.recorded.at(-1) ?? {};
  t.strictSame(
    comparable(asked),
    comparable(request),
    `${request.kind} ${how}: as the client asks`,
  );
  port.recorded.length = 0;
}

t.test(
  "C1 what a client asks is what the operation gets, and both wires answer alike",
  async (t) => {
    const rig = await startRig();
    t.teardown(() => rig.close());
    const { client, operations } = await start(t);
    for (const durability of [1, 0]) {
      for (const sample of everyCall("a/b", durability)) {
        const { operation, asks } = sample;
        const { rest } = operation;
        rig.port.answers.push(answerTo(sample));
        const text = await rig.call(rest.method, rest.path(asks), rest.body(asks));
        checkAsked(t, rig.port, sample, "over REST");
        const read = operation.fromRest(parseJson(text.text) as JsonObject);

        const writer = new ProtoWriter(64);
        operation.write(asks, writer);
        const message = Buffer.from(writer.view(0));
        operations.answers.push(answerTo(sample));
        const { error, bytes } = await callRaw(client, operation.path, message);
        t.equal(error, null);
        checkAsked(t, operations, sample, "over gRPC");
        const answer = bytes ?? Buffer.alloc(0);
        const same = operation.fromGrpc(protoReader(answer), answer.length);
        t.strictSame(comparable(same), comparable(read), `${sample.request.kind} reads alike`);

        if (operation.stream === null) continue;
        const { kind, type, field } = operation.stream;
        const item = new ProtoWriter(64);
        item.uint32(8).int32(type).uint32(16).int32(5);
        item.uint32((field << 3) | 2).bytes(message);
        operations.answers.push(answerTo(sample));
        const stream = openStream(client, STREAMS[kind]);
        stream.call.write(Buffer.from(item.view(0)));
        await stream.until(() => stream.messages.length > 0);
        stream.call.end();
        await stream.ended;
        checkAsked(t, operations, sample, "as an item");
        t.ok(stream.messages[0]?.includes(answer.subarray(0, 8)), "with the same answer");
      }
    }
  },
);
