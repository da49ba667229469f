/**
 * Links that do not work as they should: black holes, slow readers, removed members, garbage, recorded
 * handshakes, a process that stands still; and that what travels is gRPC.
 */
import { EventEmitter } from "node:events";
import { connect as connectHttp2, type ServerHttp2Stream } from "node:http2";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { Writable } from "node:stream";
import * as grpc from "@grpc/grpc-js";
import t, { type Test } from "tap";
import { PROGRAM, type Program } from "../../../src/base/levels.js";
import { HANDSHAKE_EXTENSIONS_MAX_BYTES } from "../../../src/base/limits.js";
import { Prng } from "../../../src/base/prng.js";
import { InboundLane, type InboundOwner } from "../../../src/net/inbound.js";
import { MessageReader, writeMessage, writePacket } from "../../../src/net/messages.js";
import type { PeerNetwork } from "../../../src/net/network.js";
import type { Extension } from "../../../src/net/program.js";
import * as packets from "../../../src/net/packets.js";
import { LaneSender } from "../../../src/net/sending.js";
import { type PeerNetworkSettings, laneBounds } from "../../../src/net/settings.js";
import { LANE_OPENING, wireOfStream } from "../../../src/net/wire.js";
import { CARRIERS, type Carrier, type SpokenLane, speakLane } from "../../doubles/net/spoken.js";
import { Proxy } from "../../doubles/server/proxy.js";
import { CLUSTER, PeerNode, numbered } from "../../conformance/peers.js";
import {
  TIMES,
  type Told,
  closePort,
  openNetwork,
  peerSettings,
  realPorts,
} from "../../doubles/net/world.js";
import { sleep, until } from "../../doubles/net/world.js";

interface Opened {
  readonly node: PeerNode;
  readonly network: PeerNetwork;
  readonly endpoint: string;
  readonly told: Told[];
}

async function open(
  t: Test,
  nodeId: number,
  changes: Partial<PeerNetworkSettings> = {},
): Promise<Opened> {
  let endpoint = "";
  const told: Told[] = [];
  const settings = peerSettings(nodeId, () => endpoint, changes);
  const network = await openNetwork(settings, realPorts(told));
  endpoint = `127.0.0.1:${network.port}`;
  t.teardown(() => closePort(network));
  return { node: new PeerNode(nodeId, network).start(), network, endpoint, told };
}

/** Two nodes; what `one` says to `two` goes through a proxy. */
async function throughProxy(
  t: Test,
  changes: Partial<PeerNetworkSettings> = {},
): Promise<{ one: Opened; two: Opened; proxy: Proxy }> {
  const [one, two] = [await open(t, 1, changes), await open(t, 2, changes)];
  const proxy = await Proxy.open(two.endpoint);
  t.teardown(() => proxy.close());
  one.node.peers({ nodeId: 2, endpoint: proxy.address });
  two.node.peers({ nodeId: 1, endpoint: one.endpoint });
  await until("linked", () => one.node.isUp(2) && two.node.isUp(1));
  return { one, two, proxy };
}

function reasonOf(told: readonly Told[]): unknown {
  return told.filter(({ event }) => event.startsWith("Lost")).at(-1)?.fields?.["reason"];
}

t.test("P-152 a black hole is noticed by the echo, and healed when it ends", async (t) => {
  const { one, two, proxy } = await throughProxy(t);
  proxy.stall();
  await until("node 1 knows", () => !one.node.isUp(2));
  t.equal(reasonOf(one.told), "no echo in time");
  t.ok(two.node.isUp(1), "the other direction has connections of its own, and they work");
  t.notOk(
    one.node.send(2, "control", new Uint8Array(1)),
    "what is sent now is dropped, and said so",
  );
  // Attempts that cannot end well go on meanwhile.
  await sleep(500);
  proxy.resume();
  await until("up again", () => one.node.isUp(2));
  t.ok(one.node.send(2, "log", numbered(7, 100, "log")));
  await until("frames pass", () => two.node.from(1, "log").length === 1);
  t.equal(two.node.from(1, "log").length, 1);
});

t.test("P-152 a sign of life ends a long pause between attempts", async (t) => {
  const one = await open(t, 1, { reconnectFirstMs: 3_600_000, reconnectLastMs: 3_600_000 });
  const early = await open(t, 2);
  const { network, endpoint } = early;
  const port = network.port;
  await closePort(network);
  one.node.peers({ nodeId: 2, endpoint });
  await until("nobody was there", () => one.told.some(({ event }) => event.startsWith("Cannot")));
  await sleep(50);
  const two = await open(t, 2, { port });
  two.node.peers({ nodeId: 1, endpoint: one.endpoint });
  await until("node 1 did not wait for an hour", () => one.node.isUp(2));
});

