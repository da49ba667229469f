/**
 * What a program says of itself to another node, as bytes: its ranges, its version, and behind them
 * a block of extensions.
 *
 * Pure codec. Layout: levels (lowest u16, highest u16), protocols (lowest u16, highest u16),
 * version (text). Extensions: counted block of items, each with its tag (LEB128) and its counted
 * bytes. This layout is for good: it is what programs of all releases read of each other before
 * they agree on anything (contract 5.5 U7). Invariants: 1. Whatever a range says it is in order and
 * not empty, or refused. 2. The tags of a block ascend; what has a tag that is not known here is
 * passed over. 3. A block is bounded, and so are its items.
 */
import { assert } from "../base/assert.js";
import { textSizeBytes } from "../base/bytes.js";
import type { ByteReader, ByteWriter } from "../base/codec.js";
import { type NumberRange, type Program, assertRange } from "../base/levels.js";
import { HANDSHAKE_EXTENSIONS_MAX_BYTES, PROGRAM_VERSION_MAX_BYTES } from "../base/limits.js";

/** Something that a later program says. */
export interface Extension {
  readonly tag: number;
  readonly bytes: Uint8Array;
}

function putRange(writer: ByteWriter, range: NumberRange): void {
  assertRange(range);
  for (const end of [range.min, range.max]) writer.uint8(end & 0xff).uint8(end >> 8);
}

function takeRange(reader: ByteReader): NumberRange {
  const min = reader.uint8() | (reader.uint8() << 8);
  const max = reader.uint8() | (reader.uint8() << 8);
  if (min < 1 || max < min) reader.fail();
  return { min, max };
}

export function putProgram(writer: ByteWriter, program: Program): ByteWriter {
  const { levels, protocols, version } = program;
  assert(textSizeBytes(version) <= PROGRAM_VERSION_MAX_BYTES, "the version is a short text");
  putRange(writer, levels);
  putRange(writer, protocols);
  return writer.text(version);
}

export function takeProgram(reader: ByteReader): Program {
  const levels = takeRange(reader);
  const protocols = takeRange(reader);
  const version = reader.text();
  if (textSizeBytes(version) > PROGRAM_VERSION_MAX_BYTES) reader.fail();
  return { levels, protocols, version };
}

/** `extensions` have ascending tags. */
export function putExtensions(
  writer: ByteWriter,
  extensions: readonly Extension[] = [],
): ByteWriter {
  let sizeBytes = 0;
  for (const { tag, bytes } of extensions) {
    sizeBytes += lengthBytes(tag) + lengthBytes(bytes.length) + bytes.length;
  }
  assert(sizeBytes <= HANDSHAKE_EXTENSIONS_MAX_BYTES, "the extensions fit their block");
  writer.length(sizeBytes);
  for (const { tag, bytes } of extensions) writer.length(tag).bytes(bytes);
  return writer;
}

/** Passes over the block, all of whose tags are unknown here; a malformed one fails. */
export function skipExtensions(reader: ByteReader): void {
  const sizeBytes = reader.length();
  const end = reader.position + sizeBytes;
  if (sizeBytes > HANDSHAKE_EXTENSIONS_MAX_BYTES) reader.fail();
  let last = -1;
  while (!reader.failed && reader.position < end) {
    const tag = reader.length();
    reader.skip(reader.length());
    if (tag <= last || reader.position > end) reader.fail();
    last = tag;
  }
}

/** Bytes of `value` as LEB128. */
function lengthBytes(value: number): number {
  let count = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) count++;
  return count;
}
