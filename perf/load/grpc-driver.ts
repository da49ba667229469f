/**
 * Load driver for gRPC, a process of its own: keeps a fixed number of operations in flight through
 * batch streams or unary calls and prints one JSON line with rate, outcomes and latencies.
 *
 * node dist/perf/load/grpc-driver.js --address 127.0.0.1:8083 --kind next --inflight 1024 --frame
 * 128 --seconds 5
 *
 * `--address` may name several nodes, separated by commas: the connections go to them in turn. Kinds that begin with "etcd-" speak to an etcd node instead, always by unary calls.
 *
 * Owns its connections. Invariants: 1. Closed loop: a slot sends its next operation when the last
 * one is answered. 2. What was answered during the warm-up is not counted. 3. Latency is from the
 * write of an item to the arrival of the data that holds its answer. 4. Outcomes are counted by the
 * answer's own type, never assumed.
 */
import { EnvelopeScanner, NO_ITEM, NOT_A_FRAME } from "../../src/grpc/batch/envelope.js";
import { protoReader, type ProtoReader } from "../../src/proto/codec.js";
import { driveEtcd } from "./etcd-calls.js";
import { ETCD_KINDS } from "./etcd-items.js";
import {
  createSequenceBody,
  frameMessage,
  KINDS,
  planOf,
  type Plan,
  type Step,
} from "./grpc-items.js";
import { headersFor, options, type Options } from "./grpc-options.js";
import { MessageCutter, outcomeOf, Tally, tokenOf } from "./grpc-tally.js";
import { type HeaderFields, LeanConnection } from "./lean-http2.js";

const ALL_PAYLOADS = ~0b111;
const FRAME_TYPE = 15;
/** The step of a hand-off by which a slot lets go of the lock; the other one takes it. */
const RELEASE = 1;

/** A connection with one batch stream and its slots. */
class StreamDriver {
  private readonly settings: Options;
  private readonly tally: Tally;
  private readonly steps: (readonly Step[])[];
  private readonly turns: Uint8Array;
  private readonly sentMs: Float64Array;
  private readonly free: number[];
  private readonly frame: number;
  private readonly scanner = new EnvelopeScanner(ALL_PAYLOADS);
  private readonly cutter = new MessageCutter();
  private connection: LeanConnection | null = null;
  private stream = 0;
  private stopped = false;
  private readonly isHandedOn: boolean;

  constructor(settings: Options, plan: Plan, slots: number, tally: Tally) {
    this.settings = settings;
    this.tally = tally;
    this.isHandedOn = settings.kind.startsWith("handoff");
    this.steps = Array.from({ length: slots }, (_, slot) => plan.stepsOf(slot));
    this.turns = new Uint8Array(slots);
    this.sentMs = new Float64Array(slots);
    this.free = Array.from({ length: slots }, (_, slot) => slot);
    this.frame = Math.max(1, Math.min(settings.frame, slots));
  }

  async start(path: string): Promise<void> {
    const failed = (): void => {
      if (!this.stopped) this.tally.errors += 1;
    };
    const { host, port, tls } = this.settings;
    this.connection = await LeanConnection.open(host, port, tls, {
      onData: (_stream, bytes) => {
        const nowMs = performance.now();
        for (const message of this.cutter.messages(bytes)) this.takeMessage(message, nowMs);
        this.sendFree();
      },
      onEnd: failed,
      onClose: failed,
    });
    this.stream = this.connection.request(headersFor(this.settings, path));
    this.sendFree();
    this.connection.flush();
  }

  stop(): void {
    this.stopped = true;
    this.connection?.close();
  }

  private nextStep(slot: number, nowMs: number): Step {
    const own = this.steps[slot] ?? [];
    const step = own[(this.turns[slot] ?? 0) % own.length];
    if (step === undefined) throw new Error("a slot has steps");
    if (this.isHandedOn && this.turns[slot] === RELEASE) this.tally.released(nowMs);
    this.turns[slot] = ((this.turns[slot] ?? 0) + 1) % own.length;
    this.sentMs[slot] = nowMs;
    return step;
  }

  /** Sends as many whole frames as there are free slots for. */
  private sendFree(): void {
    const nowMs = performance.now();
    while (!this.stopped && this.free.length >= this.frame) {
      const slots = this.free.splice(this.free.length - this.frame, this.frame);
      const batch = slots.map((slot) => this.nextStep(slot, nowMs));
      const bytes =
        this.settings.frame <= 1
          ? Buffer.concat(batch.map((step) => step.message))
          : frameMessage(batch.map((step) => step.frameEntry));
      this.connection?.data(this.stream, bytes);
    }
  }

  private takeItem(reader: ProtoReader, nowMs: number): void {
    const { requestId, payloadField, payloadStart, payloadEnd } = this.scanner;
    const slot = requestId - 1;
    const outcome = payloadField === 0 ? -1 : outcomeOf(reader, payloadStart, payloadEnd);
    this.tally.answered(outcome, nowMs - (this.sentMs[slot] ?? nowMs));
    if (this.isHandedOn && this.turns[slot] === RELEASE) {
      this.tally.granted(nowMs);
      this.steps[slot]?.[0]?.granted?.(tokenOf(reader, payloadStart, payloadEnd));
      if (this.settings.holdMs > 0) return this.later(slot);
    }
    this.free.push(slot);
  }

