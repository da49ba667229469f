/**
 * What must hold of the range descriptors of a key space: they tile it, in byte order, without gap,
 * overlap or empty range; and what the cut of a move makes of them.
 *
 * Pure. Checked in apply before every change of the map, and by planners beforehand. Invariants: 1.
 * Order is byte order of UTF-8. 2. null = open on that side; "" as a start is a real bound and
 * equals no key. 3. Neighbours that come to lie on one partition are one range.
 */
import { present } from "../../base/assert.js";
import { compareText } from "../../base/bytes.js";
import { next, rangeGeneration } from "../../base/ids.js";
import { kvKey } from "../store/names.js";
import type { KeyInterval, RangeDescriptor, RangeMove } from "../commands/command.js";

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

/** What a move says of the range that it takes keys from. */
export type MovedRange = Pick<RangeMove, "kind" | "source" | "generation"> & KeyInterval;

/** A true part of the range: from a key strictly inside up to its end. */
function isTail({ startKey, endKey }: KeyInterval, range: RangeDescriptor): boolean {
  if (startKey === null || endKey !== range.endKey) return false;
  if (range.startKey !== null && compareText(range.startKey, startKey) >= 0) return false;
  return endKey === null || compareText(startKey, endKey) < 0;
}

/** Position of the range that a move is about among those of its key space; -1: it is not there. */
export function movedRange(descriptors: readonly RangeDescriptor[], move: MovedRange): number {
  return descriptors.findIndex((range) => {
    if (range.partitionId !== move.source || range.generation !== move.generation) return false;
    if (move.kind === "split") return isTail(move, range);
    return range.startKey === move.startKey && range.endKey === move.endKey;
  });
}

/**
 * The descriptors of the key space after the cut; null when the range is not there. Those that stay
 * as they are are the same objects.
 */
export function rangesAfterCut(
  descriptors: readonly RangeDescriptor[],
  move: MovedRange & Pick<RangeMove, "target">,
): readonly RangeDescriptor[] | null {
  const at = movedRange(descriptors, move);
  if (at < 0) return null;
  const { target, startKey, endKey } = move;
  let first = at;
  let last = at;
  if (move.kind !== "split") {
    while (descriptors[first - 1]?.partitionId === target) first--;
    while (descriptors[last + 1]?.partitionId === target) last++;
  }
  const before = descriptors.slice(0, first);
  const after = descriptors.slice(last + 1);
  const touched = descriptors.slice(first, last + 1);
  const latest = Math.max(...touched.map(({ generation }) => generation));
  const generation = next(rangeGeneration(latest));
  const range = present(touched[0], "the range of a move is there");
  if (move.kind === "split") {
    const rest = { ...range, endKey: startKey, generation };
    return [...before, rest, { startKey, endKey, partitionId: target, generation }, ...after];
  }
  const end = present(touched[touched.length - 1], "the range of a move is there");
  const joined = { ...range, endKey: end.endKey, partitionId: target, generation };
  return [...before, joined, ...after];
}
