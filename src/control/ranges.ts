/**
 * Key ranges as planners and the router see them: which range holds a key, and whether a map is
 * sound.
 *
 * Pure. The invariant itself is checked in apply (machine/meta/range-map). Invariants: 1. Start
 * inclusive, end exclusive, null open, order by bytes. 2. A key space with descriptors has exactly
 * one range for every key.
 */
import { present } from "../base/assert.js";
import { compareText } from "../base/bytes.js";
import type { RangeDescriptor } from "../machine/commands/command.js";
import { isRangeKeySpace, tilingFault, type TilingFault } from "../machine/meta/range-map.js";

export { isRangeKeySpace, tilingFault };

/**
 * The range of `key` in the descriptors of its key space (sorted, tiling); null when there are
 * none.
 */
export function findRange(
  descriptors: readonly RangeDescriptor[],
  key: string,
): RangeDescriptor | null {
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

/** Why a split of the range that holds `splitKey` is not possible; null when it is. */
export type SplitRefusal = "no-range" | "invalid-split-key";

/** A split key lies inside its key space and strictly inside its range. */
export function splitRefusal(
  keySpace: string,
  descriptors: readonly RangeDescriptor[],
  splitKey: string,
  keySpaceOfKey: (key: string) => string,
): SplitRefusal | null {
  const range = findRange(descriptors, splitKey);
  if (range === null) return "no-range";
  if (keySpaceOfKey(splitKey) !== keySpace) return "invalid-split-key";
  return range.startKey === splitKey ? "invalid-split-key" : null;
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
