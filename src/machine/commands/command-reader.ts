/**
 * Bytes to commands, the mirror of the command writer.
 *
 * Pure. Invariants: 1. Never throws: "unknown" for a kind or version of another program, null for
 * damage. 2. Whatever is well-formed is read, also where its content is not acceptable: apply
 * decides about that.
 */
import type { ByteReader } from "../../base/codec.js";
import type { BlockCursor, Command, MemberRole } from "./command.js";
import { CommandKind, STORED_ROLES, commandVersion } from "./command-writer.js";

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
    case CommandKind.foundCluster:
      return {
        kind: "found-cluster",
        clusterId: reader.text(),
        dataPartitions: reader.int32(),
        replicationFactor: reader.int32(),
        members: readMembers(reader, version),
      };
    case CommandKind.updateMember:
      return {
        kind: "update-member",
        nodeId: reader.int32(),
        endpoint: reader.text(),
        storageId: version === 1 ? "" : reader.text(),
      };
    case CommandKind.addMember:
      return {
        kind: "add-member",
        nodeId: reader.int32(),
        endpoint: reader.text(),
        storageId: reader.text(),
      };
    case CommandKind.setMemberRole:
      return { kind: "set-member-role", nodeId: reader.int32(), role: role(reader) };
    case CommandKind.removeMember:
      return { kind: "remove-member", nodeId: reader.int32() };
    case CommandKind.setReplicationFactor:
      return {
        kind: "set-replication-factor",
        partitionId: reader.int32(),
        replicationFactor: reader.int32(),
      };
    case CommandKind.registerRange:
      return { kind: "register-range", keySpace: reader.text(), partitionId: reader.int32() };
    case CommandKind.unregisterRange:
      return { kind: "unregister-range", keySpace: reader.text() };
    default:
      return "unknown";
  }
}

function role(reader: ByteReader): MemberRole {
  const found = STORED_ROLES[reader.uint8()];
  if (found === undefined) reader.fail();
  return found ?? "learner";
}

function readMembers(
  reader: ByteReader,
  version: number,
): { nodeId: number; endpoint: string; storageId: string }[] {
  const count = reader.length();
  // A member takes five bytes at least: a larger count is damage and must not steer an allocation.
  if (count * 5 > reader.remainingBytes) {
    reader.fail();
    return [];
  }
  const members: { nodeId: number; endpoint: string; storageId: string }[] = [];
  for (let at = 0; at < count; at++) {
    members.push({
      nodeId: reader.int32(),
      endpoint: reader.text(),
      storageId: version === 1 ? "" : reader.text(),
    });
  }
  return members;
}
