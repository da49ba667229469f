/**
 * Fuzzing of everything that the gRPC front end decodes: each message decoder, the batch envelope,
 * a live server.
 *
 * Inputs are valid messages of every type, made from the descriptors, then cut, flipped, spliced
 * and grown. A decoder may refuse an input or read it; it must not hang, fail in another way, or
 * let ill-formed text through. The seed can be set by SVC_FUZZ_SEED and is printed; the number of
 * inputs per decoder by SVC_FUZZ_INPUTS.
 */
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import protobuf from "protobufjs";
import descriptor from "protobufjs/ext/descriptor.js";
import t from "tap";
import { isWellFormedText } from "../../src/base/bytes.js";
import { Prng } from "../../src/base/prng.js";
import { EnvelopeScanner, NO_ITEM, NOT_A_FRAME } from "../../src/grpc/batch/envelope.js";
import { encodeMessage, protoReader, type MessageCodec } from "../../src/proto/codec.js";
import * as backups from "../../src/proto/generated/backups.js";
import * as cluster from "../../src/proto/generated/cluster.js";
import { FILE_DESCRIPTIONS } from "../../src/proto/generated/descriptors.js";
import * as health from "../../src/proto/generated/health.js";
import * as keyvalues from "../../src/proto/generated/keyvalues.js";
import * as locks from "../../src/proto/generated/locks.js";
import * as reflection from "../../src/proto/generated/reflection.js";
import * as sequences from "../../src/proto/generated/sequences.js";
import * as watch from "../../src/proto/generated/watch.js";
import { callRaw, codeOf, openStream, start } from "../unit/grpc/harness.js";

const seed = Number(process.env["SVC_FUZZ_SEED"] ?? Date.now() % 1_000_000_000);
const INPUTS = Number(process.env["SVC_FUZZ_INPUTS"] ?? 25_000);
const SEEDS_PER_TYPE = 24;
const prng = new Prng(seed);
// Most inputs are refused by an exception, and a stack trace costs more than all the rest.
Error.stackTraceLimit = 0;
t.setTimeout(300_000);
t.comment(`seed ${seed}, ${INPUTS} inputs per decoder`);

/** The reflection type of every message, by name. */
function messageTypes(): Map<string, protobuf.Type> {
  const found = new Map<string, protobuf.Type>();
  const visit = (space: protobuf.NamespaceBase): void => {
    for (const entry of space.nestedArray) {
      if (entry instanceof protobuf.Type) found.set(entry.name, entry);
      if (entry instanceof protobuf.Namespace) visit(entry);
    }
  };
  for (const file of FILE_DESCRIPTIONS) {
    const type = descriptor.FileDescriptorSet;
    const files = FILE_DESCRIPTIONS.filter(
      (one) => one.path === file.path || file.dependency.includes(one.path),
    ).map((one) => descriptor.FileDescriptorProto.decode(Buffer.from(one.base64, "base64")));
    const bytes = type.encode(type.fromObject({ file: files })).finish();
    visit(protobuf.Root.fromDescriptor(bytes).resolveAll());
  }
  return found;
}

const TEXTS = ["", "a", "k/1", "__svc:x", "ä\u{1f600}", "\u0000", " x ", "y".repeat(90)];

function randomScalar(type: string): unknown {
  switch (type) {
    case "string":
      return TEXTS[prng.below(TEXTS.length)];
    case "bytes":
      return Buffer.alloc(prng.below(40), prng.below(256));
    case "bool":
      return prng.chance(1, 2);
    case "int64":
    case "uint64":
      return { low: prng.nextUint32() | 0, high: prng.nextUint32() | 0, unsigned: false };
    default:
      return prng.chance(1, 2) ? prng.below(120) : prng.nextUint32() | 0;
  }
}

/** A message with random fields, some absent. `depth` bounds nesting. */
function randomMessage(type: protobuf.Type, depth: number): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  for (const field of type.fieldsArray) {
    if (prng.chance(1, 3)) continue;
    const { resolvedType } = field;
    const one = (): unknown => {
      if (resolvedType instanceof protobuf.Type) return randomMessage(resolvedType, depth - 1);
      return resolvedType === null ? randomScalar(field.type) : prng.below(20);
    };
    if (resolvedType instanceof protobuf.Type && depth === 0) continue;
    if (field.partOf !== null && field.partOf !== undefined && prng.chance(1, 2)) continue;
    message[field.name] = field.repeated ? Array.from({ length: prng.below(3) }, one) : one();
  }
  return message;
}

