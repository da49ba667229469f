/**
 * Which keys a group owns, by its own rows: a sorted map beside them.
 *
 * Owns the rows of kind `ownership` and the map; both change together. A group of the hash pool
 * owns every key that no row takes from it, one above it only what a row gives it.
 * Invariants: 1. Rows of one key space do not overlap. 2. A settled row touches no neighbour of its
 * kind: they are one. 3. The map is built from the rows at every open and install (P-042). 4.
 * Without rows the answer costs one comparison. 5. The lists of the map are replaced, never
 * changed: a view keeps them.
 */
import { assert, present } from "../../base/assert.js";
import { RowKind, rangeKey, textToByteKey, type ByteKey } from "../store/keys.js";
import type { ReadableRows, Rows } from "../store/rows.js";
import {
  NOTHING_FILLED,
  decodeOwnership,
  encodeOwnership,
  isOwned,
  isSettled,
  type KeyInterval,
  type OwnershipRow,
} from "./ownership-row.js";

/** What reads ask of it. */
export interface OwnedKeys {
  /** Every key is owned. */
  readonly isWhole: boolean;
  owns(key: ByteKey): boolean;
}

export const EVERY_KEY: OwnedKeys = { isWhole: true, owns: () => true };

/** A span of keys of one key space, in byte order; `last`, excluded, null = to the end of it. */
export interface SpaceSpan {
  readonly first: ByteKey;
  readonly last: ByteKey | null;
}

interface Entry extends SpaceSpan {
  readonly row: OwnershipRow;
}

type Spaces = ReadonlyMap<ByteKey, readonly Entry[]>;

const NO_ENTRIES: readonly Entry[] = [];
const SEPARATOR = "/";

/** The key space of a key, as contract 6.1 has it. */
export function spaceOf(key: ByteKey): ByteKey {
  const at = key.lastIndexOf(SEPARATOR);
  return at < 0 ? key : key.slice(0, at);
}

/** An interval by its bounds in byte order. An open start is the empty key, which is below all. */
export function spanOf({ startKey, endKey }: KeyInterval): SpaceSpan {
  return {
    first: startKey === null ? "" : textToByteKey(startKey),
    last: endKey === null ? null : textToByteKey(endKey),
  };
}

function isBelow(key: ByteKey, last: ByteKey | null): boolean {
  return last === null || key < last;
}

function smallerEnd(a: ByteKey | null, b: ByteKey | null): ByteKey | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}

