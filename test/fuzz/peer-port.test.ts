/**
 * Fuzzing of the peer port, over real connections: handshakes of removed members, questions, HTTP/2.
 *
 * Whatever comes, nothing throws, no frame is taken from whoever proved nothing, nothing is believed
 * about others, what is held for removed members is bounded and gone afterwards, and an honest peer is
 * served. Seeded; see peer-port.ts.
 */
import { connect as connectTcp } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import t, { type Test } from "tap";
import { PEER_RECEIVE_MAX_BYTES } from "../../src/base/limits.js";
import type { PeerCredentials } from "../../src/net/credentials.js";
import { LINK_PATH } from "../../src/net/dial.js";
import * as packets from "../../src/net/packets.js";
import {
  CARRIERS,
  type Carrier,
  type SpokenLane,
  packet,
  speakCall,
  speakLane,
} from "../doubles/net/spoken.js";
import { sleep, until } from "../doubles/net/world.js";
import { LANE_OPENING } from "../../src/net/wire.js";
import { Hostile, ROUNDS, SEED, Target, credentialsWith, message, rounds } from "./peer-port.js";

const { HANDSHAKE_MAX_BYTES, NONCE_BYTES, NO_NONCE, PACKET } = packets;
const SECRET = Buffer.from("0123456789abcdef0123456789abcdef");
const OTHER_SECRET = Buffer.from("another-secret-another-secret-00");
t.comment(`seed ${SEED}, ${ROUNDS} rounds`);

const collect = ((): (() => void) => {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
})();

/** What an eavesdropper wrote down of a handshake that went well, as it travelled. */
interface Recorded {
  readonly hello: Uint8Array;
  readonly confirm: Uint8Array;
}

/** A handshake of somebody who has the secret; afterwards its connection is ended. */
async function record(target: Target, hostile: Hostile, carrier: Carrier): Promise<Recorded> {
  const { credentials } = target;
  const greeting = packets.encodeGreeting(hostile.greeting(), hostile.extensions());
  const hello = packet(PACKET.hello, credentials.seal("greeting", greeting));
  const link = speakLane(target.endpoint, carrier);
  link.write(hello);
  await until("an answer", () => link.answers.length === 1);
  const answer = credentials.open("answer", link.answers[0]?.subarray(1) ?? NO_NONCE, greeting);
  if (answer === null) throw new Error("the answer was sealed");
  const nonce = packets.decodeGreeting(answer)?.nonce ?? NO_NONCE;
  const sealed = credentials.seal("confirm", nonce, greeting, answer);
  const confirm = packet(PACKET.confirm, sealed);
  link.write(confirm);
  link.write(packet(PACKET.echo, new Uint8Array(0)));
  await until("it is linked", () => link.answers.length === 2);
  link.destroy();
  return { hello, confirm };
}

/** Any packets in any order; none of them knows what the listener answers. */
function blindScript(hostile: Hostile, seals: PeerCredentials, recorded: Recorded): Uint8Array {
  const { prng } = hostile;
  const hello = (changes: Partial<packets.Greeting> = {}): Uint8Array => {
    const bytes = packets.encodeGreeting(hostile.greeting(changes), hostile.extensions());
    const body = prng.chance(1, 3) ? hostile.damaged(bytes) : bytes;
    return packet(PACKET.hello, seals.seal("greeting", body).subarray(0, HANDSHAKE_MAX_BYTES));
  };
  const make: readonly (() => Uint8Array)[] = [
    () => hello(),
    () => hello({ target: hostile.one([1, 2, 65_535]), answerTo: hostile.bytes(NONCE_BYTES) }),
    () => recorded.hello,
    () => recorded.confirm,
    () => packet(PACKET.confirm, seals.seal("confirm", hostile.bytes(NONCE_BYTES))),
    () => packet(PACKET.refusal, seals.seal("refusal", hostile.refusal(NO_NONCE))),
    () => packet(PACKET.frame, hostile.bytes(prng.below(300))),
    () => packet(prng.chance(1, 2) ? PACKET.echo : PACKET.echoAnswer, new Uint8Array(0)),
    () => packet(prng.below(256), hostile.bytes(prng.below(60))),
    () => hostile.head(),
    () => hostile.bytes(prng.below(100)),
  ];
  const parts = Array.from({ length: 1 + prng.below(6) }, () => hostile.one(make)());
  if (prng.chance(1, 2)) parts.unshift(prng.chance(1, 2) ? recorded.hello : hello());
  const all = new Uint8Array(Buffer.concat(parts));
  return prng.chance(1, 4) ? hostile.damaged(all) : all;
}