/** Bytes that decoders stumble over: lengths, tags, over-long and negative numbers. */
const NASTY = [0, 1, 2, 7, 0x08, 0x0a, 0x10, 0x12, 0x22, 0x7f, 0x80, 0x8a, 0xc3, 0xed, 0xfa, 0xff];
const scratch = Buffer.alloc(1 << 16);

/** A mutation of `source`; valid until the next call. */
function mutated(source: Buffer, other: Buffer): Buffer {
  let size = source.copy(scratch);
  for (let round = prng.below(4); round >= 0; round--) {
    const at = size === 0 ? 0 : prng.below(size);
    switch (prng.below(6)) {
      case 0:
        size = at;
        break;
      case 1:
        scratch[at] = (scratch[at] ?? 0) ^ (1 << prng.below(8));
        break;
      case 2:
        scratch[at] = NASTY[prng.below(NASTY.length)] ?? 0;
        break;
      case 3: {
        const part = Math.min(prng.below(16) + 1, scratch.length - size);
        scratch.copyWithin(at + part, at, size);
        size += part;
        for (let fill = 0; fill < part; fill++) scratch[at + fill] = prng.below(256);
        break;
      }
      case 4:
        size = at + other.copy(scratch, at, 0, Math.min(other.length, 4096));
        break;
      default:
        scratch.fill(0xff, at, Math.min(size, at + prng.below(12)));
    }
  }
  return scratch.subarray(0, size);
}

/** Throws when a decoded message holds text that is not well formed. */
function checkTexts(value: unknown): void {
  if (typeof value === "string") {
    if (!isWellFormedText(value)) throw new TypeError("ill-formed text came through");
  } else if (Array.isArray(value)) for (const one of value) checkTexts(one);
  else if (typeof value === "object" && value !== null && !(value instanceof Uint8Array)) {
    for (const one of Object.values(value)) checkTexts(one);
  }
}

/**
 * What a decoder may throw: its own refusals. A type error, or a stack that ran out, is a defect.
 */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // How the platform's strict decoder says that text is not valid UTF-8.
  if (Reflect.get(error, "code") === "ERR_ENCODING_INVALID_ENCODED_DATA") return true;
  if (error instanceof TypeError) return false;
  return !(error instanceof RangeError) || error.message.startsWith("index out of range");
}

const modules = [sequences, locks, keyvalues, watch, cluster, backups, health, reflection];
const codecs = new Map<string, MessageCodec<object>>();
for (const module of modules) {
  for (const [name, value] of Object.entries(module) as [string, unknown][]) {
    if (typeof value === "function" && Reflect.has(value, "decode")) {
      codecs.set(name, value as unknown as MessageCodec<object>);
    }
  }
}
const types = messageTypes();
const corpus = new Map<string, Buffer[]>();
for (const [name, type] of types) {
  const seeds = Array.from({ length: SEEDS_PER_TYPE }, () =>
    Buffer.from(type.encode(randomMessage(type, 2)).finish()),
  );
  corpus.set(name, seeds);
}
const everySeed = [...corpus.values()].flat();

const pick = (list: readonly Buffer[]): Buffer => list[prng.below(list.length)] ?? scratch;

t.test("P-143 P-145 P-146 each message decoder, valid, truncated and mutated inputs", (t) => {
  t.strictSame([...codecs.keys()].sort(), [...types.keys()].sort(), "every message has a decoder");
  for (const [name, codec] of codecs) {
    const seeds = corpus.get(name) ?? [];
    let read = 0;

    const failures: string[] = [];
    for (const bytes of seeds) {
      const message = codec.decode(protoReader(bytes));
      checkTexts(message);
      if (
        !encodeMessage(codec, message).equals(
          encodeMessage(codec, codec.decode(protoReader(bytes))),
        )
      )
        failures.push("a valid message changes");
    }
    for (let count = 0; count < INPUTS; count++) {
      const bytes = mutated(pick(seeds), pick(everySeed));
      try {
        const message = codec.decode(protoReader(bytes));
        read += 1;
        if (count % 16 === 0) checkTexts(message);
      } catch (error) {
        if (!isRefusal(error) && failures.length < 3) {
          failures.push(`${String(error)} on ${bytes.toString("hex")}`);
        }
      }
    }
    t.strictSame(failures, [], `${name}: ${read} of ${INPUTS} were messages`);
  }
  t.strictSame(Object.keys(Object.prototype), []);
  t.end();
});

