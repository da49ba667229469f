/**
 * Bytes to commands, the mirror of the command writer.
 *
 * Pure. Invariants: 1. Never throws: "unknown" for a kind or version of another program, null for
 * damage. 2. Whatever is well-formed is read, also where its content is not acceptable: apply
 * decides about that.
 */
import type { ByteReader } from "../../base/codec.js";
import { level } from "../../base/ids.js";
import type { BlockCursor, Command } from "./command.js";
import { CommandKind, commandVersion } from "./format.js";
import { readMetaCommand } from "./meta-codec.js";

function optionalInt64(reader: ByteReader): bigint | null {
  return reader.boolean() ? reader.int64() : null;
}

function optionalInt32(reader: ByteReader): number | null {
  return reader.boolean() ? reader.int32() : null;
}

function optionalBytes(reader: ByteReader): Uint8Array | null {
  return reader.boolean() ? reader.bytes() : null;
}

function cursor(reader: ByteReader): BlockCursor {
  return {
    incarnation: reader.uint53(),
    revision: reader.uint53(),
    lastHandedOut: reader.int64(),
  };
}

function optionalCursor(reader: ByteReader): BlockCursor | null {
  return reader.boolean() ? cursor(reader) : null;
}

/**
 * The next command; "unknown" when another program wrote its kind or version, null when it is
 * damaged.
 */
export function readCommand(reader: ByteReader): Command | "unknown" | null {
  const kind = reader.uint8();
  const version = reader.uint8();
  if (reader.failed) return null;
  if (version < 1 || version > commandVersion(kind)) return "unknown";
  const command = readBody(reader, kind, version);
  return reader.failed ? null : command;
}

function readBody(reader: ByteReader, kind: number, version: number): Command | "unknown" {
  switch (kind) {
    case CommandKind.tryLock:
      return {
        kind: "try-lock",
        resource: reader.text(),
        owner: reader.bytes(),
        expiresMs: reader.int32(),
      };
    case CommandKind.tryExtend:
      return {
        kind: "try-extend",
        resource: reader.text(),
        owner: reader.bytes(),
        expiresMs: reader.int32(),
      };
    case CommandKind.tryUnlock:
      return { kind: "try-unlock", resource: reader.text(), owner: reader.bytes() };
    case CommandKind.kvSet:
      return {
        kind: "kv-set",
        key: reader.text(),
        value: optionalBytes(reader),
        compareValue: optionalBytes(reader),
        compareRevision: reader.int64(),
        flags: reader.int32(),
        expiresMs: reader.int32(),
        revisionsRetained: reader.uint53(),
      };
    case CommandKind.kvExtend:
      return { kind: "kv-extend", key: reader.text(), expiresMs: reader.int32() };
    case CommandKind.kvDelete:
      return { kind: "kv-delete", key: reader.text(), revisionsRetained: reader.uint53() };
    default:
      return readSequenceBody(reader, kind, version);
  }
}

function readSequenceBody(reader: ByteReader, kind: number, version: number): Command | "unknown" {
  switch (kind) {
    case CommandKind.createSequence:
      return {
        kind: "create-sequence",
        name: reader.text(),
        initialValue: reader.int64(),
        increment: reader.int64(),
        maxValue: optionalInt64(reader),
        blockSize: optionalInt32(reader),
      };
    case CommandKind.updateSequence:
      return {
        kind: "update-sequence",
        name: reader.text(),
        currentValue: optionalInt64(reader),
        increment: optionalInt64(reader),
        initialValue: optionalInt64(reader),
        maxValue: optionalInt64(reader),
        removeMaxValue: reader.boolean(),
        blockSize: optionalInt32(reader),
        removeBlockSize: reader.boolean(),
        cursor: optionalCursor(reader),
      };
    case CommandKind.deleteSequence:
      return { kind: "delete-sequence", name: reader.text() };
    case CommandKind.allocate:
      return {
        kind: "allocate",
        name: reader.text(),
        count: reader.int32(),
        key: reader.boolean() ? reader.text() : null,
        cursor: optionalCursor(reader),
        keysRetainedMax: reader.uint53(),
        keysRetainedMs: reader.uint53(),
      };
    case CommandKind.reserveBlock:
      return {
        kind: "reserve-block",
        name: reader.text(),
        count: reader.int32(),
        defaultBlockSize: reader.int32(),
        cursor: optionalCursor(reader),
      };
    case CommandKind.returnBlock:
      return { kind: "return-block", name: reader.text(), cursor: cursor(reader) };
    default:
      return readGroupBody(reader, kind, version);
  }
}

function readGroupBody(reader: ByteReader, kind: number, version: number): Command | "unknown" {
  switch (kind) {
    case CommandKind.advanceClock:
      return { kind: "advance-clock" };
    case CommandKind.collect:
      return {
        kind: "collect",
        after: optionalBytes(reader),
        limit: reader.int32(),
        lockRetentionMs: reader.uint53(),
        tombstoneRetentionMs: reader.uint53(),
      };
    case CommandKind.setLevel:
      return { kind: "set-level", level: level(reader.uint32()) };
    default:
      return readMetaCommand(reader, kind, version);
  }
}
