/**
 * Rows of the meta partition about moves of key ranges: the moves themselves, and the key spaces
 * that leave.
 *
 * Pure codec; descriptors are in meta-rows.ts. Each begins with a version u8. Invariants: 1. Names
 * are stored as numbers that never change their meaning. 2. A move without an end has no reason to
 * be aborted, and one under way no side that is done.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { attempt, moveId, rangeGeneration } from "../../base/ids.js";
import type { MovePhase, RangeMove } from "../commands/command.js";
import {
  STORED_MOVE_ENDS,
  STORED_MOVE_KINDS,
  readInterval,
  readName,
  writeInterval,
} from "../commands/range-meta-commands.js";

const VERSION = 1;
const phases: readonly MovePhase[] = ["copying", "cut", "aborting"];

const writer = new ByteWriter(4096);

export function encodeMove(move: RangeMove): Uint8Array {
  writer.reset().uint8(VERSION).uint53(move.moveId).uint8(STORED_MOVE_KINDS.indexOf(move.kind));
  writeInterval(writer.text(move.keySpace), move);
  writer.uint32(move.source).uint32(move.target).uint53(move.generation).uint53(move.attempt);
  writer.uint8(phases.indexOf(move.phase)).uint8(STORED_MOVE_ENDS.indexOf(move.reason));
  return writer
    .boolean(move.sourceDone)
    .boolean(move.targetDone)
    .uint53(move.deadlineLeaseMs)
    .finish();
}

function isPlausible({ phase, reason, sourceDone, targetDone }: RangeMove): boolean {
  if (phase === "copying" && (sourceDone || targetDone)) return false;
  return (phase === "aborting") === (reason !== "none");
}

export function decodeMove(bytes: Uint8Array): RangeMove | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const move = {
    moveId: moveId(reader.uint53()),
    kind: readName(reader, STORED_MOVE_KINDS),
    keySpace: reader.text(),
    ...readInterval(reader),
    source: reader.uint32(),
    target: reader.uint32(),
    generation: rangeGeneration(reader.uint53()),
    attempt: attempt(reader.uint53()),
    phase: readName(reader, phases),
    reason: readName(reader, STORED_MOVE_ENDS),
    sourceDone: reader.boolean(),
    targetDone: reader.boolean(),
    deadlineLeaseMs: reader.uint53(),
  };
  return reader.isComplete() && isPlausible(move) ? move : null;
}

/** Its key says all there is. */
export function encodeLeaving(): Uint8Array {
  return writer.reset().uint8(VERSION).finish();
}

/** Null when the bytes are no such row. */
export function decodeLeaving(bytes: Uint8Array): true | null {
  const reader = new ByteReader(bytes);
  return reader.uint8() === VERSION && reader.isComplete() ? true : null;
}
