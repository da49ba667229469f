/**
 * Commands of the meta partition to bytes and back; their types are next door.
 *
 * Pure. Invariants: 1. Numbers of kinds and roles are part of the format: one is never used for
 * anything else.
 */
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import { FIRST_LEVEL, level, membershipVersion } from "../../base/ids.js";
import { type CommandCodecs, int32, text } from "./fields.js";
import type { MemberRole, MetaCommand, NewMember, ProgramLevels } from "./meta-command.js";
import { PLACEMENT_COMMANDS } from "./placement-commands.js";
import { RANGE_MOVE_COMMANDS } from "./range-meta-commands.js";

/** Roles by their stored number, which never changes its meaning. */
export const STORED_ROLES: readonly MemberRole[] = ["learner", "voter", "leaving"];

/** What is read of a program where the bytes do not tell it. */
export const UNKNOWN_PROGRAM: ProgramLevels = {
  levelMin: FIRST_LEVEL,
  levelMax: FIRST_LEVEL,
  version: "",
};

function program(writer: ByteWriter, { levelMin, levelMax, version }: ProgramLevels): void {
  text(writer.uint32(levelMin).uint32(levelMax), version);
}

function readProgram(reader: ByteReader): ProgramLevels {
  return {
    levelMin: level(reader.uint32()),
    levelMax: level(reader.uint32()),
    version: reader.text(),
  };
}

function newMember(writer: ByteWriter, member: NewMember): void {
  int32(writer, member.nodeId);
  text(text(writer, member.endpoint), member.storageId);
  program(writer, member);
}

function readRole(reader: ByteReader): MemberRole {
  const found = STORED_ROLES[reader.uint8()];
  if (found === undefined) reader.fail();
  return found ?? "learner";
}

/** A member as of version 1 to 3 of a founding. */
function readMember(reader: ByteReader, version: number): NewMember {
  return {
    nodeId: reader.int32(),
    endpoint: reader.text(),
    storageId: version < 2 ? "" : reader.text(),
    ...(version < 3 ? UNKNOWN_PROGRAM : readProgram(reader)),
  };
}

function readMembers(reader: ByteReader, version: number): NewMember[] {
  const count = reader.length();
  // A member takes five bytes at least: a larger count is damage and must not steer an allocation.
  if (count * 5 > reader.remainingBytes) {
    reader.fail();
    return [];
  }
  const members: NewMember[] = [];
  for (let at = 0; at < count; at++) members.push(readMember(reader, version));
  return members;
}

export const META_COMMANDS: CommandCodecs<MetaCommand> = {
  "found-cluster": {
    number: 64,
    // The second version carries the data directories of members, the third levels.
    version: 3,
    write(writer, command) {
      text(writer, command.clusterId);
      int32(writer, command.dataPartitions);
      int32(writer, command.replicationFactor);
      writer.uint32(command.level).length(command.members.length);
      for (const member of command.members) newMember(writer, member);
    },
    read: (reader, version) => ({
      kind: "found-cluster",
      clusterId: reader.text(),
      dataPartitions: reader.int32(),
      replicationFactor: reader.int32(),
      level: version < 3 ? FIRST_LEVEL : level(reader.uint32()),
      members: readMembers(reader, version),
    }),
  },
  "update-member": {
    number: 65,
    version: 3,
    write: newMember,
    read: (reader, version) => ({ kind: "update-member", ...readMember(reader, version) }),
  },
  "set-replication-factor": {
    number: 66,
    version: 1,
    write(writer, command) {
      int32(writer, command.partitionId);
      int32(writer, command.replicationFactor);
    },
    read: (reader) => ({
      kind: "set-replication-factor",
      partitionId: reader.int32(),
      replicationFactor: reader.int32(),
    }),
  },
  "register-range": {
    number: 67,
    version: 1,
    write: (writer, command) => int32(text(writer, command.keySpace), command.partitionId),
    read: (reader) => {
      return { kind: "register-range", keySpace: reader.text(), partitionId: reader.int32() };
    },
  },
  "unregister-range": {
    number: 68,
    version: 1,
    write: (writer, command) => void text(writer, command.keySpace),
    read: (reader) => ({ kind: "unregister-range", keySpace: reader.text() }),
  },
  "add-member": {
    number: 69,
    version: 2,
    write: newMember,
    // Its first version is one behind those of the others.
    read: (reader, version) => ({ kind: "add-member", ...readMember(reader, version + 1) }),
  },
  "set-member-role": {
    number: 70,
    version: 1,
    write(writer, command) {
      int32(writer, command.nodeId);
      writer.uint8(STORED_ROLES.indexOf(command.role));
    },
    read: (reader) => {
      return { kind: "set-member-role", nodeId: reader.int32(), role: readRole(reader) };
    },
  },
  "remove-member": {
    number: 71,
    version: 1,
    write: (writer, command) => int32(writer, command.nodeId),
    read: (reader) => ({ kind: "remove-member", nodeId: reader.int32() }),
  },
  "raise-level": {
    number: 72,
    version: 1,
    write: (writer, command) => void writer.uint32(command.to).uint53(command.membershipVersion),
    read: (reader) => ({
      kind: "raise-level",
      to: level(reader.uint32()),
      membershipVersion: membershipVersion(reader.uint53()),
    }),
  },
  "evict-member": {
    number: 76,
    version: 1,
    write: (writer, command) => int32(writer, command.nodeId),
    read: (reader) => ({ kind: "evict-member", nodeId: reader.int32() }),
  },
  "hold-planner": {
    number: 82,
    version: 1,
    write: (writer, command) => void text(writer, command.holder).uint53(command.forMs),
    read: (reader) => ({ kind: "hold-planner", holder: reader.text(), forMs: reader.uint53() }),
  },
  "refound-cluster": {
    number: 83,
    version: 1,
    write: (writer, command) => newMember(text(writer, command.clusterId), command.member),
    read: (reader) => ({
      kind: "refound-cluster",
      clusterId: reader.text(),
      member: readMember(reader, 3),
    }),
  },
  ...PLACEMENT_COMMANDS,
  ...RANGE_MOVE_COMMANDS,
};
