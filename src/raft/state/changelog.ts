/**
 * Where the log holds membership changes: the kind of every entry that is not a normal one.
 *
 * Invariants: 1. Positions ascend and lie within the log, or between the floor's old place and what
 * is applied. 2. What is cut off the log leaves no trace here.
 */
import { assert } from "../../base/assert.js";
import type { ConfigPosition, EntryKind, LogIndex } from "./types.js";

const none: readonly ConfigPosition[] = [];

export class ChangeLog {
  private positions: ConfigPosition[];

  constructor(positions: readonly ConfigPosition[]) {
    this.positions = [...positions];
    this.assertOrder();
  }

  push(position: ConfigPosition): void {
    this.positions.push(position);
  }

  /** Forgets changes above `last`. */
  cut(last: LogIndex): void {
    while ((this.positions.at(-1)?.index ?? 0) > last) this.positions.pop();
  }

  /** Forgets changes up to and including `floor`. */
  compact(floor: LogIndex): void {
    let gone = 0;
    while (gone < this.positions.length && (this.positions[gone]?.index ?? 0) <= floor) gone++;
    this.positions.splice(0, gone);
  }

  clear(): void {
    this.positions = [];
  }

  kindAt(index: LogIndex): EntryKind {
    return this.positions.find((change) => change.index === index)?.kind ?? "normal";
  }

  /** Whether there is a change in (after, upTo]. */
  hasWithin(after: LogIndex, upTo: LogIndex): boolean {
    return this.positions.some(({ index }) => index > after && index <= upTo);
  }

  between(first: LogIndex, last: LogIndex): readonly ConfigPosition[] {
    if ((this.positions.at(-1)?.index ?? 0) < first) return none;
    return this.positions.filter(({ index }) => index >= first && index <= last);
  }

  assertOrder(): void {
    for (let at = 1; at < this.positions.length; at++) {
      const before = this.positions[at - 1]?.index ?? 0;
      assert((this.positions[at]?.index ?? 0) > before, "membership changes ascend");
    }
  }
}
