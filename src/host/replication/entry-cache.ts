/**
 * The newest entries of one group in memory: what followers are sent and what is applied, without
 * reading the log back.
 *
 * Owns nothing durable: whatever is not here is read from the log. Invariants: 1. The entries are
 * contiguous and are the newest ones: a gap or a cut drops what no longer belongs. 2. Bytes are
 * bounded per group and over the node; the oldest go first. 3. Payloads are shared, never copied,
 * and never changed.
 */
import { assert } from "../../base/assert.js";
import type { LogEntry } from "../../ports.js";

/** What an entry costs besides its payload. */
const ENTRY_OVERHEAD_BYTES = 96;
const COMPACT_AT = 1024;

/** Bytes cached over all groups of a node. */
export class CacheBudget {
  usedBytes = 0;

  constructor(readonly maxBytes: number) {}
}

export class EntryCache {
  private entries: LogEntry[] = [];
  private head = 0;
  private bytes = 0;

  constructor(
    private readonly budget: CacheBudget,
    /** Bytes of this group at most. */
    private readonly maxBytes: number,
  ) {}

  get sizeBytes(): number {
    return this.bytes;
  }

  /**
   * Takes in an entry that was appended to the group's log. It replaces everything from there on.
   */
  put(entry: LogEntry): void {
    const first = this.entries[this.head];
    if (first !== undefined) {
      const end = first.index + (this.entries.length - this.head);
      if (entry.index > end || entry.index < first.index) this.clear();
      else this.cut(this.head + entry.index - first.index);
    }
    this.entries.push(entry);
    this.count(entry, 1);
    while (this.isOver() && this.entries.length - this.head > 1) this.dropOldest();
  }

  /** The entry at (index, term); null when it is not here. */
  at(index: number, term: number): LogEntry | null {
    const first = this.entries[this.head];
    if (first === undefined || index < first.index) return null;
    const entry = this.entries[this.head + index - first.index];
    return entry !== undefined && entry.term === term ? entry : null;
  }

  /** Lets go of everything up to `index`: nobody is expected to ask for it soon. */
  dropThrough(index: number): void {
    for (;;) {
      const first = this.entries[this.head];
      if (first === undefined || first.index > index) return;
      this.dropOldest();
    }
  }

  clear(): void {
    this.cut(this.head);
  }

  private isOver(): boolean {
    return this.bytes > this.maxBytes || this.budget.usedBytes > this.budget.maxBytes;
  }

  private cut(from: number): void {
    for (let at = from; at < this.entries.length; at++) {
      this.count(this.entries[at] as LogEntry, -1);
    }
    this.entries.length = from;
    this.compact();
  }

  private dropOldest(): void {
    this.count(this.entries[this.head] as LogEntry, -1);
    this.head++;
    this.compact();
  }

  private compact(): void {
    if (this.head === this.entries.length) {
      this.entries = [];
      this.head = 0;
      assert(this.bytes === 0, "an empty cache counts nothing");
    } else if (this.head >= COMPACT_AT && this.head * 2 >= this.entries.length) {
      this.entries.splice(0, this.head);
      this.head = 0;
    }
  }

  private count(entry: LogEntry, sign: 1 | -1): void {
    const bytes = sign * (entry.payload.length + ENTRY_OVERHEAD_BYTES);
    this.bytes += bytes;
    this.budget.usedBytes += bytes;
  }
}
