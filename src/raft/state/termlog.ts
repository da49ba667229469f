/**
 * The terms of the log, as runs: which term stands at which index, from the floor to the end.
 *
 * Invariants:
 * 1. The floor's own term is known for as long as the floor stands there; nothing below the floor
 *    is.
 * 2. Runs ascend in index and in term; the first run begins at floor + 1; no two neighbours have
 *    equal terms.
 * 3. An unknown term is undefined, never a number.
 * 4. The cost of every operation depends on the number of runs, never on the number of entries.
 */
import { assert, present } from "../../base/assert.js";
import type { LogIndex, Term, TermLookup, TermRun } from "./types.js";

export class TermLog {
  private floorAt: LogIndex;
  private floorTermValue: Term;
  private lastAt: LogIndex;
  private firsts: LogIndex[] = [];
  private terms: Term[] = [];

  constructor(floorIndex: LogIndex, floorTerm: Term, runs: readonly TermRun[], last: LogIndex) {
    assert(
      floorIndex >= 0 && floorTerm >= 0 && last >= floorIndex,
      "the log ends at or after its floor",
    );
    assert(runs.length > 0 === last > floorIndex, "runs cover the entries");
    this.floorAt = floorIndex;
    this.floorTermValue = floorTerm;
    this.lastAt = last;
    for (const run of runs) {
      this.firsts.push(run.first);
      this.terms.push(run.term);
    }
    this.assertRuns();
  }

  get floorIndex(): LogIndex {
    return this.floorAt;
  }

  get floorTerm(): Term {
    return this.floorTermValue;
  }

  get lastIndex(): LogIndex {
    return this.lastAt;
  }

  get lastTerm(): Term {
    const count = this.terms.length;
    return count === 0 ? this.floorTermValue : (this.terms[count - 1] as Term);
  }

  /** The term at `index`, or undefined below the floor and beyond the end. */
  termOf(index: LogIndex): Term | undefined {
    if (index > this.lastAt || index < this.floorAt) return undefined;
    if (index === this.floorAt) return this.floorTermValue;
    return this.terms[this.runOf(index)];
  }

  lookup(index: LogIndex): TermLookup {
    if (index > this.lastAt) return { kind: "beyond" };
    const term = this.termOf(index);
    return term === undefined ? { kind: "compacted" } : { kind: "known", term };
  }

  /** Appends `count` entries of one term. */
  append(term: Term, count: number): void {
    assert(count > 0 && term >= this.lastTerm && term > 0, "terms never fall along the log");
    if (this.terms.length === 0) {
      // Exactly as long as it is: most logs have one run, and pushing takes room for sixteen.
      this.firsts = [this.lastAt + 1];
      this.terms = [term];
    } else if (this.lastTerm !== term) {
      this.firsts.push(this.lastAt + 1);
      this.terms.push(term);
    }
    this.lastAt += count;
  }

  /** Drops everything above `last`. */
  cut(last: LogIndex): void {
    assert(last >= this.floorAt && last <= this.lastAt, "a cut lies within the log");
    while (this.firsts.length > 0 && (this.firsts[this.firsts.length - 1] as LogIndex) > last) {
      this.firsts.pop();
      this.terms.pop();
    }
    this.lastAt = last;
  }

  /** Drops everything up to and including `floor`, whose term stays known. */
  compact(floor: LogIndex): void {
    const term = present(this.termOf(floor), "the new floor lies within the log");
    let gone = 0;
    while (gone < this.firsts.length && this.endOf(gone) <= floor) gone++;
    this.firsts.splice(0, gone);
    this.terms.splice(0, gone);
    if (this.firsts.length > 0) this.firsts[0] = floor + 1;
    this.floorAt = floor;
    this.floorTermValue = term;
  }

  /** Replaces the whole log by a floor at (index, term). */
  restart(index: LogIndex, term: Term): void {
    this.firsts.length = 0;
    this.terms.length = 0;
    this.floorAt = index;
    this.floorTermValue = term;
    this.lastAt = index;
  }

  /** The runs of entries `first` to `last`, both within the log. */
  runs(first: LogIndex, last: LogIndex): TermRun[] {
    assert(
      first > this.floorAt && first <= last && last <= this.lastAt,
      "a range lies within the log",
    );
    let run = this.runOf(first);
    const found: TermRun[] = [{ first, term: this.terms[run] as Term }];
    for (run++; run < this.firsts.length && (this.firsts[run] as LogIndex) <= last; run++) {
      found.push({ first: this.firsts[run] as LogIndex, term: this.terms[run] as Term });
    }
    return found;
  }

  /**
   * The largest index, not above `index`, whose term is not above `term`: where to look next after
   * a conflict. Below the floor and beyond the end nothing is known and `index` itself is the
   * answer. May be floor - 1, "below everything".
   */
  lastNotAbove(index: LogIndex, term: Term): LogIndex {
    if (index > this.lastAt || index < this.floorAt) return index;
    let at = index;
    for (let run = at > this.floorAt ? this.runOf(at) : -1; run >= 0; run--) {
      if ((this.terms[run] as Term) <= term) return at;
      at = (this.firsts[run] as LogIndex) - 1;
    }
    if (this.floorTermValue <= term || this.floorAt === 0) return this.floorAt;
    return this.floorAt - 1;
  }

  /**
   * The first index of a run of entries that this log lacks or has with another term; 0 if it has
   * them all.
   */
  firstConflict(runs: readonly TermRun[], last: LogIndex): LogIndex {
    for (let theirs = 0; theirs < runs.length; theirs++) {
      const run = runs[theirs] as TermRun;
      const next = runs[theirs + 1];
      const end = next === undefined ? last : next.first - 1;
      let at = run.first;
      while (at <= end) {
        if (at > this.lastAt) return at;
        assert(at > this.floorAt, "compared entries lie above the floor");
        const ours = this.runOf(at);
        if (this.terms[ours] !== run.term) return at;
        at = Math.min(end, this.endOf(ours)) + 1;
      }
    }
    return 0;
  }

  assertRuns(): void {
    for (let run = 0; run < this.firsts.length; run++) {
      const first = this.firsts[run] as LogIndex;
      const term = this.terms[run] as Term;
      const before = run === 0 ? this.floorTermValue : (this.terms[run - 1] as Term);
      assert(
        run === 0 ? first === this.floorAt + 1 && term >= before : term > before,
        "terms ascend",
      );
      assert(first <= this.endOf(run) && term > 0, "a run is not empty");
    }
    assert(this.firsts.length > 0 || this.lastAt === this.floorAt, "entries have runs");
  }

  /** The last index of a run. */
  private endOf(run: number): LogIndex {
    return run + 1 < this.firsts.length ? (this.firsts[run + 1] as LogIndex) - 1 : this.lastAt;
  }

  /**
   * Which run holds `index`, an index above the floor: binary search, after a look at the last run.
   */
  private runOf(index: LogIndex): number {
    let high = this.firsts.length - 1;
    if (index >= (this.firsts[high] as LogIndex)) return high;
    let low = 0;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.firsts[middle] as LogIndex) <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
