/**
 * Operations of the history on the wire: REST as JSON, gRPC with messages read from the .proto files. One attempt each,
 * nothing is repeated here.
 *
 * Invariants: 1. A call ends with a result, "refused" where the service says that nothing was done or no connection was
 * made, or "unknown". 2. Numbers are exact.
 */
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { Agent, request } from "undici";
import { parseJson } from "../../../src/client/values/json.js";
import type {
  AllocationResult,
  KvResult,
  LockResult,
  Operation,
  Outcome,
  SequenceResult,
} from "../../judge/history.js";
import { root } from "../../tidy/sources.js";
import { type Members, grpcRows, integer, isManyRead, manyRpc, restRows } from "./many.js";

/** What an answer says, with the member names of neither front end. */
interface Fields {
  readonly type: number;
  readonly token: bigint | null;
  readonly owner: string | null;
  readonly expiresInMs: number | null;
  readonly revision: bigint;
  readonly value: string | null;
  readonly start: bigint;
  readonly end: bigint;
  readonly count: number;
  readonly sequence: SequenceResult["sequence"];
}

export interface Endpoint {
  /** `cursor`: where a page goes on that is not the first. */
  call(operation: Operation, cursor?: string | null): Promise<Outcome>;
  close(): void;
}

const LOCK_TYPES: Readonly<Record<number, LockResult["type"]>> = {
  0: "Locked",
  1: "Busy",
  2: "Extended",
  3: "Unlocked",
  4: "Got",
  100: "InvalidInput",
  102: "LockDoesNotExist",
  103: "InvalidOwner",
};
const SEQUENCE_TYPES: Readonly<Record<number, SequenceResult["type"]>> = {
  0: "Success",
  1: "NotFound",
  2: "AlreadyExists",
  3: "InvalidInput",
  4: "MaxValueExceeded",
};
const KV_TYPES: Readonly<Record<number, KvResult["type"]>> = {
  0: "Set",
  1: "NotSet",
  2: "Extended",
  3: "Got",
  4: "Deleted",
  10: "Exists",
  100: "InvalidInput",
  103: "DoesNotExist",
};
const ABORTED = { lock: 104, sequence: 6, kv: 102 } as const;

function outcomeOf(operation: Operation, fields: Fields): Outcome {
  const { kind } = operation;
  const { type, revision } = fields;
  const unknown: Outcome = { kind: "unknown", reason: `type ${type}` };
  const api = "resource" in operation ? "lock" : "name" in operation ? "sequence" : "kv";
  if (type === ABORTED[api]) return { kind: "refused", reason: "aborted" };
  if (api === "lock") {
    const name = LOCK_TYPES[type];
    if (name === undefined) return unknown;
    const { token, owner } = fields;
    const result: LockResult = { type: name, token, owner, expiresInMs: fields.expiresInMs };
    return { kind: "ok", result };
  }
  if (api === "kv") {
    const name = KV_TYPES[type];
    if (name === undefined) return unknown;
    return { kind: "ok", result: { type: name, value: fields.value, revision } };
  }
  const name = SEQUENCE_TYPES[type];
  if (name === undefined) return unknown;
  if (kind !== "allocate") {
    return { kind: "ok", result: { type: name, sequence: fields.sequence, revision } };
  }
  const { start, end, count } = fields;
  const result: AllocationResult = { type: name, start, end, count, revision };
  return { kind: "ok", result };
}

export type Rpc = readonly [
  file: string,
  service: string,
  method: string,
  path: string,
  fields: Record<string, unknown>,
  body: Record<string, unknown>,
];

