/**
 * The range descriptors as their rows are now, decoded: all of them, and by key space.
 *
 * Owns the lists that it decoded last. Invariants: 1. What is read is what the rows hold at that
 * moment, in the middle of a command too. 2. Rows that were not written keep their descriptor, the
 * same object, unless so many were that all are read. 3. A list that was given out stays as it is.
 * 4. Without anybody who tells of changes all is read each time.
 */
import { present } from "../../base/assert.js";
import { compareText } from "../../base/bytes.js";
import type { RangeDescriptor } from "../commands/command.js";
import {
  RowKind,
  keySuccessor,
  rangeKey,
  rangePrefix,
  textToByteKey,
  type ByteKey,
} from "../store/keys.js";
import type { ChangedRecords, ReadableRows } from "../store/rows.js";
import { decodeRange, type RangeRow } from "./meta-rows.js";

/** The descriptors of one key space, by start key. */
export interface KeySpaceRanges {
  readonly keySpace: string;
  readonly descriptors: readonly RangeDescriptor[];
}

/** Where more than this part of all rows changed, all are read. */
const CHANGED_PART = 4;
const NO_RANGES: readonly RangeDescriptor[] = [];

/** The name of a descriptor's row. */
function nameOf({ keySpace, descriptor: { startKey } }: RangeRow): ByteKey {
  return rangeKey(textToByteKey(keySpace), startKey === null ? null : textToByteKey(startKey));
}

function decoded(value: Uint8Array): RangeRow {
  return present(decodeRange(value), "a range row is whole");
}

/** The place of the first item that does not lie before what is looked for. */
function lowerBound<Item>(items: readonly Item[], isBefore: (item: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(present(items[middle], "the middle is inside"))) low = middle + 1;
    else high = middle;
  }
  return low;
}

function spaceOf(keySpace: string, rows: readonly RangeRow[]): KeySpaceRanges {
  return { keySpace, descriptors: rows.map(({ descriptor }) => descriptor) };
}

export class DecodedRanges {
  /** In the order of their names. */
  private rows: readonly RangeRow[] = [];
  /** In byte order. */
  private spaces: readonly KeySpaceRanges[] = [];
  private readonly bySpace = new Map<string, readonly RangeDescriptor[]>();

  constructor(
    private readonly source: ReadableRows,
    private readonly changes: ChangedRecords | null,
  ) {}

  all(): readonly RangeRow[] {
    this.refresh();
    return this.rows;
  }

  keySpaces(): readonly KeySpaceRanges[] {
    this.refresh();
    return this.spaces;
  }

  of(keySpace: string): readonly RangeDescriptor[] {
    this.refresh();
    return this.bySpace.get(keySpace) ?? NO_RANGES;
  }

  private refresh(): void {
    const changed = this.changes?.takeChanged(RowKind.range) ?? null;
    if (changed?.size === 0) return;
    if (changed === null || changed.size > this.rows.length / CHANGED_PART) this.readAll();
    else this.readSome(changed);
  }

  private readAll(): void {
    const rows: RangeRow[] = [];
    this.source.scan(RowKind.range, "", null, (_, value) => {
      rows.push(decoded(value));
      return true;
    });
    this.rows = rows;
    const bySpace = new Map<string, RangeRow[]>();
    for (const row of rows) {
      const known = bySpace.get(row.keySpace);
      if (known === undefined) bySpace.set(row.keySpace, [row]);
      else known.push(row);
    }
    const spaces = [...bySpace].map(([keySpace, ofSpace]) => spaceOf(keySpace, ofSpace));
    this.spaces = spaces.sort((a, b) => compareText(a.keySpace, b.keySpace));
    this.bySpace.clear();
    for (const { keySpace, descriptors } of spaces) this.bySpace.set(keySpace, descriptors);
  }

  private readSome(changed: ReadonlySet<ByteKey>): void {
    const rows = [...this.rows];
    const touched = new Set<string>();
    for (const name of changed) {
      const value = this.source.get(RowKind.range, name);
      const at = lowerBound(rows, (row) => nameOf(row) < name);
      const there = rows[at];
      const known = there !== undefined && nameOf(there) === name ? there : null;
      const now = value === null ? null : decoded(value);
      const keySpace = (now ?? known)?.keySpace;
      // Made and deleted since it was looked at.
      if (keySpace === undefined) continue;
      touched.add(keySpace);
      rows.splice(at, known === null ? 0 : 1, ...(now === null ? [] : [now]));
    }
    this.rows = rows;
    const spaces = [...this.spaces];
    for (const keySpace of touched) this.regroup(spaces, keySpace);
    this.spaces = spaces;
  }

  /** Of the rows as they are now. */
  private regroup(spaces: KeySpaceRanges[], keySpace: string): void {
    const { rows } = this;
    const prefix = rangePrefix(textToByteKey(keySpace));
    const behind = keySuccessor(prefix);
    const first = lowerBound(rows, (row) => nameOf(row) < prefix);
    const end = behind === null ? rows.length : lowerBound(rows, (row) => nameOf(row) < behind);
    const at = lowerBound(spaces, (space) => compareText(space.keySpace, keySpace) < 0);
    const isKnown = spaces[at]?.keySpace === keySpace;
    const space = spaceOf(keySpace, rows.slice(first, end));
    const isThere = space.descriptors.length > 0;
    spaces.splice(at, isKnown ? 1 : 0, ...(isThere ? [space] : []));
    if (isThere) this.bySpace.set(keySpace, space.descriptors);
    else this.bySpace.delete(keySpace);
  }
}
