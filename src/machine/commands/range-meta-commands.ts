/**
 * The commands that move key ranges between partitions as the meta partition decides them, the
 * record of a move, and what they hold as bytes.
 *
 * Pure. Part of the vocabulary in command.ts, which gives the types out again. Invariant: each that
 * is about a move names it, so that a late copy changes nothing that came after.
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
import { type CommandCodecs, int32, optionalText, readOptionalText, text } from "./fields.js";

/**
 * "split": the tail of a range, to a new partition; "merge": a range, to the partition of a
 * neighbour; "home": a range, back to the hash partition of a key space that leaves.
 */
export type MoveKind = "split" | "merge" | "home";
/** From "copying" on it ends as "cut", and the target has the keys, or as "aborting". */
export type MovePhase = "copying" | "cut" | "aborting";
export type MoveSide = "source" | "target";
/** Why a move is aborted. */
export type MoveEnd =
  | "none"
  /** Its time was over. */
  | "deadline"
  /** The target had no leader that serves. */
  | "no-target"
  /** The copy did not come to an end. */
  | "transfer-failed"
  /** The interval could not be frozen in time. */
  | "quiesce-failed"
  /** Count or digest of source and target differ: an alarm. */
  | "mismatch"
  | "cutover-failed";

/** The keys of a key space from `startKey` on, below `endKey`; null = open. */
export interface KeyInterval {
  readonly startKey: string | null;
  readonly endKey: string | null;
}

/** One at most for each key space. */
export interface RangeMove extends KeyInterval {
  readonly moveId: MoveId;
  readonly kind: MoveKind;
  readonly keySpace: string;
  readonly source: number;
  readonly target: number;
  /** Of the source's descriptor, as the cut has to find it. */
  readonly generation: RangeGeneration;
  readonly attempt: Attempt;
  readonly phase: MovePhase;
  readonly reason: MoveEnd;
  /** What a side has to do after the cut, or after it was aborted, is done. */
  readonly sourceDone: boolean;
  readonly targetDone: boolean;
  /** Lease time of the meta partition (ms). */
  readonly deadlineLeaseMs: number;
}

/** Outcome "done" or, of the same move under way, "unchanged": generation = its move id. */
export interface BeginMoveCommand extends KeyInterval {
  readonly kind: "begin-move";
  readonly move: MoveKind;
  readonly keySpace: string;
  readonly source: number;
  /** 0 for a split: a new partition. */
  readonly target: number;
  /** Of the source's descriptor that it was decided on. */
  readonly generation: RangeGeneration;
}
interface OfMove {
  readonly keySpace: string;
  readonly moveId: MoveId;
}
/** The copy begins anew; outcome: generation = the attempt that counts now. */
export interface RetryMoveCommand extends OfMove {
  readonly kind: "retry-move";
  /** Which ends. */
  readonly attempt: Attempt;
}
/** From now on the keys are the target's. */
export interface CutRangeCommand extends OfMove {
  readonly kind: "cut-range";
  readonly attempt: Attempt;
}
export interface AbortMoveCommand extends OfMove {
  readonly kind: "abort-move";
  readonly reason: MoveEnd;
}
/** A side has done what it has to after the cut or the abort; with both the move is over. */
export interface FinishMoveCommand extends OfMove {
  readonly kind: "finish-move";
  readonly side: MoveSide;
}

export type RangeMoveCommand =
  BeginMoveCommand | RetryMoveCommand | CutRangeCommand | AbortMoveCommand | FinishMoveCommand;

/** Names by their stored numbers, which never change their meaning. */
export const STORED_MOVE_KINDS: readonly MoveKind[] = ["split", "merge", "home"];
export const STORED_MOVE_ENDS: readonly MoveEnd[] = [
  "none",
  "deadline",
  "no-target",
  "transfer-failed",
  "quiesce-failed",
  "mismatch",
  "cutover-failed",
];
const SIDES: readonly MoveSide[] = ["source", "target"];

/** The name of that number; the reader turns failed where there is none. */
export function readName<Name extends string>(reader: ByteReader, names: readonly Name[]): Name {
  const name = names[reader.uint8()];
  if (name === undefined) reader.fail();
  return name ?? (names[0] as Name);
}

export function writeInterval(writer: ByteWriter, { startKey, endKey }: KeyInterval): void {
  optionalText(writer, startKey);
  optionalText(writer, endKey);
}

export function readInterval(reader: ByteReader): KeyInterval {
  return { startKey: readOptionalText(reader), endKey: readOptionalText(reader) };
}

function writeOf(writer: ByteWriter, command: OfMove): ByteWriter {
  return text(writer, command.keySpace).uint53(command.moveId);
}

function readOf(reader: ByteReader): OfMove {
  return { keySpace: reader.text(), moveId: moveId(reader.uint53()) };
}

export const RANGE_MOVE_COMMANDS: CommandCodecs<RangeMoveCommand> = {
  "begin-move": {
    number: 77,
    version: 1,
    write(writer, command) {
      text(writer, command.keySpace).uint8(STORED_MOVE_KINDS.indexOf(command.move));
      writeInterval(writer, command);
      int32(writer, command.source);
      int32(writer, command.target);
      writer.uint53(command.generation);
    },
    read: (reader) => ({
      kind: "begin-move",
      keySpace: reader.text(),
      move: readName(reader, STORED_MOVE_KINDS),
      ...readInterval(reader),
      source: reader.int32(),
      target: reader.int32(),
      generation: rangeGeneration(reader.uint53()),
    }),
  },
  "retry-move": {
    number: 78,
    version: 1,
    write: (writer, command) => void writeOf(writer, command).uint53(command.attempt),
    read: (reader) => {
      return { kind: "retry-move", ...readOf(reader), attempt: attempt(reader.uint53()) };
    },
  },
  "cut-range": {
    number: 79,
    version: 1,
    write: (writer, command) => void writeOf(writer, command).uint53(command.attempt),
    read: (reader) => {
      return { kind: "cut-range", ...readOf(reader), attempt: attempt(reader.uint53()) };
    },
  },
  "abort-move": {
    number: 80,
    version: 1,
    write(writer, command) {
      writeOf(writer, command).uint8(STORED_MOVE_ENDS.indexOf(command.reason));
    },
    read: (reader) => {
      const of = readOf(reader);
      return { kind: "abort-move", ...of, reason: readName(reader, STORED_MOVE_ENDS) };
    },
  },
  "finish-move": {
    number: 81,
    version: 1,
    write: (writer, command) => {
      writeOf(writer, command).uint8(SIDES.indexOf(command.side));
    },
    read: (reader) => ({ kind: "finish-move", ...readOf(reader), side: readName(reader, SIDES) }),
  },
};