/** The gRPC method and the REST path with their requests. */
function rpcOf(operation: Operation, cursor: string | null): Rpc {
  switch (operation.kind) {
    case "try-lock":
    case "try-extend":
    case "try-unlock":
    case "get-lock": {
      const { kind, resource, owner, expiresMs } = operation;
      const durability = operation.ephemeral ? 0 : 1;
      const isInfo = kind === "get-lock";
      const timed = kind === "try-lock" || kind === "try-extend";
      const lease = timed ? { ExpiresMs: expiresMs } : {};
      const fields = isInfo
        ? { Resource: resource, durability }
        : { Resource: resource, Owner: Buffer.from(owner), Durability: durability, ...lease };
      const body = { resource, durability, ...(isInfo ? {} : { owner }) };
      const method = { "try-lock": "TryLock", "try-extend": "TryExtendLock" } as const;
      const name = timed ? method[kind] : isInfo ? "GetLock" : "Unlock";
      const path = `/v1/locks/${isInfo ? "get-info" : kind}`;
      return ["locks.proto", "Locker", name, path, fields, timed ? { ...body, expiresMs } : body];
    }
    case "create-sequence": {
      const { name, blockSize } = operation;
      const size = blockSize === null ? {} : { BlockSize: blockSize };
      const fields = { Name: name, InitialValue: 0, Increment: 1, Durability: 1, ...size };
      const body = { name, blockSize, durability: 1 };
      const path = "/v1/sequences/create";
      return ["sequences.proto", "Sequencer", "CreateSequence", path, fields, body];
    }
    case "update-sequence": {
      const { name, currentValue } = operation;
      const fields = { Name: name, CurrentValue: String(currentValue), Durability: 1 };
      const body = { name, currentValue: Number(currentValue), durability: 1 };
      const path = "/v1/sequences/update";
      return ["sequences.proto", "Sequencer", "UpdateSequence", path, fields, body];
    }
    case "get-sequence":
    case "delete-sequence": {
      const isGet = operation.kind === "get-sequence";
      const path = `/v1/sequences/${isGet ? "get" : "delete"}`;
      const { name } = operation;
      const fields = { Name: name, Durability: 1 };
      const method = isGet ? "GetSequence" : "DeleteSequence";
      return ["sequences.proto", "Sequencer", method, path, fields, { name, durability: 1 }];
    }
    case "allocate": {
      const { name, count, idempotencyKey } = operation;
      const key = idempotencyKey === null ? {} : { IdempotencyKey: idempotencyKey };
      const fields = { Name: name, Count: count, Durability: 1, ...key };
      const body = { name, count, idempotencyKey, durability: 1 };
      const path = "/v1/sequences/reserve";
      return ["sequences.proto", "Sequencer", "ReserveSequenceRange", path, fields, body];
    }
    case "kv-set": {
      const { key, value, expiresMs, flags, compareRevision } = operation;
      const bytes = value === null ? null : Buffer.from(value);
      const fields = {
        Key: key,
        ...(bytes === null ? {} : { Value: bytes }),
        CompareRevision: String(compareRevision),
        Flags: flags,
        ExpiresMs: expiresMs,
        Durability: 1,
      };
      const text = bytes?.toString("base64") ?? null;
      const revision = Number(compareRevision);
      const body = { key, value: text, compareRevision: revision, flags, expiresMs };
      return ["keyvalues.proto", "KeyValuer", "TrySetKeyValue", "/v1/kv/try-set", fields, body];
    }
    case "kv-get":
    case "kv-delete": {
      const isGet = operation.kind === "kv-get";
      const { key } = operation;
      const fields = { Key: key, Durability: 1, ...(isGet ? { Revision: -1 } : {}) };
      const method = isGet ? "TryGetKeyValue" : "TryDeleteKeyValue";
      const path = isGet ? "/v1/kv/try-get" : "/v1/kv/try-delete";
      return ["keyvalues.proto", "KeyValuer", method, path, fields, { key }];
    }
    case "kv-extend": {
      const { key, expiresMs } = operation;
      const fields = { Key: key, ExpiresMs: expiresMs, Durability: 1 };
      const path = "/v1/kv/try-extend";
      return [
        "keyvalues.proto",
        "KeyValuer",
        "TryExtendKeyValue",
        path,
        fields,
        { key, expiresMs },
      ];
    }
    case "kv-bucket":
    case "kv-scan":
    case "kv-range":
      return manyRpc(operation, cursor);
    default:
      throw new Error(`not asked in these runs: ${operation.kind}`);
  }
}

function optional(value: unknown): bigint | null {
  return value === undefined || value === null ? null : integer(value);
}

function restFields(operation: Operation, body: Members): Fields {
  const allocation = (body["allocation"] ?? {}) as Members;
  const sequence = body["sequence"] as Members | null | undefined;
  const value = body["value"];
  const isDurable = operation.kind === "allocate";
  return {
    type: body["type"] as number,
    token: integer(body["fencingToken"]),
    owner: (body["owner"] as string | null | undefined) ?? null,
    expiresInMs: Number(body["expiresInMs"] ?? 0),
    revision: integer(isDurable ? allocation["revision"] : body["revision"]),
    value: typeof value === "string" ? Buffer.from(value, "base64").toString() : null,
    start: integer(allocation["start"]),
    end: integer(allocation["end"]),
    count: Number(allocation["count"] ?? 0),
    sequence:
      sequence === null || sequence === undefined ? null : sequenceSeen((name) => sequence[name]),
  };
}

