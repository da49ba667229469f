/**
 * The codec of a command, and the fields that codecs of commands and rows are made of.
 *
 * Pure. Invariants: 1. What cannot be stored exactly (ill-formed text, a number outside its field)
 * is an assertion: the border refused it. 2. null is a presence byte.
 */
import { assert } from "../../base/assert.js";
import { isWellFormedText } from "../../base/bytes.js";
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import { isInt64 } from "../../base/int64.js";
import { NODE_ID_MAX } from "../../base/limits.js";

/** How a command of one kind lies in an entry, behind its number and version. */
export interface CommandCodec<C> {
  /** Part of the format: never used for anything else. */
  readonly number: number;
  /** The newest: what is written. Every earlier one can still be read. */
  readonly version: number;
  /** Fields in the order of the type. Equal commands give equal bytes. */
  write(writer: ByteWriter, command: C): void;
  /** Never throws: the reader turns failed. */
  read(reader: ByteReader, version: number): C;
}

/** The codecs of a family of commands, by kind. */
export type CommandCodecs<Commands extends { readonly kind: string }> = {
  readonly [Kind in Commands["kind"]]: CommandCodec<Extract<Commands, { readonly kind: Kind }>>;
};

export function text(writer: ByteWriter, value: string): ByteWriter {
  assert(isWellFormedText(value), "text in a command is well-formed");
  return writer.text(value);
}

export function int32(writer: ByteWriter, value: number): void {
  assert((value | 0) === value, "the field is an int32");
  writer.int32(value);
}

export function int64(writer: ByteWriter, value: bigint): void {
  assert(isInt64(value), "the field is an int64");
  writer.int64(value);
}

/** Of 64 bits. */
export function uint64(writer: ByteWriter, value: bigint): void {
  assert(value === BigInt.asUintN(64, value), "the field is a uint64");
  writer.int64(value);
}

export function readUint64(reader: ByteReader): bigint {
  return BigInt.asUintN(64, reader.int64());
}

export function optionalInt64(writer: ByteWriter, value: bigint | null): void {
  writer.boolean(value !== null);
  if (value !== null) int64(writer, value);
}

export function readOptionalInt64(reader: ByteReader): bigint | null {
  return reader.boolean() ? reader.int64() : null;
}

export function optionalInt32(writer: ByteWriter, value: number | null): void {
  writer.boolean(value !== null);
  if (value !== null) int32(writer, value);
}

export function readOptionalInt32(reader: ByteReader): number | null {
  return reader.boolean() ? reader.int32() : null;
}

export function optionalBytes(writer: ByteWriter, value: Uint8Array | null): void {
  writer.boolean(value !== null);
  if (value !== null) writer.bytes(value);
}

export function readOptionalBytes(reader: ByteReader): Uint8Array | null {
  return reader.boolean() ? reader.bytes() : null;
}

/** As a view of what is read. */
export function readOptionalBytesView(reader: ByteReader): Uint8Array | null {
  return reader.boolean() ? reader.bytesView() : null;
}

export function optionalText(writer: ByteWriter, value: string | null): void {
  writer.boolean(value !== null);
  if (value !== null) text(writer, value);
}

export function readOptionalText(reader: ByteReader): string | null {
  return reader.boolean() ? reader.text() : null;
}

/** Node ids, ascending. */
export function writeNodes(writer: ByteWriter, nodes: readonly number[]): ByteWriter {
  writer.length(nodes.length);
  for (const node of nodes) writer.uint32(node);
  return writer;
}

/** At most `max` of them, ascending and none twice; else the reader turns failed. */
export function readNodes(reader: ByteReader, max: number): number[] {
  const count = reader.length();
  // A larger count than there are bytes for must not steer an allocation.
  if (count > max || count * 4 > reader.remainingBytes) {
    reader.fail();
    return [];
  }
  const nodes: number[] = [];
  for (let at = 0; at < count; at++) {
    const node = reader.uint32();
    if (node < 1 || node > NODE_ID_MAX || node <= (nodes[at - 1] ?? 0)) reader.fail();
    nodes.push(node);
  }
  return nodes;
}
