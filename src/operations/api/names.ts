/**
 * Names, keys and other texts of data requests: which are acceptable as sent.
 *
 * Pure. Invariants: 1. Lengths count UTF-8 bytes. 2. Only sequence names and idempotency keys are
 * trimmed, by Unicode White_Space.
 */
import { textSizeBytes } from "../../base/bytes.js";
import { NAME_MAX_BYTES, RESERVED_PREFIX } from "../../base/limits.js";
import { trimWhiteSpace } from "../../machine/store/names.js";

/** 0 or 1 in every request; anything else is InvalidInput. */
export const Durability = { ephemeral: 0, persistent: 1 } as const;

/** The idempotency key as trimmed; null when there is none or it is blank. */
export function trimKey(key: string | null): string | null {
  const trimmed = key === null ? "" : trimWhiteSpace(key);
  return trimmed === "" ? null : trimmed;
}

/** True for a text of 1 to NAME_MAX_BYTES bytes. */
export function isName(text: string): boolean {
  if (text.length === 0) return false;
  if (text.length * 3 <= NAME_MAX_BYTES) return true;
  return text.length <= NAME_MAX_BYTES && textSizeBytes(text) <= NAME_MAX_BYTES;
}

/** True for a key, bucket or sequence name: a name outside the reserved prefix. */
export function isOpenName(text: string): boolean {
  return isName(text) && !text.startsWith(RESERVED_PREFIX);
}

/** True for a bound of a range: any key, also empty and also outside the bucket; null = open. */
export function isBound(text: string | null): boolean {
  return text === null || text === "" || isName(text);
}

export function isDurability(durability: number): boolean {
  return durability === Durability.ephemeral || durability === Durability.persistent;
}

/** True for none as well. */
export function isIdempotencyKey(key: string | null): boolean {
  const trimmed = trimKey(key);
  return trimmed === null || isName(trimmed);
}
