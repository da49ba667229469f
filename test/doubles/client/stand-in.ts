/**
 * A stand-in node: speaks the messages of the service over gRPC, as unary calls and batch streams
 * with frames, and answers what a test decides. It can end a stream with a status, stay silent, die
 * and come back on its port.
 */
import * as grpc from "@grpc/grpc-js";
import {
  encodeMessage,
  ProtoWriter,
  protoReader,
  type Encodable,
  type Int64Halves,
  type MessageCodec,
} from "../../../src/proto/codec.js";
import * as cluster from "../../../src/proto/generated/cluster.js";
import * as keyvalues from "../../../src/proto/generated/keyvalues.js";
import * as locks from "../../../src/proto/generated/locks.js";
import * as sequences from "../../../src/proto/generated/sequences.js";

export type Method =
  | "createSequence"
  | "getSequence"
  | "next"
  | "reserve"
  | "lock"
  | "extend"
  | "unlock"
  | "set"
  | "get"
  | "delete"
  | "setMany"
  | "deleteMany"
  | "scan"
  | "metadata";

/** A hint as a node sends it. */
export interface Hint {
  readonly partitionId: number;
  readonly endpoint: string;
  readonly provenance: 0 | 1 | 2;
  readonly generation?: number;
}

/** One request as it arrived. */
export interface Asked {
  readonly method: Method;
  /** Name, resource or key. */
  readonly name: string;
  /** Idempotency key. */
  readonly key: string | null;
  readonly owner: string;
  readonly value: Uint8Array | null;
  readonly flags: number;
  /** Keys of a many-call. */
  readonly keys: readonly string[];
  /** True when it came outside the batch streams. */
  readonly alone: boolean;
}

export type Reply =
  | {
      readonly type: number;
      readonly value?: number;
      readonly bytes?: Uint8Array | null;
      readonly route?: Hint | null;
      /** Types of the items of a many-call. */
      readonly types?: readonly number[];
      /** Keys of a page; `more`: there is another. */
      readonly keys?: readonly string[];
      readonly more?: boolean;
      readonly metadata?: Encodable<cluster.GrpcGetRoutingMetadataResponse>;
    }
  /** Ends the call, or the stream that the item came on. */
  | { readonly status: grpc.status; readonly details?: string }
  /** Never answered. */
  | "silence";
export type Behaviour = (asked: Asked, node: StandIn) => Reply | Promise<Reply>;

type Answer = Exclude<Reply, "silence" | { readonly status: grpc.status }>;
type Kind = "sequences" | "locks" | "kv" | null;

interface Shape {
  readonly path: string;
  readonly kind: Kind;
  readonly type: number;
  readonly field: number;
  read(bytes: Buffer): Partial<Asked>;
  write(answer: Answer): Buffer;
}

const halves = (value: number): Int64Halves => ({ low: value | 0, high: 0, unsigned: false });

function routeField(answer: Answer) {
  const { route } = answer;
  if (route === undefined || route === null) return { Route: null };
  const { partitionId, endpoint, provenance, generation = 0 } = route;
  return {
    Route: {
      PartitionId: partitionId,
      Endpoint: endpoint,
      Provenance: provenance,
      Generation: halves(generation),
    },
  };
}

function shape<Request, Response>(
  place: readonly [path: string, kind: Kind, type: number, field: number],
  request: MessageCodec<Request>,
  read: (message: Request) => Partial<Asked>,
  response: MessageCodec<Response>,
  write: (answer: Answer) => Encodable<Response>,
): Shape {
  const [path, kind, type, field] = place;
  return {
    path,
    kind,
    type,
    field,
    read: (bytes) => read(request.decode(protoReader(bytes))),
    write: (answer) => encodeMessage(response, write(answer)),
  };
}

function allocation(answer: Answer): Encodable<sequences.GrpcSequenceAllocationResponse> {
  const { type, value = 0 } = answer;
  const given = {
    Name: "s",
    Start: halves(value),
    End: halves(value),
    Count: 1,
    Revision: halves(1),
  };
  return { Type: type, Allocation: type === 0 ? given : null, ...routeField(answer) };
}

function described(answer: Answer): Encodable<sequences.GrpcSequenceResponse> {
  const one = { Name: "s", Increment: halves(1), Durability: 1 };
  return { Type: answer.type, Sequence: answer.type === 0 ? one : null, ...routeField(answer) };
}

const ownerOf = (bytes: Uint8Array | null): string => Buffer.from(bytes ?? []).toString();
const locked = (answer: Answer) => ({
  Type: answer.type,
  FencingToken: halves(answer.value ?? 0),
  ...routeField(answer),
});
const written = (answer: Answer) => ({
  Type: answer.type,
  Revision: halves(answer.value ?? 0),
  ...routeField(answer),
});

