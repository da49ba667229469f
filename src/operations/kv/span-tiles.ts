/**
 * What the parts of a page speak for: the intervals of key spaces that their partitions own, and
 * whether all of them together own every key of the page exactly once.
 *
 * A key space is named by a part when its partition owns other keys of it than its place in the
 * hash pool says: where nobody names it, all of it lies at its hash partition, which is always one
 * of the parts. A page about one bucket names that one in any case. Pure. Invariants: 1. Tiles are
 * as of the turn in which the rows were looked at. 2. A gap and an overlap are both a fault: a key
 * would be missing, or come twice (K15).
 */
import { textToByteKey, toByteKey, type ByteKey } from "../../machine/store/keys.js";
import { bucketSpan, prefixSpan, rangeSpan, type KeySpan } from "../../machine/kv/pages.js";
import type { RangeQuery } from "../../machine/decision/reading.js";
import type { Ownership } from "../../machine/ownership/ownership.js";

/** Which keys: those of a bucket in a range, or those that begin with a prefix. */
export interface SpanQuery {
  readonly prefix: string;
  readonly range: RangeQuery | null;
}

/** What one partition, or all of a node, own of one key space within a span. */
export interface SpaceTiles {
  readonly keySpace: string;
  readonly tiles: readonly KeySpan[];
}

/** The keys behind `after` that a query is about; null = none. */
export function spanOfQuery(
  { prefix, range }: SpanQuery,
  after: Uint8Array | null,
): KeySpan | null {
  if (range !== null) return filled(rangeSpan(range, after));
  const whole = prefixSpan(prefix);
  if (whole === null || after === null) return whole;
  const above = `${toByteKey(after)}\0`;
  return filled({ first: above > whole.first ? above : whole.first, last: whole.last });
}

function filled(span: KeySpan | null): KeySpan | null {
  return span === null || span.first >= span.last ? null : span;
}

/** The keys of a key space lie in it, with keys of deeper ones in between. */
function within(keySpace: string, span: KeySpan): KeySpan | null {
  const own = bucketSpan(keySpace);
  if (own === null) return null;
  const first = own.first > span.first ? own.first : span.first;
  const last = own.last < span.last ? own.last : span.last;
  return filled({ first, last });
}

/** What a partition speaks for of the keys behind `after`. */
export function tilesOf(
  ownership: Ownership,
  query: SpanQuery,
  after: Uint8Array | null,
): readonly SpaceTiles[] {
  const span = spanOfQuery(query, after);
  if (span === null || (query.range === null && ownership.isWhole)) return [];
  const found: SpaceTiles[] = [];
  for (const keySpace of spacesOf(ownership, query)) {
    const touched = within(keySpace, span);
    if (touched === null) continue;
    const { first, last } = touched;
    const tiles = ownership.spans(textToByteKey(keySpace), first, last).map((tile) => {
      return { first: tile.first, last: tile.last ?? last };
    });
    found.push({ keySpace, tiles });
  }
  return found;
}

function spacesOf(ownership: Ownership, { range }: SpanQuery): Iterable<string> {
  if (range !== null) return [range.bucket];
  const { ownsByDefault } = ownership;
  const rows = ownership.all().filter(({ state }) => (state === "here") !== ownsByDefault);
  return new Set(rows.map(({ keySpace }) => keySpace));
}

/** The tiles of several parts of one page, by key space. */
export function joinTiles(parts: Iterable<readonly SpaceTiles[]>): readonly SpaceTiles[] {
  const bySpace = new Map<string, KeySpan[]>();
  for (const spaces of parts) {
    for (const { keySpace, tiles } of spaces) {
      const known = bySpace.get(keySpace);
      if (known === undefined) bySpace.set(keySpace, [...tiles]);
      else known.push(...tiles);
    }
  }
  return [...bySpace].map(([keySpace, tiles]) => ({ keySpace, tiles }));
}

/** Without what lies behind the end of a page; null = it has none. */
export function tilesUpTo(
  spaces: readonly SpaceTiles[],
  next: Uint8Array | null,
): readonly SpaceTiles[] {
  if (next === null) return spaces;
  const end = toByteKey(next);
  return spaces.map(({ keySpace, tiles }) => {
    return { keySpace, tiles: tiles.filter(({ first }) => first <= end) };
  });
}

/**
 * True when the partitions that `spaces` tell of own each key of the page exactly once: those of
 * `query` behind `after`, up to `next`.
 */
export function isTiled(
  spaces: readonly SpaceTiles[],
  query: SpanQuery,
  after: Uint8Array | null,
  next: Uint8Array | null,
): boolean {
  const whole = spanOfQuery(query, after);
  const reached: ByteKey | null = next === null ? null : `${toByteKey(next)}\0`;
  const last = whole === null || (reached !== null && reached < whole.last) ? reached : whole.last;
  const span = whole === null || last === null ? null : filled({ first: whole.first, last });
  if (span === null) return true;
  const named = query.range === null ? [] : [{ keySpace: query.range.bucket, tiles: [] }];
  return joinTiles([named, spaces]).every(({ keySpace, tiles }) => {
    const touched = within(keySpace, span);
    return touched === null || covers(tiles, touched);
  });
}

function covers(tiles: readonly KeySpan[], span: KeySpan): boolean {
  let reached = span.first;
  for (const { first, last } of clipped(tiles, span)) {
    if (first !== reached) return false;
    reached = last;
  }
  return reached === span.last;
}

function clipped(tiles: readonly KeySpan[], span: KeySpan): readonly KeySpan[] {
  return tiles
    .map(({ first, last }) => ({
      first: first > span.first ? first : span.first,
      last: last < span.last ? last : span.last,
    }))
    .filter(({ first, last }) => first < last)
    .sort((left, right) => (left.first < right.first ? -1 : 1));
}
