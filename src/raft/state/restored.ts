/**
 * What a store hands to a core at start.
 *
 * May call: types of this folder.
 * Invariants: 1. Nothing is proportional to the number of entries. 2. The state is not ahead of the
 * log.
 */
import type { ConfigPosition, HardState, LogIndex, Membership, Term, TermRun } from "./types.js";

/** What a store hands back at start. Nothing here is proportional to the number of entries. */
export interface RestoredState {
  readonly hardState: HardState;
  /**
   * The position just below the first entry: what the log was last compacted to, (0, 0) for a fresh
   * one.
   */
  readonly floorIndex: LogIndex;
  readonly floorTerm: Term;
  /** Ascending; the first run begins at floorIndex + 1. Empty if there are no entries. */
  readonly termRuns: readonly TermRun[];
  readonly lastIndex: LogIndex;
  /** Ascending positions of membership changes above the floor. */
  readonly configChanges: readonly ConfigPosition[];
  /**
   * Sizes by stretch, ascending, e.g. one per log segment, together covering the log; sizes within
   * are averaged.
   */
  readonly sizeRuns: readonly SizeRun[];
  /** The index up to which the state has been applied; its membership is `membership`. */
  readonly appliedIndex: LogIndex;
  readonly membership: Membership;
}

/**
 * Entries `first` up to the next run, or up to the end of the log, have payloads of `sizeBytes`
 * together.
 */
export interface SizeRun {
  readonly first: LogIndex;
  readonly sizeBytes: number;
}
