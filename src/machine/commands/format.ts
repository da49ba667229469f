/**
 * What the bytes of all commands have in common: the numbers of their kinds, their versions, and
 * fields that are checked when they are written.
 *
 * Invariants: 1. Numbers of kinds and roles are part of the format: one is never used for anything
 * else. 2. What cannot be stored exactly is an assertion: the border refused it.
 */
import { assert } from "../../base/assert.js";
import { isWellFormedText } from "../../base/bytes.js";
import type { ByteWriter } from "../../base/codec.js";
import type { MemberRole } from "./meta-command.js";

export const CommandKind = {
  tryLock: 1,
  tryExtend: 2,
  tryUnlock: 3,
  createSequence: 16,
  updateSequence: 17,
  deleteSequence: 18,
  allocate: 19,
  reserveBlock: 20,
  returnBlock: 21,
  kvSet: 32,
  kvExtend: 33,
  kvDelete: 34,
  advanceClock: 48,
  collect: 49,
  setLevel: 50,
  foundCluster: 64,
  updateMember: 65,
  setReplicationFactor: 66,
  registerRange: 67,
  unregisterRange: 68,
  addMember: 69,
  setMemberRole: 70,
  removeMember: 71,
  raiseLevel: 72,
} as const;

/** Kinds that are not at their first version any more. */
const VERSIONS: ReadonlyMap<number, number> = new Map([
  // The second version carries the data directories of members, the third levels.
  [CommandKind.foundCluster, 3],
  [CommandKind.updateMember, 3],
  [CommandKind.addMember, 2],
]);

/** The newest version of a kind: what is written. Every earlier one can still be read. */
export function commandVersion(kind: number): number {
  return kind < CommandKind.foundCluster ? 1 : (VERSIONS.get(kind) ?? 1);
}

/** Roles by their stored number, which never changes its meaning. */
export const STORED_ROLES: readonly MemberRole[] = ["learner", "voter", "leaving"];

/** Begins a command. */
export function head(writer: ByteWriter, kind: number): ByteWriter {
  return writer.uint8(kind).uint8(commandVersion(kind));
}

export function text(writer: ByteWriter, value: string): ByteWriter {
  assert(isWellFormedText(value), "text in a command is well-formed");
  return writer.text(value);
}

export function int32(writer: ByteWriter, value: number): void {
  assert((value | 0) === value, "the field is an int32");
  writer.int32(value);
}