/** What is wrong behind a greeting that was answered with `answer`. */
function badSequel(
  hostile: Hostile,
  seals: PeerCredentials,
  answer: Uint8Array,
  { confirm }: Recorded,
): Uint8Array {
  const { prng } = hostile;
  const nonce = packets.decodeGreeting(answer.subarray(1))?.nonce ?? NO_NONCE;
  const flipped = nonce.slice();
  flipped[prng.below(NONCE_BYTES)] = prng.below(256) ^ 0x80;
  const wrong = flipped.every((byte, at) => byte === nonce[at]) ? hostile.bytes(16) : flipped;
  const frame = packet(PACKET.frame, hostile.bytes(20));
  const make: readonly (() => Uint8Array)[] = [
    () => packet(PACKET.confirm, seals.seal("confirm", wrong)),
    () => packet(PACKET.confirm, nonce.subarray(0, prng.below(NONCE_BYTES))),
    () => packet(PACKET.confirm, Uint8Array.from([...nonce, 0])),
    () => packet(PACKET.refusal, seals.seal("refusal", hostile.refusal(nonce))),
    () => packet(PACKET.refusal, seals.seal("refusal", hostile.refusal(wrong, 3))),
    () => packet(PACKET.echo, new Uint8Array(0)),
    () => packet(PACKET.hello, answer.subarray(1)),
    () => confirm,
    () => frame,
  ];
  return new Uint8Array(Buffer.concat([hostile.one(make)(), frame]));
}

async function linkRounds(
  t: Test,
  secret: Buffer | null,
  salt: number,
  carrier: Carrier,
): Promise<void> {
  const hostile = new Hostile(salt);
  const target = await Target.open(t, secret);
  const recorded = await record(target, hostile, carrier);
  target.judged.clear();
  const withNone = credentialsWith(null);
  const withOther = secret === null ? withNone : credentialsWith(OTHER_SECRET);
  let answered = 0;
  await rounds(ROUNDS, async () => {
    const link = speakLane(target.endpoint, carrier);
    const isBlind = hostile.prng.chance(2, 3);
    const strangers = hostile.one([withNone, withOther]);
    if (isBlind) {
      const bytes = blindScript(hostile, strangers, recorded);
      const cut = hostile.prng.below(bytes.length + 1);
      link.write(bytes.subarray(0, cut));
      link.write(bytes.subarray(cut));
      if (hostile.prng.chance(1, 2)) link.end();
    } else {
      const greeting = packets.encodeGreeting(hostile.greeting(), hostile.extensions());
      // With a secret only a recorded greeting is answered at all.
      link.write(secret === null ? packet(PACKET.hello, greeting) : recorded.hello);
      await until("an answer", () => link.answers.length === 1);
      answered += 1;
      link.write(badSequel(hostile, strangers, link.answers[0] ?? NO_NONCE, recorded));
    }
    await until("it is cut off", link.ended);
    link.destroy();
  });
  t.ok(answered > ROUNDS / 10, "many came as far as an answer");
  if (secret !== null) t.ok(target.judged.size <= 1, "whoever has no secret is not even judged");
  await target.check(t, secret);
}

for (const [at, carrier] of CARRIERS.entries()) {
  t.test(`P-128 P-198 links: damaged, out of turn, replayed, lying: ${carrier}`, (t) =>
    linkRounds(t, null, 10 * at + 1, carrier),
  );
  t.test(`P-128 P-198 links of strangers to a secret: ${carrier}`, (t) =>
    linkRounds(t, SECRET, 10 * at + 2, carrier),
  );
}

