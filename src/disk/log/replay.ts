/**
 * Applies the records of a segment, in log order, to the group indexes: the inverse of the
 * appender.
 *
 * Writes the appender's groups.
 *
 * Invariants: 1. A record that contradicts what came before is reported as damage, never guessed
 * at. 2. Nothing here throws for any content of a scanned record.
 */
import { partitionId } from "../../base/ids.js";
import { type SegmentScanner, frame, scanWord, sizes } from "../../wasm/kernels.js";
import type { Appender } from "./appender.js";
import type { GroupIndex } from "./groupindex.js";
import { FLOOR_BYTES, decodeFloor, logKind } from "./records.js";

const two32 = 0x1_0000_0000;

/** What a segment's records said besides entries and states. */
export interface ReplayNotes {
  /** The last record is a close mark. */
  closed: boolean;
  /** Records replayed in all. */
  records: number;
}

/** Applies rows `from` to `to` of the last scan. Returns the problem and its offset, or null. */
export function replayRows(
  scanner: SegmentScanner,
  from: number,
  to: number,
  sequence: number,
  appender: Appender,
  notes: ReplayNotes,
): { readonly offset: number; readonly problem: string } | null {
  const { table } = scanner;
  let known: GroupIndex | null = null;
  for (let row = from; row < to; row++) {
    const at = row * sizes.scanWords;
    const kind = (table[at + scanWord.kind] as number) & 255;
    const offset = table[at + scanWord.offset] as number;
    notes.closed = kind === logKind.close;
    notes.records++;
    if (kind === logKind.close) continue;
    const group = partitionId(table[at + scanWord.group] as number);
    if (known?.group !== group) known = appender.groupIndex(group);
    let problem: string | null;
    if (kind === logKind.entry || kind === logKind.restated) {
      problem = replayEntry(table, at, kind, sequence, known);
    } else if (kind === logKind.drop) {
      known.drop();
      appender.groups.delete(group);
      known = null;
      problem = null;
    } else problem = replayState(scanner, row, kind, sequence, known);
    if (problem !== null) return { offset, problem };
  }
  return null;
}

function wide(table: Uint32Array, low: number): number {
  return (table[low + 1] as number) * two32 + (table[low] as number);
}

function replayEntry(
  table: Uint32Array,
  at: number,
  kind: number,
  sequence: number,
  index: GroupIndex,
): string | null {
  const entryIndex = wide(table, at + scanWord.indexLow);
  const term = wide(table, at + scanWord.termLow);
  const tag = table[at + scanWord.incarnation] as number;
  const offset = table[at + scanWord.offset] as number;
  const payloadBytes = (table[at + scanWord.length] as number) - frame.headerBytes;
  if (!Number.isSafeInteger(entryIndex) || entryIndex === 0) return "an entry without an index";
  if (!Number.isSafeInteger(term) || tag > 255) return "an entry of unknown kind or term";
  if (kind === logKind.restated) {
    const taken = index.restate(entryIndex, term, tag, sequence, offset, payloadBytes);
    return taken ? null : "an entry written forward contradicts its original";
  }
  if (entryIndex <= index.floor.index) return "an entry below the floor of its group";
  const taken = index.append(entryIndex, term, tag, sequence, offset, payloadBytes);
  return taken ? null : "the indexes of a group jump";
}

function replayState(
  scanner: SegmentScanner,
  row: number,
  kind: number,
  sequence: number,
  index: GroupIndex,
): string | null {
  if (kind !== logKind.state && kind !== logKind.install) return "a record of unknown kind";
  const record = scanner.record(row);
  const floor = record.payloadBytes === FLOOR_BYTES ? decodeFloor(scanner.payload(row)) : null;
  if (floor === null) return "a state record of the wrong shape";
  const { index: commit, term, incarnation: vote } = record;
  if (![commit, term].every(Number.isSafeInteger)) return "a state record beyond all bounds";
  if (![floor.index, floor.term].every(Number.isSafeInteger)) return "a floor beyond all bounds";
  const hardState = { term, vote, commit };
  if (kind === logKind.install) index.install(floor, hardState);
  else {
    if (floor.index < index.floor.index) return "a floor that falls";
    index.raiseFloor(floor);
    index.hardState = hardState;
  }
  index.moveState(sequence);
  return null;
}
