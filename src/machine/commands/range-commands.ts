/**
 * The commands by which an interval of a key space goes from one data group to another, what they
 * hold as bytes, and their outcome.
 *
 * Pure. Part of the vocabulary in command.ts, which gives it out again. Each names the move and its
 * attempt: one that apply has seen is "unchanged", one of an earlier attempt "stale".
 */
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import {
  attempt,
  moveId,
  rangeGeneration,
  type Attempt,
  type MoveId,
  type RangeGeneration,
} from "../../base/ids.js";
import {
  type CommandCodecs,
  int32,
  optionalBytes,
  optionalText,
  readOptionalBytes,
  readOptionalText,
  text,
} from "./fields.js";

interface OfMove {
  readonly keySpace: string;
  readonly moveId: MoveId;
  readonly attempt: Attempt;
}

interface OfInterval extends OfMove {
  readonly startKey: string | null;
  readonly endKey: string | null;
  /** Of the source's descriptor, as the move began. */
  readonly generation: RangeGeneration;
}

/** At the target: the interval is about to be filled. */
export interface RangeOpenCommand extends OfInterval {
  readonly kind: "range-open";
}

/** A key as the source has it, in the rows of the source; or a part of one that is large. */
export interface RangeItem {
  readonly key: string;
  /** The latest row; null: the key is gone, or the item goes on with one that came before. */
  readonly row: Uint8Array | null;
  /** It adds older revisions to a key that came before; else it takes the place of all of it. */
  readonly continues: boolean;
  /** Rows of older revisions, ascending: all, or as many as went into the part. */
  readonly history: readonly Uint8Array[];
}

/** At the target: the next part of the contents, in order. */
export interface RangeImportCommand extends OfMove {
  readonly kind: "range-import";
  /** 1, 2, … within the attempt. */
  readonly number: number;
  /** Lease clock of the source when it read the items. */
  readonly sourceLeaseMs: number;
  /** How long the attempt has taken until then. */
  readonly copyAgeMs: number;
  readonly items: readonly RangeItem[];
}

/** At the target: it has all, if it has what the source counted. */
export interface RangeCloseCommand extends OfMove {
  readonly kind: "range-close";
  /** That the next import would have. */
  readonly number: number;
  readonly keys: number;
  readonly digestLow: number;
  readonly digestHigh: number;
}

/** At the target, after the cut: the interval is the group's. */
export interface RangeAdoptCommand extends OfMove {
  readonly kind: "range-adopt";
}

/** At the target: the move has ended without a cut; attempts up to the one named. */
export interface RangeDropCommand extends OfMove {
  readonly kind: "range-drop";
}

/** At the source: nobody reads or writes the interval from here on. */
export interface RangeFreezeCommand extends OfInterval {
  readonly kind: "range-freeze";
}

/** At the source: what an attempt below the one named froze is served again. */
export interface RangeUnfreezeCommand extends OfMove {
  readonly kind: "range-unfreeze";
}

/** At the source, after the cut: the interval is not the group's any more. */
export interface RangeReleaseCommand extends OfMove {
  readonly kind: "range-release";
}

/** Deletes up to `limit` rows of an interval that left: the one whose row begins at `startKey`. */
export interface RangePurgeCommand extends OfMove {
  readonly kind: "range-purge";
  readonly startKey: string | null;
  readonly limit: number;
}

export type RangeCommand =
  | RangeOpenCommand
  | RangeImportCommand
  | RangeCloseCommand
  | RangeAdoptCommand
  | RangeDropCommand
  | RangeFreezeCommand
  | RangeUnfreezeCommand
  | RangeReleaseCommand
  | RangePurgeCommand;

export type RangeStatus =
  | "done"
  /** It had been done before, or there is nothing to do. */
  | "unchanged"
  /** Open, close: the target has all of this attempt. */
  | "closed"
  /** Of an attempt, or of a state of things, that is over. */
  | "stale"
  /** Rows of the interval are being deleted: to be repeated when they are. */
  | "unsettled"
  /** Imports are missing: `nextImport` is due. */
  | "gap"
  /** What came is not what the source counted. */
  | "mismatch"
  /** The interval is not the group's as a whole. */
  | "not-owned"
  /** A slice was deleted, and there may be more. */
  | "more"
  | "invalid";

export interface RangeOutcome {
  readonly kind: "range";
  readonly status: RangeStatus;
  /** Of an interval that is filled: number of the import that is due; else 0. */
  readonly nextImport: number;
  /** Keys that it was filled with so far; else 0. */
  readonly keys: number;
  /** Rows that a purge deleted. */
  readonly dropped: number;
}