t.test("deep nesting and huge lengths are refused without memory or stack", (t) => {
  const codec = sequences.GrpcBatchClientSequenceRequest;
  for (const depth of [50, 1000, 100_000]) {
    // Frame (17) holding an item (1) holding a frame: the lengths are filled from the inside out,
    // as far as they fit.
    let bytes = Buffer.alloc(0);
    const levels: Buffer[] = [];
    for (let level = 0, size = 0; level < depth; level++) {
      const head = level % 2 === 0 ? [0x0a] : [0x8a, 0x01];
      for (let rest = size; ; rest >>>= 7) {
        head.push(rest >= 0x80 ? (rest & 0x7f) | 0x80 : rest);
        if (rest < 0x80) break;
      }
      size += head.length;
      levels.push(Buffer.from(head));
    }
    bytes = Buffer.concat(levels.reverse());
    let refused = false;
    try {
      codec.decode(protoReader(bytes));
    } catch (error) {
      refused = isRefusal(error);
    }
    t.equal(refused, depth > 100, `depth ${depth}`);
    const groups = Buffer.alloc(depth, 0x1b);
    t.throws(() => codec.decode(protoReader(groups)));
    t.equal(new EnvelopeScanner(~0).scan(protoReader(groups), groups.length), false);
  }
  const huge = Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07]);
  t.throws(() => locks.GrpcGetLockRequest.decode(protoReader(huge)));
  t.end();
});

t.test("the batch envelope never leaves its bounds", (t) => {
  const seeds = ["GrpcBatchClientSequenceRequest", "GrpcBatchClientKeyValueRequest"].flatMap(
    (name) => corpus.get(name) ?? [],
  );
  const scanner = new EnvelopeScanner(~0b111 & ~(1 << 7));
  let scanned = 0;
  for (let count = 0; count < INPUTS; count++) {
    const bytes = mutated(pick(seeds), pick(everySeed));
    const end = prng.below(bytes.length + 1);
    const reader = protoReader(bytes);
    if (!scanner.scan(reader, end)) continue;
    scanned += 1;
    if (reader.pos !== end || reader.len !== bytes.length) throw new Error("bounds were moved");
    if (scanner.payloadField === 0) continue;
    if (scanner.payloadEnd > end || scanner.payloadStart > scanner.payloadEnd) {
      throw new Error("a payload lies outside its item");
    }
    reader.pos = scanner.payloadStart;
    for (let last = -1; ;) {
      const item = scanner.nextItem(reader, scanner.payloadEnd);
      if (item === NO_ITEM || item === NOT_A_FRAME) break;
      if (item > scanner.payloadEnd || item <= last) throw new Error("an item leaves its frame");
      last = item;
      reader.pos = item;
    }
  }
  t.ok(scanned > INPUTS / 100, `${scanned} of ${INPUTS} were envelopes`);
  t.end();
});

