/**
 * The commands about keys (persistent ones: ephemeral entries never enter the log), what they hold
 * as bytes, and their outcome.
 *
 * Pure. Part of the vocabulary in command.ts, which gives it out again.
 */
import type { Hlc } from "../../base/hlc.js";
import {
  type CommandCodecs,
  int32,
  int64,
  optionalBytes,
  readOptionalBytes,
  text,
} from "./fields.js";

export const KvFlag = {
  set: 1,
  noRevision: 2,
  ifExists: 4,
  ifNotExists: 8,
  ifEqualToValue: 16,
  ifEqualToRevision: 32,
} as const;

export interface KvSetCommand {
  readonly kind: "kv-set";
  readonly key: string;
  /** null = exists and holds nothing. */
  readonly value: Uint8Array | null;
  readonly compareValue: Uint8Array | null;
  readonly compareRevision: bigint;
  readonly flags: number;
  /** 0 = no lease. */
  readonly expiresMs: number;
  readonly revisionsRetained: number;
}
export interface KvExtendCommand {
  readonly kind: "kv-extend";
  readonly key: string;
  readonly expiresMs: number;
}
export interface KvDeleteCommand {
  readonly kind: "kv-delete";
  readonly key: string;
  readonly revisionsRetained: number;
}

/** The key is not the group's: it moved, or is about to move, to another one. Nothing was done. */
export interface MovedOutcome {
  readonly kind: "moved";
}

export const KvState = { undefined: 0, set: 1, deleted: 2 } as const;

export interface KvOutcome {
  readonly kind: "kv";
  readonly type: number;
  readonly revision: number;
  readonly lastModified: Hlc;
}

export type KvCommand = KvSetCommand | KvExtendCommand | KvDeleteCommand;

export const KV_COMMANDS: CommandCodecs<KvCommand> = {
  "kv-set": {
    number: 32,
    version: 1,
    write(writer, command) {
      text(writer, command.key);
      optionalBytes(writer, command.value);
      optionalBytes(writer, command.compareValue);
      int64(writer, command.compareRevision);
      int32(writer, command.flags);
      int32(writer, command.expiresMs);
      writer.uint53(command.revisionsRetained);
    },
    read: (reader) => ({
      kind: "kv-set",
      key: reader.text(),
      value: readOptionalBytes(reader),
      compareValue: readOptionalBytes(reader),
      compareRevision: reader.int64(),
      flags: reader.int32(),
      expiresMs: reader.int32(),
      revisionsRetained: reader.uint53(),
    }),
  },
  "kv-extend": {
    number: 33,
    version: 1,
    write: (writer, command) => int32(text(writer, command.key), command.expiresMs),
    read: (reader) => ({ kind: "kv-extend", key: reader.text(), expiresMs: reader.int32() }),
  },
  "kv-delete": {
    number: 34,
    version: 1,
    write: (writer, command) => void text(writer, command.key).uint53(command.revisionsRetained),
    read: (reader) => ({
      kind: "kv-delete",
      key: reader.text(),
      revisionsRetained: reader.uint53(),
    }),
  },
};
