/**
 * Whether any value of a span of keys changed since a moment.
 *
 * Watches the memtable. Owned by whoever opened it, who closes it. Invariants: 1. A change of which
 * nothing can be said counts as one: rows that were replaced as a whole, keys that came or went. 2.
 * A closed watch costs nothing.
 */
import type { Ownership } from "./ownership/ownership.js";
import type { KeySpan } from "./kv/pages.js";
import { RowKind, type ByteKey } from "./store/keys.js";
import type { ChangeWatcher, Memtable } from "./store/memtable.js";

export class ValueWatch implements ChangeWatcher {
  private readonly first: ByteKey;
  private readonly last: ByteKey;
  private readonly ownedVersion: number;
  private readonly unwatch: () => void;
  private touched = false;

  /** `isCurrent`: the rows that begin with `prefix` are those that are read. */
  constructor(
    memtable: Memtable,
    prefix: ByteKey,
    span: KeySpan,
    private readonly ownership: Ownership,
    private readonly isCurrent: () => boolean,
  ) {
    const values = prefix + String.fromCharCode(RowKind.value);
    this.first = values + span.first;
    this.last = values + span.last;
    this.ownedVersion = ownership.version;
    this.unwatch = memtable.watch(this);
  }

  beforeChange(key: ByteKey): void {
    if (key >= this.first && key < this.last) this.touched = true;
  }

  /** Every read of the span would show what it showed when the watch was opened. */
  get stands(): boolean {
    return !this.touched && this.ownership.version === this.ownedVersion && this.isCurrent();
  }

  close(): void {
    this.unwatch();
  }
}
