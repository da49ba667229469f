/**
 * The rows that tell of forced releases: one for each, and one that says which there are.
 *
 * Pure codecs. Numbers ascend by one; the rows from `oldest` to below `next` are there.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type { Hlc } from "../../base/hlc.js";
import { readStamp, writeStamp } from "../commands/group-record.js";
import { finishRow } from "../store/row-memory.js";

const VERSION = 1;
const HEAD_VERSION = 1;

export interface LockAuditRow {
  readonly resource: string;
  readonly isEphemeral: boolean;
  /** Who held the lock, by which grant. */
  readonly owner: Uint8Array;
  readonly token: bigint;
  readonly stamp: Hlc;
  readonly actor: string;
  readonly reason: string;
  readonly requestId: string;
  readonly nodeId: number;
  readonly waitersDropped: number;
}

export interface LockAuditHead {
  readonly oldest: number;
  readonly next: number;
}

const writer = new ByteWriter(4096);

export function encodeLockAudit(row: LockAuditRow): Uint8Array {
  writer.reset().uint8(VERSION).text(row.resource).boolean(row.isEphemeral).bytes(row.owner);
  writeStamp(writer.int64(row.token), row.stamp);
  writer.text(row.actor).text(row.reason).text(row.requestId);
  writer.uint32(row.nodeId).uint32(row.waitersDropped);
  return finishRow(writer);
}

/** Null when the bytes are not such a row of this version. */
export function decodeLockAudit(bytes: Uint8Array): LockAuditRow | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const row: LockAuditRow = {
    resource: reader.text(),
    isEphemeral: reader.boolean(),
    owner: reader.bytes(),
    token: reader.int64(),
    stamp: readStamp(reader),
    actor: reader.text(),
    reason: reader.text(),
    requestId: reader.text(),
    nodeId: reader.uint32(),
    waitersDropped: reader.uint32(),
  };
  return reader.isComplete() ? row : null;
}

export function encodeAuditHead({ oldest, next }: LockAuditHead): Uint8Array {
  writer.reset().uint8(HEAD_VERSION).uint53(oldest).uint53(next);
  return finishRow(writer);
}

/** As `decodeLockAudit`. */
export function decodeAuditHead(bytes: Uint8Array): LockAuditHead | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== HEAD_VERSION) return null;
  const head = { oldest: reader.uint53(), next: reader.uint53() };
  return reader.isComplete() && head.oldest <= head.next && head.oldest >= 1 ? head : null;
}
