/** Flow control and floods on the cleartext port: what is sent, what is taken, what is too much. */
import { gzipSync } from "node:zlib";
import t from "tap";
import { ConnectionCount } from "../../../../src/base/connections.js";
import {
  HEADER_BLOCK_MAX_BYTES,
  IDLE_FRAMES_BURST_MAX,
  RESETS_BURST_MAX,
} from "../../../../src/base/limits.js";
import { ErrorCode, Flag, Frame, Status } from "../../../../src/grpc/h2/constants.js";
import { UnsentBytes } from "../../../../src/base/unsent.js";
import type { DataAnswer } from "../../../../src/operations/api/requests.js";
import { blankAnswer } from "../../../doubles/front/operations.js";
import { eventually, sleep, start } from "../harness.js";
import { block, fieldsWith, FIELDS, frame, MESSAGE, RawClient, uint32, wholeCall } from "./raw.js";

const HEADERS = block(FIELDS);
const STREAM = "/Sequencer/BatchClientSequenceRequests";
const GET = fieldsWith({ ":path": "/KeyValuer/TryGetKeyValue" });
/** A call of a method that does not exist: it is answered with many bytes, at once. */
const NOBODY = block(fieldsWith({ ":path": "/no/such" }));
const PING = frame(Frame.ping, 0, 0, Buffer.alloc(8));
const half = (stream: number): Buffer => frame(Frame.headers, Flag.endHeaders, stream, HEADERS);
const window = (bytes: number): Buffer => {
  const setting = Buffer.alloc(6);
  setting.writeUInt16BE(4);
  setting.writeUInt32BE(bytes, 2);
  return frame(Frame.settings, 0, 0, setting);
};

const valueOf = (sizeBytes: number) => (): DataAnswer =>
  ({ ...blankAnswer("kv-get", 3), value: Buffer.alloc(sizeBytes, 7) }) as DataAnswer;

t.test("nothing is sent beyond the windows, and all of it when they grow", async (t) => {
  const { port, operations } = await start(t);
  operations.script = valueOf(40_000);
  const client = await RawClient.open(t, port);
  client.send(window(10), wholeCall(1, GET));
  await client.until(() => client.of(Frame.data, 1)[0]);
  await client.settled();
  t.equal(client.dataOf(1).length, 10, "the window of the stream");
  client.send(frame(Frame.windowUpdate, 0, 1, uint32(20_000)));
  await client.until(() => client.dataOf(1).length >= 20_010 || null);
  await client.settled();
  t.equal(client.dataOf(1).length, 20_010);
  t.ok(client.of(Frame.data, 1).every(({ payload }) => payload.length <= 16_384));
  client.send(window(1_000_000));
  t.equal((await client.ended(1)).get("grpc-status"), "0", "a later setting counts for it, too");
  const size = client.dataOf(1).readUInt32BE(1);
  t.equal(client.dataOf(1).length, 5 + size);
  const before = client.dataOf(1).length;
  client.send(wholeCall(3, GET));
  await client.until(() => client.dataOf(3).length >= 65_535 - before || null);
  await client.settled();
  t.equal(client.dataOf(3).length, 65_535 - before, "the window of the connection");
  client.send(frame(Frame.windowUpdate, 0, 0, uint32(100_000)));
  t.equal((await client.ended(3)).get("grpc-status"), "0");
});

t.test("streams share the connection: a small answer passes a large one", async (t) => {
  const { port, operations } = await start(t);
  operations.script = valueOf(8 * 1024 * 1024);
  const client = await RawClient.open(t, port);
  client.send(window(0x7fff_ffff), wholeCall(1, GET));
  await client.until(() => client.dataOf(1).length >= 60_000 || null);
  operations.script = valueOf(10);
  client.send(wholeCall(3, GET), frame(Frame.windowUpdate, 0, 0, uint32(1_000_000)));
  t.equal((await client.ended(3)).get("grpc-status"), "0");
  t.ok(client.dataOf(1).length < 8 * 1024 * 1024, "the large one is not through yet");
  client.send(frame(Frame.windowUpdate, 0, 0, uint32(0x7000_0000)));
  t.equal((await client.ended(1)).get("grpc-status"), "0");
  t.equal(client.dataOf(1).length, client.dataOf(1).readUInt32BE(1) + 5);
});

