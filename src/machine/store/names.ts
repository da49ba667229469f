/**
 * Names as the contract has them: trimming, the reserved prefix, and the check that every decision
 * makes again.
 *
 * Pure. Invariants: 1. One trim for every surface: the code points with the Unicode White_Space
 * property, nothing else. 2. A name that passes here is a legal row key.
 */
import { NAME_MAX_BYTES, RESERVED_PREFIX } from "../../base/limits.js";
import { nameKey, type ByteKey } from "./keys.js";

/** Code points with the property White_Space; all lie below U+10000. */
function isWhiteSpace(unit: number): boolean {
  if (unit <= 0x20) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  if (unit < 0x85) return false;
  if (unit === 0x85 || unit === 0xa0 || unit === 0x1680) return true;
  if (unit >= 0x2000 && unit <= 0x200a) return true;
  return (
    unit === 0x2028 || unit === 0x2029 || unit === 0x202f || unit === 0x205f || unit === 0x3000
  );
}

/** `text` without leading and trailing code points of the property White_Space. */
export function trimWhiteSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isWhiteSpace(text.charCodeAt(start))) start++;
  while (end > start && isWhiteSpace(text.charCodeAt(end - 1))) end--;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

function isTrimmed(text: string): boolean {
  return !isWhiteSpace(text.charCodeAt(0)) && !isWhiteSpace(text.charCodeAt(text.length - 1));
}

/** Lock resources: 1 to 1,024 bytes of anything. Null when it is not one. */
export function resourceKey(resource: string): ByteKey | null {
  return nameKey(resource);
}

/** Lock owners: 1 to 1,024 bytes. */
export function isOwner(owner: Uint8Array): boolean {
  return owner.length >= 1 && owner.length <= NAME_MAX_BYTES;
}

/**
 * Keys, buckets, prefixes and key spaces. Null when empty, over-long, ill-formed or reserved (K18).
 */
export function kvKey(key: string): ByteKey | null {
  return key.startsWith(RESERVED_PREFIX) ? null : nameKey(key);
}

/**
 * Sequence names, trimmed already. Null when empty, over-long, ill-formed, reserved or not trimmed
 * (S1).
 */
export function sequenceKey(name: string): ByteKey | null {
  const key = kvKey(name);
  return key !== null && isTrimmed(name) ? key : null;
}

/**
 * Idempotency keys, trimmed already (S10). Null when empty, over-long, ill-formed or not trimmed.
 */
export function idempotencyKey(key: string): ByteKey | null {
  const bytes = nameKey(key);
  return bytes !== null && isTrimmed(key) ? bytes : null;
}
