/**
 * Deletes rows of generations that nobody needs any more, in slices: after an install, and after a
 * crash in a restore.
 *
 * Invariants: 1. Rows of a kept generation are never touched. 2. One slice deletes at most `limit`
 * rows; a crash in between costs nothing but the rest of the work.
 */
import { generationPrefix, groupPrefix, keySuccessor, type ByteKey } from "../store/keys.js";
import type { Overlay } from "../store/overlay.js";

/**
 * Deletes up to `limit` rows of the group outside the generations in `keep`. Returns how many: 0 =
 * nothing is left.
 */
export function sweepGenerations(
  overlay: Overlay,
  group: number,
  keep: readonly number[],
  limit: number,
): number {
  const doomed: ByteKey[] = [];
  const gather = (first: ByteKey, last: ByteKey | null): void => {
    overlay.scan(first, last, (key) => {
      doomed.push(key);
      return doomed.length < limit;
    });
  };
  let first = groupPrefix(group);
  for (const generation of [...keep].sort((a, b) => a - b)) {
    const kept = generationPrefix(group, generation);
    if (doomed.length < limit) gather(first, kept);
    first = keySuccessor(kept) as ByteKey;
  }
  if (doomed.length < limit) gather(first, keySuccessor(groupPrefix(group)));
  for (const key of doomed) overlay.delete(key);
  return doomed.length;
}
