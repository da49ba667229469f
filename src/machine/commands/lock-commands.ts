/**
 * The commands about locks (persistent ones: ephemeral ones never enter the log), what they hold as
 * bytes, and their outcome.
 *
 * Pure. Part of the vocabulary in command.ts, which gives it out again.
 */
import type { CommandCodecs } from "./fields.js";
import {
  int32,
  int64,
  optionalBytes,
  optionalInt64,
  readOptionalBytes,
  readOptionalInt64,
  text,
} from "./fields.js";

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

/** As try-lock; what is granted has a note. */
export interface LockWithNoteCommand {
  readonly kind: "lock-with-note";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  readonly note: Uint8Array;
}
/** As try-extend, of one grant alone or with another note. */
export interface ExtendGrantCommand {
  readonly kind: "extend-grant";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  /** Of the one grant that it is about; null: whichever it is. */
  readonly token: bigint | null;
  /** null: that of the grant stays. */
  readonly note: Uint8Array | null;
}
/** As try-unlock, of one grant alone. */
export interface UnlockGrantCommand {
  readonly kind: "unlock-grant";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly token: bigint;
}

/**
 * An administrator ends the grant with this token, and a row of it is kept (F3 to F5). The newest
 * `retained` rows stay.
 */
export interface ForceUnlockCommand {
  readonly kind: "force-unlock";
  readonly resource: string;
  readonly token: bigint;
  /**
   * Null: the persistent lock is meant, and released. Otherwise the holder of the ephemeral one, of
   * which the log knows nothing: the row alone is written, before the effect.
   */
  readonly owner: Uint8Array | null;
  readonly actor: string;
  readonly reason: string;
  /** Of the request, and the node that took it in. */
  readonly requestId: string;
  readonly nodeId: number;
  readonly waitersDropped: number;
  readonly retained: number;
}

/** A grant as its lock has it. */
export interface LockGrant {
  readonly token: bigint;
  readonly owner: Uint8Array;
  /** 0 each: it is of no wait that may be repeated. */
  readonly waitId: bigint;
  readonly attempt: bigint;
  readonly note: Uint8Array | null;
}

/** What a command did to the grants of a lock that heirs or repeatable waits are known of. */
export interface Handover {
  /** The holder's grant, which is over by it; null: it was over before, or still is the holder's. */
  readonly from: LockGrant | null;
  /** The grants behind it, in order; all but the last are over, too. */
  readonly to: readonly LockGrant[];
  /** The last of them is over as well, and nobody holds the lock. */
  readonly isFree: boolean;
}

export interface LockOutcome {
  readonly kind: "lock";
  readonly type: number;
  readonly token: bigint;
  /** Where heirs or repeatable waits are known of the lock. */
  readonly handover?: Handover;
}

export interface ForcedOutcome {
  readonly kind: "forced";
  readonly type: number;
  /** Of the grant that was ended; 0 with a refusal, as the number of the row. */
  readonly token: bigint;
  readonly owner: Uint8Array | null;
  readonly auditId: number;
  /** As of LockOutcome. */
  readonly handover?: Handover;
}

/** What ephemeral tables know as well. */
export type LockCommand =
  | TryLockCommand
  | TryExtendCommand
  | TryUnlockCommand
  | LockWithNoteCommand
  | ExtendGrantCommand
  | UnlockGrantCommand;

export const LOCK_COMMANDS: CommandCodecs<LockCommand | ForceUnlockCommand> = {
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
  "lock-with-note": {
    number: 4,
    version: 1,
    write(writer, command) {
      text(writer, command.resource).bytes(command.owner);
      int32(writer, command.expiresMs);
      writer.bytes(command.note);
    },
    read: (reader) => ({
      kind: "lock-with-note",
      resource: reader.text(),
      owner: reader.bytes(),
      expiresMs: reader.int32(),
      note: reader.bytes(),
    }),
  },
  "extend-grant": {
    number: 5,
    version: 1,
    write(writer, command) {
      text(writer, command.resource).bytes(command.owner);
      int32(writer, command.expiresMs);
      optionalInt64(writer, command.token);
      optionalBytes(writer, command.note);
    },
    read: (reader) => ({
      kind: "extend-grant",
      resource: reader.text(),
      owner: reader.bytes(),
      expiresMs: reader.int32(),
      token: readOptionalInt64(reader),
      note: readOptionalBytes(reader),
    }),
  },
  "unlock-grant": {
    number: 6,
    version: 1,
    write(writer, command) {
      text(writer, command.resource).bytes(command.owner);
      int64(writer, command.token);
    },
    read: (reader) => ({
      kind: "unlock-grant",
      resource: reader.text(),
      owner: reader.bytes(),
      token: reader.int64(),
    }),
  },
  "force-unlock": {
    number: 7,
    version: 1,
    write(writer, command) {
      text(writer, command.resource);
      int64(writer, command.token);
      optionalBytes(writer, command.owner);
      text(text(text(writer, command.actor), command.reason), command.requestId);
      writer.uint32(command.nodeId).uint32(command.waitersDropped).uint32(command.retained);
    },
    read: (reader) => ({
      kind: "force-unlock",
      resource: reader.text(),
      token: reader.int64(),
      owner: readOptionalBytes(reader),
      actor: reader.text(),
      reason: reader.text(),
      requestId: reader.text(),
      nodeId: reader.uint32(),
      waitersDropped: reader.uint32(),
      retained: reader.uint32(),
    }),
  },
};