/** So many floods are more than the buffers of two sockets hold. */
const FLOODS_MAX = 200;

// Behind a handshake that went well -------------------------------------------------------------

async function admitted(target: Target, hostile: Hostile, carrier: Carrier): Promise<SpokenLane> {
  const link = speakLane(target.endpoint, carrier);
  link.write(
    packet(PACKET.hello, packets.encodeGreeting(hostile.greeting(), hostile.extensions())),
  );
  await until("an answer", () => link.answers.length === 1);
  const answer = packets.decodeGreeting(link.answers[0]?.subarray(1) ?? NO_NONCE);
  link.write(packet(PACKET.confirm, answer?.nonce ?? NO_NONCE));
  return link;
}

t.test("P-128 P-198 who was let in and then misbehaves is cut off at once", async (t) => {
  const hostile = new Hostile(3);
  const target = await Target.open(t, null);
  await rounds(ROUNDS / 4, async () => {
    const link = await admitted(target, hostile, hostile.one(CARRIERS));
    const { prng } = hostile;
    const make: readonly (() => Uint8Array)[] = [
      () => packet(hostile.one([0, 1, 2, 3, 5, 7, 99, 255]), hostile.bytes(prng.below(200))),
      () => packet(PACKET.refusal, hostile.refusal(hostile.bytes(NONCE_BYTES), 2)),
      () => Uint8Array.of(0, 0, 0, 0, 0),
      () => Uint8Array.of(1, 0, 0, 0, 1, PACKET.echo),
      () => Uint8Array.of(0, 255, 255, 255, 255, PACKET.frame),
      () => message(new Uint8Array(10)),
    ];
    link.write(hostile.one(make)());
    link.write(packet(PACKET.frame, hostile.bytes(10)));
    await until("it is cut off", link.ended);
  });
  await target.check(t, null);
});

t.test("P-128 a length that is announced costs no more than its bound", async (t) => {
  const target = await Target.open(t, null, 30_000);
  const links = 100;
  /** Bytes that a connection costs on both sides after such a head and one byte. */
  const announce = async (sizeBytes: number): Promise<number> => {
    collect();
    const before = process.memoryUsage().arrayBuffers;
    const opened = Array.from({ length: links }, () => speakCall(target.endpoint, LINK_PATH));
    const head = Buffer.alloc(6, PACKET.hello);
    head.writeUIntBE(sizeBytes, 0, 5);
    for (const link of opened) link.write(head);
    const isRead = opened.map(() => false);
    for (const [at, { session }] of opened.entries()) {
      session.once("connect", () => session.ping(() => (isRead[at] = true)));
    }
    await until("it was read", () => opened.every((link, at) => isRead[at] || link.ended()));
    collect();
    const grown = process.memoryUsage().arrayBuffers - before;
    for (const link of opened) link.session.destroy();
    await until("all are gone", () => target.held === 0);
    return grown / links;
  };
  await announce(2);
  const least = await announce(2);
  for (const sizeBytes of [HANDSHAKE_MAX_BYTES, PEER_RECEIVE_MAX_BYTES, 0xffff_ffff]) {
    const grown = (await announce(sizeBytes)) - least;
    t.ok(grown < 2 * HANDSHAKE_MAX_BYTES, `${sizeBytes}: ${Math.round(grown)} more per connection`);
  }
  await target.check(t, null);
});

for (const [at, carrier] of CARRIERS.entries()) {
  t.test(`P-128 a flood of echoes whose answers nobody reads is cut off: ${carrier}`, async (t) => {
    const target = await Target.open(t, null);
    const link = await admitted(target, new Hostile(10 * at + 4), carrier);
    link.pause();
    const echo = packet(PACKET.echo, new Uint8Array(0));
    const flood = Buffer.concat(Array<Uint8Array>(60_000).fill(echo));
    // Sockets keep what nobody reads: until theirs are full the answers are not even counted.
    for (let sent = 0; sent < FLOODS_MAX && target.held > 0; sent++) {
      link.write(flood);
      await sleep(5);
    }
    // Who does not read may not notice.
    await until("it is cut off", () => target.held === 0);
    link.destroy();
    await target.check(t, null);
  });
}

