/**
 * Merges the sorted runs of several tables into one ascending stream of entries. Used by scans of
 * the memtable.
 *
 * Invariants: 1. Runs added first are newer: of equal keys the newest entry comes out and the
 * others are passed over. 2. Removed entries never come out. 3. Only keys with first ≤ key < last
 * come out.
 */
import type { ByteKey } from "./keys.js";
import { lowerBound, type RowEntry } from "./row-table.js";

/** `value` null: the newest entry says that there is no row. */
export type MergedVisitor = (key: ByteKey, value: Uint8Array | null) => boolean;

export class LayerMerge {
  private readonly first: ByteKey;
  private readonly last: ByteKey | null;
  private readonly runs: (readonly RowEntry[])[] = [];
  private readonly positions: number[] = [];

  constructor(first: ByteKey, last: ByteKey | null) {
    this.first = first;
    this.last = last;
  }

  add(runs: readonly (readonly RowEntry[])[]): void {
    for (const run of runs) {
      const at = lowerBound(run, this.first);
      if (at === run.length) continue;
      this.runs.push(run);
      this.positions.push(at);
    }
  }

  /** The entry with the smallest key that was not given yet, or null at the end. */
  next(): RowEntry | null {
    let best: RowEntry | null = null;
    for (let at = 0; at < this.runs.length; at++) {
      const entry = this.peek(at);
      if (entry !== null && (best === null || entry.key < best.key)) best = entry;
    }
    if (best === null || (this.last !== null && best.key >= this.last)) return null;
    for (let at = 0; at < this.runs.length; at++) {
      if (this.peek(at)?.key === best.key) this.positions[at] = (this.positions[at] as number) + 1;
    }
    return best;
  }

  /**
   * Visits the entries, and the rows that `below` visits in the same range, in one order until
   * `visit` returns false. Of equal keys the entry counts.
   */
  over(
    below: (row: (key: ByteKey, value: Uint8Array) => boolean) => void,
    visit: MergedVisitor,
  ): void {
    let head = this.next();
    let going = true;
    below((key, stored) => {
      while (going && head !== null && head.key < key) {
        going = visit(head.key, head.value);
        head = this.next();
      }
      if (!going) return false;
      if (head !== null && head.key === key) {
        going = visit(head.key, head.value);
        head = this.next();
      } else going = visit(key, stored);
      return going;
    });
    while (going && head !== null) {
      going = visit(head.key, head.value);
      head = this.next();
    }
  }

  private peek(at: number): RowEntry | null {
    const run = this.runs[at] as readonly RowEntry[];
    let position = this.positions[at] as number;
    while (position < run.length && (run[position] as RowEntry).removed) position++;
    this.positions[at] = position;
    return run[position] ?? null;
  }
}
