/**
 * What must hold of the range descriptors of a key space: they tile it, in byte order, without gap,
 * overlap or empty range.
 *
 * Pure. Checked in apply before every change of the map, and by planners beforehand. Invariants: 1.
 * Order is byte order of UTF-8. 2. null = open on that side; "" as a start is a real bound and
 * equals no key.
 */
import { compareText } from "../../base/bytes.js";
import { kvKey } from "../store/names.js";
import type { RangeDescriptor } from "../commands/command.js";

/** Names ending so are kept for the service. */
const META_SUFFIX = "/meta";

/**
 * True for a name that may be routed by ranges: non-empty, within the limit, not reserved, not
 * ending in `/meta`.
 */
export function isRangeKeySpace(keySpace: string): boolean {
  return kvKey(keySpace) !== null && !keySpace.endsWith(META_SUFFIX);
}

/** What is wrong with the descriptors of one key space, in one word; null when they tile it. */
export type TilingFault =
  "empty-map" | "open-start" | "open-end" | "gap-or-overlap" | "empty-range";

/** Checks descriptors listed by start key. */
export function tilingFault(descriptors: readonly RangeDescriptor[]): TilingFault | null {
  const first = descriptors[0];
  const last = descriptors[descriptors.length - 1];
  if (first === undefined || last === undefined) return "empty-map";
  if (first.startKey !== null) return "open-start";
  if (last.endKey !== null) return "open-end";
  for (let at = 0; at < descriptors.length; at++) {
    const { startKey, endKey } = descriptors[at] as RangeDescriptor;
    if (startKey !== null && endKey !== null && compareText(startKey, endKey) >= 0) {
      return "empty-range";
    }
    const next = descriptors[at + 1];
    if (next === undefined) continue;
    if (endKey === null || next.startKey !== endKey) return "gap-or-overlap";
  }
  return null;
}
