/**
 * Who has which keys of a key space where each partition is known as of another moment: what one
 * node applied of each is all there is, and moves of ranges may be in the middle.
 *
 * Pure. Invariants: 1. Every key has one owner. 2. Whoever owns keys by its own rows, by a move
 * that the map has not heard of, has them. 3. Keys that nobody owns go to where they lie whole: to
 * the source that froze them, or to the target that has taken and compared all of them. 4. Where
 * nothing is known of a key but the map, the map says it. 5. The answer for what it made is itself.
 */
import { compareText } from "../../base/bytes.js";
import type { RangeDescriptor, RangeMove } from "../commands/command.js";
import type { Ownership } from "../ownership/ownership.js";
import type { KeyInterval, OwnershipRow } from "../ownership/ownership-row.js";

/** A partition of which something is here. */
export interface KnownPartition {
  readonly partition: number;
  readonly ownership: Ownership;
}

/** A key space, as the map has it. */
export interface MappedSpace {
  readonly keySpace: string;
  /** Its hash partition. */
  readonly home: number;
  /** By start key; none: all of it lies at home. */
  readonly ranges: readonly RangeDescriptor[];
  readonly move: RangeMove | null;
  /** Of the map: moves that began later are not in it. */
  readonly mapVersion: number;
}

export type OwnedInterval = Pick<RangeDescriptor, "startKey" | "endKey" | "partitionId">;
type Bounds = Pick<KeyInterval, "startKey" | "endKey">;

/** The intervals between all bounds of `all`, in byte order: none of `all` divides one of them. */
export function piecesOf(all: Iterable<Bounds>): readonly Bounds[] {
  const cuts = new Set<string>();
  for (const { startKey, endKey } of all) {
    if (startKey !== null) cuts.add(startKey);
    if (endKey !== null) cuts.add(endKey);
  }
  const sorted = [...cuts].sort(compareText);
  const starts: (string | null)[] = [null, ...sorted];
  return starts.map((startKey, at) => ({ startKey, endKey: sorted[at] ?? null }));
}

/** True when `piece`, one of `piecesOf`, lies in `interval`. */
export function isWithin(piece: Bounds, { startKey, endKey }: Bounds): boolean {
  const isAbove =
    startKey === null || (piece.startKey !== null && compareText(startKey, piece.startKey) <= 0);
  const isBelow =
    endKey === null || (piece.endKey !== null && compareText(piece.endKey, endKey) <= 0);
  return isAbove && isBelow;
}

/** The owners of all keys of the space, by start key. */
export function ownersOf(
  space: MappedSpace,
  known: readonly KnownPartition[],
): readonly OwnedInterval[] {
  const { keySpace, ranges, move } = space;
  const rows = known.flatMap(({ ownership }) => ownership.overlapping(whole(keySpace)));
  const owners: OwnedInterval[] = [];
  for (const piece of piecesOf([...ranges, ...rows, ...(move === null ? [] : [move])])) {
    const partitionId = ownerOf(space, known, piece);
    const before = owners.at(-1);
    if (before?.partitionId !== partitionId) owners.push({ ...piece, partitionId });
    else owners[owners.length - 1] = { ...before, endKey: piece.endKey };
  }
  return owners;
}

export function whole(keySpace: string): KeyInterval {
  return { keySpace, startKey: null, endKey: null };
}

/** What one partition has of a piece. */
interface Share {
  readonly partition: number;
  /** Null: no row says anything. */
  readonly row: OwnershipRow | null;
  readonly owns: boolean;
}

function ownerOf(space: MappedSpace, known: readonly KnownPartition[], piece: Bounds): number {
  const { keySpace, home, move } = space;
  const mapped = space.ranges.find((range) => isWithin(piece, range))?.partitionId ?? home;
  const shares = known.flatMap(({ partition, ownership }): Share[] => {
    const interval = { keySpace, ...piece };
    const row = ownership.overlapping(interval)[0] ?? null;
    // Any partition of the pool would own the keys of any key space.
    if (row === null && partition !== home) return [];
    return [{ partition, row, owns: ownership.ownsAll(interval) }];
  });
  const owning = shares.filter(({ owns }) => owns);
  const isOwner = (partition: number): boolean => {
    return owning.some((share) => share.partition === partition);
  };
  if (move !== null && isWithin(piece, move) && isOwner(move.target)) {
    // The pool owns what it has no row of: it may also be behind the move that took it away.
    const byRow = owning.some(({ partition, row }) => partition === move.target && row !== null);
    if (byRow || !isOwner(move.source)) return move.target;
  }
  const unheard = owning.filter(({ row }) => (row?.moveId ?? 0) > space.mapVersion);
  if (unheard.length > 0) return latest(unheard, mapped);
  if (isOwner(mapped)) return mapped;
  const closed = shares.filter(({ row }) => row?.state === "closed");
  if (closed.some(({ partition }) => partition === mapped)) return mapped;
  if (owning.length > 0) return latest(owning, mapped);
  const frozen = shares.filter(({ row }) => row?.state === "leaving");
  if (frozen.length > 0) return latest(frozen, mapped);
  return latest(closed, mapped);
}

/** Of the latest move; `otherwise` when there is none. */
function latest(shares: readonly Share[], otherwise: number): number {
  let found = otherwise;
  let highest = -1;
  for (const { partition, row } of shares) {
    const moveId = row?.moveId ?? 0;
    if (moveId > highest) [found, highest] = [partition, moveId];
  }
  return found;
}
