/**
 * What the leader of a partition owes the moves of ranges that touch it: facts in, steps out.
 *
 * Everything but the copy itself, which the mover makes where the source is led: what follows the
 * cut or the end of a move, rows of moves that are long over, and rows of keys that are to be
 * deleted. Pure. Invariants: 1. Steps follow from applied records and rows alone, so that any later
 * leader takes the same ones (P-094). 2. What was frozen is opened again only after the meta
 * partition ended the attempt for good; what was cut is never opened again (P-100). 3. A record
 * that is older than a row says nothing about it. 4. One step at a time for each key space.
 */
import { type MapVersion, attempt } from "../base/ids.js";
import { ERASED_ROWS_MAX, RANGE_ATTEMPTS_MAX } from "../base/limits.js";
import { hashPartition, keySpaceHashText } from "../base/routing.js";
import type {
  FinishMoveCommand,
  RangeCommand,
  RangeDescriptor,
  RangeMove,
} from "../machine/commands/command.js";
import type { Ownership } from "../machine/ownership/ownership.js";
import { type OwnershipRow, isSettled, isWithin } from "../machine/ownership/ownership-row.js";

/** The records of the meta partition, as applied here. */
export interface RangeRecords {
  readonly mapVersion: MapVersion;
  /** Partitions of the hash pool. */
  readonly poolSize: number;
  /** One at most for each key space. */
  moveOf(keySpace: string): RangeMove | null;
  moves(): readonly RangeMove[];
  /** By start key. */
  rangesOf(keySpace: string): readonly RangeDescriptor[];
}

/** One partition that is led here. */
export interface LedPartition {
  readonly partition: number;
  readonly ownership: Ownership;
}

/** A command for the partition itself, or for the meta partition. */
export type RangeDuty =
  | { readonly on: "partition"; readonly command: RangeCommand }
  | { readonly on: "meta"; readonly command: FinishMoveCommand };

/** Above every attempt. */
const EVERY_ATTEMPT = attempt(RANGE_ATTEMPTS_MAX + 1);

/** The steps that are due, one at most for each key space. */
export function rangeDuties(led: LedPartition, records: RangeRecords): readonly RangeDuty[] {
  const duties = new Map<string, RangeDuty>();
  if (!led.ownership.hasNoRows) {
    for (const row of led.ownership.all()) {
      const command = duties.has(row.keySpace) ? null : rowDuty(led.partition, row, records);
      if (command !== null) duties.set(row.keySpace, { on: "partition", command });
    }
  }
  for (const move of records.moves()) {
    const side = duties.has(move.keySpace) ? null : doneSide(led, move);
    if (side === null) continue;
    const { keySpace, moveId } = move;
    duties.set(keySpace, { on: "meta", command: { kind: "finish-move", keySpace, moveId, side } });
  }
  return [...duties.values()];
}

function rowDuty(partition: number, row: OwnershipRow, records: RangeRecords): RangeCommand | null {
  const { keySpace, startKey, moveId } = row;
  const of = { keySpace, moveId, attempt: row.attempt };
  if (row.state === "here") return null;
  if (row.state === "left") {
    if (row.isPurged) return null;
    return { kind: "range-purge", ...of, startKey, limit: ERASED_ROWS_MAX };
  }
  const current = records.moveOf(keySpace);
  const move = current?.moveId === moveId ? current : null;
  // It may have begun behind what is applied here.
  if (move === null && records.mapVersion < moveId) return null;
  if (row.state === "leaving") {
    if (move?.phase === "copying") return null;
    const isOpen = move === null ? stillOwns(partition, row, records) : move.phase === "aborting";
    if (isOpen) return { kind: "range-unfreeze", ...of, attempt: EVERY_ATTEMPT };
    return { kind: "range-release", ...of };
  }
  if (move === null || move.phase === "aborting") return { kind: "range-drop", ...of };
  const isDue = move.phase === "cut" && row.state === "closed" && row.attempt === move.attempt;
  return isDue ? { kind: "range-adopt", ...of } : null;
}

/**
 * A move that is over took nothing away. What is frozen goes nowhere: no other move freezes or
 * fills any of it while the row is there. So who has it by a record from after the move has it now,
 * and whether its range was joined with others meanwhile does not matter.
 */
function stillOwns(partition: number, row: OwnershipRow, records: RangeRecords): boolean {
  const ranges = records.rangesOf(row.keySpace);
  if (ranges.length === 0) {
    return hashPartition(keySpaceHashText(row.keySpace), records.poolSize) === partition;
  }
  return ranges.some((range) => range.partitionId === partition && isWithin(row, range));
}

/** Which side of the move this partition is that has nothing left to do; null: none. */
function doneSide(led: LedPartition, move: RangeMove): "source" | "target" | null {
  const { partition, ownership } = led;
  if (move.phase === "copying") return null;
  const isCut = move.phase === "cut";
  const isSettledHere = ownership.overlapping(move).every(isSettled);
  if (move.source === partition && !move.sourceDone && isSettledHere) {
    if (isCut ? ownership.ownsNone(move) : ownership.ownsAll(move)) return "source";
  }
  if (move.target === partition && !move.targetDone && isSettledHere) {
    if (isCut ? ownership.ownsAll(move) : ownership.ownsNone(move)) return "target";
  }
  return null;
}
