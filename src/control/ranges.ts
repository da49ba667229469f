/**
 * Key ranges as planners and the router see them: which range holds a key, which may be split or
 * merged, and whether a map is sound.
 *
 * Pure. The invariant itself is checked in apply (machine/meta/range-map). Invariants: 1. Start
 * inclusive, end exclusive, null open, order by bytes. 2. A key space with descriptors has exactly
 * one range for every key.
 */
import { present } from "../base/assert.js";
import { compareText } from "../base/bytes.js";
import { RANGE_SETTLES_MS } from "../base/limits.js";
import { hashPartition, keySpaceHashText, keySpaceOf } from "../base/routing.js";
import type { BeginMoveCommand, RangeDescriptor, RangeMove } from "../machine/commands/command.js";
import type { RangeRow } from "../machine/meta/meta-rows.js";
import { isRangeKeySpace, tilingFault, type TilingFault } from "../machine/meta/range-map.js";

export { isRangeKeySpace };

/**
 * The range of `key` in the descriptors of its key space (sorted, tiling); null when there are
 * none.
 */
export function findRange<Range extends Pick<RangeDescriptor, "startKey">>(
  descriptors: readonly Range[],
  key: string,
): Range | null {
  // Most key spaces have none; what lies in front of an array is slow to read.
  if (descriptors.length === 0) return null;
  let low = 0;
  let high = descriptors.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const { startKey } = present(descriptors[middle], "the middle is inside");
    if (startKey === null || compareText(startKey, key) <= 0) low = middle + 1;
    else high = middle;
  }
  return descriptors[low - 1] ?? null;
}

/** What a split by hand finds, before anything is counted (contract 6.3). */
export type SplitCase =
  | { readonly kind: "begins"; readonly range: RangeDescriptor }
  /** The same split is under way: whoever asks waits with it. */
  | { readonly kind: "runs"; readonly move: RangeMove }
  | {
      readonly kind: "refused";
      readonly status: "NoRange" | "InvalidSplitKey" | "UnsettledMovingIntents" | "ConcurrentSplit";
    };

/** `move`: that of the key space. A split key lies inside its key space and strictly in its range. */
export function splitCase(
  keySpace: string,
  descriptors: readonly RangeDescriptor[],
  move: RangeMove | null,
  splitKey: string,
): SplitCase {
  const isSame = move?.kind === "split" && move.startKey === splitKey;
  if (isSame && move.phase !== "aborting") return { kind: "runs", move };
  const range = findRange(descriptors, splitKey);
  if (range === null) return { kind: "refused", status: "NoRange" };
  if (keySpaceOf(splitKey) !== keySpace || range.startKey === splitKey) {
    return { kind: "refused", status: "InvalidSplitKey" };
  }
  if (move === null) return { kind: "begins", range };
  const isOver = move.phase !== "copying";
  return { kind: "refused", status: isOver ? "UnsettledMovingIntents" : "ConcurrentSplit" };
}

/** Sizes and ages of ranges, as the leader of meta knows them. */
export interface RangeSizes {
  /** Lease time of the meta partition (ms). */
  readonly nowLeaseMs: number;
  readonly dataPartitions: number;
  /** Live keys of a range, as its leader counted them; null = not known. */
  liveKeys(keySpace: string, range: RangeDescriptor): number | null;
}

/** It has not changed of late. */
export function hasSettled({ nowLeaseMs }: RangeSizes, { changedLeaseMs }: RangeRow): boolean {
  return changedLeaseMs === 0 || nowLeaseMs - changedLeaseMs >= RANGE_SETTLES_MS;
}

/**
 * The merges of one pass over the ranges of a key space, from left to right, no range in two of
 * them: neighbours that hold fewer than `sizeKeys` keys together, both counted, neither changed of
 * late. The left one takes the keys, unless the right one is at home.
 */
export function foldablePairs(
  sizes: RangeSizes,
  rows: readonly RangeRow[],
  sizeKeys: number,
): readonly BeginMoveCommand[] {
  const pairs: BeginMoveCommand[] = [];
  for (let at = 0; at + 1 < rows.length; at++) {
    const [left, right] = [rows[at], rows[at + 1]] as [RangeRow, RangeRow];
    const { keySpace } = left;
    const one = sizes.liveKeys(keySpace, left.descriptor);
    const other = sizes.liveKeys(keySpace, right.descriptor);
    if (one === null || other === null || one + other >= sizeKeys) continue;
    if (!hasSettled(sizes, left) || !hasSettled(sizes, right)) continue;
    const home = hashPartition(keySpaceHashText(keySpace), sizes.dataPartitions);
    const goesRight = right.descriptor.partitionId === home;
    const from = goesRight ? left.descriptor : right.descriptor;
    const { partitionId: target } = goesRight ? right.descriptor : left.descriptor;
    const { startKey, endKey, partitionId: source, generation } = from;
    const of = { keySpace, startKey, endKey, source, target, generation };
    pairs.push({ kind: "begin-move", move: "merge", ...of });
    at++;
  }
  return pairs;
}

/**
 * The fault of the first key space whose descriptors do not tile it; null when the whole map is
 * sound (P-104).
 */
export function mapFault(
  spaces: readonly {
    readonly keySpace: string;
    readonly descriptors: readonly RangeDescriptor[];
  }[],
): { readonly keySpace: string; readonly fault: TilingFault } | null {
  for (let at = 0; at < spaces.length; at++) {
    const { keySpace, descriptors } = present(spaces[at], "the position is inside");
    const fault = tilingFault(descriptors);
    if (fault !== null) return { keySpace, fault };
  }
  return null;
}