/** Place of the first entry that ends above `first`. */
function firstEndingAbove(entries: readonly Entry[], first: ByteKey): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const { last } = entries[middle] as Entry;
    if (isBelow(first, last)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function ownsIn(spaces: Spaces, byDefault: boolean, key: ByteKey): boolean {
  const entries = spaces.get(spaceOf(key));
  if (entries === undefined) return byDefault;
  const entry = entries[firstEndingAbove(entries, key)];
  return entry === undefined || key < entry.first ? byDefault : isOwned(entry.row);
}

/** The place of a row among those of the group. */
function nameOf({ keySpace, startKey }: KeyInterval): ByteKey {
  const start = startKey === null ? null : textToByteKey(startKey);
  return rangeKey(textToByteKey(keySpace), start);
}

export class Ownership implements OwnedKeys {
  isWhole: boolean;
  /** Grows whenever other keys are owned than before, in this life of the process. */
  version = 0;
  private spaces = new Map<ByteKey, readonly Entry[]>();

  /** `ownsByDefault`: the group is of the hash pool. */
  constructor(readonly ownsByDefault: boolean) {
    this.isWhole = ownsByDefault;
  }

  /** Forgets what it knew for what the rows say. */
  load(rows: ReadableRows): void {
    const spaces = new Map<ByteKey, Entry[]>();
    rows.scan(RowKind.ownership, "", null, (_name, value) => {
      const row = present(decodeOwnership(value), "a stored row of ownership is whole");
      const space = textToByteKey(row.keySpace);
      const entries = spaces.get(space) ?? [];
      const before = entries.at(-1);
      const span = spanOf(row);
      const isApart = before === undefined || (before.last !== null && before.last <= span.first);
      assert(isApart, "rows of ownership do not overlap");
      entries.push({ ...span, row });
      spaces.set(space, entries);
      return true;
    });
    this.spaces = spaces;
    this.isWhole = this.ownsByDefault && spaces.size === 0;
    this.version++;
  }

  /** Nothing moved here, or from here. */
  get hasNoRows(): boolean {
    return this.spaces.size === 0;
  }

  /** Keys of it are nobody's for now: their move is about to be cut, or opened again. */
  get hasFrozen(): boolean {
    return !this.hasNoRows && this.all().some(({ state }) => state === "leaving");
  }

  owns(key: ByteKey): boolean {
    return this.isWhole || ownsIn(this.spaces, this.ownsByDefault, key);
  }

  /** What is owned now, whatever changes later. */
  view(): OwnedKeys {
    if (this.isWhole) return EVERY_KEY;
    const spaces = new Map(this.spaces);
    return { isWhole: false, owns: (key) => ownsIn(spaces, this.ownsByDefault, key) };
  }

  /** All rows, by key space and start. */
  all(): OwnershipRow[] {
    return [...this.spaces.keys()].sort().flatMap((space) => this.rowsOf(space));
  }

  /** The rows of one key space, by start. */
  rowsOf(space: ByteKey): OwnershipRow[] {
    return this.entriesOf(space).map(({ row }) => row);
  }

  /** The row that begins there; null when there is none. */
  at(keySpace: string, startKey: string | null): OwnershipRow | null {
    const rows = this.rowsOf(textToByteKey(keySpace));
    return rows.find((row) => row.startKey === startKey) ?? null;
  }

  /** The rows that have keys of the interval, by start. */
  overlapping(interval: KeyInterval): OwnershipRow[] {
    return this.entriesWithin(interval).map(({ row }) => row);
  }

  /** Every key of the interval is owned. */
  ownsAll(interval: KeyInterval): boolean {
    const span = spanOf(interval);
    const owned = this.spans(textToByteKey(interval.keySpace), span.first, span.last);
    return owned.length === 1 && owned[0]?.first === span.first && owned[0].last === span.last;
  }

  /** No key of the interval is owned. */
  ownsNone(interval: KeyInterval): boolean {
    const { first, last } = spanOf(interval);
    return this.spans(textToByteKey(interval.keySpace), first, last).length === 0;
  }

  /**
   * What is owned of the keys of a key space from `first` to below `last`, by start; parts that
   * touch are one.
   */
  spans(space: ByteKey, first: ByteKey, last: ByteKey | null): SpaceSpan[] {
    const found: SpaceSpan[] = [];
    const add = (from: ByteKey, to: ByteKey | null): void => {
      if (to !== null && to <= from) return;
      const before = found.at(-1);
      if (before?.last === from) found[found.length - 1] = { first: before.first, last: to };
      else found.push({ first: from, last: to });
    };
    const entries = this.entriesOf(space);
    let from: ByteKey | null = first;
    for (let at = firstEndingAbove(entries, first); from !== null; at++) {
      const entry = entries[at];
      if (entry === undefined || !isBelow(entry.first, last)) break;
      if (this.ownsByDefault) add(from, entry.first);
      const begin: ByteKey = entry.first > first ? entry.first : first;
      const end = smallerEnd(entry.last, last);
      if (isOwned(entry.row)) add(begin, end);
      from = end;
    }
    if (from !== null && isBelow(from, last) && this.ownsByDefault) add(from, last);
    return found;
  }

  private entriesOf(space: ByteKey): readonly Entry[] {
    return this.spaces.get(space) ?? NO_ENTRIES;
  }

  private entriesWithin(interval: KeyInterval): readonly Entry[] {
    const { first, last } = spanOf(interval);
    const entries = this.entriesOf(textToByteKey(interval.keySpace));
    const found: Entry[] = [];
    for (let at = firstEndingAbove(entries, first); at < entries.length; at++) {
      const entry = entries[at] as Entry;
      if (!isBelow(entry.first, last)) break;
      found.push(entry);
    }
    return found;
  }

  /** Writes a row in the place of the one with its bounds. What is owned may change by that. */
  replace(rows: Rows, row: OwnershipRow): void {
    const before = present(this.at(row.keySpace, row.startKey), "a row is there to be replaced");
    assert(before.endKey === row.endKey, "a row is replaced by one of its bounds");
    rows.put(RowKind.ownership, nameOf(row), encodeOwnership(row));
    const space = textToByteKey(row.keySpace);
    const change = this.entriesOf(space).map((entry) => {
      return entry.row === before ? { first: entry.first, last: entry.last, row } : entry;
    });
    this.keep(space, change, isOwned(before) !== isOwned(row));
  }

  /**
   * Puts `row` in the place of all that the rows say of its interval; of settled rows that reach
   * beyond it the rest stays. A settled row is joined with its neighbours.
   */
  assign(rows: Rows, row: OwnershipRow): void {
    this.carve(rows, row);
    this.insert(rows, isSettled(row) ? this.joined(rows, row) : row);
  }

  /**
   * Takes the interval out of the rows: it is owned as the group's place in the pool says. Rows
   * that reach beyond it are settled, and their rest stays.
   */
  carve(rows: Rows, interval: KeyInterval): void {
    const { first, last } = spanOf(interval);
    for (const { row, ...span } of this.entriesWithin(interval)) {
      this.remove(rows, row);
      const isBefore = span.first < first;
      const isBehind = last !== null && isBelow(last, span.last);
      assert(isSettled(row) || !(isBefore || isBehind), "only settled rows are divided");
      if (isBefore) this.insert(rows, { ...row, endKey: interval.startKey });
      if (isBehind) this.insert(rows, { ...row, startKey: interval.endKey });
    }
  }

  private remove(rows: Rows, row: OwnershipRow): void {
    rows.delete(RowKind.ownership, nameOf(row));
    const space = textToByteKey(row.keySpace);
    const rest = this.entriesOf(space).filter((entry) => entry.row !== row);
    this.keep(space, rest, true);
  }

  private insert(rows: Rows, row: OwnershipRow): void {
    rows.put(RowKind.ownership, nameOf(row), encodeOwnership(row));
    const space = textToByteKey(row.keySpace);
    const entries = [...this.entriesOf(space)];
    const span = spanOf(row);
    entries.splice(firstEndingAbove(entries, span.first), 0, { ...span, row });
    this.keep(space, entries, true);
  }

  private keep(space: ByteKey, entries: readonly Entry[], isOther: boolean): void {
    if (entries.length === 0) this.spaces.delete(space);
    else this.spaces.set(space, entries);
    this.isWhole = this.ownsByDefault && this.spaces.size === 0;
    if (isOther) this.version++;
  }

  /** `row` with the neighbours that say the same, which go. What they were filled with is done. */
  private joined(rows: Rows, row: OwnershipRow): OwnershipRow {
    let { startKey, endKey, moveId, attempt, generation } = row;
    for (const other of this.rowsOf(textToByteKey(row.keySpace))) {
      if (other.state !== row.state || !isSettled(other)) continue;
      const isBefore = other.endKey !== null && other.endKey === row.startKey;
      const isBehind = other.startKey !== null && other.startKey === row.endKey;
      if (!isBefore && !isBehind) continue;
      this.remove(rows, other);
      if (isBefore) startKey = other.startKey;
      if (isBehind) endKey = other.endKey;
      if (other.generation > generation) generation = other.generation;
      if (other.moveId > moveId) ({ moveId, attempt } = other);
    }
    const { keySpace, state, isPurged } = row;
    const bounds = { keySpace, startKey, endKey };
    const named = { ...bounds, state, generation, moveId, attempt };
    return { ...named, ...NOTHING_FILLED, purgedTo: null, isPurged };
  }
}
