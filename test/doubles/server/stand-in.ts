/**
 * A stand-in node: a gRPC server whose answers a test decides, as unary calls and as items of batch
 * streams. It can refuse, stay silent, end a stream with a status, die and come back on its port.
 *
 * Invariants: 1. What the test has set for an rpc in `answers` comes first; then `behave` is asked
 * about the data calls that `messages.ts` knows, and every other call is unknown.
 */
import * as grpc from "@grpc/grpc-js";
import { CALL_LIST } from "../../../src/api/calls.js";
import {
  encodeMessage,
  ProtoWriter,
  type Encodable,
  type MessageCodec,
} from "../../../src/proto/codec.js";
import {
  BLANK,
  SHAPES,
  itemsOf,
  type Answer,
  type Item,
  type Kind,
  type Method,
  type Shape,
  type Told,
} from "./messages.js";

export type { Hint } from "./messages.js";

/** One request as it arrived. */
export interface Asked extends Told {
  /** "other": a call that `messages.ts` does not know. */
  readonly method: Method | "other";
  /** As the service calls it. */
  readonly rpc: string;
  readonly bytes: Buffer;
  /** True when it came outside the batch streams. */
  readonly alone: boolean;
}

interface Ended {
  readonly status: grpc.status;
  readonly details?: string;
  readonly outcome?: string;
}

export type Reply =
  | Answer
  /** The message itself. */
  | { readonly message: Buffer }
  /** Of a call that is answered in several messages. */
  | { readonly messages: readonly Buffer[] }
  /** Ends the call, or the stream that the item came on. `outcome`: of a backup. */
  | Ended
  /** Never answered. */
  | "silence";
export type Behaviour = (asked: Asked, node: StandIn) => Reply | Promise<Reply>;
/** A reply, or what makes one from the request and its number among the calls of its rpc (from 1). */
type Given = Reply | ((request: Buffer, number: number) => Reply | Promise<Reply>);

export interface StandInOptions {
  /** Offers batch streams; default true. */
  readonly streams?: boolean;
  /** Takes frames on them; default true. */
  readonly frames?: boolean;
  /** Lets items wait, and counts those apart; default false. */
  readonly waits?: boolean;
}

/** The message of a reply. */
export function reply<T>(codec: MessageCodec<T>, message: Encodable<T>): Reply {
  return { message: encodeMessage(codec, message) };
}

/** What an answer that was lost on its way looks like. */
export const LOST: Reply = { status: grpc.status.UNAVAILABLE };
function unknown({ rpc }: Asked): Reply {
  return { status: grpc.status.UNIMPLEMENTED, details: `no ${rpc}` };
}

const OTHER_PATHS = [
  "/KeyValuer/GetByBucket",
  "/KeyValuer/GetByRange",
  "/Sequencer/DeleteSequence",
  "/grpc.health.v1.Health/Check",
] as const;
const STREAMS: Readonly<Record<Exclude<Kind, null>, string>> = {
  sequences: "/Sequencer/BatchClientSequenceRequests",
  locks: "/Locker/BatchClientLockRequests",
  kv: "/KeyValuer/BatchClientKeyValueRequests",
};
const identity = (bytes: Buffer): Buffer => bytes;
type Duplex = grpc.ServerDuplexStream<Buffer, Buffer>;

/** A call that is served: its place, and how its messages are read and written. */
interface Served {
  readonly path: string;
  readonly rpc: string;
  readonly method: Method | "other";
  readonly shape: Shape | null;
}

function rpcOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Every call that a stand-in serves, by its rpc. */
const SERVED: ReadonlyMap<string, Served> = new Map<string, Served>([
  ...[...CALL_LIST.map(([, { grpc: path }]) => path), ...OTHER_PATHS].map(
    (path) => [rpcOf(path), { path, rpc: rpcOf(path), method: "other", shape: null }] as const,
  ),
  ...Object.entries(SHAPES).map(([method, shape]) => {
    const rpc = rpcOf(shape.path);
    return [rpc, { path: shape.path, rpc, method: method as Method, shape }] as const;
  }),
]);

const NODE_DEBUG: Served = {
  path: "/Cluster/GetNodeDebug",
  rpc: "GetNodeDebug",
  method: "other",
  shape: null,
};

function definition(path: string, asking: boolean, answering: boolean) {
  return {
    path,
    requestStream: asking,
    responseStream: answering,
    requestDeserialize: identity,
    requestSerialize: identity,
    responseDeserialize: identity,
    responseSerialize: identity,
  };
}

export class StandIn {
  /** What the test has set for an rpc. */
  readonly answers = new Map<string, Given>();
  /** All requests but those for routing metadata. */
  readonly asked: Asked[] = [];
  /** Calls of GetRoutingMetadata. */
  metadataAsked = 0;
  /** Items in each message of a stream; 1 for a message that is no frame. */
  readonly messages: number[] = [];
  port = 0;
  private server: grpc.Server | null = null;

  private constructor(
    private readonly behave: Behaviour,
    private readonly options: StandInOptions,
  ) {}