const UNARY: readonly [string, string][] = [
  ["/Sequencer/CreateSequence", "GrpcCreateSequenceRequest"],
  ["/Sequencer/NextSequenceValue", "GrpcNextSequenceRequest"],
  ["/Locker/TryLock", "GrpcTryLockRequest"],
  ["/Locker/GetLock", "GrpcGetLockRequest"],
  ["/KeyValuer/TrySetKeyValue", "GrpcTrySetKeyValueRequest"],
  ["/KeyValuer/TrySetManyKeyValue", "GrpcTrySetManyKeyValueRequest"],
  ["/KeyValuer/GetByRange", "GrpcGetByRangeRequest"],
  ["/Cluster/SplitRange", "GrpcSplitRangeRequest"],
  ["/Backups/Restore", "GrpcRestoreRequest"],
  ["/grpc.health.v1.Health/Check", "HealthCheckRequest"],
];
const STREAMS: readonly [string, string][] = [
  ["/Sequencer/BatchClientSequenceRequests", "GrpcBatchClientSequenceRequest"],
  ["/Locker/BatchClientLockRequests", "GrpcBatchClientLockRequest"],
  ["/Locker/BatchServerLockRequests", "GrpcBatchServerLockRequest"],
  ["/KeyValuer/BatchClientKeyValueRequests", "GrpcBatchClientKeyValueRequest"],
  ["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "ServerReflectionRequest"],
];

t.test("P-164 a live server: unary calls and streams of mutated messages", async (t) => {
  const { client, operations, faults } = await start(t);
  operations.recording = false;
  // OK, INVALID_ARGUMENT, NOT_FOUND (health), UNAVAILABLE (backups).
  const allowed = new Set([0, 3, 5, 14]);
  const seen = new Map<number, number>();
  for (const [path, name] of UNARY) {
    for (let round = 0; round < 10; round++) {
      const calls = Array.from({ length: 20 }, () => {
        const bytes = Buffer.from(mutated(pick(corpus.get(name) ?? []), pick(everySeed)));
        return codeOf(client, path, bytes);
      });
      for (const code of await Promise.all(calls)) seen.set(code, (seen.get(code) ?? 0) + 1);
    }
  }
  t.strictSame(
    [...seen.keys()].filter((code) => !allowed.has(code)),
    [],
    JSON.stringify([...seen]),
  );
  for (const [path, name] of STREAMS) {
    for (let round = 0; round < 60; round++) {
      const stream = openStream(client, path);
      for (let count = 0; count < 10; count++) {
        stream.call.write(Buffer.from(mutated(pick(corpus.get(name) ?? []), pick(everySeed))));
      }
      stream.call.end();
      const code = await stream.ended;
      if (!allowed.has(code)) t.fail(`${path} ended with ${code}`);
    }
  }
  t.equal(await codeOf(client, "/Locker/GetLock"), 0, "the server serves");
  t.strictSame(faults, []);
});

/** Sends one POST with a body that need not be gRPC; resolves when the stream is over. */
function post(session: ClientHttp2Session, headers: object, body: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/Locker/GetLock",
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    stream.on("error", () => undefined);
    stream.on("close", resolve);
    stream.resume();
    if (prng.chance(1, 20)) stream.close();
    else stream.end(body);
  });
}

t.test(
  "P-164 a live server: broken framing, compression, headers, vanishing clients",
  async (t) => {
    const { client, port, faults, operations } = await start(t);
    operations.recording = false;
    const encodings = ["gzip", "deflate", "identity", "nonsense", ""];
    const paths = ["/Locker/GetLock", "/KeyValuer/BatchClientKeyValueRequests", "/nobody", "*", ""];
    const timeouts = ["1n", "1S", "-1S", "99999999H", "x", ""];
    for (let round = 0; round < 20; round++) {
      const session = connectHttp2(`http://127.0.0.1:${port}`);
      session.on("error", () => undefined);
      const posts = Array.from({ length: 50 }, () => {
        const message = Buffer.from(mutated(pick(everySeed), pick(everySeed)));
        const prefix = Buffer.from([prng.below(4), 0, 0, 0, 0]);
        const claimed = prng.chance(2, 3) ? message.length : prng.nextUint32();
        prefix.writeUInt32BE(claimed, 1);
        const encoding = encodings[prng.below(encodings.length)] ?? "";
        const timeout = timeouts[prng.below(timeouts.length)] ?? "";
        const headers = {
          ":path": paths[prng.below(paths.length)] ?? "",
          ...(encoding === "" ? {} : { "grpc-encoding": encoding }),
          // Without a deadline a stream whose message never completes would stay open, as it
          // should.
          "grpc-timeout": timeout === "" ? "200m" : timeout,
        };
        return post(session, headers, Buffer.concat([prefix, message]));
      });
      if (round % 4 === 0) session.destroy();
      await Promise.all(posts);
      session.destroy();
    }
    const bomb = await callRaw(client, "/Locker/GetLock", Buffer.alloc(0));
    t.equal(bomb.error, null, "the server serves");
    t.strictSame(faults, []);
  },
);
