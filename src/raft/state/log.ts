/**
 * The log of one group as positions: terms, kinds, sizes, and how far it is written, committed and
 * applied.
 *
 * Invariants:
 * 1. floor <= applied <= applying <= committed <= last, and written <= handedOut <= last, once no
 *    snapshot is pending.
 * 2. Nothing at or below committed is ever cut.
 * 3. A receipt counts only if the log still holds its position with its term and has it unwritten.
 * 4. While a received snapshot is not installed, nothing is handed out for applying.
 */
import { assert, present } from "../../base/assert.js";
import { ApplyBudget } from "./applybudget.js";
import { ChangeLog } from "./changelog.js";
import type { CoreConfig } from "./config.js";
import { SizeLog } from "./sizes.js";
import { TermLog } from "./termlog.js";
import type {
  CommittedRange,
  ConfigEntryKind,
  EntrySpan,
  LogIndex,
  LogRange,
  RestoredState,
  SnapshotMeta,
  Term,
} from "./types.js";

export class RaftLog {
  readonly terms: TermLog;
  readonly changes: ChangeLog;
  committed: LogIndex;
  applied: LogIndex;
  /** The end of what was handed out for applying. */
  applying: LogIndex;
  /** The end of what is known to be written. */
  written: LogIndex;
  /** The end of what was handed out for writing. */
  handedOut: LogIndex;
  /** A snapshot that was accepted and whose installation is not confirmed. */
  pendingSnapshot: SnapshotMeta | null = null;
  snapshotHandedOut = false;
  private readonly sizes: SizeLog;
  private readonly config: CoreConfig;
  private readonly budget: ApplyBudget;
  private sharedSpan: EntrySpan | null = null;

  constructor(config: CoreConfig, restored: RestoredState) {
    const { floorIndex, floorTerm, lastIndex, hardState, appliedIndex } = restored;
    this.config = config;
    this.budget = new ApplyBudget(config.maxCommittedBytesPerTake);
    this.terms = new TermLog(floorIndex, floorTerm, restored.termRuns, lastIndex);
    this.sizes = new SizeLog(floorIndex, restored.sizeRuns, lastIndex);
    this.changes = new ChangeLog(restored.configChanges);
    assert(appliedIndex >= floorIndex, "the state reaches up to the floor of the log at least");
    assert(appliedIndex <= lastIndex, "the state is not ahead of its log");
    assert(
      hardState.commit <= lastIndex,
      "the log holds everything that was known to be committed",
    );
    this.committed = Math.max(hardState.commit, appliedIndex);
    this.applied = appliedIndex;
    this.applying = appliedIndex;
    this.written = lastIndex;
    this.handedOut = lastIndex;
  }

  get lastIndex(): LogIndex {
    return this.terms.lastIndex;
  }

  get lastTerm(): Term {
    return this.terms.lastTerm;
  }

  get floorIndex(): LogIndex {
    return this.terms.floorIndex;
  }

  /** Whether the log holds `term` at `index`. */
  matches(index: LogIndex, term: Term): boolean {
    return this.terms.termOf(index) === term;
  }