t.test("P-155 a process that stands still does not lose its links by that", async (t) => {
  const lanes = laneBounds(TIMES);
  const control = { ...lanes.control, echoEveryMs: 20, echoWithinMs: 600 };
  const { one, two, proxy } = await throughProxy(t, { lanes: { ...lanes, control } });
  // Nearly always an echo is on its way, so that one is when everything stops.
  proxy.delayAnswers(100);
  await sleep(300);
  const endMs = performance.now() + 1500;
  while (performance.now() < endMs);
  await sleep(400);
  t.equal(one.node.count("down 2") + two.node.count("down 1"), 0);
});

/** Forwards everything one way, and a byte at a time the other way once it is told to. */
class SlowReader {
  slow = false;
  private readonly sockets = new Set<Socket>();
  private constructor(
    private readonly server: ReturnType<typeof createServer>,
    readonly address: string,
  ) {}

  static async open(target: string): Promise<SlowReader> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const bound = server.address();
    if (bound === null || typeof bound === "string") throw new Error("it has a port");
    const reader = new SlowReader(server, `127.0.0.1:${bound.port}`);
    const [host, port] = target.split(":");
    server.on("connection", (near) => {
      const far = connectTcp({ host: host ?? "", port: Number(port) });
      for (const socket of [near, far]) {
        reader.sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          near.destroy();
          far.destroy();
        });
      }
      far.pipe(near);
      near.on("readable", () => void reader.forward(near, far));
    });
    return reader;
  }

  private async forward(near: Socket, far: Socket): Promise<void> {
    if (!this.slow) {
      for (let chunk = near.read() as Buffer | null; chunk !== null;) {
        far.write(chunk);
        chunk = near.read() as Buffer | null;
      }
      return;
    }
    await sleep(1000);
    const one = near.read(1) as Buffer | null;
    if (one !== null && !far.destroyed) far.write(one);
  }

  /** Connections that came so far. */
  get accepted(): number {
    return this.sockets.size / 2;
  }

  /** Ends one connection alone, counted in the order in which they came. */
  cut(at: number): void {
    [...this.sockets][2 * at]?.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

t.test(
  "P-049 P-152 a lost lane of calls or of bulk takes the link with it, on both sides",
  async (t) => {
    for (const lane of ["calls", "bulk"] as const) {
      const [one, two] = [await open(t, 1), await open(t, 2)];
      const reader = await SlowReader.open(two.endpoint);
      t.teardown(() => reader.close());
      one.node.peers({ nodeId: 2, endpoint: reader.address });
      two.node.peers({ nodeId: 1, endpoint: one.endpoint });
      await until("linked", () => one.node.isUp(2) && two.node.isUp(1));
      t.equal(reader.accepted, 2, "control and log");
      t.ok(one.node.send(2, lane, numbered(1, 64, lane)));
      await until("it came", () => two.node.from(1, lane).length === 1);
      t.equal(reader.accepted, 3);
      reader.cut(2);
      await until(`${lane}: node 1 is told`, () => one.node.count("down 2") === 1);
      await until("and linked again", () => one.node.isUp(2));
      t.ok(one.node.send(2, lane, numbered(2, 64, lane)));
      await until("frames pass again", () => two.node.from(1, lane).length === 2);
      // Answers to what node 2 asked were on that connection: node 2 is told as well.
      if (lane === "calls") await until("node 2 is told", () => two.node.count("down 1") === 1);
      await until("and is linked again", () => two.node.isUp(1));
      await sleep(200);
      const times = one.node.count("down 2") + two.node.count("down 1");
      t.equal(times, lane === "calls" ? 2 : 1, "and that once only");
    }
  },
);

t.test("P-049 P-152 who asks is told that no answer comes, also before any came", async (t) => {
  const { one, two, proxy } = await throughProxy(t);
  t.ok(two.node.send(1, "calls", numbered(1, 64, "calls")));
  await until("it was asked", () => one.node.from(2, "calls").length === 1);
  await sleep(200);
  proxy.stall();
  t.ok(one.node.send(2, "calls", numbered(1, 64, "calls")), "the answer");
  await until("node 1 knows", () => !one.node.isUp(2));
  proxy.resume();
  await until("node 2 has the answer, or knows that it is lost", () => {
    return two.node.from(1, "calls").length === 1 || two.node.count("down 1") === 1;
  });
});

t.test("P-153 a peer that reads a byte per second costs a bounded queue", async (t) => {
  const lanes = laneBounds(TIMES);
  const log = { ...lanes.log, queueBytes: 8 * 1024 * 1024, echoWithinMs: 2500 };
  // The control lane does not give the link up first: the log lane must see for itself.
  const control = { ...lanes.control, echoWithinMs: 60_000 };
  const one = await open(t, 1, { lanes: { ...lanes, log, control } });
  const [two, three] = [await open(t, 2), await open(t, 3)];
  const reader = await SlowReader.open(two.endpoint);
  t.teardown(() => reader.close());
  one.node.peers({ nodeId: 2, endpoint: reader.address }, { nodeId: 3, endpoint: three.endpoint });
  await until("linked", () => one.node.isUp(2) && one.node.isUp(3));
  for (const lane of ["log", "control"] as const) one.node.send(2, lane, numbered(1, 8, lane));
  await until("node 2 has heard both lanes", () => two.node.frames.length === 2);
  reader.slow = true;
  const frame = new Uint8Array(256 * 1024);
  const bound = log.queueBytes + log.aheadBytes + frame.length + 64;
  let refused = 0;
  let largest = 0;
  for (let turn = 0; turn < 100 && refused < 20; turn++) {
    for (let at = 0; at < 10; at++) {
      if (one.node.isUp(2) && !one.node.send(2, "log", frame)) refused += 1;
      largest = Math.max(largest, one.network.queuedBytes(2, "log"));
    }
    if (turn % 10 === 0) t.ok(one.node.send(3, "log", frame), "node 3 is served meanwhile");
    await sleep(5);
  }
  t.ok(refused > 0, "frames are refused once the queue is full");
  t.ok(largest > log.queueBytes / 2 && largest <= bound, `bounded: ${largest}`);
  await until("a link on which nothing moves is given up", () => !one.node.isUp(2));
  t.equal(reasonOf(one.told), "no echo in time");
  t.equal(one.network.queuedBytes(2, "log"), 0, "and its queue is gone");
  await until("all frames for node 3 came", () => three.node.from(1, "log").length >= 1);
  t.equal(one.node.count("down 3"), 0);
});

t.test("P-153 the control lane lets the oldest go and keeps the order", (t) => {
  const FRAME_BYTES = 6 + 1024;
  const written: Uint8Array[] = [];
  const held: (() => void)[] = [];
  const stream = new Writable({
    highWaterMark: 16 * 1024,
    write(chunk: Buffer, _encoding, done) {
      // What a turn sends comes in one piece.
      for (let at = 0; at < chunk.length; at += FRAME_BYTES) {
        written.push(new Uint8Array(chunk.subarray(at, at + FRAME_BYTES)));
      }
      held.push(done);
    },
  });
  const bounds = { ...laneBounds(TIMES).control, queueBytes: 100 * 1024 };
  const sender = new LaneSender(stream, bounds);
  for (let at = 0; at < 1000; at++) t.ok(sender.frame(numbered(at, 1024, "control")));
  t.ok(sender.droppedFrames > 500);
  t.ok(sender.queuedBytes <= bounds.queueBytes + bounds.aheadBytes + 2048);
  const drainAll = (): void => {
    for (let done = held.shift(); done !== undefined; done = held.shift()) done();
    if (sender.queuedBytes > 0) setImmediate(drainAll);
    else finish();
  };
  const finish = (): void => {
    const numbers = written.map((bytes) => new DataView(bytes.buffer).getUint32(6));
    t.equal(numbers.length, 1000 - sender.droppedFrames);
    t.strictSame(
      numbers,
      [...numbers].sort((a, b) => a - b),
      "in order",
    );
    t.equal(numbers.at(-1), 999, "the newest is there");
    t.end();
  };
  setImmediate(drainAll);
});

/** A lane spoken by hand. */
function speak(t: Test, endpoint: string, carrier: Carrier): SpokenLane {
  const lane = speakLane(endpoint, carrier);
  t.teardown(() => lane.destroy());
  return lane;
}

const { PACKET, NO_NONCE } = packets;

function greeting(nodeId: number, changes: Partial<packets.Greeting> = {}): packets.Greeting {
  const known = { nodeId, storageId: "s", endpoint: "127.0.0.1:1", clientEndpoint: "" };
  return {
    hello: {
      ...known,
      clusterId: CLUSTER,
      program: PROGRAM,
      storage: "lmdb",
      bootNumber: 7,
      bootNonce: 4_000_000_000,
      earlierNonces: [1, 2],
    },
    lane: "log",
    target: 1,
    nonce: new Uint8Array(16).fill(7),
    answerTo: NO_NONCE,
    ...changes,
  };
}

function with99(what: "levels" | "protocols"): Program {
  return { ...PROGRAM, version: "9.9", [what]: { min: 99, max: 99 } };
}

async function handshakes(t: Test, carrier: Carrier): Promise<void> {
  const one = await open(t, 1);
  const hello = packets.encodeGreeting(greeting(2));
  const frame = numbered(1, 64, "log");

  const good = speak(t, one.endpoint, carrier);
  good.send(PACKET.hello, hello);
  await until("an answer", () => good.answers.length === 1);
  const answer = packets.decodeGreeting((good.answers[0] as Uint8Array).subarray(1));
  t.equal(answer?.hello.nodeId, 1);
  t.strictSame(answer?.answerTo, new Uint8Array(16).fill(7), "it heard this very handshake");
  good.send(PACKET.confirm, answer?.nonce ?? NO_NONCE);
  good.send(PACKET.frame, frame);
  good.send(PACKET.echo, new Uint8Array(0));
  await until("the frame came", () => one.node.from(2, "log").length === 1);
  await until("the echo came back", () => good.answers.length === 2);

  // What was sent above, sent again: the listener asks for another nonce now.
  const recorded = speak(t, one.endpoint, carrier);
  recorded.send(PACKET.hello, hello);
  recorded.send(PACKET.confirm, answer?.nonce ?? NO_NONCE);
  recorded.send(PACKET.frame, frame);
  await until("a recorded handshake is cut off", recorded.ended);
  t.notOk(good.ended(), "and disturbs nobody");

  const wrong: readonly (readonly [string, (link: SpokenLane) => void])[] = [
    ["a frame before the greeting", (link) => link.send(PACKET.frame, frame)],
    ["an echo before the greeting", (link) => link.send(PACKET.echo, new Uint8Array(0))],
    ["an unknown kind", (link) => link.send(99, frame)],
    ["a large greeting", (link) => link.send(PACKET.hello, new Uint8Array(5000))],
    ["no greeting", (link) => link.send(PACKET.hello, new Uint8Array(30).fill(255))],
    [
      "a frame before it confirmed",
      (link) => {
        link.send(PACKET.hello, hello);
        link.send(PACKET.frame, frame);
      },
    ],
    [
      "two greetings",
      (link) => {
        link.send(PACKET.hello, hello);
        link.send(PACKET.hello, hello);
      },
    ],
  ];
  for (const [name, act] of wrong) {
    const link = speak(t, one.endpoint, carrier);
    act(link);
    await until(`${name} is cut off`, link.ended);
  }
  const refused: readonly (readonly [string, packets.Greeting])[] = [
    ["other-node", greeting(2, { target: 5 })],
    ["other-node", greeting(1)],
    ["other-cluster", greeting(2, { hello: { ...greeting(2).hello, clusterId: "other" } })],
    ["protocol", greeting(2, { hello: { ...greeting(2).hello, program: with99("protocols") } })],
    ["level", greeting(2, { hello: { ...greeting(2).hello, program: with99("levels") } })],
  ];
  for (const [refusal, bad] of refused) {
    const link = speak(t, one.endpoint, carrier);
    link.send(PACKET.hello, packets.encodeGreeting(bad));
    await until("told why", () => link.answers.length === 1);
    const bytes = link.answers[0] as Uint8Array;
    const note = packets.decodeRefusal(bytes.subarray(1));
    t.equal(note?.refusal, refusal);
    t.strictSame(note?.program, PROGRAM, "and what is supported here");
    await until("and cut off", link.ended);
  }
  t.equal(one.node.frames.length, 1, "no frame came from any of them");

  const newer = speak(t, one.endpoint, carrier);
  newer.send(PACKET.hello, hello);
  await until("an answer", () => newer.answers.length === 1);
  const again = packets.decodeGreeting((newer.answers[0] as Uint8Array).subarray(1));
  newer.send(PACKET.confirm, again?.nonce ?? NO_NONCE);
  await until("a newer lane of the same name replaces the older one", good.ended);
}

for (const carrier of CARRIERS) {
  t.test(`P-164 handshakes: whole, out of turn, foreign, recorded: ${carrier}`, (t) =>
    handshakes(t, carrier),
  );
}

async function judgedTwice(t: Test, carrier: Carrier): Promise<void> {
  const one = await open(t, 1);
  const admitted: number[] = [];
  const admit = one.node.admit.bind(one.node);
  one.node.admit = (hello) => {
    admitted.push(hello.bootNumber);
    return admit(hello);
  };
  const greeted = async (): Promise<{ link: SpokenLane; nonce: Uint8Array }> => {
    const link = speak(t, one.endpoint, carrier);
    link.send(PACKET.hello, packets.encodeGreeting(greeting(2)));
    await until("an answer", () => link.answers.length === 1);
    const answer = packets.decodeGreeting((link.answers[0] as Uint8Array).subarray(1));
    return { link, nonce: answer?.nonce ?? NO_NONCE };
  };
  const [first, second] = [await greeted(), await greeted()];
  t.strictSame(admitted, [], "it may be a recording: nothing is noted of it");
  first.link.send(PACKET.confirm, first.nonce);
  first.link.send(PACKET.frame, numbered(1, 64, "log"));
  await until("the frame came", () => one.node.from(2, "log").length === 1);
  t.strictSame(admitted, [7]);

  one.node.judge = () => "storage-lost";
  second.link.send(PACKET.confirm, second.nonce);
  second.link.send(PACKET.frame, numbered(2, 64, "log"));
  await until("who is not welcome any more is cut off", second.link.ended);
  t.equal(one.node.from(2, "log").length, 1, "without a frame");
}

for (const carrier of CARRIERS) {
  t.test(
    `P-190 who greets is judged; it is let in when it confirms, and judged again: ${carrier}`,
    (t) => judgedTwice(t, carrier),
  );
}

t.test("P-164 a lane that ends takes its session along at once", (t) => {
  const destroyed: string[] = [];
  const session = { destroy: () => void destroyed.push("session"), socket: {} };
  const stream = Object.assign(new EventEmitter(), {
    session,
    respond: () => undefined,
    destroy: () => void destroyed.push("stream"),
  });
  const ended: boolean[] = [];
  const owner = {
    nowMs: () => 0,
    ended: (_lane: InboundLane, isOpen: boolean) => ended.push(isOpen),
  };
  new InboundLane(
    wireOfStream(stream as unknown as ServerHttp2Stream),
    owner as Partial<InboundOwner> as InboundOwner,
  );
  const unknown: Uint8Array[] = [];
  writePacket(250, new Uint8Array(3), (piece) => void unknown.push(piece));
  stream.emit("data", Buffer.concat(unknown));
  t.strictSame(ended, [false]);
  t.strictSame(destroyed, ["stream", "session"]);
  t.end();
});

t.test("P-164 garbage and silence on the port end alone", async (t) => {
  const one = await open(t, 1, { handshakeWithinMs: 300 });
  const random = new Prng(5);
  const junk = Buffer.from(Array.from({ length: 5000 }, () => random.below(256)));
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  const texts: readonly (readonly [string, Buffer])[] = [
    ["silence", Buffer.alloc(0)],
    ["junk", junk],
    ["half a preface", preface.subarray(0, 10)],
    ["a preface and junk", Buffer.concat([preface, junk])],
    ["a preface and silence", preface],
    ["half an opening", Buffer.from(LANE_OPENING.subarray(0, 5))],
    ["an opening that goes wrong", Buffer.from("svclane0")],
    ["an opening and junk", Buffer.concat([LANE_OPENING, junk])],
    ["an opening and silence", Buffer.from(LANE_OPENING)],
    ["HTTP/1.1", Buffer.from("GET / HTTP/1.1\r\nhost: a\r\n\r\n")],
  ];
  const left = new Set(texts.map(([name]) => name));
  for (const [name, bytes] of texts) {
    const [host, port] = one.endpoint.split(":");
    const socket = connectTcp({ host: host ?? "", port: Number(port) }, () => socket.write(bytes));
    socket.on("error", () => undefined);
    socket.on("data", () => undefined);
    socket.on("close", () => left.delete(name));
    t.teardown(() => socket.destroy());
  }
  const session = connectHttp2(`http://${one.endpoint}`);
  session.on("error", () => undefined);
  t.teardown(() => session.destroy());
  const statuses: unknown[] = [];
  for (const [path, type] of [
    ["/v1/kv/try-get", "application/json"],
    ["/Locker/TryLock", "application/grpc"],
  ] as const) {
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
    stream.on("error", () => undefined);
    stream.on("response", (headers) => {
      statuses.push(headers[":status"] === 200 ? headers["grpc-status"] : headers[":status"]);
    });
    stream.end();
  }
  await until("clients are sent away", () => statuses.length === 2);
  t.strictSame(statuses.map(Number).sort(), [12, 415], "the peer port serves no requests");
  await until(`all are cut off: ${[...left].join()}`, () => left.size === 0);
  await until("and so is who greets nobody", () => session.destroyed);
  const two = await open(t, 2);
  two.node.peers({ nodeId: 1, endpoint: one.endpoint });
  await until("a node is let in after all that", () => two.node.isUp(1));
});

/** An HTTP/2 frame PING of 8 bytes. */
const PING = Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, ...Buffer.alloc(8)]);

