/**
 * The durable storage of a scenario's node: an in-memory log behind a base, and the hard state.
 *
 * Invariants: 1. Entries follow the base and each other without a gap. 2. Only the harness writes
 * here.
 */
import type { HardState } from "../../src/raft/state/types.js";
import type { Entry, Snapshot } from "./wire.js";

export class Storage {
  base: { index: number; term: number };
  entries: Entry[] = [];
  hardState: HardState = { term: 0, vote: 0, commit: 0 };
  private installedIndex = 0;

  constructor(index: number, term: number) {
    this.base = { index, term };
    this.installedIndex = index;
  }

  get firstIndex(): number {
    return this.base.index + 1;
  }

  get lastIndex(): number {
    return this.base.index + this.entries.length;
  }

  append(entries: readonly Entry[]): void {
    const fresh = entries.filter((entry) => entry.index > this.base.index);
    const [first] = fresh;
    if (first === undefined) return;
    if (first.index > this.lastIndex + 1) throw new Error("missing log entries before an append");
    this.entries.length = first.index - this.firstIndex;
    this.entries.push(...fresh);
  }

  install(snapshot: Snapshot): void {
    if (this.installedIndex > 0 && snapshot.index <= this.installedIndex) {
      throw new Error("requested index is older than the existing snapshot");
    }
    this.installedIndex = snapshot.index;
    this.base = { index: snapshot.index, term: snapshot.term };
    this.entries = [];
  }

  compact(index: number): void {
    if (index <= this.base.index)
      throw new Error("requested index is unavailable due to compaction");
    const last = this.entries[index - this.firstIndex];
    if (last === undefined)
      throw new Error(`compact ${index} is out of bound lastindex(${this.lastIndex})`);
    this.entries = this.entries.slice(index - this.base.index);
    this.base = { index, term: last.term };
  }
}
