/**
 * The entries of a group's log from behind one position up to another, as they go into a backup:
 * slice by slice, each of bounded size.
 *
 * Reads the log, and believes nothing of it. Invariants: 1. The first entry is the one after the
 * position behind which the stretch begins, the last one is the position that it ends at, and none
 * is missing in between (P-135). 2. A position is an index with its term: the same in two logs
 * means the same history up to there. 3. A log that was let go meanwhile ends the stretch for good:
 * what was read of it is of no use.
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import { LOG_SLICE_BYTES } from "../../base/limits.js";
import type { EntryPosition } from "../../machine/machine.js";
import type { LogEntry, LogPort } from "../../ports.js";
import type { RaftCore } from "../../raft/core.js";

export type StretchRefusal =
  /** This replica has not applied the end of it yet. */
  | "behind"
  /** The log does not reach back to its begin. */
  | "compacted"
  /** The log has another entry at its begin or its end: it is the log of another history. */
  | "other-history";

/** Why the log between two positions cannot be read here; null: it can. */
export function stretchRefusal(
  core: Pick<RaftCore, "termAt">,
  appliedIndex: number,
  after: EntryPosition,
  last: EntryPosition,
): StretchRefusal | null {
  if (last.index > appliedIndex || after.index > last.index) return "behind";
  for (const { index, term } of [after, last]) {
    const found = core.termAt(index);
    if (found.kind === "compacted") return "compacted";
    if (found.kind !== "known") return "behind";
    if (found.term !== term) return "other-history";
  }
  return null;
}

/** One answer of a stretch. */
type StretchSlice =
  | { readonly status: "entries"; readonly entries: readonly LogEntry[]; readonly isLast: boolean }
  /** The log was let go, or is not whole: nothing more comes. */
  | { readonly status: "compacted" | "broken" };

export class LogStretch {
  private at: EntryPosition;
  private state: "ready" | "reading" | "ended" = "ready";

  constructor(
    private readonly log: Pick<LogPort, "read">,
    private readonly group: PartitionId,
    after: EntryPosition,
    private readonly last: EntryPosition,
    private readonly sliceBytes = LOG_SLICE_BYTES,
  ) {
    assert(after.index <= last.index, "a stretch goes forward");
    this.at = { index: after.index, term: after.term };
  }

  /** Nothing is between the positions, or all of it was read. */
  get isComplete(): boolean {
    return this.at.index === this.last.index && this.at.term === this.last.term;
  }

  /** The next slice; not while one is read, and not after the last. `done` comes in no turn. */
  next(done: (slice: StretchSlice) => void): void {
    assert(this.state === "ready" && !this.isComplete, "a stretch is read one slice at a time");
    this.state = "reading";
    const first = this.at.index + 1;
    this.log.read(this.group, first, this.last.index, this.sliceBytes, (result) => {
      const slice = result.ok ? this.taken(result.value) : ({ status: "compacted" } as const);
      const isOver = slice.status !== "entries" || slice.isLast;
      this.state = isOver ? "ended" : "ready";
      done(slice);
    });
  }

  private taken(entries: readonly LogEntry[]): StretchSlice {
    let { index, term } = this.at;
    for (const entry of entries) {
      if (entry.index !== index + 1 || entry.term < term) return { status: "broken" };
      ({ index, term } = entry);
    }
    // What is applied is in the log: an empty answer means that it went.
    if (entries.length === 0 || index > this.last.index) return { status: "broken" };
    this.at = { index, term };
    if (index === this.last.index && term !== this.last.term) return { status: "broken" };
    return { status: "entries", entries, isLast: index === this.last.index };
  }
}