function sequenceSeen(member: (name: string) => unknown): SequenceResult["sequence"] {
  const blockSize = optional(member("blockSize"));
  return {
    currentValue: integer(member("currentValue")),
    initialValue: integer(member("initialValue")),
    increment: integer(member("increment")),
    maxValue: optional(member("maxValue")),
    blockSize: blockSize === null ? null : Number(blockSize),
    incarnation: integer(member("incarnation")),
    revision: integer(member("revision")),
  };
}

function grpcFields(operation: Operation, fields: Members): Fields {
  const allocation = (fields["Allocation"] ?? {}) as Members;
  const sequence = fields["Sequence"] as Members | undefined;
  const bytes = (value: unknown): string | null =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : null;
  const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
  const type = (fields["Type"] as number | undefined) ?? 0;
  return {
    type,
    // Unlock has no token over gRPC.
    token: operation.kind === "try-unlock" && type === 3 ? null : integer(fields["FencingToken"]),
    owner: bytes(fields["Owner"]),
    // Nor has get-info the remaining lease.
    expiresInMs: null,
    revision: integer(operation.kind === "allocate" ? allocation["Revision"] : fields["Revision"]),
    value: bytes(fields["Value"]),
    start: integer(allocation["Start"]),
    end: integer(allocation["End"]),
    count: Number(allocation["Count"] ?? 0),
    sequence: sequence === undefined ? null : sequenceSeen((name) => sequence[capital(name)]),
  };
}

const NOT_CONNECTED = new Set(["ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT"]);

export function restEndpoint(port: number, timeoutMs: number): Endpoint {
  const agent = new Agent({ connections: 32, pipelining: 1, connectTimeout: timeoutMs });
  return {
    async call(operation, cursor = null) {
      const [, , , path, , body] = rpcOf(operation, cursor);
      try {
        const response = await request(`http://127.0.0.1:${port}${path}`, {
          method: "POST",
          dispatcher: agent,
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
          bodyTimeout: timeoutMs,
          headersTimeout: timeoutMs,
        });
        // Tokens of a restored cluster may need more than 53 bits.
        const members = parseJson(await response.body.text()) as Members;
        if (response.statusCode === 503)
          return { kind: "refused", reason: String(members["code"]) };
        if (response.statusCode !== 200) {
          return { kind: "unknown", reason: `status ${response.statusCode}` };
        }
        if (isManyRead(operation)) return restRows(members);
        return outcomeOf(operation, restFields(operation, members));
      } catch (error) {
        const code = (error as { readonly code?: string }).code ?? String(error);
        if (NOT_CONNECTED.has(code)) return { kind: "refused", reason: code };
        return { kind: "unknown", reason: `lost: ${code}` };
      }
    },
    close: () => void agent.destroy(),
  };
}

const loaded = new Map<string, protobuf.Root>();

function protoOf(file: string): protobuf.Root {
  let found = loaded.get(file);
  if (found === undefined) {
    found = new protobuf.Root();
    found.resolvePath = (_origin, target) => join(root, "proto", target.replace(/^.*\//, ""));
    found.loadSync(file, { keepCase: true });
    found.resolveAll();
    loaded.set(file, found);
  }
  return found;
}

export function grpcEndpoint(port: number, timeoutMs: number): Endpoint {
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 500,
  });
  return {
    call(operation, cursor = null) {
      const [file, service, name, , fields] = rpcOf(operation, cursor);
      const types = protoOf(file);
      const method = types.lookupService(service).methods[name];
      if (method === undefined) throw new Error(`${service} has no method ${name}`);
      const asked = types.lookupType(method.requestType);
      const answered = types.lookupType(method.responseType);
      return new Promise((resolve) => {
        client.makeUnaryRequest(
          `/${service}/${name}`,
          (given: Members) => Buffer.from(asked.encode(asked.fromObject(given)).finish()),
          (encoded: Buffer) => answered.toObject(answered.decode(encoded), { longs: String }),
          fields,
          new grpc.Metadata(),
          { deadline: Date.now() + timeoutMs },
          (error, members) => {
            if (members !== undefined && error === null) {
              const seen = members as Members;
              if (isManyRead(operation)) resolve(grpcRows(seen));
              else resolve(outcomeOf(operation, grpcFields(operation, seen)));
            } else if (/No connection established|ECONNREFUSED/.test(error?.details ?? "")) {
              resolve({ kind: "refused", reason: "no connection" });
            } else {
              resolve({ kind: "unknown", reason: `lost: ${error?.details ?? "nothing"}` });
            }
          },
        );
      });
    },
    close: () => client.close(),
  };
}
