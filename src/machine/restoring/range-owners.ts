/**
 * Who has which keys of a key space where each partition is known as of another moment: what one
 * node applied of each is all there is, and moves of ranges may be in the middle.
 *
 * Pure. Invariants: 1. Every key has one owner. 2. Of all that had the whole of a key's interval,
 * whoever had it last has it, by the number of its move: numbers rise, and a copy that is closed
 * has what its source had when it was frozen. 3. A partition of the pool keeps no row of what it
 * owns: it goes before another one if it has all that the other has. 4. Where nothing is known of a
 * key but the map, the map says it. 5. The answer for what it made is itself.
 */
import { compareText } from "../../base/bytes.js";
import type { RangeDescriptor, RangeMove } from "../commands/command.js";
import type { Ownership } from "../ownership/ownership.js";
import {
  type KeyBounds,
  type KeyInterval,
  type OwnershipRow,
  isWithin,
} from "../ownership/ownership-row.js";

/** A partition of which something is here. */
export interface KnownPartition {
  readonly group: number;
  readonly ownership: Ownership;
}

/** Of the keys of the interval `one` has each as late as `other`, or later. */
export type HasAllOf<Known> = (one: Known, other: Known, interval: KeyInterval) => boolean;

/** A key space, as the map has it. */
export interface MappedSpace {
  readonly keySpace: string;
  /** Its hash partition. */
  readonly home: number;
  /** By start key; none: all of it lies at home. */
  readonly ranges: readonly RangeDescriptor[];
  readonly move: RangeMove | null;
}

export type OwnedInterval = Pick<RangeDescriptor, "startKey" | "endKey" | "partitionId">;

/** The intervals between all bounds of `all`, in byte order: none of `all` divides one of them. */
export function piecesOf(all: Iterable<KeyBounds>): readonly KeyBounds[] {
  const cuts = new Set<string>();
  for (const { startKey, endKey } of all) {
    if (startKey !== null) cuts.add(startKey);
    if (endKey !== null) cuts.add(endKey);
  }
  const sorted = [...cuts].sort(compareText);
  const starts: (string | null)[] = [null, ...sorted];
  return starts.map((startKey, at) => ({ startKey, endKey: sorted[at] ?? null }));
}

/** `intervals`, by start key, with those as one that touch and have one owner. */
export function joined(intervals: Iterable<OwnedInterval>): readonly OwnedInterval[] {
  const found: OwnedInterval[] = [];
  for (const { startKey, endKey, partitionId } of intervals) {
    const before = found.at(-1);
    if (before?.partitionId !== partitionId) found.push({ startKey, endKey, partitionId });
    else found[found.length - 1] = { ...before, endKey };
  }
  return found;
}

/** The owners of all keys of the space, by start key. */
export function ownersOf<Known extends KnownPartition>(
  space: MappedSpace,
  known: readonly Known[],
  hasAllOf: HasAllOf<Known>,
): readonly OwnedInterval[] {
  const { keySpace, ranges, move } = space;
  const rows = known.flatMap(({ ownership }) => ownership.overlapping(whole(keySpace)));
  const pieces = piecesOf([...ranges, ...rows, ...(move === null ? [] : [move])]);
  return joined(
    pieces.map((piece) => ({ ...piece, partitionId: ownerOf(space, known, hasAllOf, piece) })),
  );
}

export function whole(keySpace: string): KeyInterval {
  return { keySpace, startKey: null, endKey: null };
}

/** What a partition had of a piece, once, and whether it may be all of it. */
interface Claim<Known> {
  readonly known: Known;
  readonly row: OwnershipRow;
}

/** Of one move: who released the keys, who froze them, who has a whole copy, who owns them. */
const RANKS: readonly OwnershipRow["state"][] = ["left", "leaving", "closed", "here"];

function ownerOf<Known extends KnownPartition>(
  space: MappedSpace,
  known: readonly Known[],
  hasAllOf: HasAllOf<Known>,
  piece: KeyBounds,
): number {
  const { keySpace, home } = space;
  const interval = { keySpace, ...piece };
  const mapped = space.ranges.find((range) => isWithin(piece, range))?.partitionId ?? home;
  const claims = known.flatMap((one): Claim<Known>[] => {
    const row = one.ownership.overlapping(interval)[0];
    return row !== undefined && isWhole(one.group, row, space) ? [{ known: one, row }] : [];
  });
  const last = claims.reduce<Claim<Known> | null>((best, claim) => {
    return best === null || isLater(claim, best, mapped) ? claim : best;
  }, null);
  const pool = known.find(({ group, ownership }) => {
    return group === home && ownership.overlapping(interval).length === 0;
  });
  if (last === null) return pool === undefined ? mapped : home;
  if (pool !== undefined && hasAllOf(pool, last.known, interval)) return home;
  return last.known.group;
}

/** A copy that was dropped is called "left", too: only of a move that is known it is the source. */
function isWhole(partition: number, row: OwnershipRow, { move }: MappedSpace): boolean {
  if (row.state !== "left") return row.state !== "arriving";
  const isSource = move?.source === partition && move.moveId === row.moveId;
  return isSource && !row.isPurged && row.purgedTo === null;
}

function isLater(
  claim: Claim<KnownPartition>,
  other: Claim<KnownPartition>,
  mapped: number,
): boolean {
  const { row } = claim;
  if (row.moveId !== other.row.moveId) return row.moveId > other.row.moveId;
  const rank = RANKS.indexOf(row.state) - RANKS.indexOf(other.row.state);
  return rank !== 0 ? rank > 0 : claim.known.group === mapped;
}