const SHAPES: Readonly<Record<Method, Shape>> = {
  createSequence: shape(
    ["/Sequencer/CreateSequence", "sequences", 1, 3],
    sequences.GrpcCreateSequenceRequest,
    (message) => ({ name: message.Name }),
    sequences.GrpcSequenceResponse,
    described,
  ),
  getSequence: shape(
    ["/Sequencer/GetSequence", "sequences", 3, 5],
    sequences.GrpcGetSequenceRequest,
    (message) => ({ name: message.Name }),
    sequences.GrpcSequenceResponse,
    described,
  ),
  next: shape(
    ["/Sequencer/NextSequenceValue", "sequences", 4, 6],
    sequences.GrpcNextSequenceRequest,
    (message) => ({ name: message.Name, key: message.IdempotencyKey }),
    sequences.GrpcSequenceAllocationResponse,
    allocation,
  ),
  reserve: shape(
    ["/Sequencer/ReserveSequenceRange", "sequences", 5, 7],
    sequences.GrpcReserveSequenceRangeRequest,
    (message) => ({ name: message.Name, key: message.IdempotencyKey }),
    sequences.GrpcSequenceAllocationResponse,
    allocation,
  ),
  lock: shape(
    ["/Locker/TryLock", "locks", 1, 3],
    locks.GrpcTryLockRequest,
    (message) => ({ name: message.Resource, owner: ownerOf(message.Owner) }),
    locks.GrpcTryLockResponse,
    locked,
  ),
  extend: shape(
    ["/Locker/TryExtendLock", "locks", 2, 5],
    locks.GrpcExtendLockRequest,
    (message) => ({ name: message.Resource, owner: ownerOf(message.Owner) }),
    locks.GrpcExtendLockResponse,
    locked,
  ),
  unlock: shape(
    ["/Locker/Unlock", "locks", 3, 4],
    locks.GrpcUnlockRequest,
    (message) => ({ name: message.Resource, owner: ownerOf(message.Owner) }),
    locks.GrpcUnlockResponse,
    (answer) => ({ Type: answer.type, ...routeField(answer) }),
  ),
  set: shape(
    ["/KeyValuer/TrySetKeyValue", "kv", 1, 3],
    keyvalues.GrpcTrySetKeyValueRequest,
    (message) => ({ name: message.Key, value: message.Value, flags: message.Flags }),
    keyvalues.GrpcTrySetKeyValueResponse,
    written,
  ),
  get: shape(
    ["/KeyValuer/TryGetKeyValue", "kv", 5, 5],
    keyvalues.GrpcTryGetKeyValueRequest,
    (message) => ({ name: message.Key }),
    keyvalues.GrpcTryGetKeyValueResponse,
    (answer) => ({ ...written(answer), Value: answer.bytes ?? null }),
  ),
  delete: shape(
    ["/KeyValuer/TryDeleteKeyValue", "kv", 4, 6],
    keyvalues.GrpcTryDeleteKeyValueRequest,
    (message) => ({ name: message.Key }),
    keyvalues.GrpcTryDeleteKeyValueResponse,
    written,
  ),
  setMany: shape(
    ["/KeyValuer/TrySetManyKeyValue", null, 0, 0],
    keyvalues.GrpcTrySetManyKeyValueRequest,
    (message) => ({ keys: message.Items.map((item) => item.Key) }),
    keyvalues.GrpcTrySetManyKeyValueResponse,
    (answer) => ({ Items: (answer.types ?? []).map((type) => ({ Type: type })) }),
  ),
  deleteMany: shape(
    ["/KeyValuer/TryDeleteManyKeyValue", null, 0, 0],
    keyvalues.GrpcTryDeleteManyKeyValueRequest,
    (message) => ({ keys: message.Items.map((item) => item.Key) }),
    keyvalues.GrpcTryDeleteManyKeyValueResponse,
    (answer) => ({ Items: (answer.types ?? []).map((type) => ({ Type: type })) }),
  ),
  scan: shape(
    ["/KeyValuer/ScanAllByPrefix", null, 0, 0],
    keyvalues.GrpcScanAllByPrefixRequest,
    (message) => ({ name: message.PrefixKey }),
    keyvalues.GrpcScanAllByPrefixResponse,
    (answer) => ({
      Type: answer.type,
      Items: (answer.keys ?? []).map((key) => ({ Key: key })),
      HasMore: answer.more === true,
      NextCursor: answer.more === true ? "more" : null,
    }),
  ),
  metadata: shape(
    ["/Cluster/GetRoutingMetadata", null, 0, 0],
    cluster.GrpcGetRoutingMetadataRequest,
    () => ({}),
    cluster.GrpcGetRoutingMetadataResponse,
    (answer) => answer.metadata ?? {},
  ),
};

