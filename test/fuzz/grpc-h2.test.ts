/**
 * The HTTP/2 of the gRPC port against bytes of all kinds: frames that are nearly right, conversations
 * that are changed in places, cut at any place. Whatever comes, the server goes on, nothing of the
 * sender stays, and what was right is answered.
 */
import { connect, type Socket } from "node:net";
import t from "tap";
import { ConnectionCount } from "../../src/base/connections.js";
import { Prng } from "../../src/base/prng.js";
import { Field, RequestHead } from "../../src/grpc/h2/fields.js";
import { Frame, PREFACE } from "../../src/grpc/h2/constants.js";
import { FrameReader } from "../../src/grpc/h2/reader.js";
import { HpackDecoder } from "../../src/grpc/h2/hpack.js";
import { Intake } from "../../src/grpc/h2/intake.js";
import { eventually, start } from "../unit/grpc/harness.js";
import { block, fieldsWith, FIELDS, frame, uint32, wholeCall } from "../unit/grpc/h2/raw.js";

const seed = Number(process.env["SVC_FUZZ_SEED"] ?? Date.now() % 1_000_000_000);
const prng = new Prng(seed);
t.setTimeout(300_000);
t.comment(`seed ${seed}`);

const bytesOf = (size: number): Buffer =>
  Buffer.from(Array.from({ length: size }, () => prng.below(256)));
const PATHS = [
  "/Locker/GetLock",
  "/KeyValuer/BatchClientKeyValueRequests",
  "/KeyValuer/GetByRangeStream",
  "/grpc.health.v1.Health/Watch",
  "/nobody",
];
const STREAMS = [0, 1, 1, 3, 3, 5, 7, 8, 0x7fff_ffff];

function randomFields(): [string, string][] {
  const fields = fieldsWith({ ":path": PATHS[prng.below(PATHS.length)] ?? "" });
  if (prng.chance(1, 3)) fields.push(["grpc-timeout", `${prng.below(50)}m`]);
  if (prng.chance(1, 4)) fields.push(["grpc-encoding", prng.chance(1, 2) ? "gzip" : "br"]);
  if (prng.chance(1, 8)) fields.splice(prng.below(fields.length), 1);
  if (prng.chance(1, 8)) fields.push([bytesOf(3).toString("latin1"), "x"]);
  return fields;
}

function randomPayload(type: number): Buffer {
  switch (type) {
    case Frame.headers:
    case Frame.continuation: {
      const whole = block(randomFields(), prng.chance(1, 2) ? 0x40 : 0);
      return prng.chance(1, 4) ? whole.subarray(0, prng.below(whole.length)) : whole;
    }
    case Frame.data: {
      const body = bytesOf(prng.below(40));
      if (prng.chance(1, 2) && body.length >= 5) body.set([0, 0, 0, 0, body.length - 5]);
      return body;
    }
    case Frame.reset:
    case Frame.windowUpdate:
      return uint32(prng.chance(1, 3) ? prng.nextUint32() : prng.below(70_000));
    case Frame.settings: {
      const pair = Buffer.alloc(6);
      pair.writeUInt16BE(prng.below(7));
      pair.writeUInt32BE(prng.chance(1, 2) ? prng.below(100_000) : prng.nextUint32(), 2);
      return prng.chance(1, 3) ? Buffer.alloc(0) : pair;
    }
    default:
      return bytesOf([4, 5, 8, 8][prng.below(4)] ?? 8);
  }
}

function randomFrame(): Buffer {
  const type = prng.chance(1, 2) ? prng.below(2) : prng.below(11);
  const flags = prng.chance(3, 4) ? [0, 1, 4, 5, 4, 5][prng.below(6)] : prng.below(256);
  const stream = STREAMS[prng.below(STREAMS.length)] ?? 1;
  return frame(type, flags ?? 0, stream, randomPayload(type));
}

/** A conversation: mostly frames, a few of them damaged. */
function conversation(): Buffer {
  const parts = [PREFACE, frame(Frame.settings, 0, 0)];
  if (prng.chance(1, 2)) parts.push(wholeCall(1));
  for (let count = prng.below(20); count >= 0; count--) parts.push(randomFrame());
  const bytes = Buffer.concat(parts);
  for (let count = prng.below(3); count > 0 && prng.chance(1, 2); count--) {
    bytes[prng.below(bytes.length)] = prng.below(256);
  }
  return bytes;
}

