/**
 * Load driver for gRPC, a process of its own: keeps a fixed number of operations in flight through
 * batch streams or unary calls and prints one JSON line with rate, outcomes and latencies.
 *
 * node dist/perf/load/grpc-driver.js --address 127.0.0.1:8083 --kind next --inflight 1024 --frame
 * 128 --seconds 5
 *
 * Owns its connections. Invariants: 1. Closed loop: a slot sends its next operation when the last
 * one is answered. 2. What was answered during the warm-up is not counted. 3. Latency is from the
 * write of an item to the arrival of the data that holds its answer. 4. Outcomes are counted by the
 * answer's own type, never assumed.
 */
import { createHistogram } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { EnvelopeScanner, NO_ITEM, NOT_A_FRAME } from "../../src/grpc/envelope.js";
import { protoReader, type ProtoReader } from "../../src/proto/codec.js";
import { createSequenceBody, frameMessage, KINDS, planOf } from "./grpc-items.js";
import type { Kind, Plan, Step } from "./grpc-items.js";
import { headerBlock, LeanConnection } from "./lean-http2.js";

interface Options {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly token: string;
  readonly kind: Kind;
  readonly mode: "stream" | "unary";
  readonly inflight: number;
  readonly frame: number;
  readonly connections: number;
  readonly objects: number;
  readonly valueBytes: number;
  readonly prefix: string;
  readonly seconds: number;
  readonly warmupSeconds: number;
}

const ALL_PAYLOADS = ~0b111;
const FRAME_TYPE = 15;
/** Tag of `Type` in every response: field 2, varint. */
const OUTCOME_TAG = 0x10;

function options(): Options {
  const text = (fallback: string) => ({ type: "string", default: fallback }) as const;
  const { values } = parseArgs({
    options: {
      address: text("127.0.0.1:8083"),
      tls: { type: "boolean", default: false },
      token: text(""),
      kind: text("next"),
      mode: text("stream"),
      inflight: text("1024"),
      frame: text("128"),
      connections: text("1"),
      objects: text("16"),
      "value-bytes": text("100"),
      prefix: text("perf"),
      seconds: text("5"),
      "warmup-seconds": text("1"),
    },
  });
  const kind = KINDS.find((one) => one === values.kind);
  const mode = values.mode === "stream" || values.mode === "unary" ? values.mode : undefined;
  if (kind === undefined || mode === undefined) {
    throw new Error(`--kind is one of ${KINDS.join(", ")}; --mode is stream or unary`);
  }
  const at = values.address.lastIndexOf(":");
  return {
    host: values.address.slice(0, at),
    port: Number(values.address.slice(at + 1)),
    tls: values.tls,
    token: values.token,
    kind,
    mode,
    inflight: Number(values.inflight),
    frame: Number(values.frame),
    connections: Number(values.connections),
    objects: Number(values.objects),
    valueBytes: Number(values["value-bytes"]),
    prefix: values.prefix,
    seconds: Number(values.seconds),
    warmupSeconds: Number(values["warmup-seconds"]),
  };
}

/** Counts what came back. */
class Tally {
  private readonly histogram = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  private readonly outcomes = new Map<number, number>();
  operations = 0;
  errors = 0;
  startedMs = Infinity;

  begin(): void {
    this.histogram.reset();
    this.outcomes.clear();
    this.operations = 0;
    this.startedMs = performance.now();
  }

  answered(outcome: number, latencyMs: number): void {
    this.operations += 1;
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    this.histogram.record(Math.max(1, Math.round(latencyMs * 1000)));
  }

  report(settings: Options): Record<string, unknown> {
    const durationMs = performance.now() - this.startedMs;
    const quantile = (percent: number): number => this.histogram.percentile(percent) / 1000;
    const { kind, mode, inflight, frame, connections, tls } = settings;
    return {
      kind,
      mode,
      tls,
      connections,
      inflight,
      frame: mode === "stream" ? frame : null,
      durationMs: Math.round(durationMs),
      operations: this.operations,
      operationsPerSecond: Math.round((this.operations * 1000) / durationMs),
      outcomes: Object.fromEntries(this.outcomes),
      errors: this.errors,
      latencyMs: {
        p50: quantile(50),
        p90: quantile(90),
        p99: quantile(99),
        p999: quantile(99.9),
        max: this.histogram.max / 1000,
      },
    };
  }
}

