/**
 * The commands about the group itself, what they hold as bytes, and their outcomes.
 *
 * Pure. Part of the vocabulary in command.ts, which gives it out again.
 */
import { type Level, level } from "../../base/ids.js";
import { type CommandCodecs, int32, optionalBytes, readOptionalBytes, text } from "./fields.js";

/** Advances the lease clock and nothing else: makes an expiry visible to a read. */
export interface AdvanceClockCommand {
  readonly kind: "advance-clock";
}
/**
 * Drops up to `limit` rows that are past their retention by lease time: idle lock records (raising
 * the token floor), tombstones, idempotency entries. A resumable slice: the outcome says where to
 * go on.
 */
export interface CollectCommand {
  readonly kind: "collect";
  readonly after: Uint8Array | null;
  readonly limit: number;
  readonly lockRetentionMs: number;
  /** 0 = keep for ever. */
  readonly tombstoneRetentionMs: number;
}
export interface CollectOutcome {
  readonly kind: "collected";
  readonly dropped: number;
  readonly next: Uint8Array | null;
}
export interface DoneOutcome {
  readonly kind: "done";
}
/** Raises the level of the group in whose log it is; it never falls. */
export interface SetLevelCommand {
  readonly kind: "set-level";
  readonly level: Level;
}
export interface LevelOutcome {
  readonly kind: "level";
  /** "unchanged": the group is at this level, or above. */
  readonly status: "done" | "unchanged" | "invalid";
  /** Of the group, after the command. */
  readonly level: Level;
}

/**
 * Where a backup cuts the group's log: no effect. It is alone in its entry, whose stamp is the last
 * of its millisecond; each replica notes position, stamp and digest when it applies it.
 */
export interface MarkCommand {
  readonly kind: "mark";
  /** 32 hexadecimal digits. */
  readonly backupId: string;
  /** Of the cut, from 1 on. */
  readonly round: number;
}

export type GroupCommand = AdvanceClockCommand | CollectCommand | SetLevelCommand | MarkCommand;

export const GROUP_COMMANDS: CommandCodecs<GroupCommand> = {
  "advance-clock": {
    number: 48,
    version: 1,
    write: () => undefined,
    read: () => ({ kind: "advance-clock" }),
  },
  collect: {
    number: 49,
    version: 1,
    write(writer, command) {
      optionalBytes(writer, command.after);
      int32(writer, command.limit);
      writer.uint53(command.lockRetentionMs).uint53(command.tombstoneRetentionMs);
    },
    read: (reader) => ({
      kind: "collect",
      after: readOptionalBytes(reader),
      limit: reader.int32(),
      lockRetentionMs: reader.uint53(),
      tombstoneRetentionMs: reader.uint53(),
    }),
  },
  "set-level": {
    number: 50,
    version: 1,
    write: (writer, command) => void writer.uint32(command.level),
    read: (reader) => ({ kind: "set-level", level: level(reader.uint32()) }),
  },
  mark: {
    number: 60,
    version: 1,
    write: (writer, command) => int32(text(writer, command.backupId), command.round),
    read: (reader) => ({ kind: "mark", backupId: reader.text(), round: reader.int32() }),
  },
};
