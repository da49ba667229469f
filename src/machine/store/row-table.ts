/**
 * One ordered in-memory table of rows: hashed point access, and order that is paid for only when
 * somebody asks for it.
 *
 * New entries gather in an unsorted tail; `sortedRuns` sorts the tail into a run and merges runs of
 * like size, so that each entry is merged O(log n) times. Owned by a Memtable.
 *
 * Invariants: 1. Every live entry is in `entries` and in exactly one of tail and runs. 2. A removed
 * entry is in no map and is skipped and dropped by merges. 3. A null value is an explicit deletion
 * that hides the layers below. 4. `sizeBytes` counts live entries exactly.
 */
import { writeByteKey, type ByteKey } from "./keys.js";
import { rowSlabs } from "./row-memory.js";

/** Memory of one row beside its key and value, roughly. */
export const ROW_OVERHEAD_BYTES = 96;

/** Keys as bytes go together, when their table was flushed. */
const keySlabs = rowSlabs();

export class RowEntry {
  readonly key: ByteKey;
  value: Uint8Array | null;
  /** True when no layer below has a row for this key: then a deletion needs no mark. */
  readonly absentBelow: boolean;
  removed = false;
  /** The key as bytes, once somebody needed it. */
  private keyBytes: Uint8Array | null = null;

  constructor(key: ByteKey, value: Uint8Array | null, absentBelow: boolean) {
    this.key = key;
    this.value = value;
    this.absentBelow = absentBelow;
  }

  bytes(): Uint8Array {
    this.keyBytes ??= writeByteKey(this.key, keySlabs.take(this.key.length));
    return this.keyBytes;
  }
}

/** Sorts entries by key. The compiled sort kernel or plain sorting. */
export interface EntrySorter {
  sort(entries: RowEntry[]): RowEntry[];
}

export const plainSorter: EntrySorter = {
  sort: (entries) => entries.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)),
};

/**
 * A run is merged into the one before it while that one is smaller than this many times its size.
 */
const MERGE_RATIO = 4;

export class RowTable {
  private readonly entries = new Map<ByteKey, RowEntry>();
  private tail: RowEntry[] = [];
  private runs: RowEntry[][] = [];
  private readonly sorter: EntrySorter;
  private bytes = 0;
  /** What `get` found last: a decision reads a row and then writes it. */
  private lastKey: ByteKey = "";
  private lastEntry: RowEntry | undefined = undefined;

  /** Keys are never empty: the empty key stands for none. */
  constructor(sorter: EntrySorter) {
    this.sorter = sorter;
  }

  get rows(): number {
    return this.entries.size;
  }

  get sizeBytes(): number {
    return this.bytes;
  }

  get(key: ByteKey): RowEntry | undefined {
    const entry = this.entries.get(key);
    this.lastKey = key;
    this.lastEntry = entry;
    return entry;
  }

  /**
   * Writes a row, or with null the mark of a deletion. `absentBelow` counts only when the entry is
   * new here.
   */
  put(key: ByteKey, value: Uint8Array | null, absentBelow: boolean): void {
    const size = value === null ? 0 : value.length;
    const entry = key === this.lastKey ? this.lastEntry : this.entries.get(key);
    if (entry !== undefined) {
      this.bytes += size - (entry.value === null ? 0 : entry.value.length);
      entry.value = value;
      return;
    }
    const fresh = new RowEntry(key, value, absentBelow);
    this.entries.set(key, fresh);
    this.lastKey = "";
    this.tail.push(fresh);
    this.bytes += size + key.length + ROW_OVERHEAD_BYTES;
    if (this.tail.length > 128 && this.tail.length > this.entries.size * 2) this.dropRemoved();
  }

  /** Deletes a row: leaves a mark, or nothing where nothing lies below. */
  remove(key: ByteKey): void {
    const entry = this.get(key);
    if (entry === undefined || !entry.absentBelow) {
      this.put(key, null, false);
      return;
    }
    this.entries.delete(key);
    this.lastKey = "";
    entry.removed = true;
    this.bytes -= (entry.value?.length ?? 0) + key.length + ROW_OVERHEAD_BYTES;
    entry.value = null;
  }

  private dropRemoved(): void {
    this.tail = this.tail.filter((entry) => !entry.removed);
  }

  /**
   * Runs of entries, each in byte order; together they are the table. Removed entries may be among
   * them.
   */
  sortedRuns(): readonly (readonly RowEntry[])[] {
    if (this.tail.length === 0) return this.runs;
    this.dropRemoved();
    let run = this.sorter.sort(this.tail);
    this.tail = [];
    for (;;) {
      const previous = this.runs[this.runs.length - 1];
      if (previous === undefined || previous.length >= run.length * MERGE_RATIO) break;
      this.runs.pop();
      run = mergeRuns(previous, run);
    }
    if (run.length > 0) this.runs.push(run);
    return this.runs;
  }

  /** All live entries as one run in byte order. */
  ordered(): readonly RowEntry[] {
    this.sortedRuns();
    let whole: RowEntry[] = [];
    for (let at = this.runs.length - 1; at >= 0; at--) {
      whole = mergeRuns(this.runs[at] as RowEntry[], whole);
    }
    this.runs = [whole];
    return whole;
  }
}

function mergeRuns(a: readonly RowEntry[], b: readonly RowEntry[]): RowEntry[] {
  const merged: RowEntry[] = [];
  let atA = 0;
  let atB = 0;
  while (atA < a.length || atB < b.length) {
    const left = a[atA];
    const right = b[atB];
    let entry: RowEntry;
    if (right === undefined || (left !== undefined && left.key <= right.key)) {
      entry = left as RowEntry;
      atA++;
    } else {
      entry = right;
      atB++;
    }
    if (!entry.removed) merged.push(entry);
  }
  return merged;
}

/** Position of the first entry of `run` at or above `key`. */
export function lowerBound(run: readonly RowEntry[], key: ByteKey): number {
  let low = 0;
  let high = run.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((run[middle] as RowEntry).key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
