/**
 * Which ways of the network are cut.
 */
import type { Prng } from "../../../../src/base/prng.js";

/** Draws a new pattern: node `one` alone (most often), one direction, a split, or any matrix. */
export function drawCuts(prng: Prng, ids: readonly number[], one: number, cuts: Set<number>): void {
  cuts.clear();
  const pattern = prng.chance(1, 2) ? 0 : prng.below(4);
  const side = prng.below(1 << ids.length);
  for (const from of ids) {
    for (const to of ids) {
      const apart = ((side >> (from - 1)) & 1) !== ((side >> (to - 1)) & 1);
      const isCut =
        (pattern === 0 && (from === one || to === one)) ||
        (pattern === 1 && to === one) ||
        (pattern === 2 && apart) ||
        (pattern === 3 && prng.chance(1, 3));
      if (isCut) cuts.add(from * 16 + to);
    }
  }
}
