/**
 * Opaque cursors: which query they belong to and what they hold, as URL-safe text; of scans, the
 * last key that was given.
 *
 * Pure. One cursor serves the whole cluster: every partition continues strictly above the same key.
 * Layout before base64url: version u8, xxh32 u32 of the query text, payload (of scans the key),
 * xxh32 u32 of all before.
 * Invariants: 1. A cursor of another query, or a changed one, is refused, not guessed at. 2. The
 * key of a scan is valid UTF-8 of at most NAME_MAX_BYTES bytes.
 */
import { decodeText, encodeText } from "../../base/bytes.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { NAME_MAX_BYTES } from "../../base/limits.js";
import { xxh32 } from "../store/digest.js";

const VERSION = 1;
const SEED = 0x43555253;
const HEAD_BYTES = 5;
const TAIL_BYTES = 4;
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

function toBase64Url(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const second = bytes[at + 1];
    const third = bytes[at + 2];
    const bits = ((bytes[at] as number) << 16) | ((second ?? 0) << 8) | (third ?? 0);
    text += alphabet.charAt(bits >>> 18) + alphabet.charAt((bits >>> 12) & 63);
    if (second !== undefined) text += alphabet.charAt((bits >>> 6) & 63);
    if (third !== undefined) text += alphabet.charAt(bits & 63);
  }
  return text;
}

function fromBase64Url(text: string): Uint8Array | null {
  if (text.length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let bits = 0;
  let count = 0;
  let written = 0;
  for (let at = 0; at < text.length; at++) {
    const value = alphabet.indexOf(text.charAt(at));
    if (value < 0) return null;
    bits = ((bits << 6) | value) & 0xffffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes[written++] = (bits >>> count) & 0xff;
  }
  return bytes;
}

/**
 * `payload` as text that belongs to `query`, a text that is equal exactly for the same question.
 */
export function sealCursor(query: string, payload: Uint8Array): string {
  const writer = new ByteWriter(HEAD_BYTES + payload.length + TAIL_BYTES);
  writer
    .uint8(VERSION)
    .uint32(xxh32(encodeText(query), SEED))
    .raw(payload);
  writer.uint32(xxh32(writer.finish(), SEED));
  return toBase64Url(writer.finish());
}

/** The payload of 1 to `maxBytes` bytes; null when `cursor` is not as it was sealed for `query`. */
export function openCursor(query: string, cursor: string, maxBytes: number): Uint8Array | null {
  if (cursor.length > ((HEAD_BYTES + maxBytes + TAIL_BYTES) * 4) / 3 + 2) return null;
  const bytes = fromBase64Url(cursor);
  if (bytes === null || bytes.length < HEAD_BYTES + 1 + TAIL_BYTES) return null;
  // One text for one cursor: stray bits behind the last byte are refused.
  if (toBase64Url(bytes) !== cursor) return null;
  const end = bytes.length - TAIL_BYTES;
  if (new ByteReader(bytes, end).uint32() !== xxh32(bytes, SEED, 0, end)) return null;
  const head = new ByteReader(bytes, 0, end);
  if (head.uint8() !== VERSION || head.uint32() !== xxh32(encodeText(query), SEED)) return null;
  const payload = head.raw(head.remainingBytes);
  return payload.length <= maxBytes ? payload : null;
}

/** `lastKey`: UTF-8 of the last key given. */
export function encodeCursor(query: string, lastKey: Uint8Array): string {
  return sealCursor(query, lastKey);
}

/**
 * The key after which to continue; null when the cursor is not one of this query (InvalidInput,
 * K18).
 */
export function decodeCursor(query: string, cursor: string): Uint8Array | null {
  const key = openCursor(query, cursor, NAME_MAX_BYTES);
  return key !== null && decodeText(key) !== null ? key : null;
}