t.test("a sender gets credit for what is read, and none beyond the windows", async (t) => {
  const { port, operations, faults } = await start(t);
  const client = await RawClient.open(t, port);
  const body = Buffer.alloc(3 * 1024 * 1024 + 5);
  body.writeUInt32BE(body.length - 5, 1);
  client.send(half(1));
  let sent = 0;
  let creditBytes = 1024 * 1024;
  let counted = 0;
  while (sent < body.length) {
    const credits = client.of(Frame.windowUpdate, 1);
    for (; counted < credits.length; counted++) {
      creditBytes += credits[counted]?.payload.readUInt32BE(0) ?? 0;
    }
    const size = Math.min(16_384, creditBytes, body.length - sent);
    if (size === 0) await client.until(() => client.of(Frame.windowUpdate, 1)[counted]);
    const isLast = sent + size === body.length && size > 0;
    const part = body.subarray(sent, sent + size);
    if (size > 0) client.send(frame(Frame.data, isLast ? Flag.endStream : 0, 1, part));
    sent += size;
    creditBytes -= size;
  }
  t.equal((await client.ended(1)).get("grpc-status"), String(Status.INVALID_ARGUMENT));
  t.ok(client.of(Frame.windowUpdate, 0).length > 1, "the connection, too");
  operations.script = () => null;
  const greedy = await RawClient.open(t, port);
  const stream = block(fieldsWith({ ":path": STREAM }));
  greedy.send(frame(Frame.headers, Flag.endHeaders, 1, stream));
  const large = Buffer.alloc(16_384);
  large.writeUInt32BE(4_000_000, 1);
  for (let at = 0; at < 70; at++) greedy.send(frame(Frame.data, 0, 1, large));
  await greedy.settled();
  t.equal(greedy.of(Frame.reset, 1).length, 0, "a message that is not whole gets its room");
  t.strictSame(faults, []);
});

t.test("compressed messages are read, and bounded by what they hold", async (t) => {
  const { port, operations } = await start(t);
  const client = await RawClient.open(t, port);
  const ask = async (id: number, plain: Buffer): Promise<string | undefined> => {
    const packed = gzipSync(plain);
    const head = Buffer.from([1, 0, 0, 0, 0]);
    head.writeUInt32BE(packed.length, 1);
    client.send(
      frame(Frame.headers, Flag.endHeaders, id, block(fieldsWith({ "grpc-encoding": "gzip" }))),
      frame(Frame.data, Flag.endStream, id, Buffer.concat([head, packed])),
    );
    return (await client.ended(id)).get("grpc-status");
  };
  t.equal(await ask(1, Buffer.from([0x0a, 1, 0x72])), "0");
  t.match(operations.recorded[0]?.request, { kind: "get-lock", resource: "r" });
  t.equal(await ask(3, Buffer.alloc(8_000_000)), String(Status.RESOURCE_EXHAUSTED), "a bomb");
});

t.test("P-164 more streams than permitted are refused, and the others served", async (t) => {
  const { port, operations } = await start(t);
  operations.script = () => null;
  const client = await RawClient.open(t, port);
  for (let id = 1; id < 2 * 256; id += 2) client.send(half(id));
  client.send(half(2 * 256 + 1));
  t.equal(await client.reset(2 * 256 + 1), ErrorCode.refusedStream);
  client.send(frame(Frame.data, Flag.endStream, 1, MESSAGE));
  await eventually(() => operations.recorded.length === 1);
  t.pass("an open one goes on");
});

/** What keeps a server busy and leads to nothing. */
const FLOODS: Readonly<Record<string, (at: number) => Buffer>> = {
  pings: () => PING,
  settings: () => frame(Frame.settings, 0, 0),
  "acknowledged settings": () => frame(Frame.settings, Flag.ack, 0),
  priorities: (at) => frame(Frame.priority, 0, 1, Buffer.from([0, 0, 0, 3, at & 255])),
  "frames that nobody knows": () => frame(77, 0, 0, Buffer.alloc(3)),
  "empty data": () => frame(Frame.data, 0, 1),
  "padding without data": () => frame(Frame.data, Flag.padded, 1, Buffer.alloc(9, 8)),
  "credit for streams that are over": () => frame(Frame.windowUpdate, 0, 3, uint32(1)),
  "resets of streams that are over": () => frame(Frame.reset, 0, 3, uint32(8)),
  "streams that are reset at once": (at) =>
    Buffer.concat([half(2 * at + 5), frame(Frame.reset, 0, 2 * at + 5, uint32(8))]),
  "calls that are taken back when they are answered": (at) =>
    Buffer.concat([
      frame(Frame.headers, Flag.endHeaders | Flag.endStream, 2 * at + 5, HEADERS),
      frame(Frame.reset, 0, 2 * at + 5, uint32(8)),
    ]),
  "calls that make the server reset them": (at) =>
    Buffer.concat([half(2 * at + 5), frame(Frame.windowUpdate, 0, 2 * at + 5, uint32(0))]),
  "header blocks that are no request": (at) =>
    frame(Frame.headers, Flag.endHeaders, 2 * at + 5, block([["x", "y"]])),
};

