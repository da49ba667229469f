/**
 * Two small clients for black-box tests, one per front end, with one interface. They know only the wire: JSON over
 * HTTP/1.1, and gRPC with message types read from the .proto files, so that no codec of the service vouches for itself.
 *
 * Invariants: 1. A call ends in "answer" or "unknown"; a lost connection, a time-out, MustRetry and Errored are unknown.
 * 2. 64-bit numbers are bigint. 3. Nothing is repeated here.
 */
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { Agent, request } from "undici";
import { root } from "../../tidy/sources.js";

export type LockCall =
  | {
      readonly op: "lock";
      readonly resource: string;
      readonly owner: string;
      readonly expiresMs: number;
    }
  | {
      readonly op: "extend";
      readonly resource: string;
      readonly owner: string;
      readonly expiresMs: number;
    }
  | { readonly op: "unlock"; readonly resource: string; readonly owner: string }
  | { readonly op: "lock-info"; readonly resource: string };
export type SequenceCall =
  | { readonly op: "create"; readonly name: string; readonly blockSize: number | null }
  | { readonly op: "next"; readonly name: string; readonly key: string | null }
  | {
      readonly op: "reserve";
      readonly name: string;
      readonly count: number;
      readonly key: string | null;
    }
  | { readonly op: "sequence"; readonly name: string };
export type KvCall =
  | { readonly op: "set"; readonly key: string; readonly value: string }
  | { readonly op: "get"; readonly key: string }
  | { readonly op: "delete"; readonly key: string };
export type Call = LockCall | SequenceCall | KvCall;

export interface Answer {
  /** The numeric type of the API. */
  readonly type: number;
  readonly token: bigint;
  readonly owner: string | null;
  readonly start: bigint;
  readonly end: bigint;
  readonly current: bigint;
  readonly revision: bigint;
  readonly value: string | null;
}
export type CallResult =
  { readonly kind: "answer"; readonly answer: Answer } | { readonly kind: "unknown" };

export interface Client {
  call(call: Call): Promise<CallResult>;
  close(): void;
}

/** What goes along with every call. */
type Headers = Readonly<Record<string, string>>;

const UNKNOWN: CallResult = { kind: "unknown" };
const CALL_TIMEOUT_MS = 10_000;

/** Types of each API that say nothing about the effect. */
const UNKNOWN_TYPES = { lock: [99, 101], sequence: [99, 5], kv: [99, 101] } as const;

function apiOf(call: Call): keyof typeof UNKNOWN_TYPES {
  switch (call.op) {
    case "lock":
    case "extend":
    case "unlock":
    case "lock-info":
      return "lock";
    case "create":
    case "next":
    case "reserve":
    case "sequence":
      return "sequence";
    default:
      return "kv";
  }
}

function classify(call: Call, answer: Answer): CallResult {
  const unknown: readonly number[] = UNKNOWN_TYPES[apiOf(call)];
  return unknown.includes(answer.type) ? UNKNOWN : { kind: "answer", answer };
}

// REST ---------------------------------------------------------------------------------------------------------------

const REST_PATHS: Readonly<Record<Call["op"], string>> = {
  lock: "/v1/locks/try-lock",
  extend: "/v1/locks/try-extend",
  unlock: "/v1/locks/try-unlock",
  "lock-info": "/v1/locks/get-info",
  create: "/v1/sequences/create",
  next: "/v1/sequences/next",
  reserve: "/v1/sequences/reserve",
  sequence: "/v1/sequences/get",
  set: "/v1/kv/try-set",
  get: "/v1/kv/try-get",
  delete: "/v1/kv/try-delete",
};

function restBody(call: Call): Record<string, unknown> {
  switch (call.op) {
    case "lock":
    case "extend":
      return {
        resource: call.resource,
        owner: call.owner,
        expiresMs: call.expiresMs,
        durability: 1,
      };
    case "unlock":
      return { resource: call.resource, owner: call.owner };
    case "lock-info":
      return { resource: call.resource };
    case "create":
      return { name: call.name, blockSize: call.blockSize, durability: 1 };
    case "next":
      return { name: call.name, idempotencyKey: call.key, durability: 1 };
    case "reserve":
      return { name: call.name, count: call.count, idempotencyKey: call.key, durability: 1 };
    case "sequence":
      return { name: call.name, durability: 1 };
    case "set":
      return { key: call.key, value: Buffer.from(call.value).toString("base64") };
    default:
      return { key: call.key };
  }
}

function integer(value: unknown): bigint {
  return typeof value === "number" ? BigInt(value) : 0n;
}

function restAnswer(body: Record<string, unknown>): Answer {
  const allocation = (body["allocation"] ?? {}) as Record<string, unknown>;
  const sequence = (body["sequence"] ?? {}) as Record<string, unknown>;
  const value = body["value"];
  return {
    type: body["type"] as number,
    token: integer(body["fencingToken"]),
    owner: (body["owner"] as string | null | undefined) ?? null,
    start: integer(allocation["start"]),
    end: integer(allocation["end"]),
    current: integer(sequence["currentValue"]),
    revision: integer(body["revision"]),
    value: typeof value === "string" ? Buffer.from(value, "base64").toString() : null,
  };
}

