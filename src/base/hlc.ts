/**
 * Hybrid logical timestamps {n, l, c} (Kulkarni et al., "Logical Physical Clocks", 2014):
 * informative stamps on data.
 *
 * Owns what a clock has seen. Invariants: 1. Order: l, then c, then n. 2. `l` is Unix milliseconds (safe integer ≥ 0), `c` is
 * uint32, `n` int32. 3. No decision of the service rests on a stamp except a backup's cut and a
 * restore's target. 4. A wild clock takes stamps a day ahead of the clocks of the other nodes at
 * most; how long a group was idle does not matter.
 */

export interface Hlc {
  /** Node id. */
  readonly n: number;
  /** Physical part, Unix milliseconds. */
  readonly l: number;
  /** Counter within the same physical part. */
  readonly c: number;
}

/** Largest counter: the last stamp of its millisecond. */
export const COUNTER_MAX = 0xffff_ffff;

/** "No timestamp". */
export const NO_STAMP: Hlc = { n: 0, l: 0, c: 0 };

/**
 * Longest way (ms) that the wall clock of one leader may take stamps beyond the common wall clock;
 * while that is not known, beyond the time that passed since it last saw a stamp of somebody else.
 */
export const STAMP_JUMP_MAX_MS = 24 * 3_600_000;

export function compareHlc(a: Hlc, b: Hlc): number {
  if (a.l !== b.l) return a.l - b.l;
  if (a.c !== b.c) return a.c - b.c;
  return a.n - b.n;
}

/** Makes the stamps of one group on one node, which sees those of others while it follows. */
export class StampClock {
  private last: Hlc = NO_STAMP;
  /** Where the stamps stood when the last one of somebody else was seen, and when that was. */
  private seenMs = 0;
  private seenAtMs = 0;
  /** Stamps that were held back: the wall clock was further ahead than it may take them. */
  heldBack = 0;

  constructor(private readonly node: number) {}

  /** The last stamp, given or seen. */
  get latest(): Hlc {
    return this.last;
  }

  /** `stamp` is in the log; `monotonicMs`: the time of this process. */
  seen(stamp: Hlc, monotonicMs: number): void {
    if (compareHlc(stamp, this.last) <= 0) return;
    this.last = stamp;
    this.seenMs = stamp.l;
    this.seenAtMs = monotonicMs;
  }

  /**
   * The next stamp: above all before it, and at most STAMP_JUMP_MAX_MS ahead of `commonMs`, the
   * median wall clock of the nodes; Infinity: there is no other node. null, not known: of the last
   * stamp seen and the time that passed; then the first of a group takes the wall time as it is.
   */
  next(wallMs: number, monotonicMs: number, commonMs: number | null): Hlc {
    const { last, node } = this;
    const wall = Math.max(0, Math.floor(wallMs));
    if (this.seenMs === 0 && wall > 0) {
      this.seenMs = wall;
      this.seenAtMs = monotonicMs;
    }
    const knownMs = commonMs ?? this.seenMs + monotonicMs - this.seenAtMs;
    const physical = Math.max(0, Math.min(wall, Math.floor(knownMs) + STAMP_JUMP_MAX_MS));
    if (physical < wall) this.heldBack++;
    if (physical > last.l) this.last = { n: node, l: physical, c: 0 };
    else if (last.c >= COUNTER_MAX) this.last = { n: node, l: last.l + 1, c: 0 };
    else this.last = { n: node, l: last.l, c: last.c + 1 };
    return this.last;
  }

  /** As `next`, and the last one that there can be in its millisecond. */
  closing(wallMs: number, monotonicMs: number, commonMs: number | null): Hlc {
    const { n, l } = this.next(wallMs, monotonicMs, commonMs);
    this.last = { n, l, c: COUNTER_MAX };
    return this.last;
  }

  /** Whether `stamp` is above all before it: then it is the last one from now on. */
  reach(stamp: Hlc): boolean {
    if (compareHlc(stamp, this.last) <= 0) return false;
    this.last = stamp;
    return true;
  }
}
