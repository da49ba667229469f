/**
 * The payload of a normal log entry: a stamp and commands as versioned bytes.
 *
 * Pure but for one reused writer. Layout: version u8, lease clock u53, stamp {n, l, c}, number of
 * commands, then each command as kind u8, version u8 and its fields in the order of its type.
 * Invariants: 1. Equal commands give equal bytes. 2. Reading is strict: an unknown version or kind
 * is told apart from damage, and both stop apply. 3. Whatever is well-formed is read, also where
 * its content is not acceptable: apply decides about that.
 */
import { assert } from "../../base/assert.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { failure, ok, type Result } from "../../base/result.js";
import {
  type Command,
  type EntryStamp,
  GROUP_COMMANDS,
  HEIR_COMMANDS,
  KV_COMMANDS,
  LOCK_COMMANDS,
  RANGE_COMMANDS,
  SEQUENCE_COMMANDS,
} from "./command.js";
import type { CommandCodec, CommandCodecs } from "./fields.js";
import { META_COMMANDS } from "./meta-codec.js";
import { readStamp, writeStamp } from "./group-record.js";

const ENTRY_VERSION = 1;

const CODECS: CommandCodecs<Command> = {
  ...LOCK_COMMANDS,
  ...HEIR_COMMANDS,
  ...SEQUENCE_COMMANDS,
  ...KV_COMMANDS,
  ...RANGE_COMMANDS,
  ...GROUP_COMMANDS,
  ...META_COMMANDS,
};

const BY_NUMBER: (CommandCodec<Command> | undefined)[] = [];
for (const codec of Object.values<CommandCodec<Command>>(CODECS)) {
  assert(BY_NUMBER[codec.number] === undefined, "every kind of command has a number of its own");
  BY_NUMBER[codec.number] = codec;
}

/** Appends one command: number and version of its kind, and its fields. */
export function writeCommand(writer: ByteWriter, command: Command): void {
  const codec: CommandCodec<Command> = CODECS[command.kind];
  writer.uint8(codec.number).uint8(codec.version);
  codec.write(writer, command);
}

/**
 * The next command; "unknown" when another program wrote its kind or version, null when it is
 * damaged.
 */
export function readCommand(reader: ByteReader): Command | "unknown" | null {
  const codec = BY_NUMBER[reader.uint8()];
  const version = reader.uint8();
  if (reader.failed) return null;
  if (codec === undefined || version < 1 || version > codec.version) return "unknown";
  const command = codec.read(reader, version);
  return reader.failed ? null : command;
}

export interface DecodedEntry {
  readonly stamp: EntryStamp;
  readonly commands: readonly Command[];
}

/** "unknown-version": a newer program wrote it. "malformed": damage. */
export type EntryFailure = "unknown-version" | "malformed";

const sharedWriter = new ByteWriter(64 * 1024);

/** The bytes of one entry. Asserts well-formed text and numbers within their fields. */
export function encodeEntry(stamp: EntryStamp, commands: readonly Command[]): Uint8Array {
  const writer = sharedWriter.reset();
  writer.uint8(ENTRY_VERSION).uint53(stamp.leaseMs);
  writeStamp(writer, stamp.stamp);
  writer.length(commands.length);
  for (const command of commands) writeCommand(writer, command);
  return writer.finish();
}

export function decodeEntry(bytes: Uint8Array): Result<DecodedEntry, EntryFailure> {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version !== ENTRY_VERSION) {
    if (reader.failed) return failure("malformed", "The entry is empty.");
    return failure("unknown-version", `Entry version ${version} is not known to this program.`);
  }
  const leaseMs = reader.uint53();
  const stamp = readStamp(reader);
  const count = reader.length();
  // The smallest command takes two bytes: a larger count is damage and must not steer an
  // allocation.
  if (reader.failed || count * 2 > reader.remainingBytes) {
    return failure("malformed", "The head of the entry is damaged.");
  }
  const commands: Command[] = [];
  for (let at = 0; at < count; at++) {
    const command = readCommand(reader);
    if (command === "unknown") {
      return failure(
        "unknown-version",
        `Command ${at} of the entry has an unknown kind or version.`,
      );
    }
    if (command === null) return failure("malformed", `Command ${at} of the entry is damaged.`);
    commands.push(command);
  }
  if (!reader.isComplete()) return failure("malformed", "The entry is longer than its commands.");
  return ok({ stamp: { leaseMs, stamp }, commands });
}

/** Bytes before the number of commands of an entry: version, lease clock, stamp. */
const ENTRY_HEAD_BYTES = 1 + 8 + 16;

/** Kinds that permit something that was not permitted before. */
const RAISING = ["set-level", "raise-level", "found-cluster"] as const;
const RAISING_NUMBERS: readonly number[] = RAISING.map((kind) => CODECS[kind].number);

/** Whether a command is to be alone in its entry: one that raises a level, and a mark. */
export function isAlone({ kind }: Command): boolean {
  return kind === "mark" || RAISING.some((raising) => raising === kind);
}

/**
 * The level that an entry raises its group or the cluster to, or founds it at; 0 when it does
 * neither. Such a command is alone in its entry: a look at two bytes tells of all others.
 */
export function levelRaisedBy(payload: Uint8Array): number {
  const isAlone = payload[ENTRY_HEAD_BYTES] === 1;
  if (!isAlone || !RAISING_NUMBERS.includes(payload[ENTRY_HEAD_BYTES + 1] ?? 0)) return 0;
  const entry = decodeEntry(payload);
  const command = entry.ok ? entry.value.commands[0] : undefined;
  if (command?.kind === "raise-level") return command.to;
  const raises = command?.kind === "set-level" || command?.kind === "found-cluster";
  return raises ? command.level : 0;
}

/** Size of the payload of these commands (bytes), for filling batches: encodes and counts. */
export function commandSizeBytes(command: Command): number {
  const writer = sharedWriter.reset();
  writeCommand(writer, command);
  return writer.sizeBytes;
}
