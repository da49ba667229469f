/** The group that a key range moves from, as its mover sees it. */
import type { Attempt } from "../../base/ids.js";
import type { RangeCommand, RangeMove } from "../../machine/commands/command.js";
import type { CopySource } from "../../machine/ranges/copy-source.js";
import type { IntervalCount } from "../../machine/ranges/interval-count.js";
import type { ProposalDone } from "../requests/results.js";

export interface SourceGroup {
  isServing(): boolean;
  term(): number;
  propose(command: RangeCommand, deadlineMs: number, done: ProposalDone): void;
  /** The caller closes it. */
  openCopy(move: RangeMove): CopySource;
  /** The caller closes it. */
  openCount(move: RangeMove): IntervalCount;
  /** The interval is frozen for an attempt of the move; null: it is not. */
  frozenFor(move: RangeMove): Attempt | null;
}
