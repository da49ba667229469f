/**
 * The HTTP/2 of the cleartext port, frame by frame: what RFC 9113 wants of a server, in good order
 * and in bad.
 */
import t from "tap";
import { ErrorCode, Flag, Frame, PREFACE, Status } from "../../../../src/grpc/h2/constants.js";
import { start } from "../harness.js";
import {
  ALL,
  block,
  fieldsWith,
  FIELDS,
  frame,
  MESSAGE,
  RawClient,
  uint32,
  wholeCall,
} from "./raw.js";

const HEADERS = block(FIELDS);
const PING = frame(Frame.ping, 0, 0, Buffer.alloc(8, 3));
const half = (stream: number): Buffer => frame(Frame.headers, Flag.endHeaders, stream, HEADERS);
const setting = (name: number, value: number): Buffer => {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(name);
  bytes.writeUInt32BE(value, 2);
  return frame(Frame.settings, 0, 0, bytes);
};

t.test("a call: headers, data, trailers; the second one with what the table holds", async (t) => {
  const { port } = await start(t);
  const client = await RawClient.open(t, port);
  client.send(wholeCall(1));
  const first = await client.ended(1);
  t.match(Object.fromEntries(first), {
    ":status": "200",
    "content-type": "application/grpc+proto",
    "grpc-status": "0",
  });
  client.send(wholeCall(3));
  t.strictSame(await client.ended(3), first);
  t.strictSame(
    client.of(Frame.headers, 3).map(({ payload }) => payload.length),
    [2, 1],
    "three bytes of header blocks",
  );
  t.equal(client.of(Frame.settings, 0).length, 2, "settings, and the acknowledgement of ours");
  t.equal(client.of(Frame.reset, 1).length, 0);
});

t.test("a peer with a smaller header table gets no fields from it", async (t) => {
  const { port } = await start(t);
  const client = await RawClient.open(t, port);
  client.send(wholeCall(1));
  await client.ended(1);
  client.send(setting(1, 0), wholeCall(3), wholeCall(5));
  t.equal((await client.ended(3)).get("grpc-status"), "0");
  t.equal((await client.ended(5)).get("grpc-status"), "0");
  t.equal(client.of(Frame.headers, 3)[0]?.payload[0], 0x20, "told that the table is empty");
  t.not(client.of(Frame.headers, 5)[0]?.payload[0], 0x20, "once");
});

t.test("padding, priority and continuations change nothing", async (t) => {
  const { port } = await start(t);
  const client = await RawClient.open(t, port);
  const priority = Buffer.concat([uint32(0), Buffer.from([16])]);
  const padded = Buffer.concat([Buffer.from([4]), priority, HEADERS, Buffer.alloc(4)]);
  const flags = Flag.endHeaders | Flag.padded | Flag.priority;
  client.send(
    frame(Frame.headers, flags, 1, padded),
    frame(Frame.data, Flag.padded, 1, Buffer.concat([Buffer.from([7, 0, 0]), Buffer.alloc(7)])),
    frame(Frame.data, 0, 1),
    frame(Frame.data, Flag.padded, 1, Buffer.from([3, 0, 0, 0, 0, 0, 0])),
    frame(Frame.data, Flag.endStream, 1),
  );
  t.equal((await client.ended(1)).get("grpc-status"), "0");
  const parts = [HEADERS.subarray(0, 9), HEADERS.subarray(9, 10), HEADERS.subarray(10)];
  const [first, second, third] = parts as [Buffer, Buffer, Buffer];
  client.send(
    frame(Frame.headers, 0, 3, first),
    frame(Frame.continuation, 0, 3, second),
    frame(Frame.continuation, Flag.endHeaders, 3, third),
    frame(Frame.data, Flag.endStream, 3, MESSAGE),
  );
  t.equal((await client.ended(3)).get("grpc-status"), "0");
  client.send(frame(99, 255, 5, Buffer.alloc(12)), frame(Frame.priority, 0, 9, priority), PING);
  const answer = await client.until(() => client.of(Frame.ping, 0)[0]);
  t.strictSame([answer.flags, answer.payload], [Flag.ack, Buffer.alloc(8, 3)]);
});

