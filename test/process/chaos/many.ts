/**
 * Reads of many keys on the wire: buckets, scans and ranges, a page at a time.
 *
 * Invariant: a page of a range is asked over REST alone: over gRPC only its stream goes on.
 */
import type { KvManyReadOperation, Operation, Outcome } from "../../judge/history.js";
import type { Rpc } from "./wire.js";

export type Members = Readonly<Record<string, unknown>>;
const GOT = 3;
const INVALID_INPUT = 100;
const ABORTED = 102;

export function integer(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  return typeof value === "number" || typeof value === "string" ? BigInt(value) : 0n;
}

export function isManyRead(operation: Operation): operation is KvManyReadOperation {
  const { kind } = operation;
  return kind === "kv-bucket" || kind === "kv-scan" || kind === "kv-range";
}

/** The gRPC method and the REST path with their requests. */
export function manyRpc(operation: KvManyReadOperation, cursor: string | null): Rpc {
  const { kind, prefix, page } = operation;
  const limit = page?.limit ?? 0;
  const go = cursor === null ? {} : { cursor };
  if (kind === "kv-bucket") {
    const fields = { PrefixKey: prefix, Durability: 1 };
    const path = "/v1/kv/get-by-bucket";
    return ["keyvalues.proto", "KeyValuer", "GetByBucket", path, fields, { prefixKey: prefix }];
  }
  if (kind === "kv-scan") {
    const on = cursor === null ? {} : { Cursor: cursor };
    const fields = { PrefixKey: prefix, Durability: 1, Limit: limit, ...on };
    const body = { prefixKey: prefix, limit, ...go };
    const path = "/v1/kv/scan-all-by-prefix";
    return ["keyvalues.proto", "KeyValuer", "ScanAllByPrefix", path, fields, body];
  }
  const fields = { Prefix: prefix, Limit: limit, Durability: 1, StartInclusive: true };
  const bounds = {
    ...(page === undefined || page.startKey === null
      ? {}
      : { startKey: page.startKey, startInclusive: page.startInclusive }),
    ...(page === undefined || page.endKey === null
      ? {}
      : { endKey: page.endKey, endInclusive: page.endInclusive }),
  };
  const path = "/v1/kv/get-by-range";
  const body = { prefix, limit, ...bounds, ...go };
  return ["keyvalues.proto", "KeyValuer", "GetByRange", path, fields, body];
}

export function restRows(members: Members): Outcome {
  return outcome(
    members["type"],
    members["items"],
    members["nextCursor"],
    (name) => name,
    (value) => (typeof value === "string" ? Buffer.from(value, "base64").toString() : null),
  );
}

export function grpcRows(members: Members): Outcome {
  return outcome(
    members["Type"] ?? 0,
    members["Items"],
    members["NextCursor"],
    (name) => name.charAt(0).toUpperCase() + name.slice(1),
    (value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : null),
  );
}

function outcome(
  type: unknown,
  items: unknown,
  next: unknown,
  nameOf: (name: string) => string,
  valueOf: (value: unknown) => string | null,
): Outcome {
  if (type === ABORTED) return { kind: "refused", reason: "aborted" };
  if (type === INVALID_INPUT) return { kind: "ok", result: { type: "InvalidInput", items: [] } };
  if (type !== GOT) return { kind: "unknown", reason: `type ${String(type)}` };
  const rows = ((items ?? []) as readonly Members[]).map((item) => ({
    key: String(item[nameOf("key")]),
    value: valueOf(item[nameOf("value")]),
    revision: integer(item[nameOf("revision")]),
  }));
  const nextCursor = typeof next === "string" ? next : null;
  return { kind: "ok", result: { type: "Got", items: rows, nextCursor } };
}
