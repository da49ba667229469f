/**
 * From what the caller gives to the requests of key/value operations.
 *
 * Invariants: 1. A number that does not fit throws SvcRangeError, a value of the wrong type
 * InvalidInputError, before anything is sent.
 */
import {
  bytesOrNull,
  durabilityOf,
  flagOf,
  membersOf,
  optionsOf,
  textOf,
} from "../values/arguments.js";
import type { KvKeyRequest, KvReadRequest, KvSetRequest } from "./kv-operations.js";
import type { KvCallOptions, KvItemKey, KvSetConditions } from "./kv-shapes.js";
import { int32Of, int64Of } from "../values/numbers.js";
import type { Durability } from "../values/options.js";

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

/** A set with its conditions as flags. */
export function setRequest(
  key: string,
  value: string | Uint8Array | null,
  conditions: KvSetConditions,
  durability: Durability | undefined,
): KvSetRequest {
  const { ifValue = null, ifRevision = 0n, expiresMs = 0, flags: more = 0 } = conditions;
  let flags = Flag.set | int32Of("flags", more, 0);
  if (flagOf("noHistory", conditions.noHistory, false)) flags |= Flag.noRevision;
  if (flagOf("ifExists", conditions.ifExists, false)) flags |= Flag.ifExists;
  if (flagOf("ifNotExists", conditions.ifNotExists, false)) flags |= Flag.ifNotExists;
  if (conditions.ifValue !== undefined) flags |= Flag.ifValue;
  if (conditions.ifRevision !== undefined) flags |= Flag.ifRevision;
  return {
    key: textOf("key", key),
    value: bytesOrNull("value", value),
    compareValue: bytesOrNull("ifValue", ifValue),
    compareRevision: int64Of("ifRevision", ifRevision),
    expiresMs: int32Of("expiresMs", expiresMs, 0),
    flags,
    durability: durabilityOf(durability),
  };
}

/** What names one entry. */
export function keyRequest(key: string, options: KvCallOptions): KvKeyRequest {
  const durability = durabilityOf(optionsOf(options).durability);
  return { key: textOf("key", key), durability };
}

/** A read of the latest or of one revision. */
export function readRequest(
  key: string,
  revision: KvItemKey["revision"],
  durability: Durability | undefined,
): KvReadRequest {
  return {
    key: textOf("key", key),
    revision: revision === undefined ? LATEST : int64Of("revision", revision),
    durability: durabilityOf(durability),
  };
}

/** One item of a many-call: a key, or a key with a revision. */
export function readItem(item: string | KvItemKey, durability: Durability | undefined) {
  if (typeof item === "string") return readRequest(item, undefined, durability);
  const { key, revision } = membersOf("an item beside text", item);
  return readRequest(key, revision, durability);
}
