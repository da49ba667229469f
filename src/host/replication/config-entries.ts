/**
 * Membership changes and memberships as bytes: the payload of a config entry, and the group's
 * configuration in its record and snapshots.
 *
 * Pure codec. Invariants: 1. Strict: one encoding for one value, anything else is refused. 2. An
 * empty payload is the order to leave a joint configuration, which the core proposes itself.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { assert } from "../../base/assert.js";
import { NO_PLACEMENT, placementGeneration, type PlacementGeneration } from "../../base/ids.js";
import { MEMBERS_MAX, NODE_ID_MAX } from "../../base/limits.js";
import { readNodes, writeNodes } from "../../machine/commands/fields.js";
import type {
  ConfigChange,
  ConfigOperation,
  EntryKind,
  Membership,
} from "../../raft/state/types.js";

const VERSION = 1;
/** Changes carry the generation that they rest on since this version (P-131). */
const CHANGE_VERSION = 2;

/** Entry kinds as the log stores them. */
export const EntryKindCode = { normal: 0, configChangeV1: 1, configChangeV2: 2 } as const;

export function entryKindCode(kind: EntryKind): number {
  return EntryKindCode[kind];
}

/** The kind of a stored code, or null when there is none. */
export function entryKindOf(code: number): EntryKind | null {
  if (code === EntryKindCode.normal) return "normal";
  if (code === EntryKindCode.configChangeV1) return "configChangeV1";
  return code === EntryKindCode.configChangeV2 ? "configChangeV2" : null;
}

const TRANSITIONS = ["auto", "implicit", "explicit"] as const;
const OPERATIONS = ["addVoter", "addLearner", "remove", "update"] as const;
const LEAVE_JOINT: ConfigChange = { version: 2, transition: "auto", operations: [] };

/** What a config entry carries. */
export interface ConfigPayload {
  readonly change: ConfigChange;
  /** Of the partition's record that asked for the change; 0 = the member list did. */
  readonly generation: PlacementGeneration;
}

export function encodeConfigChange({ change, generation }: ConfigPayload): Uint8Array {
  const writer = new ByteWriter(40).uint8(CHANGE_VERSION).uint53(generation).uint8(change.version);
  writer.uint8(TRANSITIONS.indexOf(change.transition)).length(change.operations.length);
  for (const { kind, node } of change.operations) {
    writer.uint8(OPERATIONS.indexOf(kind)).uint32(node);
  }
  return writer.finish();
}

/** Null when the bytes are no change of a known version. */
export function decodeConfigChange(bytes: Uint8Array): ConfigPayload | null {
  if (bytes.length === 0) return { change: LEAVE_JOINT, generation: NO_PLACEMENT };
  const reader = new ByteReader(bytes);
  const format = reader.uint8();
  if (format !== VERSION && format !== CHANGE_VERSION) return null;
  const generation = format === VERSION ? NO_PLACEMENT : placementGeneration(reader.uint53());
  const version = reader.uint8();
  const transition = TRANSITIONS[reader.uint8()];
  const count = reader.length();
  if (reader.failed || transition === undefined || count * 5 !== reader.remainingBytes) return null;
  if (version !== 1 && version !== 2) return null;
  const operations: ConfigOperation[] = [];
  for (let at = 0; at < count; at++) {
    const kind = OPERATIONS[reader.uint8()];
    const node = reader.uint32();
    if (kind === undefined || node < 1 || node > NODE_ID_MAX) return null;
    operations.push({ kind, node });
  }
  if (!reader.isComplete()) return null;
  return { change: { version, transition, operations }, generation };
}

export function encodeMembership(membership: Membership): Uint8Array {
  const writer = new ByteWriter(64).uint8(VERSION);
  const { voters, votersOutgoing, learners, learnersNext } = membership;
  for (const list of [voters, votersOutgoing, learners, learnersNext]) {
    assert(list.length <= MEMBERS_MAX, "a group has as many members as can be read again");
    writeNodes(writer, list);
  }
  return writer.boolean(membership.autoLeave).finish();
}

/** Null when the bytes are no membership of this version. */
export function decodeMembership(bytes: Uint8Array): Membership | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const voters = readNodes(reader, MEMBERS_MAX);
  const votersOutgoing = readNodes(reader, MEMBERS_MAX);
  const learners = readNodes(reader, MEMBERS_MAX);
  const learnersNext = readNodes(reader, MEMBERS_MAX);
  const autoLeave = reader.boolean();
  if (!reader.isComplete()) return null;
  return { voters, votersOutgoing, learners, learnersNext, autoLeave };
}

/** A membership of voters only: what a group begins with. */
export function membershipOfVoters(voters: readonly number[]): Membership {
  const ascending = [...voters].sort((a, b) => a - b);
  return {
    voters: ascending,
    votersOutgoing: [],
    learners: [],
    learnersNext: [],
    autoLeave: false,
  };
}
