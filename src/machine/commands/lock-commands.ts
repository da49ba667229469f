/**
 * The commands about locks (persistent ones: ephemeral ones never enter the log), what they hold as
 * bytes, and their outcome.
 *
 * Pure. Part of the vocabulary in command.ts, which gives it out again.
 */
import type { CommandCodecs } from "./fields.js";
import { int32, text } from "./fields.js";

export interface TryLockCommand {
  readonly kind: "try-lock";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
}
export interface TryExtendCommand {
  readonly kind: "try-extend";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
}
export interface TryUnlockCommand {
  readonly kind: "try-unlock";
  readonly resource: string;
  readonly owner: Uint8Array;
}

export interface LockOutcome {
  readonly kind: "lock";
  readonly type: number;
  readonly token: bigint;
}

export type LockCommand = TryLockCommand | TryExtendCommand | TryUnlockCommand;

export const LOCK_COMMANDS: CommandCodecs<LockCommand> = {
  "try-lock": {
    number: 1,
    version: 1,
    write(writer, command) {
      text(writer, command.resource).bytes(command.owner);
      int32(writer, command.expiresMs);
    },
    read: (reader) => ({
      kind: "try-lock",
      resource: reader.text(),
      owner: reader.bytes(),
      expiresMs: reader.int32(),
    }),
  },
  "try-extend": {
    number: 2,
    version: 1,
    write(writer, command) {
      text(writer, command.resource).bytes(command.owner);
      int32(writer, command.expiresMs);
    },
    read: (reader) => ({
      kind: "try-extend",
      resource: reader.text(),
      owner: reader.bytes(),
      expiresMs: reader.int32(),
    }),
  },
  "try-unlock": {
    number: 3,
    version: 1,
    write: (writer, command) => void text(writer, command.resource).bytes(command.owner),
    read: (reader) => ({ kind: "try-unlock", resource: reader.text(), owner: reader.bytes() }),
  },
};