/** A client of the cleartext REST listener at `address` (host:port). Values in these tests stay below 2^53. */
export function restClient(address: string, headers: Headers = {}): Client {
  const agent = new Agent({ connections: 64, pipelining: 1 });
  return {
    async call(call) {
      try {
        const response = await request(`http://${address}${REST_PATHS[call.op]}`, {
          method: "POST",
          dispatcher: agent,
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify(restBody(call)),
          bodyTimeout: CALL_TIMEOUT_MS,
          headersTimeout: CALL_TIMEOUT_MS,
        });
        const body = (await response.body.json()) as Record<string, unknown>;
        return response.statusCode === 200 ? classify(call, restAnswer(body)) : UNKNOWN;
      } catch {
        return UNKNOWN;
      }
    },
    close: () => void agent.destroy(),
  };
}

// gRPC ---------------------------------------------------------------------------------------------------------------

interface Method {
  readonly path: string;
  readonly request: protobuf.Type;
  readonly response: protobuf.Type;
}

function loadMethods(): Map<Call["op"], Method> {
  const methods = new Map<Call["op"], Method>();
  const add = (file: string, service: string, names: Partial<Record<Call["op"], string>>): void => {
    const loaded = new protobuf.Root();
    loaded.resolvePath = (_origin, target) => join(root, "proto", target.replace(/^.*\//, ""));
    loaded.loadSync(file, { keepCase: true });
    loaded.resolveAll();
    for (const [op, name] of Object.entries(names)) {
      const method = loaded.lookupService(service).methods[name];
      if (method === undefined) throw new Error(`${service} has no method ${name}`);
      methods.set(op as Call["op"], {
        path: `/${service}/${name}`,
        request: loaded.lookupType(method.requestType),
        response: loaded.lookupType(method.responseType),
      });
    }
  };
  add("locks.proto", "Locker", {
    lock: "TryLock",
    extend: "TryExtendLock",
    unlock: "Unlock",
    "lock-info": "GetLock",
  });
  add("sequences.proto", "Sequencer", {
    create: "CreateSequence",
    next: "NextSequenceValue",
    reserve: "ReserveSequenceRange",
    sequence: "GetSequence",
  });
  add("keyvalues.proto", "KeyValuer", {
    set: "TrySetKeyValue",
    get: "TryGetKeyValue",
    delete: "TryDeleteKeyValue",
  });
  return methods;
}

function grpcFields(call: Call): Record<string, unknown> {
  switch (call.op) {
    case "lock":
    case "extend":
      return {
        Resource: call.resource,
        Owner: Buffer.from(call.owner),
        ExpiresMs: call.expiresMs,
        Durability: 1,
      };
    case "unlock":
      return { Resource: call.resource, Owner: Buffer.from(call.owner), Durability: 1 };
    case "lock-info":
      return { Resource: call.resource, durability: 1 };
    case "create":
      return {
        Name: call.name,
        InitialValue: 0,
        Increment: 1,
        Durability: 1,
        ...(call.blockSize === null ? {} : { BlockSize: call.blockSize }),
      };
    case "next":
      return {
        Name: call.name,
        Durability: 1,
        ...(call.key === null ? {} : { IdempotencyKey: call.key }),
      };
    case "reserve":
      return {
        Name: call.name,
        Count: call.count,
        Durability: 1,
        ...(call.key === null ? {} : { IdempotencyKey: call.key }),
      };
    case "sequence":
      return { Name: call.name, Durability: 1 };
    case "set":
      return { Key: call.key, Value: Buffer.from(call.value), Durability: 1 };
    case "get":
      return { Key: call.key, Revision: -1, Durability: 1 };
    default:
      return { Key: call.key, Durability: 1 };
  }
}

function grpcAnswer(fields: Record<string, unknown>): Answer {
  const allocation = (fields["Allocation"] ?? {}) as Record<string, unknown>;
  const sequence = (fields["Sequence"] ?? {}) as Record<string, unknown>;
  const text = (value: unknown): bigint => (typeof value === "string" ? BigInt(value) : 0n);
  const bytes = (value: unknown): string | null =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : null;
  return {
    type: (fields["Type"] as number | undefined) ?? 0,
    token: text(fields["FencingToken"]),
    owner: bytes(fields["Owner"]),
    start: text(allocation["Start"]),
    end: text(allocation["End"]),
    current: text(sequence["CurrentValue"]),
    revision: text(fields["Revision"] ?? allocation["Revision"]),
    value: bytes(fields["Value"]),
  };
}

let methods: Map<Call["op"], Method> | null = null;

/** A client of the cleartext gRPC listener at `address` (host:port). */
export function grpcClient(address: string, headers: Headers = {}): Client {
  methods ??= loadMethods();
  const known = methods;
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
  });
  return {
    call(call) {
      const method = known.get(call.op);
      if (method === undefined) throw new Error(`no gRPC method for ${call.op}`);
      return new Promise((resolve) => {
        client.makeUnaryRequest(
          method.path,
          (fields: Record<string, unknown>) =>
            Buffer.from(method.request.encode(method.request.fromObject(fields)).finish()),
          (encoded: Buffer) =>
            method.response.toObject(method.response.decode(encoded), { longs: String }),
          grpcFields(call),
          metadata,
          { deadline: Date.now() + CALL_TIMEOUT_MS },
          (error, fields) => {
            if (error !== null || fields === undefined) resolve(UNKNOWN);
            else resolve(classify(call, grpcAnswer(fields as Record<string, unknown>)));
          },
        );
      });
    },
    close: () => client.close(),
  };
}