// Questions -------------------------------------------------------------------------------------

const QUESTIONS = ["Identify", "Join", "Challenge"] as const;
const STATUS = { ok: 0, invalidArgument: 3, unauthenticated: 16 } as const;

function question(hostile: Hostile, kind: (typeof QUESTIONS)[number]): Uint8Array {
  const { prng } = hostile;
  const join = { nodeId: 4, storageId: "s4", endpoint: "127.0.0.1:4", storage: "lmdb" } as const;
  const extensions = hostile.extensions();
  const body =
    kind === "Join"
      ? packets.encodeJoinRequest({ ...join, program: hostile.program() }, extensions)
      : packets.encodeQuestion(extensions);
  const whole = message(body);
  const make: readonly (() => Uint8Array)[] = [
    () => whole,
    () => message(hostile.damaged(body)),
    () => hostile.damaged(whole),
    () => new Uint8Array(0),
    () => Buffer.concat([whole, whole]),
    () => Buffer.concat([whole, hostile.head()]),
    () => Buffer.concat([whole, hostile.bytes(1 + prng.below(9))]),
    () => Buffer.concat([hostile.head(), whole]),
    () => message(Uint8Array.from([...body, ...hostile.bytes(prng.below(6000))])),
    () => hostile.bytes(prng.below(6000)),
  ];
  return hostile.one(make)();
}

async function questionRounds(t: Test, secret: Buffer | null, salt: number): Promise<void> {
  const hostile = new Hostile(salt);
  const target = await Target.open(t, secret, 200);
  const accepted = { Identify: 0, Join: 0, Challenge: 0 };
  const statuses = new Set<number>();
  await rounds(ROUNDS, async () => {
    const kind = hostile.one(QUESTIONS);
    const call = speakCall(target.endpoint, `/svc.peer.v1.Peer/${kind}`);
    const bytes = question(hostile, kind);
    const cut = hostile.prng.below(bytes.length + 1);
    const isWhole = hostile.prng.chance(9, 10);
    if (cut > 0) call.write(bytes.subarray(0, cut));
    if (cut < bytes.length) call.write(bytes.subarray(cut));
    if (isWhole) call.end();
    await until("it is answered or cut off", call.ended);
    const status = call.status();
    if (status !== null) statuses.add(status);
    if (status === STATUS.ok) accepted[kind] += 1;
    call.session.destroy();
  });
  t.ok(accepted.Challenge > 0, "a challenge is there for everybody");
  t.equal(target.node.joins.length, accepted.Join, "who is told no is not acted for");
  const { ok, invalidArgument, unauthenticated } = STATUS;
  if (secret === null) {
    t.ok(accepted.Join > 0 && accepted.Identify > 0, "some were good");
    t.strictSame(statuses, new Set([ok, invalidArgument]));
  } else {
    t.equal(accepted.Join + accepted.Identify, 0);
    t.strictSame(statuses, new Set([ok, invalidArgument, unauthenticated]));
  }
  await target.check(t, secret);
}

t.test("P-128 P-198 questions: damaged, too many, too long, cut", (t) =>
  questionRounds(t, null, 5),
);
t.test("P-128 P-198 questions of strangers to a secret", (t) => questionRounds(t, SECRET, 6));

// Below gRPC ------------------------------------------------------------------------------------

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, window: 8 } as const;

function http2Frame(type: number, flags: number, stream: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, body]);
}

/** Header fields as literals, without a table. */
function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of Object.entries(fields)) {
    parts.push(Buffer.of(0, name.length), Buffer.from(name));
    parts.push(Buffer.of(value.length), Buffer.from(value));
  }
  return Buffer.concat(parts);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** Frames of HTTP/2 as no client sends them. */