function ofMove(writer: ByteWriter, command: OfMove): ByteWriter {
  return text(writer, command.keySpace).uint53(command.moveId).uint32(command.attempt);
}

function readOfMove(reader: ByteReader): OfMove {
  return {
    keySpace: reader.text(),
    moveId: moveId(reader.uint53()),
    attempt: attempt(reader.uint32()),
  };
}

function ofInterval(writer: ByteWriter, command: OfInterval): void {
  ofMove(writer, command);
  optionalText(writer, command.startKey);
  optionalText(writer, command.endKey);
  writer.uint53(command.generation);
}

function readOfInterval(reader: ByteReader): OfInterval {
  return {
    ...readOfMove(reader),
    startKey: readOptionalText(reader),
    endKey: readOptionalText(reader),
    generation: rangeGeneration(reader.uint53()),
  };
}

/** Bytes that an item takes at least. */
const ITEM_BYTES = 4;

function writeItem(writer: ByteWriter, { key, row, continues, history }: RangeItem): void {
  text(writer, key);
  optionalBytes(writer, row);
  writer.boolean(continues).length(history.length);
  for (const older of history) writer.bytes(older);
}

/** How many there are; a larger count than there are bytes for must not steer an allocation. */
function readCount(reader: ByteReader, bytesAtLeast: number): number {
  const count = reader.length();
  if (count * bytesAtLeast <= reader.remainingBytes) return count;
  reader.fail();
  return 0;
}

function readItem(reader: ByteReader): RangeItem {
  const head = {
    key: reader.text(),
    row: readOptionalBytes(reader),
    continues: reader.boolean(),
  };
  const history: Uint8Array[] = [];
  for (let left = readCount(reader, 1); left > 0 && !reader.failed; left--) {
    history.push(reader.bytes());
  }
  return { ...head, history };
}

function readItems(reader: ByteReader): RangeItem[] {
  const items: RangeItem[] = [];
  for (let left = readCount(reader, ITEM_BYTES); left > 0 && !reader.failed; left--) {
    items.push(readItem(reader));
  }
  return items;
}

export const RANGE_COMMANDS: CommandCodecs<RangeCommand> = {
  "range-open": {
    number: 51,
    version: 1,
    write: ofInterval,
    read: (reader) => ({ kind: "range-open", ...readOfInterval(reader) }),
  },
  "range-import": {
    number: 52,
    version: 1,
    write(writer, command) {
      ofMove(writer, command).uint53(command.number).uint53(command.sourceLeaseMs);
      writer.uint53(command.copyAgeMs).length(command.items.length);
      for (const item of command.items) writeItem(writer, item);
    },
    read: (reader) => ({
      kind: "range-import",
      ...readOfMove(reader),
      number: reader.uint53(),
      sourceLeaseMs: reader.uint53(),
      copyAgeMs: reader.uint53(),
      items: readItems(reader),
    }),
  },
  "range-close": {
    number: 53,
    version: 1,
    write(writer, command) {
      ofMove(writer, command).uint53(command.number).uint53(command.keys);
      writer.uint32(command.digestLow).uint32(command.digestHigh);
    },
    read: (reader) => ({
      kind: "range-close",
      ...readOfMove(reader),
      number: reader.uint53(),
      keys: reader.uint53(),
      digestLow: reader.uint32(),
      digestHigh: reader.uint32(),
    }),
  },
  "range-adopt": {
    number: 54,
    version: 1,
    write: (writer, command) => void ofMove(writer, command),
    read: (reader) => ({ kind: "range-adopt", ...readOfMove(reader) }),
  },
  "range-drop": {
    number: 55,
    version: 1,
    write: (writer, command) => void ofMove(writer, command),
    read: (reader) => ({ kind: "range-drop", ...readOfMove(reader) }),
  },
  "range-freeze": {
    number: 56,
    version: 1,
    write: ofInterval,
    read: (reader) => ({ kind: "range-freeze", ...readOfInterval(reader) }),
  },
  "range-unfreeze": {
    number: 57,
    version: 1,
    write: (writer, command) => void ofMove(writer, command),
    read: (reader) => ({ kind: "range-unfreeze", ...readOfMove(reader) }),
  },
  "range-release": {
    number: 58,
    version: 1,
    write: (writer, command) => void ofMove(writer, command),
    read: (reader) => ({ kind: "range-release", ...readOfMove(reader) }),
  },
  "range-purge": {
    number: 59,
    version: 1,
    write(writer, command) {
      optionalText(ofMove(writer, command), command.startKey);
      int32(writer, command.limit);
    },
    read: (reader) => ({
      kind: "range-purge",
      ...readOfMove(reader),
      startKey: readOptionalText(reader),
      limit: reader.int32(),
    }),
  },
};
