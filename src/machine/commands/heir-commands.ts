/**
 * The commands about heirs of a lock (Q14 to Q16): the try of a wait that may be repeated, and the
 * list of who holds the lock next. Of persistent locks alone.
 *
 * Pure. Part of the vocabulary in command.ts, which gives it out again. Invariants: 1. A wait and
 * its attempts are told by unsigned numbers of 64 bits, exactly.
 */
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import type { CommandCodecs } from "./fields.js";
import {
  int32,
  int64,
  optionalBytes,
  readOptionalBytes,
  readUint64,
  text,
  uint64,
} from "./fields.js";

/** As try-lock, of a wait that may be repeated. */
export interface LockHeirCommand {
  readonly kind: "lock-heir";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  readonly note: Uint8Array | null;
  readonly waitId: bigint;
  readonly attempt: bigint;
}

/** Who is to be named: that attempt of the wait and no other one is told along the list. */
export interface NewHeir {
  readonly owner: Uint8Array;
  /** At least 1. */
  readonly waitId: bigint;
  readonly attempt: bigint;
  readonly leaseMs: number;
  readonly note: Uint8Array | null;
}

/** The list of a grant is from now on the first `kept` that it has, and `added`. */
export interface SetHeirsCommand {
  readonly kind: "set-heirs";
  readonly resource: string;
  /** Of the grant that is the holder's. */
  readonly token: bigint;
  readonly kept: number;
  readonly added: readonly NewHeir[];
  /** So long, and the longest lease of the list, it may be handed along (ms). */
  readonly horizonMs: number;
}

/** The list goes on with `added`. */
export interface AppendHeirsCommand {
  readonly kind: "append-heirs";
  readonly resource: string;
  /** Of the last heir; of the holder while there is none. */
  readonly token: bigint;
  readonly added: readonly NewHeir[];
  readonly horizonMs: number;
}

export type HeirListCommand = SetHeirsCommand | AppendHeirsCommand;
export type HeirCommand = LockHeirCommand | HeirListCommand;

/**
 * "stale": the list is another one by now, or of an earlier term, or would be too long; nothing
 * was done. "invalid": a field is not acceptable.
 */
export interface HeirsOutcome {
  readonly kind: "heirs";
  readonly status: "written" | "stale" | "invalid";
}

/** The least that one takes. */
const NEW_HEIR_BYTES = 22;

function writeAdded(writer: ByteWriter, added: readonly NewHeir[]): ByteWriter {
  writer.length(added.length);
  for (const { owner, waitId, attempt, leaseMs, note } of added) {
    writer.bytes(owner);
    uint64(writer, waitId);
    uint64(writer, attempt);
    int32(writer, leaseMs);
    optionalBytes(writer, note);
  }
  return writer;
}

function readAdded(reader: ByteReader): NewHeir[] {
  const count = reader.length();
  // A larger count than there are bytes for must not steer an allocation.
  if (count * NEW_HEIR_BYTES > reader.remainingBytes) reader.fail();
  const added: NewHeir[] = [];
  for (let at = 0; at < count && !reader.failed; at++) {
    added.push({
      owner: reader.bytes(),
      waitId: readUint64(reader),
      attempt: readUint64(reader),
      leaseMs: reader.int32(),
      note: readOptionalBytes(reader),
    });
  }
  return added;
}

export const HEIR_COMMANDS: CommandCodecs<HeirCommand> = {
  "lock-heir": {
    number: 8,
    version: 1,
    write(writer, command) {
      text(writer, command.resource).bytes(command.owner);
      int32(writer, command.expiresMs);
      optionalBytes(writer, command.note);
      uint64(writer, command.waitId);
      uint64(writer, command.attempt);
    },
    read: (reader) => ({
      kind: "lock-heir",
      resource: reader.text(),
      owner: reader.bytes(),
      expiresMs: reader.int32(),
      note: readOptionalBytes(reader),
      waitId: readUint64(reader),
      attempt: readUint64(reader),
    }),
  },
  "set-heirs": {
    number: 9,
    version: 1,
    write(writer, command) {
      int64(text(writer, command.resource), command.token);
      writeAdded(writer.uint32(command.kept), command.added).uint32(command.horizonMs);
    },
    read: (reader) => ({
      kind: "set-heirs",
      resource: reader.text(),
      token: reader.int64(),
      kept: reader.uint32(),
      added: readAdded(reader),
      horizonMs: reader.uint32(),
    }),
  },
  "append-heirs": {
    number: 10,
    version: 1,
    write(writer, command) {
      int64(text(writer, command.resource), command.token);
      writeAdded(writer, command.added).uint32(command.horizonMs);
    },
    read: (reader) => ({
      kind: "append-heirs",
      resource: reader.text(),
      token: reader.int64(),
      added: readAdded(reader),
      horizonMs: reader.uint32(),
    }),
  },
};
