/**
 * From what the caller gives to the requests of key/value operations.
 *
 * Owns no state. Invariants: 1. A number that does not fit throws SvcRangeError before anything is
 * sent.
 */
import type { KvReadRequest, KvSetRequest } from "./kv-operations.js";
import type { KvItemKey, KvSetConditions } from "./kv-shapes.js";
import { int32Of, int64Of } from "./numbers.js";
import type { Durability } from "./options.js";

const Flag = {
  set: 1,
  noRevision: 2,
  ifExists: 4,
  ifNotExists: 8,
  ifValue: 16,
  ifRevision: 32,
} as const;
/** Asks for the latest revision. */
const LATEST = -1n;

function bytesOf(value: string | Uint8Array | null): Uint8Array | null {
  return typeof value === "string" ? Buffer.from(value, "utf8") : value;
}

/** Durability on the wire. */
export function wire(durability: Durability | undefined): 0 | 1 {
  return durability === "ephemeral" ? 0 : 1;
}

/** A set with its conditions as flags. */
export function setRequest(
  key: string,
  value: string | Uint8Array | null,
  conditions: KvSetConditions,
  durability: Durability | undefined,
): KvSetRequest {
  let flags = Flag.set | (conditions.flags ?? 0);
  if (conditions.noHistory === true) flags |= Flag.noRevision;
  if (conditions.ifExists === true) flags |= Flag.ifExists;
  if (conditions.ifNotExists === true) flags |= Flag.ifNotExists;
  if (conditions.ifValue !== undefined) flags |= Flag.ifValue;
  if (conditions.ifRevision !== undefined) flags |= Flag.ifRevision;
  return {
    key,
    value: bytesOf(value),
    compareValue: bytesOf(conditions.ifValue ?? null),
    compareRevision: int64Of("ifRevision", conditions.ifRevision ?? 0n),
    expiresMs: int32Of("expiresMs", conditions.expiresMs ?? 0, 0),
    flags,
    durability: wire(durability),
  };
}

/** A read of the latest or of one revision. */
export function readRequest(
  key: string | KvItemKey,
  durability: Durability | undefined,
): KvReadRequest {
  const item = typeof key === "string" ? { key } : key;
  const revision = item.revision === undefined ? LATEST : int64Of("revision", item.revision);
  return { key: item.key, revision, durability: wire(durability) };
}
