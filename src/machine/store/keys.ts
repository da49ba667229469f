/**
 * Row keys of the state store: every kind of row, its key, and the internal form of keys.
 *
 * Internally a key is a `ByteKey`: a string whose units are bytes (0 to 255). Such strings hash and
 * compare fast, `<` on them is byte order, and for ASCII names the name itself is its byte key. May
 * call only base/.
 *
 * | Space (first byte) | Rest of the key | Row |
 * |---|---|---|
 * | 01 | group u32 | group record: applied position, floors, current generation |
 * | 02 | group u32, generation u32, kind u8, name | a row of one group's state, see `RowKind` |
 * | 03 | text | rows of the node itself (identity); written by the host |
 *
 * | Kind | Name part | Row |
 * |---|---|---|
 * | lock | resource | owner, token, lease |
 * | lockAudit | number u64 | one forced release |
 * | lockAuditHead | (empty) | numbers of the oldest one that is kept and of the next one |
 * | sequence | name | definition, reserved end, counters of its idempotency entries |
 * | sequenceKey | life u64, idempotency key | one remembered allocation |
 * | sequenceOrder | life u64, ordinal u64 | the idempotency key with that ordinal: eviction order |
 * | value | key | latest revision of a key, tombstones included, and which older ones are kept |
 * | history | key size u16, key, revision u64 | one older revision |
 * | ownership | key space size u16, key space, 0 or (1, start key) | who has an interval |
 * | cluster | (empty) | cluster record (meta partition only, as all below) |
 * | member | node id u32 | one member |
 * | partition | partition id u32 | one partition of the map |
 * | range | key space size u16, key space, 0 or (1, start key) | one range descriptor |
 * | formerMember | node id u32 | a member that was removed |
 * | leavingKeySpace | key space | its ranges are on their way back to its hash partition |
 * | rangeMove | key space | the move of one of its ranges |
 * | plannerHold | holder | until when planners are to wait |
 *
 * Invariants: 1. All numbers in keys are big-endian, so that byte order is their order. 2. No two
 * rows share a key: a variable part is last or has its size in front. 3. A name of 1,024 bytes of
 * any content fits STORE_KEY_MAX_BYTES.
 */
import { assert } from "../../base/assert.js";
import { decodeText, encodeText } from "../../base/bytes.js";
import { NAME_MAX_BYTES } from "../../base/limits.js";

/** A string of bytes: every unit is 0 to 255. */
export type ByteKey = string;

export const KeySpace = { groupRecord: 1, groupRows: 2, node: 3 } as const;

export const RowKind = {
  lock: 0x10,
  lockAudit: 0x11,
  lockAuditHead: 0x12,
  sequence: 0x20,
  sequenceKey: 0x21,
  sequenceOrder: 0x22,
  value: 0x30,
  history: 0x31,
  ownership: 0x32,
  cluster: 0x40,
  member: 0x41,
  partition: 0x42,
  range: 0x43,
  formerMember: 0x44,
  leavingKeySpace: 0x45,
  rangeMove: 0x46,
  plannerHold: 0x47,
} as const;

/** One more than the largest kind byte: bounds a table indexed by kind. */
export const ROW_KIND_END = 0x50;

const isAscii = /^[\0-\x7f]*$/;

/** The byte key of `bytes`. */
export function toByteKey(bytes: Uint8Array): ByteKey {
  if (bytes.length <= 2048) return String.fromCharCode.apply(null, bytes as unknown as number[]);
  let key = "";
  for (let at = 0; at < bytes.length; at += 2048) {
    key += String.fromCharCode.apply(null, bytes.subarray(at, at + 2048) as unknown as number[]);
  }
  return key;
}

/** The bytes of `key`, written into `bytes`, which is as long. */
export function writeByteKey(key: ByteKey, bytes: Uint8Array): Uint8Array {
  for (let at = 0; at < key.length; at++) bytes[at] = key.charCodeAt(at);
  return bytes;
}

export function fromByteKey(key: ByteKey): Uint8Array {
  return writeByteKey(key, new Uint8Array(key.length));
}

/** The byte key of the UTF-8 form of well-formed `text`. */
export function textToByteKey(text: string): ByteKey {
  return isAscii.test(text) ? text : toByteKey(encodeText(text));
}

/**
 * The text whose UTF-8 form `key` is. Asserts that it is one: names are checked before they become
 * rows.
 */
export function byteKeyToText(key: ByteKey): string {
  if (isAscii.test(key)) return key;
  const text = decodeText(fromByteKey(key));
  assert(text !== null, "a stored name is valid UTF-8");
  return text;
}

/**
 * The byte key of a name of 1 to 1,024 UTF-8 bytes; null when `text` is empty, longer or not well-
 * formed.
 */
export function nameKey(text: string): ByteKey | null {
  const length = text.length;
  if (length === 0 || length > NAME_MAX_BYTES) return null;
  for (let at = 0; at < length; at++) {
    if (text.charCodeAt(at) >= 0x80) return wideNameKey(text);
  }
  return text;
}