const STREAMS: Readonly<Record<Exclude<Kind, null>, string>> = {
  sequences: "/Sequencer/BatchClientSequenceRequests",
  locks: "/Locker/BatchClientLockRequests",
  kv: "/KeyValuer/BatchClientKeyValueRequests",
};
const BLANK = { name: "", key: null, owner: "", value: null, flags: 0, keys: [] } as const;
const identity = (bytes: Buffer): Buffer => bytes;
type Duplex = grpc.ServerDuplexStream<Buffer, Buffer>;

interface Item {
  readonly type: number;
  readonly id: number;
  readonly field: number;
  readonly payload: Buffer;
}

function definition(path: string, streaming: boolean) {
  return {
    path,
    requestStream: streaming,
    responseStream: streaming,
    requestDeserialize: identity,
    requestSerialize: identity,
    responseDeserialize: identity,
    responseSerialize: identity,
  };
}

/** The items of a message of a batch stream, out of its frame if it is one. */
function itemsOf(message: Buffer): Item[] {
  const reader = protoReader(message);
  let [type, id, field] = [0, 0, 0];
  let payload: Buffer = Buffer.alloc(0);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) type = reader.int32();
    else if (tag >>> 3 === 2) id = reader.int32();
    else [field, payload] = [tag >>> 3, Buffer.from(reader.bytes())];
  }
  if (type !== 15) return [{ type, id, field, payload }];
  const items: Item[] = [];
  const frame = protoReader(payload);
  while (frame.pos < frame.len) {
    frame.uint32();
    items.push(...itemsOf(Buffer.from(frame.bytes())));
  }
  return items;
}

export class StandIn {
  readonly asked: Asked[] = [];
  /** Calls of GetRoutingMetadata, which `asked` leaves out. */
  metadataAsked = 0;
  port = 0;
  sessions = 0;
  private server: grpc.Server | null = null;
  private readonly behave: Behaviour;
  private readonly streams: boolean;

  private constructor(behave: Behaviour, streams: boolean) {
    this.behave = behave;
    this.streams = streams;
  }

  static async open(behave: Behaviour, options: { streams?: boolean } = {}): Promise<StandIn> {
    const node = new StandIn(behave, options.streams ?? true);
    await node.start();
    return node;
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
    for (const [method, one] of Object.entries(SHAPES)) {
      this.addUnary(server, method as Method, one);
    }
    if (this.streams) {
      for (const [kind, path] of Object.entries(STREAMS)) {
        server.addService(
          { batch: definition(path, true) },
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

  count(method: Method): number {
    return this.asked.filter((one) => one.method === method).length;
  }

  private async decide(method: Method, bytes: Buffer, alone: boolean): Promise<Reply> {
    const asked: Asked = { ...BLANK, ...SHAPES[method].read(bytes), method, alone };
    if (method === "metadata") this.metadataAsked += 1;
    else this.asked.push(asked);
    return this.behave(asked, this);
  }

  private addUnary(server: grpc.Server, method: Method, one: Shape): void {
    const serve = (
      call: grpc.ServerUnaryCall<Buffer, Buffer>,
      callback: grpc.sendUnaryData<Buffer>,
    ): void => {
      void this.decide(method, call.request, true).then((reply) => {
        if (reply === "silence") return;
        if ("status" in reply) {
          callback({ code: reply.status, details: reply.details ?? "as the test wants" });
        } else callback(null, one.write(reply));
      });
    };
    server.addService({ [method]: definition(one.path, false) }, { [method]: serve });
  }

  private serveStream(call: Duplex, kind: Kind): void {
    const headers = new grpc.Metadata();
    headers.set("svc-batch-frames", "1");
    call.sendMetadata(headers);
    call.on("data", (message: Buffer) => {
      for (const item of itemsOf(message)) void this.serveItem(call, kind, item);
    });
    call.on("error", () => undefined);
    call.on("end", () => call.end());
  }

  private async serveItem(call: Duplex, kind: Kind, item: Item): Promise<void> {
    const found = Object.entries(SHAPES).find(
      ([, one]) => one.kind === kind && one.type === item.type,
    );
    const writer = new ProtoWriter(128);
    writer.uint32(8).int32(item.type).uint32(16).int32(item.id);
    if (found !== undefined) {
      const [method, one] = found;
      const reply = await this.decide(method as Method, item.payload, false);
      if (reply === "silence") return;
      if ("status" in reply) {
        const details = reply.details ?? "as the test wants";
        call.emit("error", { code: reply.status, details });
        return;
      }
      writer.uint32((item.field << 3) | 2).bytes(one.write(reply));
    }
    if (!call.writableEnded && !call.destroyed) call.write(Buffer.from(writer.view(0)));
  }
}