function send(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
    socket.resume();
    let at = 0;
    while (at < bytes.length) {
      const size = prng.chance(1, 3) ? prng.below(12) + 1 : bytes.length;
      socket.write(bytes.subarray(at, at + size));
      at += size;
    }
    setTimeout(() => (prng.chance(1, 2) ? socket.end() : socket.destroy()), 20);
    setTimeout(() => socket.destroy(), 200);
  });
}

t.test("P-164 a live server: frames nearly right, damaged, cut anywhere", async (t) => {
  const connections = new ConnectionCount();
  const { port, operations, faults, client } = await start(t, { connections });
  client.close();
  operations.recording = false;
  for (let round = 0; round < 60; round++) {
    await Promise.all(Array.from({ length: 25 }, () => send(port, conversation())));
  }
  const socket = connect(port, "127.0.0.1");
  let answered = 0;
  socket.on("data", (chunk: Buffer) => (answered += chunk.length));
  socket.write(Buffer.concat([PREFACE, frame(Frame.settings, 0, 0), wholeCall(1)]));
  await eventually(() => answered > 100);
  socket.destroy();
  await eventually(() => connections.open.grpc === 0);
  t.strictSame(faults, []);
});

t.test("frames come out alike, however their bytes are cut", (t) => {
  const read = (bytes: Buffer, sizes: () => number): string => {
    const found: string[] = [];
    const reader = new FrameReader({
      frame: (type, flags, stream, from, start, end) => {
        found.push(`${type} ${flags} ${stream} ${from.toString("hex", start, end)}`);
      },
      frameTooLarge: () => {
        found.push("too large");
        reader.stop();
      },
      notHttp2: () => void found.push("not HTTP/2"),
    });
    for (let at = 0; at < bytes.length;) {
      const size = sizes();
      reader.read(Buffer.from(bytes.subarray(at, at + size)));
      at += size;
    }
    return found.join("\n");
  };
  for (let count = 0; count < 3000; count++) {
    const bytes = conversation();
    const whole = read(bytes, () => bytes.length);
    const cut = read(bytes, () => prng.below(30) + 1);
    if (whole !== cut) throw new Error(`cut otherwise: ${bytes.toString("hex")}`);
  }
  t.end();
});

t.test("messages come out alike, however they are cut and whenever nobody reads", async (t) => {
  for (let count = 0; count < 1000; count++) {
    const sizes = Array.from({ length: prng.below(8) }, () => prng.below(300));
    const sent = sizes.map((size) => bytesOf(size));
    const bytes = Buffer.concat(
      sent.map((body) => Buffer.concat([Buffer.from([0]), uint32(body.length), body])),
    );
    const found: Buffer[] = [];
    const kept: Buffer[] = [];
    let ended = 0;
    const intake = new Intake(
      {
        encoding: "identity",
        message: (body) => {
          found.push(body);
          kept.push(Buffer.from(body));
          if (prng.chance(1, 3)) intake.pause();
        },
        halfClosed: () => (ended += 1),
        broken: ({ details }) => {
          throw new Error(details);
        },
        moved: () => undefined,
      },
      1000,
    );
    for (let at = 0; at < bytes.length;) {
      const size = prng.below(120) + 1;
      const chunk = Buffer.from(bytes.subarray(at, at + size));
      intake.push(chunk, 0, chunk.length);
      if (prng.chance(1, 2)) intake.resume();
      at += size;
    }
    intake.end();
    for (let tries = 0; tries < 20; tries++) intake.resume();
    if (ended !== 1) throw new Error("the end was told once");
    t.strictSame(found.length, sent.length);
    const same = sent.every((body, at) => body.equals(found[at] ?? Buffer.alloc(1, 1)));
    const stable = kept.every((body, at) => body.equals(found[at] ?? Buffer.alloc(1, 1)));
    if (!same || !stable) throw new Error("a message was changed");
  }
});

t.test("header blocks: whatever comes, a head is whole or malformed", (t) => {
  for (let count = 0; count < 20_000; count++) {
    const decoder = new HpackDecoder();
    const bytes = block(prng.chance(1, 2) ? randomFields() : FIELDS, prng.below(2) * 0x40);
    for (let changes = prng.below(4); changes > 0; changes--) {
      bytes[prng.below(bytes.length)] = prng.below(256);
    }
    const head = new RequestHead();
    decoder.decode(bytes, 0, bytes.length, head);
    if (!head.isMalformed && !(head.path instanceof Field)) throw new Error("no path");
  }
  t.end();
});
