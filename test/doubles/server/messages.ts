/**
 * What a stand-in node reads and writes: the messages of the data calls, alone and as items of the
 * batch streams.
 *
 * Plain data and pure functions.
 */
import {
  encodeMessage,
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

/** What is told of a request. */
export interface Told {
  /** Name, resource or key. */
  readonly name: string;
  /** Idempotency key. */
  readonly key: string | null;
  readonly owner: string;
  /** Of a reserve, else 1. */
  readonly count: number;
  readonly value: Uint8Array | null;
  readonly flags: number;
  /** Keys of a many-call. */
  readonly keys: readonly string[];
}
export const BLANK: Told = {
  name: "",
  key: null,
  owner: "",
  count: 1,
  value: null,
  flags: 0,
  keys: [],
};

/** What is answered, whatever the message of the call. */
export interface Answer {
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

export type Kind = "sequences" | "locks" | "kv" | null;

export interface Shape {
  readonly path: string;
  readonly kind: Kind;
  readonly type: number;
  readonly field: number;
  read(bytes: Buffer): Partial<Told>;
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
  read: (message: Request) => Partial<Told>,
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

export const SHAPES: Readonly<Record<Method, Shape>> = {
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
    ({ Name, IdempotencyKey, Count }) => ({ name: Name, key: IdempotencyKey, count: Count }),
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

export interface Item {
  readonly type: number;
  readonly id: number;
  readonly field: number;
  readonly payload: Buffer;
}

/** The items of a message of a batch stream, out of its frame if it is one. */
export function itemsOf(message: Buffer): Item[] {
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