t.test("any cut of the bytes into chunks is read alike", async (t) => {
  const { port } = await start(t);
  const bytes = Buffer.concat([PREFACE, frame(Frame.settings, 0, 0), wholeCall(1), wholeCall(3)]);
  for (const size of [1, 2, 3, 7, 8, 9, 10, 23, 24, 25, 33, 34, 61]) {
    const client = await RawClient.open(t, port, false);
    for (let at = 0; at < bytes.length; at += size) {
      client.send(bytes.subarray(at, at + size));
      if (at % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    t.equal((await client.ended(1)).get("grpc-status"), "0", `by ${size}`);
    t.equal((await client.ended(3)).get("grpc-status"), "0", `by ${size}`);
    client.socket.destroy();
  }
});

/** What ends the connection, and with which code. */
const CONNECTION_FAULTS: readonly (readonly [title: string, code: number, ...frames: Buffer[]])[] =
  [
    ["data on stream 0", ErrorCode.protocol, frame(Frame.data, 0, 0, MESSAGE)],
    ["headers on stream 0", ErrorCode.protocol, frame(Frame.headers, ALL, 0, HEADERS)],
    ["headers on an even stream", ErrorCode.protocol, frame(Frame.headers, ALL, 2, HEADERS)],
    ["data on an idle stream", ErrorCode.protocol, frame(Frame.data, 0, 1, MESSAGE)],
    ["reset of an idle stream", ErrorCode.protocol, frame(Frame.reset, 0, 1, uint32(8))],
    ["credit for an idle stream", ErrorCode.protocol, frame(Frame.windowUpdate, 0, 1, uint32(1))],
    ["a push promise", ErrorCode.protocol, frame(Frame.pushPromise, 4, 1, uint32(2))],
    ["a continuation of nothing", ErrorCode.protocol, frame(Frame.continuation, 4, 1, HEADERS)],
    [
      "a ping within a header block",
      ErrorCode.protocol,
      frame(Frame.headers, Flag.endStream, 1, HEADERS),
      PING,
    ],
    [
      "a continuation of another stream",
      ErrorCode.protocol,
      frame(Frame.headers, Flag.endStream, 1, HEADERS),
      frame(Frame.continuation, Flag.endHeaders, 3, HEADERS),
    ],
    [
      "a header block on a stream that is over",
      ErrorCode.streamClosed,
      wholeCall(5),
      frame(Frame.headers, ALL, 3, HEADERS),
    ],
    [
      "more padding than data",
      ErrorCode.protocol,
      half(1),
      frame(Frame.data, Flag.padded, 1, Buffer.from([6, 0, 0, 0, 0, 0])),
    ],
    [
      "more padding than headers",
      ErrorCode.protocol,
      frame(Frame.headers, ALL | Flag.padded, 1, Buffer.concat([Buffer.from([255]), HEADERS])),
    ],
    ["padding without its length", ErrorCode.protocol, half(1), frame(Frame.data, Flag.padded, 1)],
    ["a header block that is none", ErrorCode.compression, frame(1, ALL, 1, Buffer.from([0x80]))],
    ["settings on a stream", ErrorCode.protocol, frame(Frame.settings, 0, 1)],
    ["settings of an odd size", ErrorCode.frameSize, frame(Frame.settings, 0, 0, Buffer.alloc(5))],
    [
      "an acknowledgement that says more",
      ErrorCode.frameSize,
      frame(4, Flag.ack, 0, Buffer.alloc(6)),
    ],
    ["push that is neither on nor off", ErrorCode.protocol, setting(2, 2)],
    ["a window beyond its bound", ErrorCode.flowControl, setting(4, 0x8000_0000)],
    ["a frame size below the least", ErrorCode.protocol, setting(5, 16_383)],
    ["a frame size beyond its bound", ErrorCode.protocol, setting(5, 16_777_216)],
    ["a ping on a stream", ErrorCode.protocol, frame(Frame.ping, 0, 1, Buffer.alloc(8))],
    ["a ping of another size", ErrorCode.frameSize, frame(Frame.ping, 0, 0, Buffer.alloc(6))],
    ["a goaway on a stream", ErrorCode.protocol, frame(Frame.goaway, 0, 1, Buffer.alloc(8))],
    ["a priority of stream 0", ErrorCode.protocol, frame(Frame.priority, 0, 0, Buffer.alloc(5))],
    ["a priority of another size", ErrorCode.frameSize, frame(2, 0, 1, Buffer.alloc(4))],
    [
      "a stream that depends on itself",
      ErrorCode.protocol,
      frame(2, 0, 1, Buffer.from([0, 0, 0, 1, 9])),
    ],
    ["a reset of another size", ErrorCode.frameSize, half(1), frame(Frame.reset, 0, 1, MESSAGE)],
    ["credit of another size", ErrorCode.frameSize, frame(Frame.windowUpdate, 0, 0, MESSAGE)],
    ["credit of nothing", ErrorCode.protocol, frame(Frame.windowUpdate, 0, 0, uint32(0))],
    [
      "more credit than a window holds",
      ErrorCode.flowControl,
      frame(Frame.windowUpdate, 0, 0, uint32(0x7fff_ffff)),
    ],
    [
      "a frame larger than permitted",
      ErrorCode.frameSize,
      half(1),
      frame(0, 0, 1, Buffer.alloc(16_385)),
    ],
  ];

t.test("P-164 what breaks the protocol ends the connection with the right code", async (t) => {
  const { port, operations, faults } = await start(t);
  for (const [title, code, ...frames] of CONNECTION_FAULTS) {
    const client = await RawClient.open(t, port);
    client.send(...frames);
    t.equal(await client.goaway(), code, title);
  }
  const early = await RawClient.open(t, port, false);
  early.send(PREFACE, PING);
  t.equal(await early.goaway(), ErrorCode.protocol, "settings come first");
  const other = await RawClient.open(t, port, false);
  other.send(Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  t.equal(await other.goaway(), ErrorCode.protocol, "HTTP/1.1");
  t.equal(operations.recorded.length, 1, "only the call before a fault was one");
  t.strictSame(faults, []);
});

/** What ends a stream, and with which code; the connection goes on. */
const STREAM_FAULTS: readonly (readonly [title: string, code: number, ...frames: Buffer[]])[] = [
  [
    "data behind the end of the request",
    ErrorCode.streamClosed,
    wholeCall(1),
    frame(Frame.data, 0, 1, MESSAGE),
  ],
  [
    "headers behind the end of the request",
    ErrorCode.streamClosed,
    wholeCall(1),
    frame(Frame.headers, ALL, 1, HEADERS),
  ],
  [
    "trailers that do not end the request",
    ErrorCode.protocol,
    half(1),
    frame(Frame.headers, Flag.endHeaders, 1, block([["x", "y"]])),
  ],
  [
    "trailers with a pseudo-header",
    ErrorCode.protocol,
    half(1),
    frame(Frame.headers, ALL, 1, block([[":path", "/"]])),
  ],
  ["credit of nothing", ErrorCode.protocol, half(1), frame(Frame.windowUpdate, 0, 1, uint32(0))],
  [
    "more credit than a window holds",
    ErrorCode.flowControl,
    half(1),
    frame(Frame.windowUpdate, 0, 1, uint32(0x7fff_ffff)),
  ],
];

const HEADER_FAULTS: readonly (readonly [title: string, fields: readonly [string, string][]])[] = [
  ["a name in capitals", fieldsWith({ "X-Large": "1" })],
  ["no path", fieldsWith({ ":path": null })],
  ["an empty path", fieldsWith({ ":path": "" })],
  ["no method", fieldsWith({ ":method": null })],
  ["no scheme", fieldsWith({ ":scheme": null })],
  ["a second path", [[":path", "/a"], ...fieldsWith({})]],
  ["an unknown pseudo-header", fieldsWith({ ":nothing": "1" })],
  ["a pseudo-header of responses", fieldsWith({ ":status": "200" })],
  ["a pseudo-header behind the others", [...fieldsWith({ ":path": null }), [":path", "/a"]]],
  ["a header field of the connection", fieldsWith({ connection: "close" })],
  ["another one", fieldsWith({ "transfer-encoding": "chunked" })],
  ["te that is not trailers", fieldsWith({ te: "gzip" })],
  ["a line in a value", fieldsWith({ x: "a\r\nb: c" })],
  ["a zero in a value", fieldsWith({ x: "a\0" })],
  ["a length that is no number", fieldsWith({ "content-length": "x" })],
];

t.test("P-164 what breaks the protocol on a stream resets it, others go on", async (t) => {
  const { port, operations, faults } = await start(t);
  // The call stays open, so that the stream is there when the rest comes.
  operations.script = () => null;
  for (const [title, code, ...frames] of STREAM_FAULTS) {
    const client = await RawClient.open(t, port);
    client.send(...frames);
    t.equal(await client.reset(1), code, title);
    await client.settled();
    client.socket.destroy();
  }
  operations.script = (request) => operations.invalidInput(request.kind);
  const client = await RawClient.open(t, port);
  let stream = 1;
  for (const [title, fields] of HEADER_FAULTS) {
    client.send(frame(Frame.headers, Flag.endHeaders, stream, block(fields)));
    t.equal(await client.reset(stream), ErrorCode.protocol, title);
    stream += 2;
  }
  const lies = fieldsWith({ "content-length": "6" });
  client.send(wholeCall(stream, lies));
  t.equal(await client.reset(stream), ErrorCode.protocol, "a length that lies");
  client.send(wholeCall(stream + 2, fieldsWith({ "content-length": "5" })));
  t.equal((await client.ended(stream + 2)).get("grpc-status"), "0");
  t.strictSame(faults, []);
});

t.test(
  "what is no call is answered as such, and a client that is not done is stopped",
  async (t) => {
    const { port, operations } = await start(t);
    const client = await RawClient.open(t, port);
    let stream = -1;
    const ask = async (
      changes: Readonly<Record<string, string | null>>,
    ): Promise<Map<string, string>> => {
      stream += 2;
      client.send(frame(Frame.headers, Flag.endHeaders, stream, block(fieldsWith(changes))));
      const fields = await client.ended(stream);
      t.equal(await client.reset(stream), ErrorCode.none);
      client.send(frame(Frame.data, Flag.endStream, stream, MESSAGE));
      return fields;
    };
    t.equal((await ask({ "content-type": null })).get(":status"), "415");
    t.equal((await ask({ "content-type": "application/grpcx" })).get(":status"), "415");
    t.equal((await ask({ ":method": "GET" })).get(":status"), "405");
    t.equal((await ask({ ":path": "/no/such" })).get("grpc-status"), String(Status.UNIMPLEMENTED));
    t.equal((await ask({ "grpc-timeout": "1x" })).get("grpc-status"), String(Status.INTERNAL));
    const many = Array.from({ length: 200 }, (_, at) => [`x-${at}`, "y".repeat(50)]);
    const large = await ask(Object.fromEntries(many));
    t.equal(large.get("grpc-status"), String(Status.RESOURCE_EXHAUSTED), "headers beyond 16 KiB");
    client.send(wholeCall(stream + 2, fieldsWith({ "content-type": "application/grpc;x=1" })));
    t.equal((await client.ended(stream + 2)).get("grpc-status"), "0");
    t.equal(operations.recorded.length, 1);
  },
);

t.test("messages of a call: cut, several, none, more than announced", async (t) => {
  const { port, operations, faults } = await start(t);
  const client = await RawClient.open(t, port);
  let stream = -1;
  const ask = async (body: Buffer, changes = {}): Promise<string | undefined> => {
    stream += 2;
    client.send(
      frame(Frame.headers, Flag.endHeaders, stream, block(fieldsWith(changes))),
      frame(Frame.data, Flag.endStream, stream, body),
    );
    return (await client.ended(stream)).get("grpc-status");
  };
  t.equal(await ask(Buffer.alloc(0)), String(Status.UNIMPLEMENTED), "none");
  t.equal(await ask(Buffer.concat([MESSAGE, MESSAGE])), String(Status.UNIMPLEMENTED), "two");
  t.equal(await ask(Buffer.from([0, 0, 0, 0, 9, 1])), String(Status.INTERNAL), "cut");
  t.equal(await ask(Buffer.from([0, 0, 0])), String(Status.INTERNAL), "cut in its prefix");
  t.equal(await ask(Buffer.from([2, 0, 0, 0, 0])), String(Status.INTERNAL), "no prefix");
  t.equal(await ask(Buffer.from([0, 255, 0, 0, 0])), String(Status.RESOURCE_EXHAUSTED), "large");
  const compressed = Buffer.from([1, 0, 0, 0, 2, 1, 2]);
  t.equal(await ask(compressed), String(Status.INTERNAL), "compressed, and nobody said how");
  const brotli = { "grpc-encoding": "br" };
  t.equal(await ask(compressed, brotli), String(Status.UNIMPLEMENTED), "in an unknown way");
  t.equal(await ask(compressed, { "grpc-encoding": "gzip" }), String(Status.INTERNAL), "wrongly");
  t.equal(operations.recorded.length, 0);
  t.equal(await ask(MESSAGE), "0");
  t.strictSame(faults, []);
});

t.test(
  "P-162 a stop: no new call, the open one is answered, then the connection ends",
  async (t) => {
    const { port, operations, server } = await start(t);
    operations.script = () => null;
    const client = await RawClient.open(t, port);
    client.send(wholeCall(1));
    await client.settled();
    const closing = server.close(5000);
    t.equal(await client.goaway(), ErrorCode.none);
    t.equal(client.of(Frame.goaway, 0)[0]?.payload.readUInt32BE(0), 1, "the last call it takes");
    client.send(wholeCall(3));
    t.equal(await client.reset(3), ErrorCode.refusedStream, "the client may repeat it elsewhere");
    for (const { request, done } of operations.recorded)
      done(operations.invalidInput(request.kind));
    t.equal((await client.ended(1)).get("grpc-status"), "0");
    await closing;
    await client.closed();
    t.equal(operations.recorded.length, 1);
  },
);
