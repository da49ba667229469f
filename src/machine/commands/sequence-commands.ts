/**
 * The commands about sequences, what they hold as bytes, and their outcomes.
 *
 * Pure. Part of the vocabulary in command.ts, which gives it out again.
 */
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import type { Hlc } from "../../base/hlc.js";
import {
  type CommandCodecs,
  int32,
  int64,
  optionalInt32,
  optionalInt64,
  optionalText,
  readOptionalInt32,
  readOptionalInt64,
  readOptionalText,
  text,
} from "./fields.js";

export interface CreateSequenceCommand {
  readonly kind: "create-sequence";
  readonly name: string;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
}
/**
 * Where the leader's open block stands: what it handed out last. Ignored unless incarnation and
 * revision are the record's.
 */
export interface BlockCursor {
  readonly incarnation: number;
  readonly revision: number;
  readonly lastHandedOut: bigint;
}
export interface UpdateSequenceCommand {
  readonly kind: "update-sequence";
  readonly name: string;
  readonly currentValue: bigint | null;
  readonly increment: bigint | null;
  readonly initialValue: bigint | null;
  readonly maxValue: bigint | null;
  readonly removeMaxValue: boolean;
  readonly blockSize: number | null;
  readonly removeBlockSize: boolean;
  readonly cursor: BlockCursor | null;
}
export interface DeleteSequenceCommand {
  readonly kind: "delete-sequence";
  readonly name: string;
}
/**
 * A keyed next or reserve (`key` not null), or one that is durable by itself. Ends the open block.
 */
export interface AllocateCommand {
  readonly kind: "allocate";
  readonly name: string;
  readonly count: number;
  readonly key: string | null;
  readonly cursor: BlockCursor | null;
  readonly keysRetainedMax: number;
  readonly keysRetainedMs: number;
}
/**
 * Reserves a block: max(block size, count) values clamped to maxValue and int64, at least `count`
 * or nothing. The block size is the sequence's own or else `defaultBlockSize`. With a valid cursor
 * the unused rest of the old block goes back first.
 */
export interface ReserveBlockCommand {
  readonly kind: "reserve-block";
  readonly name: string;
  readonly count: number;
  readonly defaultBlockSize: number;
  readonly cursor: BlockCursor | null;
}
/**
 * Hands back the unused rest of a block (graceful stop, transfer). No outcome but success or "not
 * the block".
 */
export interface ReturnBlockCommand {
  readonly kind: "return-block";
  readonly name: string;
  readonly cursor: BlockCursor;
}

/**
 * A sequence as it stands in the state; `currentValue` is the end of everything reserved so far.
 */
export interface SequenceRecord {
  readonly name: string;
  readonly currentValue: bigint;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  readonly incarnation: number;
  readonly revision: number;
  readonly createdAt: Hlc;
  readonly updatedAt: Hlc;
}
export interface SequenceOutcome {
  readonly kind: "sequence";
  readonly type: number;
  /** After create and update; null otherwise. */
  readonly record: SequenceRecord | null;
}
export interface AllocationOutcome {
  readonly kind: "allocation";
  readonly type: number;
  /**
   * Valid on success. `before` is the value below the first of the range: start = before +
   * increment.
   */
  readonly before: bigint;
  readonly increment: bigint;
  /** Values allocated or reserved: for a block it may exceed what was asked. */
  readonly count: number;
  readonly incarnation: number;
  readonly revision: number;
}

export type SequenceCommand =
  | CreateSequenceCommand
  | UpdateSequenceCommand
  | DeleteSequenceCommand
  | AllocateCommand
  | ReserveBlockCommand
  | ReturnBlockCommand;

function writeCursor(writer: ByteWriter, value: BlockCursor): void {
  writer.uint53(value.incarnation).uint53(value.revision);
  int64(writer, value.lastHandedOut);
}

function readCursor(reader: ByteReader): BlockCursor {
  return {
    incarnation: reader.uint53(),
    revision: reader.uint53(),
    lastHandedOut: reader.int64(),
  };
}

function writeOptionalCursor(writer: ByteWriter, value: BlockCursor | null): void {
  writer.boolean(value !== null);
  if (value !== null) writeCursor(writer, value);
}

function readOptionalCursor(reader: ByteReader): BlockCursor | null {
  return reader.boolean() ? readCursor(reader) : null;
}

export const SEQUENCE_COMMANDS: CommandCodecs<SequenceCommand> = {
  "create-sequence": {
    number: 16,
    version: 1,
    write(writer, command) {
      text(writer, command.name);
      int64(writer, command.initialValue);
      int64(writer, command.increment);
      optionalInt64(writer, command.maxValue);
      optionalInt32(writer, command.blockSize);
    },
    read: (reader) => ({
      kind: "create-sequence",
      name: reader.text(),
      initialValue: reader.int64(),
      increment: reader.int64(),
      maxValue: readOptionalInt64(reader),
      blockSize: readOptionalInt32(reader),
    }),
  },
  "update-sequence": {
    number: 17,
    version: 1,
    write(writer, command) {
      text(writer, command.name);
      optionalInt64(writer, command.currentValue);
      optionalInt64(writer, command.increment);
      optionalInt64(writer, command.initialValue);
      optionalInt64(writer, command.maxValue);
      writer.boolean(command.removeMaxValue);
      optionalInt32(writer, command.blockSize);
      writer.boolean(command.removeBlockSize);
      writeOptionalCursor(writer, command.cursor);
    },
    read: (reader) => ({
      kind: "update-sequence",
      name: reader.text(),
      currentValue: readOptionalInt64(reader),
      increment: readOptionalInt64(reader),
      initialValue: readOptionalInt64(reader),
      maxValue: readOptionalInt64(reader),
      removeMaxValue: reader.boolean(),
      blockSize: readOptionalInt32(reader),
      removeBlockSize: reader.boolean(),
      cursor: readOptionalCursor(reader),
    }),
  },
  "delete-sequence": {
    number: 18,
    version: 1,
    write: (writer, command) => void text(writer, command.name),
    read: (reader) => ({ kind: "delete-sequence", name: reader.text() }),
  },
  allocate: {
    number: 19,
    version: 1,
    write(writer, command) {
      text(writer, command.name);
      int32(writer, command.count);
      optionalText(writer, command.key);
      writeOptionalCursor(writer, command.cursor);
      writer.uint53(command.keysRetainedMax).uint53(command.keysRetainedMs);
    },
    read: (reader) => ({
      kind: "allocate",
      name: reader.text(),
      count: reader.int32(),
      key: readOptionalText(reader),
      cursor: readOptionalCursor(reader),
      keysRetainedMax: reader.uint53(),
      keysRetainedMs: reader.uint53(),
    }),
  },
  "reserve-block": {
    number: 20,
    version: 1,
    write(writer, command) {
      text(writer, command.name);
      int32(writer, command.count);
      int32(writer, command.defaultBlockSize);
      writeOptionalCursor(writer, command.cursor);
    },
    read: (reader) => ({
      kind: "reserve-block",
      name: reader.text(),
      count: reader.int32(),
      defaultBlockSize: reader.int32(),
      cursor: readOptionalCursor(reader),
    }),
  },
  "return-block": {
    number: 21,
    version: 1,
    write(writer, command) {
      text(writer, command.name);
      writeCursor(writer, command.cursor);
    },
    read: (reader) => ({ kind: "return-block", name: reader.text(), cursor: readCursor(reader) }),
  },
};
