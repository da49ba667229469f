/**
 * Commands to bytes; those of the meta partition are next door.
 *
 * Pure. Layout of a command: kind u8, version u8, fields in the order of its type; null as a
 * presence byte. Invariants: 1. Equal commands give equal bytes. 2. What cannot be stored exactly
 * (ill-formed text, a number outside its field) is an assertion: the border refused it.
 */
import { assert } from "../../base/assert.js";
import type { ByteWriter } from "../../base/codec.js";
import { isInt64 } from "../../base/int64.js";
import type {
  BlockCursor,
  Command,
  CollectCommand,
  CreateSequenceCommand,
  KvSetCommand,
  UpdateSequenceCommand,
} from "./command.js";
import { CommandKind, head, int32, text } from "./format.js";
import { writeMetaCommand } from "./meta-codec.js";

function int64(writer: ByteWriter, value: bigint): void {
  assert(isInt64(value), "the field is an int64");
  writer.int64(value);
}

function optionalInt64(writer: ByteWriter, value: bigint | null): void {
  writer.boolean(value !== null);
  if (value !== null) int64(writer, value);
}

function optionalInt32(writer: ByteWriter, value: number | null): void {
  writer.boolean(value !== null);
  if (value !== null) int32(writer, value);
}

function optionalBytes(writer: ByteWriter, value: Uint8Array | null): void {
  writer.boolean(value !== null);
  if (value !== null) writer.bytes(value);
}

function optionalText(writer: ByteWriter, value: string | null): void {
  writer.boolean(value !== null);
  if (value !== null) text(writer, value);
}

function cursor(writer: ByteWriter, value: BlockCursor): void {
  writer.uint53(value.incarnation).uint53(value.revision);
  int64(writer, value.lastHandedOut);
}

function optionalCursor(writer: ByteWriter, value: BlockCursor | null): void {
  writer.boolean(value !== null);
  if (value !== null) cursor(writer, value);
}

function createSequence(writer: ByteWriter, command: CreateSequenceCommand): void {
  text(head(writer, CommandKind.createSequence), command.name);
  int64(writer, command.initialValue);
  int64(writer, command.increment);
  optionalInt64(writer, command.maxValue);
  optionalInt32(writer, command.blockSize);
}

function updateSequence(writer: ByteWriter, command: UpdateSequenceCommand): void {
  text(head(writer, CommandKind.updateSequence), command.name);
  optionalInt64(writer, command.currentValue);
  optionalInt64(writer, command.increment);
  optionalInt64(writer, command.initialValue);
  optionalInt64(writer, command.maxValue);
  writer.boolean(command.removeMaxValue);
  optionalInt32(writer, command.blockSize);
  writer.boolean(command.removeBlockSize);
  optionalCursor(writer, command.cursor);
}

function kvSet(writer: ByteWriter, command: KvSetCommand): void {
  text(head(writer, CommandKind.kvSet), command.key);
  optionalBytes(writer, command.value);
  optionalBytes(writer, command.compareValue);
  int64(writer, command.compareRevision);
  int32(writer, command.flags);
  int32(writer, command.expiresMs);
  writer.uint53(command.revisionsRetained);
}

function collect(writer: ByteWriter, command: CollectCommand): void {
  optionalBytes(head(writer, CommandKind.collect), command.after);
  int32(writer, command.limit);
  writer.uint53(command.lockRetentionMs).uint53(command.tombstoneRetentionMs);
}

/** Appends one command. */
export function writeCommand(writer: ByteWriter, command: Command): void {
  switch (command.kind) {
    case "try-lock":
      text(head(writer, CommandKind.tryLock), command.resource).bytes(command.owner);
      return int32(writer, command.expiresMs);
    case "try-extend":
      text(head(writer, CommandKind.tryExtend), command.resource).bytes(command.owner);
      return int32(writer, command.expiresMs);
    case "try-unlock":
      text(head(writer, CommandKind.tryUnlock), command.resource).bytes(command.owner);
      return;
    case "kv-set":
      return kvSet(writer, command);
    case "kv-extend":
      text(head(writer, CommandKind.kvExtend), command.key);
      return int32(writer, command.expiresMs);
    case "kv-delete":
      text(head(writer, CommandKind.kvDelete), command.key).uint53(command.revisionsRetained);
      return;
    default:
      return writeRareCommand(writer, command);
  }
}

type RareCommand = Exclude<Command, { kind: `try-${string}` | `kv-${string}` }>;

function writeRareCommand(writer: ByteWriter, command: RareCommand): void {
  switch (command.kind) {
    case "create-sequence":
      return createSequence(writer, command);
    case "update-sequence":
      return updateSequence(writer, command);
    case "delete-sequence":
      text(head(writer, CommandKind.deleteSequence), command.name);
      return;
    case "allocate":
      text(head(writer, CommandKind.allocate), command.name);
      int32(writer, command.count);
      optionalText(writer, command.key);
      optionalCursor(writer, command.cursor);
      writer.uint53(command.keysRetainedMax).uint53(command.keysRetainedMs);
      return;
    case "reserve-block":
      text(head(writer, CommandKind.reserveBlock), command.name);
      int32(writer, command.count);
      int32(writer, command.defaultBlockSize);
      return optionalCursor(writer, command.cursor);
    case "return-block":
      text(head(writer, CommandKind.returnBlock), command.name);
      return cursor(writer, command.cursor);
    case "advance-clock":
      head(writer, CommandKind.advanceClock);
      return;
    case "collect":
      return collect(writer, command);
    case "set-level":
      head(writer, CommandKind.setLevel).uint32(command.level);
      return;
    default:
      return writeMetaCommand(writer, command);
  }
}