t.test(
  "P-164 whoever asks for answers and reads none is cut off when its time is up",
  async (t) => {
    const one = await open(t, 1, { handshakeWithinMs: 300 });
    const [host, port] = one.endpoint.split(":");
    const socket = connectTcp({ host: host ?? "", port: Number(port) });
    t.teardown(() => socket.destroy());
    let isEnded = false;
    socket.on("error", () => undefined);
    socket.on("close", () => (isEnded = true));
    socket.pause();
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings]));
    const pings = Buffer.concat(Array.from({ length: 500 }, () => PING));
    // What is written behind the end of a connection tells of it.
    const flood = setInterval(() => socket.writableLength < 1_000_000 && socket.write(pings), 1);
    t.teardown(() => clearInterval(flood));
    await until("it is cut off", () => isEnded);
  },
);

async function refusals(t: Test, carrier: Carrier): Promise<void> {
  const one = await open(t, 1);
  const told: string[] = [];
  one.node.refused = (from, refusal) => void told.push(`${from.nodeId} ${refusal}`);
  const by = { nodeId: 2, endpoint: "127.0.0.1:1" };
  const note = (answerTo: Uint8Array, from = by): Uint8Array =>
    packets.encodeRefusal({ by: from, refusal: "storage-lost", program: PROGRAM, answerTo });

  const stray = speak(t, one.endpoint, carrier);
  stray.send(PACKET.refusal, note(NO_NONCE));
  await until("a stray refusal is cut off", stray.ended);

  // Answered, but not to what this node said; and by somebody else than was greeted.
  for (const change of ["nonce", "node"] as const) {
    const link = speak(t, one.endpoint, carrier);
    link.send(PACKET.hello, packets.encodeGreeting(greeting(2)));
    await until("an answer", () => link.answers.length === 1);
    const answer = packets.decodeGreeting((link.answers[0] as Uint8Array).subarray(1));
    const nonce = change === "nonce" ? NO_NONCE : (answer?.nonce ?? NO_NONCE);
    link.send(PACKET.refusal, note(nonce, change === "node" ? { ...by, nodeId: 3 } : by));
    await until("it is cut off", link.ended);
  }
  t.strictSame(told, []);

  const late = speak(t, one.endpoint, carrier);
  late.send(PACKET.hello, packets.encodeGreeting(greeting(2)));
  await until("an answer", () => late.answers.length === 1);
  const heard = packets.decodeGreeting((late.answers[0] as Uint8Array).subarray(1));
  late.send(PACKET.confirm, heard?.nonce ?? NO_NONCE);
  late.send(PACKET.refusal, note(heard?.nonce ?? NO_NONCE));
  await until("a refusal after the handshake is cut off", late.ended);
  t.strictSame(told, []);

  const link = speak(t, one.endpoint, carrier);
  link.send(PACKET.hello, packets.encodeGreeting(greeting(2)));
  await until("an answer", () => link.answers.length === 1);
  const answer = packets.decodeGreeting((link.answers[0] as Uint8Array).subarray(1));
  link.send(PACKET.refusal, note(answer?.nonce ?? NO_NONCE));
  await until("the refusal of this greeting", () => told.length === 1);
  t.strictSame(told, ["2 storage-lost"]);
}