function http2Script(hostile: Hostile): Buffer {
  const { prng } = hostile;
  const stream = (): number => hostile.one([0, 1, 1, 1, 2, 3, 5, 0x7fff_ffff]);
  const headers = (): Buffer => {
    const kind = hostile.one(["Link", "Link", "Join", "Identify", "None"]);
    const block = headerBlock({
      ":method": hostile.one(["POST", "POST", "GET"]),
      ":scheme": "http",
      ":path": `/svc.peer.v1.Peer/${kind}`,
      "content-type": hostile.one(["application/grpc", "application/grpc", "text/plain"]),
    });
    const body = prng.chance(1, 5) ? hostile.damaged(block) : block;
    return http2Frame(FRAME.headers, hostile.one([4, 4, 5, 0]), stream() | 1, body);
  };
  const code = (): Buffer => uint32(hostile.one([0, 0, 8, 11, 0xffff_ffff]));
  const make: readonly (() => Buffer)[] = [
    headers,
    () => Buffer.concat([headers(), http2Frame(FRAME.reset, 0, 1, code())]),
    () => http2Frame(FRAME.data, hostile.one([0, 1]), stream(), hostile.head()),
    () => http2Frame(FRAME.reset, 0, stream(), code()),
    () => http2Frame(FRAME.window, 0, stream(), uint32(hostile.one([0, 1, 0x7fff_ffff]))),
    () => http2Frame(FRAME.settings, prng.below(2), 0, hostile.bytes(6 * prng.below(8))),
    () => http2Frame(prng.below(16), prng.below(256), stream(), hostile.bytes(prng.below(80))),
    () => Buffer.from(hostile.bytes(prng.below(60))),
  ];
  const parts = Array.from({ length: 1 + prng.below(10) }, () => hostile.one(make)());
  const settings = http2Frame(FRAME.settings, 0, 0, new Uint8Array(0));
  const all = Buffer.concat([PREFACE, settings, ...parts]);
  return prng.chance(1, 4) ? Buffer.from(hostile.damaged(all)) : all;
}

/** Beginnings that are nearly those of a lane, and nearly those of HTTP/2. */
function beginning(hostile: Hostile): Buffer {
  const { prng } = hostile;
  const opening = Buffer.from(LANE_OPENING);
  const cut = opening.subarray(0, prng.below(opening.length + 1));
  const hello = packet(PACKET.hello, packets.encodeGreeting(hostile.greeting()));
  const make: readonly (() => Uint8Array)[] = [
    () => cut,
    () => hostile.damaged(opening),
    () => Buffer.concat([cut, PREFACE]),
    () => Buffer.concat([PREFACE.subarray(0, prng.below(PREFACE.length)), opening]),
    () => Buffer.concat([opening, opening, hello]),
    () => Buffer.concat([opening, hostile.head()]),
    () => Buffer.concat([opening, http2Script(hostile)]),
    () => Buffer.concat([opening, hostile.damaged(hello)]),
  ];
  return Buffer.from(hostile.one(make)());
}

t.test("P-128 P-164 what is nearly a lane, and comes in pieces", async (t) => {
  const hostile = new Hostile(8);
  const target = await Target.open(t, null, 200);
  await rounds(ROUNDS, async () => {
    let isEnded = false;
    const socket = connectTcp(target.port, "127.0.0.1");
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("close", () => (isEnded = true));
    socket.resume();
    const bytes = beginning(hostile);
    const at = hostile.prng.below(bytes.length + 1);
    socket.write(bytes.subarray(0, at));
    await sleep(hostile.prng.below(10));
    if (!socket.destroyed) socket.write(bytes.subarray(at));
    if (hostile.prng.chance(1, 3)) socket.end();
    await until("it is cut off", () => isEnded);
  });
  await target.check(t, null);
});

t.test("P-128 P-164 HTTP/2 as no client speaks it", async (t) => {
  const hostile = new Hostile(7);
  const target = await Target.open(t, null, 200);
  await rounds(ROUNDS, async () => {
    let isEnded = false;
    const socket = connectTcp(target.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.on("close", () => (isEnded = true));
    socket.resume();
    socket.write(http2Script(hostile));
    if (hostile.prng.chance(1, 3)) socket.end();
    await until("it is cut off", () => isEnded);
  });
  await target.check(t, null);
});