  /** A slot that holds the lock goes on when it held it for long enough. */
  private later(slot: number): void {
    setTimeout(() => {
      this.free.push(slot);
      this.sendFree();
      this.connection?.flush();
    }, this.settings.holdMs);
  }

  private takeMessage(bytes: Buffer, nowMs: number): void {
    const reader = protoReader(bytes);
    const { scanner } = this;
    if (!scanner.scan(reader, bytes.length)) throw new Error("malformed answer");
    if (scanner.type !== FRAME_TYPE) return this.takeItem(reader, nowMs);
    const frameEnd = scanner.payloadEnd;
    reader.pos = scanner.payloadStart;
    for (;;) {
      const end = scanner.nextItem(reader, frameEnd);
      if (end === NO_ITEM) return;
      if (end === NOT_A_FRAME || !scanner.scan(reader, end)) throw new Error("malformed answer");
      this.takeItem(reader, nowMs);
      reader.pos = end;
    }
  }
}

/** Begins a batch stream; returns what ends it. */
async function driveStream(settings: Options, plan: Plan, slots: number, tally: Tally) {
  const driver = new StreamDriver(settings, plan, slots, tally);
  await driver.start(plan.streamPath);
  return (): void => driver.stop();
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
  const blocks = new Map<string, HeaderFields>();
  const calls = new Map<number, UnaryCall>();
  const isHandedOn = settings.kind.startsWith("handoff");
  let stopped = false;
  const send = (slot: number): void => {
    if (isHandedOn && turns[slot] === RELEASE) tally.released(performance.now());
    const own = steps[slot] ?? [];
    const step = own[(turns[slot] ?? 0) % own.length];
    if (step === undefined) throw new Error("a slot has steps");
    turns[slot] = ((turns[slot] ?? 0) + 1) % own.length;
    let block = blocks.get(step.unaryPath);
    if (block === undefined) {
      block = headersFor(settings, step.unaryPath);
      blocks.set(step.unaryPath, block);
    }
    const stream = connection.call(block, step.unaryBody);
    calls.set(stream, { slot, sentMs: performance.now(), outcome: null });
  };
  const connection = await LeanConnection.open(settings.host, settings.port, settings.tls, {
    onData: (stream, bytes) => {
      const call = calls.get(stream);
      if (call === undefined) return;
      const reader = protoReader(bytes);
      call.outcome = outcomeOf(reader, 5, bytes.length);
      if (isHandedOn && turns[call.slot] === RELEASE) {
        steps[call.slot]?.[0]?.granted?.(tokenOf(reader, 5, bytes.length));
      }
    },
    onEnd: (stream) => {
      const call = calls.get(stream);
      if (call === undefined || stopped) return;
      calls.delete(stream);
      if (call.outcome === null) tally.errors += 1;
      else tally.answered(call.outcome, performance.now() - call.sentMs);
      const isHeld = isHandedOn && turns[call.slot] === RELEASE;
      if (isHeld) tally.granted(performance.now());
      if (!isHeld || settings.holdMs === 0) return send(call.slot);
      setTimeout(() => {
        send(call.slot);
        connection.flush();
      }, settings.holdMs);
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
      const block = headersFor(settings, "/Sequencer/CreateSequence");
      for (let index = 0; index < settings.objects; index++) {
        connection.call(block, createSequenceBody(index));
      }
      connection.flush();
    }, reject);
  });
}

/** Begins the load of one connection; returns what ends it. */
function begin(settings: Options, prefix: string, slots: number, tally: Tally) {
  const { kind, objects, valueBytes } = settings;
  const etcdKind = ETCD_KINDS.find((one) => one === kind);
  if (etcdKind !== undefined) return driveEtcd(settings, etcdKind, prefix, slots, tally);
  const ownKind = KINDS.find((one) => one === kind);
  if (ownKind === undefined) throw new Error(`nothing is known of ${kind}`);
  const drive = settings.mode === "stream" ? driveStream : driveUnary;
  return drive(settings, planOf(ownKind, objects, prefix, valueBytes), slots, tally);
}

async function main(): Promise<void> {
  const settings = options();
  await prepare(settings);
  const tally = new Tally();
  const slots = Math.max(1, Math.floor(settings.inflight / settings.connections));
  const stops: (() => void)[] = [];
  for (let connection = 0; connection < settings.connections; connection++) {
    const address = settings.addresses[connection % settings.addresses.length];
    const own = { ...settings, ...address };
    stops.push(await begin(own, `${settings.prefix}/${connection}`, slots, tally));
  }
  await new Promise((resolve) => setTimeout(resolve, settings.warmupSeconds * 1000));
  tally.begin();
  await new Promise<void>((resolve) => {
    tally.whenAnswered(settings.operations, resolve);
    setTimeout(resolve, settings.seconds * 1000);
  });
  process.stdout.write(`${JSON.stringify(tally.report(settings))}\n`);
  for (const stop of stops) stop();
  process.exit(tally.errors > 0 ? 1 : 0);
}

await main();
