/**
 * Commands of the meta partition to bytes and back: the part of command writer and reader that
 * grows with the cluster's records.
 *
 * Pure. Invariants: those of the command writer and reader.
 */
import { unreachable } from "../../base/assert.js";
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import { FIRST_LEVEL, level, membershipVersion } from "../../base/ids.js";
import { CommandKind, STORED_ROLES, head, int32, text } from "./format.js";
import type {
  FoundClusterCommand,
  MemberRole,
  MetaCommand,
  NewMember,
  ProgramLevels,
} from "./meta-command.js";

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

function foundCluster(writer: ByteWriter, command: FoundClusterCommand): void {
  text(head(writer, CommandKind.foundCluster), command.clusterId);
  int32(writer, command.dataPartitions);
  int32(writer, command.replicationFactor);
  writer.uint32(command.level).length(command.members.length);
  for (const member of command.members) newMember(writer, member);
}

/** Appends one command. */
export function writeMetaCommand(writer: ByteWriter, command: MetaCommand): void {
  switch (command.kind) {
    case "found-cluster":
      return foundCluster(writer, command);
    case "update-member":
      return newMember(head(writer, CommandKind.updateMember), command);
    case "add-member":
      return newMember(head(writer, CommandKind.addMember), command);
    case "set-member-role":
      int32(head(writer, CommandKind.setMemberRole), command.nodeId);
      writer.uint8(STORED_ROLES.indexOf(command.role));
      return;
    case "remove-member":
      return int32(head(writer, CommandKind.removeMember), command.nodeId);
    case "set-replication-factor":
      int32(head(writer, CommandKind.setReplicationFactor), command.partitionId);
      return int32(writer, command.replicationFactor);
    case "register-range":
      text(head(writer, CommandKind.registerRange), command.keySpace);
      return int32(writer, command.partitionId);
    case "unregister-range":
      text(head(writer, CommandKind.unregisterRange), command.keySpace);
      return;
    case "raise-level":
      head(writer, CommandKind.raiseLevel).uint32(command.to).uint53(command.membershipVersion);
      return;
    default:
      return unreachable(command);
  }
}

/** The fields of a command of this kind and version; "unknown" for a kind of another program. */
export function readMetaCommand(
  reader: ByteReader,
  kind: number,
  version: number,
): MetaCommand | "unknown" {
  switch (kind) {
    case CommandKind.foundCluster:
      return {
        kind: "found-cluster",
        clusterId: reader.text(),
        dataPartitions: reader.int32(),
        replicationFactor: reader.int32(),
        level: version < 3 ? FIRST_LEVEL : level(reader.uint32()),
        members: readMembers(reader, version),
      };
    case CommandKind.updateMember:
      return { kind: "update-member", ...readMember(reader, version) };
    case CommandKind.addMember:
      // Its first version is one behind those of the others.
      return { kind: "add-member", ...readMember(reader, version + 1) };
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
    case CommandKind.raiseLevel:
      return {
        kind: "raise-level",
        to: level(reader.uint32()),
        membershipVersion: membershipVersion(reader.uint53()),
      };
    default:
      return "unknown";
  }
}

function role(reader: ByteReader): MemberRole {
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