/** The outcome number of a response message in [start, end). */
function outcomeOf(reader: ProtoReader, start: number, end: number): number {
  reader.pos = start;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === OUTCOME_TAG) return reader.int32();
    reader.skipType(tag & 7, 0, tag >>> 3);
  }
  return 0;
}

function blockFor(settings: Options, path: string): Buffer {
  return headerBlock({
    ":method": "POST",
    ":scheme": settings.tls ? "https" : "http",
    ":path": path,
    ":authority": `${settings.host}:${settings.port}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...(settings.token === "" ? {} : { authorization: `Bearer ${settings.token}` }),
  });
}

/** Cuts the data of one stream into gRPC messages. */
class MessageCutter {
  private rest: Buffer = Buffer.alloc(0);

  *messages(chunk: Buffer): Generator<Buffer> {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 5) {
      const end = at + 5 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      yield bytes.subarray(at + 5, end);
      at = end;
    }
    this.rest = bytes.subarray(at);
  }
}

/** A connection with one batch stream and its slots. */
async function driveStream(settings: Options, plan: Plan, slots: number, tally: Tally) {
  const steps = Array.from({ length: slots }, (_, slot) => plan.stepsOf(slot));
  const turns = new Uint8Array(slots);
  const sentMs = new Float64Array(slots);
  const free = Array.from({ length: slots }, (_, slot) => slot);
  const frame = Math.max(1, Math.min(settings.frame, slots));
  const scanner = new EnvelopeScanner(ALL_PAYLOADS);
  const cutter = new MessageCutter();
  let stopped = false;

  const nextStep = (slot: number, nowMs: number): Step => {
    const own = steps[slot] ?? [];
    const step = own[(turns[slot] ?? 0) % own.length];
    if (step === undefined) throw new Error("a slot has steps");
    turns[slot] = ((turns[slot] ?? 0) + 1) % own.length;
    sentMs[slot] = nowMs;
    return step;
  };
  const sendFree = (): void => {
    if (stopped) return;
    const nowMs = performance.now();
    while (free.length >= frame) {
      const batch = free.splice(free.length - frame, frame).map((slot) => nextStep(slot, nowMs));
      const bytes =
        settings.frame <= 1
          ? Buffer.concat(batch.map((step) => step.message))
          : frameMessage(batch.map((step) => step.frameEntry));
      connection.data(stream, bytes);
    }
  };
  const takeItem = (reader: ProtoReader, nowMs: number): void => {
    const slot = scanner.requestId - 1;
    const { payloadField, payloadStart, payloadEnd } = scanner;
    const outcome = payloadField === 0 ? -1 : outcomeOf(reader, payloadStart, payloadEnd);
    tally.answered(outcome, nowMs - (sentMs[slot] ?? nowMs));
    free.push(slot);
  };
  const takeMessage = (bytes: Buffer, nowMs: number): void => {
    const reader = protoReader(bytes);
    if (!scanner.scan(reader, bytes.length)) throw new Error("malformed answer");
    if (scanner.type !== FRAME_TYPE) return takeItem(reader, nowMs);
    const frameEnd = scanner.payloadEnd;
    reader.pos = scanner.payloadStart;
    for (;;) {
      const end = scanner.nextItem(reader, frameEnd);
      if (end === NO_ITEM) return;
      if (end === NOT_A_FRAME || !scanner.scan(reader, end)) throw new Error("malformed answer");
      takeItem(reader, nowMs);
      reader.pos = end;
    }
  };
  const connection = await LeanConnection.open(settings.host, settings.port, settings.tls, {
    onData: (_stream, bytes) => {
      const nowMs = performance.now();
      for (const message of cutter.messages(bytes)) takeMessage(message, nowMs);
      sendFree();
    },
    onEnd: () => {
      if (!stopped) tally.errors += 1;
    },
    onClose: () => {
      if (!stopped) tally.errors += 1;
    },
  });
  const stream = connection.request(blockFor(settings, plan.streamPath));
  sendFree();
  connection.flush();
  return (): void => {
    stopped = true;
    connection.close();
  };
}

interface UnaryCall {
  readonly slot: number;
  readonly sentMs: number;
  outcome: number | null;
}

/** A connection with unary calls, one per slot. */
async function driveUnary(settings: Options, plan: Plan, slots: number, tally: Tally) {
  const steps = Array.from({ length: slots }, (_, slot) => plan.stepsOf(slot));
  const turns = new Uint8Array(slots);
  const blocks = new Map<string, Buffer>();
  const calls = new Map<number, UnaryCall>();
  let stopped = false;
  const send = (slot: number): void => {
    const own = steps[slot] ?? [];
    const step = own[(turns[slot] ?? 0) % own.length];
    if (step === undefined) throw new Error("a slot has steps");
    turns[slot] = ((turns[slot] ?? 0) + 1) % own.length;
    let block = blocks.get(step.unaryPath);
    if (block === undefined) {
      block = blockFor(settings, step.unaryPath);
      blocks.set(step.unaryPath, block);
    }
    const stream = connection.call(block, step.unaryBody);
    calls.set(stream, { slot, sentMs: performance.now(), outcome: null });
  };
  const connection = await LeanConnection.open(settings.host, settings.port, settings.tls, {
    onData: (stream, bytes) => {
      const call = calls.get(stream);
      if (call === undefined) return;
      call.outcome = outcomeOf(protoReader(bytes), 5, bytes.length);
    },
    onEnd: (stream) => {
      const call = calls.get(stream);
      if (call === undefined || stopped) return;
      calls.delete(stream);
      if (call.outcome === null) tally.errors += 1;
      else tally.answered(call.outcome, performance.now() - call.sentMs);
      send(call.slot);
    },
    onClose: () => {
      if (!stopped) tally.errors += 1;
    },
  });
  for (let slot = 0; slot < slots; slot++) send(slot);
  connection.flush();
  return (): void => {
    stopped = true;
    connection.close();
  };
}

/** Makes the sequences of the load exist. Resolves when every create was answered. */
async function prepare(settings: Options): Promise<void> {
  if (settings.kind !== "next") return;
  let open = settings.objects;
  await new Promise<void>((resolve, reject) => {
    const handlers = {
      onData: (): void => undefined,
      onEnd: (): void => {
        open -= 1;
        if (open === 0) resolve();
      },
      onClose: (reason: string): void => {
        if (open > 0) reject(new Error(`preparing failed: ${reason}`));
      },
    };
    const { host, port, tls } = settings;
    LeanConnection.open(host, port, tls, handlers).then((connection) => {
      const block = blockFor(settings, "/Sequencer/CreateSequence");
      for (let index = 0; index < settings.objects; index++) {
        connection.call(block, createSequenceBody(index));
      }
      connection.flush();
    }, reject);
  });
}

async function main(): Promise<void> {
  const settings = options();
  await prepare(settings);
  const tally = new Tally();
  const plan = (connection: number): Plan =>
    planOf(
      settings.kind,
      settings.objects,
      `${settings.prefix}/${connection}`,
      settings.valueBytes,
    );
  const slots = Math.max(1, Math.floor(settings.inflight / settings.connections));
  const drive = settings.mode === "stream" ? driveStream : driveUnary;
  const stops: (() => void)[] = [];
  for (let connection = 0; connection < settings.connections; connection++) {
    stops.push(await drive(settings, plan(connection), slots, tally));
  }
  await new Promise((resolve) => setTimeout(resolve, settings.warmupSeconds * 1000));
  tally.begin();
  await new Promise((resolve) => setTimeout(resolve, settings.seconds * 1000));
  process.stdout.write(`${JSON.stringify(tally.report(settings))}\n`);
  for (const stop of stops) stop();
  process.exit(0);
}

await main();
