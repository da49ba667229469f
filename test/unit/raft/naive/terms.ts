/**
 * The deliberately naive log: one number per entry, searched from end to end. Second version of
 * src/raft/state/termlog.ts, and what a model node has on its disk.
 *
 * Invariants: 1. Entry n stands at position floor + 1 + n. 2. Nothing clever is done.
 */
import type { LogRange, TermRun } from "../../../../src/raft/state/types.js";

export class NaiveTerms {
  floor: number;
  floorTerm: number;
  terms: number[];
  /** Indexes of membership changes, ascending. */
  changes: number[];

  constructor(floor: number, floorTerm: number, terms: number[] = [], changes: number[] = []) {
    this.floor = floor;
    this.floorTerm = floorTerm;
    this.terms = terms;
    this.changes = changes;
  }

  copy(): NaiveTerms {
    return new NaiveTerms(this.floor, this.floorTerm, this.terms.slice(), this.changes.slice());
  }

  get last(): number {
    return this.floor + this.terms.length;
  }

  get lastTerm(): number {
    return this.terms.at(-1) ?? this.floorTerm;
  }

  /** The term at `index`; undefined below the floor and beyond the end. */
  termOf(index: number): number | undefined {
    return index === this.floor ? this.floorTerm : this.terms[index - this.floor - 1];
  }

  /** The largest index from `index` downwards whose term is not above `term`, if anything is known. */
  lastNotAbove(index: number, term: number): number {
    let at = index;
    while (at > 0 && (this.termOf(at) ?? 0) > term) at--;
    return at;
  }

  /** The first of these entries that is not here with its term; 0 if all are. */
  firstConflict(first: number, terms: readonly number[]): number {
    for (const [at, term] of terms.entries()) {
      if (this.termOf(first + at) !== term) return first + at;
    }
    return 0;
  }

  cut(last: number): void {
    this.terms.length = last - this.floor;
    while ((this.changes.at(-1) ?? 0) > last) this.changes.pop();
  }

  /** Cuts the log before the range and adds its entries, one by one. */
  append(range: LogRange): void {
    this.cut(range.first - 1);
    let run = 0;
    for (let index = range.first; index <= range.last; index++) {
      while ((range.termRuns[run + 1]?.first ?? Infinity) <= index) run++;
      this.terms.push(range.termRuns[run]?.term ?? 0);
    }
    for (const { index } of range.configChanges) this.changes.push(index);
  }

  compact(floor: number): void {
    const term = this.termOf(floor) ?? 0;
    this.terms.splice(0, floor - this.floor);
    this.floor = floor;
    this.floorTerm = term;
    this.changes = this.changes.filter((index) => index > floor);
  }

  restart(index: number, term: number): void {
    this.floor = index;
    this.floorTerm = term;
    this.terms = [];
    this.changes = [];
  }

  /** Runs of equal terms from `first` to `last`. */
  runs(first = this.floor + 1, last = this.last): TermRun[] {
    const runs: TermRun[] = [];
    for (let index = first; index <= last; index++) {
      const term = this.termOf(index) ?? 0;
      if (runs.at(-1)?.term !== term) runs.push({ first: index, term });
    }
    return runs;
  }
}