  /**
   * Whether a log that ends at (lastTerm, lastIndex) holds at least as much as this one: term
   * first, then length.
   */
  isUpToDate(lastTerm: Term, lastIndex: LogIndex): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);
  }

  /** Appends entries of the leader's own term. */
  appendOwn(term: Term, sizesBytes: readonly number[], kind: ConfigEntryKind | null): void {
    this.terms.append(term, sizesBytes.length);
    for (const size of sizesBytes) this.sizes.push(size);
    if (kind !== null) this.changes.push({ index: this.lastIndex, kind });
  }

  /**
   * Takes over a leader's entries, whose anchor matches: from the first conflict on, the leader's
   * log replaces this one.
   */
  appendFrom(span: EntrySpan): void {
    const conflict = this.terms.firstConflict(span.termRuns, span.last);
    if (conflict === 0) return;
    assert(conflict > this.committed, "a leader never contradicts a committed entry");
    assert(conflict <= this.lastIndex + 1, "entries follow without a gap");
    if (conflict <= this.lastIndex) this.cut(conflict - 1);
    for (let run = 0; run < span.termRuns.length; run++) {
      const { first, term } = present(span.termRuns[run], "a run");
      const end = (span.termRuns[run + 1]?.first ?? span.last + 1) - 1;
      if (end >= conflict) this.terms.append(term, end - Math.max(first, conflict) + 1);
    }
    for (let at = conflict - span.first; at < span.sizesBytes.length; at++) {
      this.sizes.push(present(span.sizesBytes[at], "a size"));
    }
    for (const change of span.configChanges) {
      if (change.index >= conflict) this.changes.push(change);
    }
    assert(this.lastIndex === span.last, "the log ends with what was appended");
  }

  private cut(last: LogIndex): void {
    assert(last >= this.committed, "committed entries are never cut");
    this.terms.cut(last);
    this.sizes.cut(last);
    this.changes.cut(last);
    this.written = Math.min(this.written, last);
    this.handedOut = Math.min(this.handedOut, last);
    this.sharedSpan = null;
  }

  commitTo(index: LogIndex): void {
    if (index <= this.committed) return;
    assert(index <= this.lastIndex, "only what the log holds is committed");
    this.committed = index;
  }

  /** Entries not yet handed out for writing. */
  nextUnwritten(): LogRange | null {
    if (this.handedOut === this.lastIndex) return null;
    return this.range(this.handedOut + 1, this.lastIndex);
  }

  /** The payload bytes of everything that is not applied yet. */
  get unappliedBytes(): number {
    return this.sizes.between(this.applied + 1, this.lastIndex);
  }

  payloadBytes(first: LogIndex, last: LogIndex): number {
    return this.sizes.between(first, last);
  }

  get hasUnwritten(): boolean {
    return this.written < this.lastIndex;
  }

  private range(first: LogIndex, last: LogIndex): LogRange {
    return {
      first,
      last,
      termRuns: this.terms.runs(first, last),
      configChanges: this.changes.between(first, last),
      sizeBytes: this.sizes.between(first, last),
    };
  }

  /**
   * The entries from `first` on that fit into one message; null at the end of the log. Followers
   * that have caught up are sent the same stretch, so that the last one made is shared.
   */
  spanFrom(first: LogIndex): EntrySpan | null {
    if (first > this.lastIndex) return null;
    const { maxMessageBytes, entryOverheadBytes } = this.config;
    const last = this.sizes.limit(first, this.lastIndex, maxMessageBytes, entryOverheadBytes);
    const shared = this.sharedSpan;
    if (shared !== null && shared.first === first && shared.last === last) return shared;
    const made: EntrySpan = {
      first,
      last,
      termRuns: this.terms.runs(first, last),
      configChanges: this.changes.between(first, last),
      sizeBytes: this.sizes.between(first, last),
      sizesBytes: this.sizes.list(first, last),
    };
    this.sharedSpan = made;
    return made;
  }

  /** How far entries may be handed out for applying. */
  private get appliable(): LogIndex {
    if (this.config.applyBeforeWritten) return this.committed;
    return Math.min(this.committed, this.written);
  }

  get hasNextCommitted(): boolean {
    if (this.budget.paused || this.pendingSnapshot !== null) return false;
    return this.applying < this.appliable;
  }

  /** Hands out the next batch for applying, as large as the budget lets it be. */
  takeCommitted(): CommittedRange | null {
    if (!this.hasNextCommitted) return null;
    const { entryOverheadBytes } = this.config;
    const first = this.applying + 1;
    const end = this.appliable;
    const last = this.sizes.limit(first, end, this.budget.freeBytes, entryOverheadBytes);
    const bytes = this.sizes.between(first, last) + (last - first + 1) * entryOverheadBytes;
    this.applying = last;
    this.budget.handOut(last, bytes, last < end);
    return { first, last };
  }

  /** Everything up to `index` is applied. */
  appliedTo(index: LogIndex): void {
    this.budget.acknowledge(index);
    this.moveApplied(index);
  }

  private moveApplied(index: LogIndex): void {
    if (index <= this.applied) return;
    assert(index <= this.committed, "only committed entries are applied");
    this.applied = index;
    this.applying = Math.max(this.applying, index);
  }

  /**
   * The write that ended at (index, term) is durable. Ignored if the log has been rewritten there
   * since.
   */
  writtenTo(index: LogIndex, term: Term): void {
    if (index <= this.written || index > this.lastIndex) return;
    if (!this.matches(index, term)) return;
    this.written = index;
    this.handedOut = Math.max(this.handedOut, index);
  }

  /** Replaces the whole log by a snapshot, which is to be installed. */
  restore(snapshot: SnapshotMeta): void {
    assert(snapshot.index > this.committed, "a snapshot never takes committed entries back");
    this.terms.restart(snapshot.index, snapshot.term);
    this.sizes.restart(snapshot.index);
    this.changes.clear();
    this.sharedSpan = null;
    this.pendingSnapshot = snapshot;
    this.snapshotHandedOut = false;
    this.written = snapshot.index;
    this.handedOut = snapshot.index;
    this.committed = snapshot.index;
  }

  /** The installation of the snapshot at `index` is durable; so is the state that it holds. */
  snapshotWritten(index: LogIndex): void {
    if (this.pendingSnapshot?.index === index) {
      this.pendingSnapshot = null;
      this.snapshotHandedOut = false;
    }
    // What was handed out before is moot, and nobody else will give its bytes back.
    this.budget.acknowledge(index);
    this.moveApplied(index);
  }

  /**
   * Entries up to and including `floor` are gone; sizes and kinds are kept as long as they are
   * unapplied.
   */
  compact(floor: LogIndex): void {
    if (floor <= this.floorIndex) return;
    assert(
      floor <= this.committed && floor <= this.written,
      "only committed entries are compacted",
    );
    this.terms.compact(floor);
    const applied = Math.min(floor, this.applied);
    this.sizes.compact(applied);
    this.changes.compact(applied);
    this.sharedSpan = null;
  }

  assertLog(): void {
    this.terms.assertRuns();
    assert(this.applied <= this.applying && this.applied <= this.committed, "applied is committed");
    assert(this.committed <= this.lastIndex, "committed entries are in the log");
    assert(this.written <= this.handedOut && this.handedOut <= this.lastIndex, "written in order");
    assert(
      this.pendingSnapshot !== null || this.applying <= this.committed,
      "applying is committed",
    );
    this.changes.assertOrder();
  }
}
