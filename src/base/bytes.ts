/**
 * Byte strings: comparison, prefixes, text. Inside the service all order is byte order.
 *
 * Invariants: 1. Functions here never keep or change an argument. 2. Text is well-formed Unicode:
 * it is checked where it enters, and encoding asserts it. 3. JavaScript's own string order (UTF-16
 * units) is never used for ordering.
 */
import { assert } from "./assert.js";

export const EMPTY_BYTES = new Uint8Array(0);

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** UTF-8 of well-formed `text`. */
export function encodeText(text: string): Uint8Array {
  assert(isWellFormedText(text), "text is well-formed Unicode");
  return encoder.encode(text);
}

/** The text of `bytes`, or null when they are not valid UTF-8. */
export function decodeText(bytes: Uint8Array): string | null {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    return null;
  }
}

/** True when `text` has no lone surrogate. */
export function isWellFormedText(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    const next = at + 1 < text.length ? text.charCodeAt(at + 1) : 0;
    if (unit > 0xdbff || next < 0xdc00 || next > 0xdfff) return false;
    at++;
  }
  return true;
}

/** Length of the UTF-8 form of well-formed `text`, in bytes. */
export function textSizeBytes(text: string): number {
  let size = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes: each half adds one.
    size += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return size;
}

/** Order of the UTF-8 forms of two well-formed texts: negative, 0 or positive. */
export function compareText(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left === right) continue;
    // Code-point order differs from unit order only where exactly one of the two is a surrogate.
    const leftRank = left >= 0xd800 && left <= 0xdfff ? left + 0x10000 : left;
    const rightRank = right >= 0xd800 && right <= 0xdfff ? right + 0x10000 : right;
    return leftRank - rightRank;
  }
  return a.length - b.length;
}

/** Byte order: negative, 0 or positive. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at++) {
    const difference = (a[at] as number) - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

export function startsWithBytes(bytes: Uint8Array, prefix: Uint8Array): boolean {
  if (bytes.length < prefix.length) return false;
  for (let at = 0; at < prefix.length; at++) if (bytes[at] !== prefix[at]) return false;
  return true;
}

/**
 * The smallest byte string above every one that begins with `prefix`; null when there is none
 * (empty or all 0xff).
 */
export function prefixSuccessor(prefix: Uint8Array): Uint8Array | null {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length--;
  if (length === 0) return null;
  const successor = prefix.slice(0, length);
  successor[length - 1] = (successor[length - 1] as number) + 1;
  return successor;
}

export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  let size = 0;
  for (const part of parts) size += part.length;
  const joined = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** The little-endian number at `at`, as ByteWriter writes it; the caller has checked that it is there. */
export function uint32At(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  );
}

/** A uint53; -1 when the eight bytes hold more than that. */
export function uint53At(bytes: Uint8Array, at: number): number {
  const high = uint32At(bytes, at + 4);
  return high >= 0x20_0000 ? -1 : high * 0x1_0000_0000 + uint32At(bytes, at);
}

export function int64At(bytes: Uint8Array, at: number): bigint {
  const high = uint32At(bytes, at + 4);
  const low = uint32At(bytes, at);
  if (high < 0x20_0000) return BigInt(high * 0x1_0000_0000 + low);
  return (BigInt(high | 0) << 32n) | BigInt(low);
}