for (const carrier of CARRIERS) {
  t.test(`P-190 a refusal counts as the answer to an own greeting only: ${carrier}`, (t) =>
    refusals(t, carrier),
  );
}

t.test("what travels is gRPC: its own package speaks with a node", async (t) => {
  const one = await open(t, 1);
  const client = new grpc.Client(one.endpoint, grpc.credentials.createInsecure());
  t.teardown(() => client.close());
  const asIs = (bytes: Buffer): Buffer => bytes;
  const ask = (path: string, message: Uint8Array): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, asIs, asIs, Buffer.from(message), (error, answer) => {
        if (error !== null) reject(error);
        else resolve(new Uint8Array(answer ?? []));
      });
    });
  const identity = await ask("/svc.peer.v1.Peer/Identify", packets.encodeQuestion());
  t.match(packets.decodeIdentityAnswer(identity), { nodeId: 1, clusterId: CLUSTER });
  const request = {
    nodeId: 4,
    storageId: "s4",
    endpoint: "127.0.0.1:4",
    storage: "lmdb",
    program: PROGRAM,
  } as const;
  const joined = await ask("/svc.peer.v1.Peer/Join", packets.encodeJoinRequest(request));
  t.match(packets.decodeJoinAnswer(joined), { status: "accepted", founders: [1, 2, 3] });
  t.strictSame(one.node.joins, [request]);
  for (const junk of [new Uint8Array([9]), new Uint8Array(3000)]) {
    const refusal: Promise<unknown> = ask("/svc.peer.v1.Peer/Join", junk);
    await t.rejects(refusal, { code: grpc.status.INVALID_ARGUMENT });
  }
  const call = client.makeBidiStreamRequest("/svc.peer.v1.Peer/Link", asIs, asIs);
  const answers: Buffer[] = [];
  call.on("data", (message: Buffer) => answers.push(message));
  call.on("error", () => undefined);
  const packet = (kind: number, body: Uint8Array): Buffer => Buffer.concat([Buffer.of(kind), body]);
  call.write(packet(PACKET.hello, packets.encodeGreeting(greeting(2))));
  await until("an answer", () => answers.length === 1);
  const answer = packets.decodeGreeting(new Uint8Array(answers[0] ?? []).subarray(1));
  call.write(packet(PACKET.confirm, answer?.nonce ?? NO_NONCE));
  call.write(packet(PACKET.frame, numbered(3, 100_000, "log")));
  await until("the frame came", () => one.node.from(2, "log").length === 1);
  t.strictSame(one.node.from(2, "log")[0], numbered(3, 100_000, "log"));
  call.cancel();
});

