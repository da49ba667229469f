/**
 * Hybrid logical timestamps {n, l, c} (Kulkarni et al., "Logical Physical Clocks", 2014):
 * informative stamps on data.
 *
 * Invariants: 1. Order: l, then c, then n. 2. `l` is Unix milliseconds (safe integer ≥ 0), `c` is
 * uint32, `n` int32. 3. No decision of the service rests on a stamp except a backup's cut and a
 * restore's target.
 */

export interface Hlc {
  /** Node id. */
  readonly n: number;
  /** Physical part, Unix milliseconds. */
  readonly l: number;
  /** Counter within the same physical part. */
  readonly c: number;
}

/** "No timestamp". */
export const NO_STAMP: Hlc = { n: 0, l: 0, c: 0 };

/**
 * Longest forward jump (ms) that one new stamp may take past the last one because of the wall
 * clock.
 */
export const STAMP_JUMP_MAX_MS = 24 * 3_600_000;

export function compareHlc(a: Hlc, b: Hlc): number {
  if (a.l !== b.l) return a.l - b.l;
  if (a.c !== b.c) return a.c - b.c;
  return a.n - b.n;
}

/**
 * The stamp after `last` on `node` at the wall time `wallMs`: never at or below `last`, and at most
 * STAMP_JUMP_MAX_MS ahead of it (the first stamp of a group, after NO_STAMP, takes the wall time as
 * it is).
 */
export function nextStamp(last: Hlc, node: number, wallMs: number): Hlc {
  const wall = Math.max(0, Math.floor(wallMs));
  const physical = last.l === 0 ? wall : Math.min(wall, last.l + STAMP_JUMP_MAX_MS);
  if (physical > last.l) return { n: node, l: physical, c: 0 };
  if (last.c >= 0xffff_ffff) return { n: node, l: last.l + 1, c: 0 };
  return { n: node, l: last.l, c: last.c + 1 };
}
