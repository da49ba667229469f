/**
 * Strict base64 (RFC 4648 section 4): padding required, no white space, no other alphabet, no stray
 * bits.
 *
 * Invariants: 1. Each byte string has exactly one accepted form. 2. What is decoded owns its
 * memory: a value of eight bytes must not keep a pooled slab alive.
 */

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PADDING = 0x3d;
const INVALID = 255;

const VALUES = new Uint8Array(256).fill(INVALID);
for (let at = 0; at < ALPHABET.length; at++) VALUES[ALPHABET.charCodeAt(at)] = at;

/**
 * The bytes that `text` (ASCII codes) stands for between `start` and `end`, or null when that is
 * not base64.
 */
export function decodeBase64(text: Uint8Array, start = 0, end = text.length): Uint8Array | null {
  const length = end - start;
  if (length === 0) return new Uint8Array(0);
  if (length % 4 !== 0) return null;
  let padding = 0;
  if (text[end - 1] === PADDING) padding = text[end - 2] === PADDING ? 2 : 1;
  const bytes = new Uint8Array((length / 4) * 3 - padding);
  const whole = padding === 0 ? end : end - 4;
  let to = 0;
  let bad = 0;
  for (let at = start; at < whole; at += 4) {
    const a = VALUES[text[at] as number] as number;
    const b = VALUES[text[at + 1] as number] as number;
    const c = VALUES[text[at + 2] as number] as number;
    const d = VALUES[text[at + 3] as number] as number;
    bad |= a | b | c | d;
    bytes[to++] = (a << 2) | (b >> 4);
    bytes[to++] = (b << 4) | (c >> 2);
    bytes[to++] = (c << 6) | d;
  }
  if (padding > 0) {
    const a = VALUES[text[whole] as number] as number;
    const b = VALUES[text[whole + 1] as number] as number;
    const c = padding === 1 ? (VALUES[text[whole + 2] as number] as number) : 0;
    bad |= a | b | c;
    // The bits below the last byte must be zero, else two texts would stand for the same bytes.
    if (padding === 1 ? (c & 3) !== 0 : (b & 15) !== 0) return null;
    bytes[to++] = (a << 2) | (b >> 4);
    if (padding === 1) bytes[to] = (b << 4) | (c >> 2);
  }
  return bad > 63 ? null : bytes;
}

/** Base64 of `bytes`. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