t.test("P-164 floods end the connection with ENHANCE_YOUR_CALM, all others live", async (t) => {
  const connections = new ConnectionCount();
  const { port, operations, faults } = await start(t, { connections });
  const other = await RawClient.open(t, port);
  for (const [title, make] of Object.entries(FLOODS)) {
    const client = await RawClient.open(t, port);
    operations.script = (request) => operations.invalidInput(request.kind);
    client.send(half(1), wholeCall(3));
    await client.ended(3);
    operations.script = () => null;
    const many = IDLE_FRAMES_BURST_MAX + RESETS_BURST_MAX;
    for (let at = 0; at < many; at++) client.send(make(at));
    t.equal(await client.goaway(), ErrorCode.enhanceYourCalm, title);
  }
  t.ok(connections.endedByResets >= 4, "those that took back calls are counted");
  operations.script = (request) => operations.invalidInput(request.kind);
  other.send(wholeCall(1));
  t.equal((await other.ended(1)).get("grpc-status"), "0");
  t.strictSame(faults, []);
});

t.test("P-164 a header block has bounds, in bytes and in frames", async (t) => {
  const { port } = await start(t);
  const part = Buffer.alloc(16_000, 0x82);
  const large = await RawClient.open(t, port);
  large.send(frame(Frame.headers, 0, 1, part));
  for (let size = 0; size < HEADER_BLOCK_MAX_BYTES; size += part.length) {
    large.send(frame(Frame.continuation, 0, 1, part));
  }
  t.equal(await large.goaway(), ErrorCode.enhanceYourCalm, "bytes");
  const many = await RawClient.open(t, port);
  many.send(frame(Frame.headers, 0, 1, Buffer.from([0x83])));
  for (let at = 0; at < 100; at++) many.send(frame(Frame.continuation, 0, 1));
  t.equal(await many.goaway(), ErrorCode.enhanceYourCalm, "frames");
  const bomb = await RawClient.open(t, port);
  const value = "v".repeat(4000);
  const enters = block([["x", value]], 0x40);
  bomb.send(
    frame(
      Frame.headers,
      Flag.endHeaders | Flag.endStream,
      1,
      Buffer.concat([HEADERS, enters, Buffer.alloc(10_000, 0xbe)]),
    ),
  );
  t.equal((await bomb.ended(1)).get("grpc-status"), String(Status.RESOURCE_EXHAUSTED), "a bomb");
});

t.test("P-164 real work with much ado is never stopped", async (t) => {
  const { port } = await start(t);
  const client = await RawClient.open(t, port);
  const rounds = 2 * IDLE_FRAMES_BURST_MAX;
  for (let at = 0; at < rounds; at++) {
    const id = 2 * at + 1;
    client.send(wholeCall(id), PING, frame(Frame.windowUpdate, 0, 0, uint32(12)));
    if (at % 100 === 0) await client.ended(id);
  }
  t.equal((await client.ended(2 * rounds - 1)).get("grpc-status"), "0");
});

t.test("P-153 answers for a client that does not read wait, are counted, and leave", async (t) => {
  const unsent = new UnsentBytes();
  const { port, operations } = await start(t, { unsent });
  operations.script = valueOf(200_000);
  const client = await RawClient.open(t, port);
  client.send(window(0x7fff_ffff), frame(Frame.windowUpdate, 0, 0, uint32(0x7000_0000)));
  await client.settled();
  client.socket.pause();
  const calls = 200;
  for (let at = 0; at < calls; at++) client.send(wholeCall(2 * at + 1, GET));
  await eventually(() => operations.recorded.length === calls);
  await sleep(100);
  t.ok(unsent.bytes > 10_000_000, `${unsent.bytes} bytes wait`);
  client.socket.resume();
  for (let at = 0; at < calls; at++) await client.ended(2 * at + 1);
  t.equal(unsent.bytes, 0);
});

t.test("P-153 a client that does not read is not read from", async (t) => {
  const { port } = await start(t, { keepaliveTimeoutMs: 600_000 });
  const client = await RawClient.open(t, port);
  await client.settled();
  client.socket.pause();
  // Each pair of a call and pings is answered with more bytes than it has.
  const pair = (id: number): Buffer =>
    Buffer.concat([frame(Frame.headers, Flag.endHeaders | Flag.endStream, id, NOBODY), PING, PING]);
  let sent = 0;
  while (client.socket.writableLength < 4_000_000 && sent < 400_000) {
    client.send(pair(2 * sent + 1));
    sent += 1;
    if (sent % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  t.ok(sent < 400_000, `${sent} calls were sent before nobody read them`);
  client.socket.resume();
  await client.until(() => client.frames.length > 1000 || null);
  t.equal(client.of(Frame.goaway, 0).length, 0);
});
