/**
 * The last marks of backups that a replica applied: where a backup cuts the log, and what the
 * replica had there.
 *
 * In memory alone: it is no state, and a start forgets it; who ships a backup is then another
 * replica, or begins anew. Invariant: MARKS_KEPT at most.
 */
import type { Hlc } from "../base/hlc.js";
import { MARKS_KEPT } from "../base/limits.js";
import type { EntryPosition, MarkCommand } from "./commands/command.js";

export interface AppliedMark extends EntryPosition, Omit<MarkCommand, "kind"> {
  readonly stamp: Hlc;
  /** Digest over all entries up to this one: 16 hexadecimal digits. */
  readonly chain: string;
}

export class MarkHistory {
  private readonly kept: AppliedMark[] = [];

  /** The latest last. */
  get all(): readonly AppliedMark[] {
    return this.kept;
  }

  note(mark: AppliedMark): void {
    this.kept.push(mark);
    if (this.kept.length > MARKS_KEPT) this.kept.shift();
  }
}
