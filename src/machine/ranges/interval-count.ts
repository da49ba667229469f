/**
 * Counts what an interval of keys holds, in slices, while the group goes on changing it; from the
 * end of the reading on it is what the interval holds at any moment.
 *
 * It reads by itself what a copy has read: what the copy missed shows. Watches the rows; owned by
 * whoever opened it, who closes it. Invariants: 1. Keys up to the one reached are counted as they
 * are now, all others not at all: each change of a row behind it is taken in as it is made. 2. A
 * slice looks at a bounded number of rows, and one key.
 */
import { wholeKvRow } from "../kv/kv.js";
import { visitsOf } from "../kv/page-builder.js";
import type { KeyInterval } from "../ownership/ownership-row.js";
import { RowKind, historyKeyOf, type ByteKey } from "../store/keys.js";
import type { GroupRows, ValueWatcher } from "../store/rows.js";
import { Content } from "./content.js";
import { isIn, keptOf, olderRow, spanIn, type FilledSpan } from "./move-set.js";

/** The character right above the separator of key spaces. */
const ABOVE_SEPARATOR = "0";

/** As `range-close` has it. */
export interface CountedInterval {
  readonly keys: number;
  readonly digestLow: number;
  readonly digestHigh: number;
}

export class IntervalCount implements ValueWatcher {
  /** The rows were replaced: to be closed. */
  overrun = false;
  private readonly span: FilledSpan;
  private readonly content = new Content();
  private readonly unwatch: () => void;
  private reached: ByteKey | null = null;
  private isRead = false;

  constructor(
    private readonly rows: GroupRows,
    interval: KeyInterval,
  ) {
    this.span = spanIn(interval);
    this.unwatch = rows.watchValues(this);
  }

  /**
   * Reads on; true at the end, from where on nothing is read any more: what comes is told.
   * `maxVisits`: rows, a large one counted once more for each KiB.
   */
  next(maxVisits: number): boolean {
    if (this.isRead) return true;
    const { rows, span, content } = this;
    const { space } = span;
    const above = this.reached === null ? space : `${this.reached}\0`;
    const first = above > span.first ? above : span.first;
    const end = space + ABOVE_SEPARATOR;
    const last = span.last !== null && span.last < end ? span.last : end;
    const found: (readonly [ByteKey, Uint8Array])[] = [];
    let visits = 0;
    let isCut = false;
    rows.scan(RowKind.value, first, last, (key, value) => {
      isCut = visits >= maxVisits;
      if (isCut) return false;
      this.reached = key;
      visits += visitsOf(value.length);
      if (!isIn(span, key)) return true;
      found.push([key, value]);
      for (const { count } of wholeKvRow(value).kept) visits += count;
      return true;
    });
    for (const [key, value] of found) {
      const row = wholeKvRow(value);
      content.add(RowKind.value, key, row);
      for (const revision of keptOf(row)) {
        content.add(RowKind.history, key, wholeKvRow(olderRow(rows, key, revision)));
      }
    }
    this.isRead = !isCut;
    return this.isRead;
  }

  /** What the interval holds now; after the end. */
  get counted(): CountedInterval {
    const { keys, digestLow, digestHigh } = this.content;
    return { keys, digestLow, digestHigh };
  }

  beforeChange(kind: number, name: ByteKey, value: Uint8Array | null): void {
    const key = kind === RowKind.value ? name : historyKeyOf(name);
    if (!isIn(this.span, key)) return;
    if (!this.isRead && (this.reached === null || key > this.reached)) return;
    const before = this.rows.get(kind, name);
    if (before !== null) this.content.remove(kind, key, wholeKvRow(before));
    if (value !== null) this.content.add(kind, key, wholeKvRow(value));
  }

  replaced(): void {
    this.overrun = true;
  }

  /** Stops watching. Safe to call again. */
  close(): void {
    this.unwatch();
  }
}