function wideNameKey(text: string): ByteKey | null {
  let key = "";
  for (let at = 0; at < text.length; at++) {
    const point = text.codePointAt(at) as number;
    if (point < 0x80) key += String.fromCharCode(point);
    else if (point < 0x800) key += String.fromCharCode(0xc0 | (point >> 6), continuation(point));
    else if (point < 0x10000) {
      if (point >= 0xd800 && point <= 0xdfff) return null;
      key += String.fromCharCode(
        0xe0 | (point >> 12),
        continuation(point >> 6),
        continuation(point),
      );
    } else {
      const head = 0xf0 | (point >> 18);
      key += String.fromCharCode(head, continuation(point >> 12), continuation(point >> 6));
      key += String.fromCharCode(continuation(point));
      at++;
    }
    if (key.length > NAME_MAX_BYTES) return null;
  }
  return key;
}

function continuation(bits: number): number {
  return 0x80 | (bits & 0x3f);
}

function uint16Key(value: number): ByteKey {
  assert(Number.isInteger(value) && value >= 0 && value <= 0xffff, "a key part fits 16 bits");
  return String.fromCharCode(value >>> 8, value & 0xff);
}

export function uint32Key(value: number): ByteKey {
  assert(Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff, "a key part fits 32 bits");
  return String.fromCharCode(
    value >>> 24,
    (value >>> 16) & 0xff,
    (value >>> 8) & 0xff,
    value & 0xff,
  );
}

/** Eight bytes of a safe integer ≥ 0. */
export function uint53Key(value: number): ByteKey {
  assert(Number.isSafeInteger(value) && value >= 0, "a key part is a safe integer of at least 0");
  return uint32Key(Math.floor(value / 0x1_0000_0000)) + uint32Key(value >>> 0);
}

export function readUint32Key(key: ByteKey, at: number): number {
  const high = (key.charCodeAt(at) << 8) | key.charCodeAt(at + 1);
  return high * 0x1_0000 + ((key.charCodeAt(at + 2) << 8) | key.charCodeAt(at + 3));
}

/** The smallest byte key above all that begin with `prefix`; null when there is none. */
export function keySuccessor(prefix: ByteKey): ByteKey | null {
  let length = prefix.length;
  while (length > 0 && prefix.charCodeAt(length - 1) === 0xff) length--;
  if (length === 0) return null;
  return prefix.slice(0, length - 1) + String.fromCharCode(prefix.charCodeAt(length - 1) + 1);
}

export function groupRecordKey(group: number): ByteKey {
  return String.fromCharCode(KeySpace.groupRecord) + uint32Key(group);
}

/** What all rows of a group begin with, in every generation. */
export function groupPrefix(group: number): ByteKey {
  return String.fromCharCode(KeySpace.groupRows) + uint32Key(group);
}

/** What all rows of one generation of a group begin with. */
export function generationPrefix(group: number, generation: number): ByteKey {
  return groupPrefix(group) + uint32Key(generation);
}

/** Where the kind of a group's row stands in its key. */
export const KIND_AT = generationPrefix(0, 0).length;

/** The group of a row of a group. */
export function groupOfRow(key: Uint8Array): number {
  let group = 0;
  for (let at = 1; at <= 4; at++) group = group * 256 + (key[at] as number);
  return group;
}

/** Key of a row of the node itself. */
export function nodeRowKey(name: string): ByteKey {
  return String.fromCharCode(KeySpace.node) + textToByteKey(name);
}

export function historyKey(key: ByteKey, revision: number): ByteKey {
  const high = Math.floor(revision / 0x1_0000_0000);
  const tail = String.fromCharCode(
    high >>> 24,
    (high >>> 16) & 0xff,
    (high >>> 8) & 0xff,
    high & 0xff,
    (revision >>> 24) & 0xff,
    (revision >>> 16) & 0xff,
    (revision >>> 8) & 0xff,
    revision & 0xff,
  );
  return String.fromCharCode(key.length >>> 8, key.length & 0xff) + key + tail;
}

/** The key of which `name` is an older revision. */
export function historyKeyOf(name: ByteKey): ByteKey {
  return name.slice(2, 2 + ((name.charCodeAt(0) << 8) | name.charCodeAt(1)));
}

export function sequenceKeyKey(life: number, key: ByteKey): ByteKey {
  return uint53Key(life) + key;
}

export function sequenceOrderKey(life: number, ordinal: number): ByteKey {
  return uint53Key(life) + uint53Key(ordinal);
}

/** What the descriptors of one key space begin with, and the rows of their ownership. */
export function rangePrefix(keySpace: ByteKey): ByteKey {
  return uint16Key(keySpace.length) + keySpace;
}

export function rangeKey(keySpace: ByteKey, startKey: ByteKey | null): ByteKey {
  return rangePrefix(keySpace) + (startKey === null ? "\0" : `\x01${startKey}`);
}
