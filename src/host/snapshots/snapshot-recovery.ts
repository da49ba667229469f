/**
 * What a start finds when the node died between the two durable steps of an install, and how it
 * goes on.
 *
 * An install makes two things durable, one after the other: first the state store's switch to the
 * new generation (rows, position, floors, membership and the mark "installed at (index, term)" in
 * one transaction), then the log's reset to the floor (index, term). Nothing of the group is
 * written to the log in between, and nothing behind the snapshot is applied before the reset is
 * durable. So a start finds one of:
 *
 * 1. log floor ≥ installed index: the install ended, or there was none.
 * 2. log floor < installed index = applied index: the switch is durable, the reset is not. Whatever
 *    the log holds is of the time before (it may end below the index or above it, then with another
 *    term there: the core resets only a log that does not contain the snapshot's position). It is
 *    void: the reset is done again, first of all, and the group begins as if it had been done.
 * 3. log floor < installed index ≠ applied index: no order of crashes leads there; log and store
 *    are not of one moment.
 *
 * Pure. Invariants: 1. A vote is never forgotten: term and vote of the log survive the reset
 * (P-112, P-117). 2. Nothing is guessed: case 3 is a refusal (P-024).
 */
import type { PartitionId } from "../../base/ids.js";
import type { RecoveredGroupLog, HardState, LogPosition } from "../../ports.js";

/** What the state store says of one group. */
export interface InstalledState {
  readonly group: PartitionId;
  readonly appliedIndex: number;
  readonly appliedTerm: number;
  readonly installed: { readonly index: number; readonly term: number };
}

export type InstallAtStart =
  /** Nothing is to be made up for. */
  | { readonly kind: "none" }
  /** `resetGroup(floor, hardState)` comes before every other write of the group. */
  | {
      readonly kind: "reset";
      readonly floor: LogPosition;
      readonly hardState: HardState;
      /** What the log will hold: begin from this. */
      readonly recovered: RecoveredGroupLog;
    }
  /** Log and store are not of one moment. */
  | { readonly kind: "mixed" };

/** Which of the three cases a start found. `recovered`: null when the log does not know the group. */
export function installAtStart(
  state: InstalledState,
  recovered: RecoveredGroupLog | null,
): InstallAtStart {
  const { index, term } = state.installed;
  if (index === 0 || (recovered !== null && recovered.floor.index >= index))
    return { kind: "none" };
  if (state.appliedIndex !== index || state.appliedTerm !== term) return { kind: "mixed" };
  const known = recovered?.hardState ?? { term: 0, vote: 0, commit: 0 };
  // In a term that the log does not know yet this node has not voted: a vote leaves only when it
  // is durable.
  const hardState = {
    term: Math.max(known.term, term),
    vote: known.term >= term ? known.vote : 0,
    commit: index,
  };
  const floor = { term, index };
  const reset: RecoveredGroupLog = {
    group: state.group,
    hardState,
    floor,
    lastIndex: index,
    termRuns: [],
    specialEntries: [],
    sizeRuns: [],
  };
  return { kind: "reset", floor, hardState, recovered: reset };
}