t.test("U7 what later programs add to a handshake or a question is passed over", (t) => {
  const random = new Prng(13);
  const some = (count: number): Extension[] => {
    let tag = -1;
    return Array.from({ length: count }, () => {
      tag += 1 + random.below(300);
      return { tag, bytes: new Uint8Array(random.below(20)).fill(random.below(256)) };
    });
  };
  const newer = { levels: { min: 7, max: 8 }, protocols: { min: 4, max: 65_535 }, version: "0.9" };
  const { bootNumber, bootNonce, earlierNonces, ...profile } = greeting(2).hello;
  const hello = { ...profile, program: newer, bootNumber, bootNonce, earlierNonces };
  const identity = { ...profile, program: newer, state: "empty", founders: [] } as const;
  const by = { nodeId: 3, endpoint: "h:1" };
  const answerTo = new Uint8Array(16).fill(9);
  const note = { by, refusal: "level", program: newer, answerTo } as const;
  const join = { nodeId: 4, storageId: "s", endpoint: "e:1", storage: "lmdb" } as const;
  const request = { ...join, program: newer };
  const accepted = { status: "accepted", clusterId: CLUSTER, level: 8, founders: [1] } as const;
  const retry = { status: "retry", reason: "no leader" } as const;
  for (const count of [0, 1, 2, 17]) {
    const added = some(count);
    const greeted = packets.encodeGreeting(greeting(2, { hello }), added);
    t.strictSame(packets.decodeGreeting(greeted), greeting(2, { hello }));
    const told = packets.encodeIdentityAnswer(identity, added);
    t.strictSame(packets.decodeIdentityAnswer(told), identity);
    t.strictSame(packets.decodeRefusal(packets.encodeRefusal(note, added)), note);
    t.strictSame(packets.decodeJoinRequest(packets.encodeJoinRequest(request, added)), request);
    t.strictSame(packets.decodeJoinAnswer(packets.encodeJoinAnswer(accepted, added)), accepted);
    t.strictSame(packets.decodeJoinAnswer(packets.encodeJoinAnswer(retry, added)), retry);
    t.ok(packets.isQuestion(packets.encodeQuestion(added)));
  }
  const most = { tag: 0xffff_ffff, bytes: new Uint8Array(HANDSHAKE_EXTENSIONS_MAX_BYTES - 7) };
  t.ok(packets.isQuestion(packets.encodeQuestion([most])), "as much as there may be");
  const more = { ...most, bytes: new Uint8Array(HANDSHAKE_EXTENSIONS_MAX_BYTES - 6) };
  t.throws(() => packets.encodeQuestion([more]), /fit their block/);
  const head = packets.encodeQuestion().subarray(0, 1);
  const bad: readonly (readonly [string, readonly number[]])[] = [
    ["no block", []],
    ["a block that is cut", [3, 1, 1]],
    ["an item beyond its block", [2, 1, 1, 0]],
    ["half an item", [1, 1]],
    ["a tag twice", [4, 5, 0, 5, 0]],
    ["tags that fall", [4, 5, 0, 4, 0]],
    ["more than the block", [2, 5, 0, 0]],
    ["a size beyond the bound", [0x81, 0x08, ...new Array<number>(1025).fill(0)]],
  ];
  for (const [what, bytes] of bad)
    t.notOk(packets.isQuestion(Uint8Array.from([...head, ...bytes])), what);
  for (const range of [
    { min: 0, max: 1 },
    { min: 2, max: 1 },
    { min: 1, max: 65_536 },
  ]) {
    const program = { ...PROGRAM, levels: range };
    t.throws(() => packets.encodeJoinRequest({ ...join, program }), /in order/);
  }
  const bytes = packets.encodeJoinRequest({ ...join, program: { ...newer, version: "" } });
  // Behind the storage: levels 7 to 8, protocols 4 to 65535, no version, no extensions.
  t.strictSame([...bytes.subarray(-10)], [7, 0, 8, 0, 4, 0, 255, 255, 0, 0]);
  for (const [at, value] of [
    [bytes.length - 10, 9],
    [bytes.length - 10, 0],
  ] as const) {
    const wrong = bytes.slice();
    wrong[at] = value;
    t.equal(packets.decodeJoinRequest(wrong), null, "a range that is empty or in disorder");
  }
  t.end();
});