  static async open(behave: Behaviour, options: StandInOptions = {}): Promise<StandIn> {
    const node = new StandIn(behave, options);
    await node.start();
    return node;
  }

  /** Serves what the test sets in `answers` and nothing else, without streams. */
  static bare(): Promise<StandIn> {
    return StandIn.open(unknown, { streams: false });
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** As it would advertise itself. */
  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Listens (again), on the port that it had. */
  async start(): Promise<void> {
    const server = new grpc.Server();
    for (const served of SERVED.values()) this.addUnary(server, served);
    this.addPieces(server);
    if (this.options.streams !== false) {
      for (const [kind, path] of Object.entries(STREAMS)) {
        server.addService(
          { batch: definition(path, true, true) },
          { batch: (call: Duplex) => this.serveStream(call, kind as Kind) },
        );
      }
    }
    this.server = server;
    const credentials = grpc.ServerCredentials.createInsecure();
    this.port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${this.port}`, credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
  }

  /** Dies: connections end, what is in flight gets no answer. */
  stop(): void {
    this.server?.forceShutdown();
    this.server = null;
  }

  /** Requests of a method, told by its own name or by that of its rpc. */
  count(name: string): number {
    return this.asked.filter(({ method, rpc }) => method === name || rpc === name).length;
  }

  private async decide(served: Served, bytes: Buffer, alone: boolean): Promise<Reply> {
    const { method, rpc, shape } = served;
    const asked: Asked = { ...BLANK, ...shape?.read(bytes), method, rpc, bytes, alone };
    if (method === "metadata") this.metadataAsked += 1;
    else this.asked.push(asked);
    const given = this.answers.get(rpc);
    if (given === undefined) return shape === null ? unknown(asked) : this.behave(asked, this);
    return typeof given === "function" ? given(bytes, this.count(rpc)) : given;
  }

  private addUnary(server: grpc.Server, served: Served): void {
    const serve = (
      call: grpc.ServerUnaryCall<Buffer, Buffer>,
      callback: grpc.sendUnaryData<Buffer>,
    ): void => {
      void this.decide(served, call.request, true).then((reply) => {
        if (reply === "silence") return;
        if (!("status" in reply)) return callback(null, messageOf(served, reply));
        const metadata = new grpc.Metadata();
        if (reply.outcome !== undefined) metadata.set("svc-backup-outcome", reply.outcome);
        const details = reply.details ?? "as the test wants";
        callback({ code: reply.status, details, metadata });
      });
    };
    const described = definition(served.path, false, false);
    server.addService({ [served.rpc]: described }, { [served.rpc]: serve });
  }

  /** The node debug is answered in several messages. */
  private addPieces(server: grpc.Server): void {
    const serve = (call: grpc.ServerWritableStream<Buffer, Buffer>): void => {
      void this.decide(NODE_DEBUG, call.request, true).then((reply) => {
        if (reply === "silence") return;
        if ("status" in reply) {
          call.emit("error", { code: reply.status, details: reply.details ?? "as the test wants" });
          return;
        }
        for (const message of "messages" in reply ? reply.messages : []) call.write(message);
        call.end();
      });
    };
    const described = definition(NODE_DEBUG.path, false, true);
    server.addService({ [NODE_DEBUG.rpc]: described }, { [NODE_DEBUG.rpc]: serve });
  }

  private serveStream(call: Duplex, kind: Kind): void {
    const headers = new grpc.Metadata();
    if (this.options.frames !== false) headers.set("svc-batch-frames", "1");
    if (this.options.waits === true) headers.set("svc-lock-wait", "1");
    call.sendMetadata(headers);
    call.on("data", (message: Buffer) => {
      const items = itemsOf(message);
      this.messages.push(items.length);
      for (const item of items) void this.serveItem(call, kind, item);
    });
    call.on("error", () => undefined);
    call.on("end", () => call.end());
  }

  private async serveItem(call: Duplex, kind: Kind, item: Item): Promise<void> {
    const served = [...SERVED.values()].find(
      ({ shape }) => shape?.kind === kind && shape.type === item.type,
    );
    const writer = new ProtoWriter(128);
    writer.uint32(8).int32(item.type).uint32(16).int32(item.id);
    if (served !== undefined) {
      const reply = await this.decide(served, item.payload, false);
      if (reply === "silence") return;
      if ("status" in reply) {
        const details = reply.details ?? "as the test wants";
        call.emit("error", { code: reply.status, details });
        return;
      }
      writer.uint32((item.field << 3) | 2).bytes(messageOf(served, reply));
    }
    if (!call.writableEnded && !call.destroyed) call.write(Buffer.from(writer.view(0)));
  }
}

function messageOf({ rpc, shape }: Served, reply: Exclude<Reply, "silence" | Ended>): Buffer {
  if ("message" in reply) return reply.message;
  if ("messages" in reply) throw new Error(`${rpc} is answered with one message`);
  if (shape === null) throw new Error(`${rpc} is answered with a message`);
  return shape.write(reply);
}
