/**
 * Lease ends that go from the clock of one group to that of another.
 *
 * Pure. Invariants: 1. A lease that runs goes on for what it has left, and a margin: it may grow,
 * never shrink (T3, P-102). 2. One that has ended, and a tombstone, keep their age; no age is
 * negative, so that nothing is kept shorter than it would have been.
 */
import { ended, leaseEnd } from "../decision/lease.js";

/** Two clocks may differ by that much in the time that an import takes (ms). */
const MARGIN_MS = 1000;
/** And by one part in so many of the time that a copy takes. */
const DRIFT_PARTS = 100;

export interface LeaseCarriage {
  /** Lease clock of the source when it read the row. */
  readonly sourceLeaseMs: number;
  /** How long the copy had taken until then. */
  readonly copyAgeMs: number;
  /** Lease clock of the target. */
  readonly nowMs: number;
}

/** The end of a row at the target; `isTombstone`: the end is the time of a deletion. */
export function carriedEnd(
  endMs: number | null,
  isTombstone: boolean,
  { sourceLeaseMs, copyAgeMs, nowMs }: LeaseCarriage,
): number | null {
  if (endMs === null) return null;
  if (isTombstone || ended(endMs, sourceLeaseMs)) {
    const ageMs = Math.max(0, sourceLeaseMs - endMs);
    return Math.max(0, nowMs - ageMs);
  }
  const leftMs = endMs - sourceLeaseMs;
  const marginMs = MARGIN_MS + Math.ceil(copyAgeMs / DRIFT_PARTS);
  return leaseEnd(leaseEnd(nowMs, leftMs), marginMs);
}