t.test("packets: round trips, and no bytes make a decoder throw", (t) => {
  const { bootNumber, bootNonce, earlierNonces, ...profile } = greeting(2).hello;
  t.strictSame(packets.decodeGreeting(packets.encodeGreeting(greeting(2))), greeting(2));
  t.ok(bootNumber > 0 && bootNonce > 0 && earlierNonces.length > 0);
  const founders = [1, 2, 3].map((nodeId) => ({ nodeId, storageId: `s${nodeId}` }));
  const identities = [
    { ...profile, state: "empty", founders: [] },
    { ...profile, state: "founding", founders },
    { ...profile, storage: "memory", state: "founded", founders: [] },
  ] as const;
  for (const identity of identities) {
    t.strictSame(packets.decodeIdentityAnswer(packets.encodeIdentityAnswer(identity)), identity);
  }
  const by = { nodeId: 3, endpoint: "h:1" };
  const note = {
    by,
    refusal: "storage-lost",
    program: PROGRAM,
    answerTo: new Uint8Array(16).fill(9),
  } as const;
  t.strictSame(packets.decodeRefusal(packets.encodeRefusal(note)), note);
  for (const answer of [
    { status: "accepted", clusterId: CLUSTER, level: 65_535, founders: [1, 2, 65_535] },
    { status: "retry", reason: "no leader" },
    { status: "refused", reason: "node 4 is a member already" },
  ] as const) {
    t.strictSame(packets.decodeJoinAnswer(packets.encodeJoinAnswer(answer)), answer);
  }
  const random = new Prng(11);
  const samples = [
    packets.encodeGreeting(greeting(2)),
    packets.encodeRefusal(note),
    packets.encodeJoinAnswer({ status: "accepted", clusterId: CLUSTER, level: 1, founders: [1] }),
    packets.encodeJoinRequest({
      nodeId: 4,
      storageId: "s",
      endpoint: "e:1",
      storage: "lmdb",
      program: PROGRAM,
    }),
    packets.encodeIdentityAnswer(identities[1]),
  ];
  const decoders = [
    packets.decodeGreeting,
    packets.decodeRefusal,
    packets.decodeJoinAnswer,
    packets.decodeJoinRequest,
    packets.decodeIdentityAnswer,
    packets.isQuestion,
  ];
  let taken = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = (samples[random.below(samples.length)] as Uint8Array).slice();
    for (let change = random.below(4); change >= 0; change--) {
      bytes[random.below(bytes.length)] = random.below(256);
    }
    const cut = random.chance(1, 3) ? bytes.subarray(0, random.below(bytes.length)) : bytes;
    for (const decode of decoders) {
      const read = decode(cut);
      if (read !== null && read !== false) taken += 1;
    }
  }
  t.ok(taken > 100, "some still mean something");
  const parts: Uint8Array[] = [];
  writeMessage(numbered(1, 1000, "log"), (piece) => parts.push(piece));
  for (let at = 0; at < 50; at++) {
    writePacket(6, numbered(at, at * 997, "log"), (piece) => parts.push(piece));
  }
  const all = new Uint8Array(Buffer.concat(parts));
  const messages: Uint8Array[] = [];
  const reader = new MessageReader(
    () => 1 << 20,
    (message) => messages.push(message) > 0,
  );
  for (let at = 0; at < all.length;) {
    const size = 1 + random.below(3000);
    t.ok(reader.push(all.subarray(at, at + size)));
    at += size;
  }
  t.ok(reader.isBetweenMessages);
  t.equal(messages.length, 51, "messages come whole, however the stream is cut");
  t.ok(messages.slice(1).every((bytes, at) => bytes[0] === 6 && bytes.length === 1 + at * 997));
  t.end();
});
