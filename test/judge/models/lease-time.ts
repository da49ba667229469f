/**
 * What is known of a group's lease clock in true time: it runs at its leader's rate while there is a leader and stands
 * still while there is none, so that over a stretch of true time it moves between a least and a most.
 *
 * Invariant: both are bounds that hold for every correct service; judging by them never blames a correct one.
 */

export interface LeaseTime {
  /** The most that the lease clock moves between two instants of true time (ms). */
  elapsedMaxMs(fromMs: number, toMs: number): number;
  /** The least: 0 where the clock may have stood still. */
  elapsedMinMs(fromMs: number, toMs: number): number;
}

/** Lease times are whole milliseconds, so that a comparison may be off by one. */
export const ROUNDING_MS = 1;

/**
 * `drift`: how much faster than true time a node's clock may run (0.01 = one percent). `isSteady`: there was a leader at
 * all times and its clock was never slower than `drift` says.
 */
export function leaseTime(drift: number, isSteady = false): LeaseTime {
  return {
    elapsedMaxMs: (fromMs, toMs) => Math.max(0, toMs - fromMs) * (1 + drift),
    elapsedMinMs: (fromMs, toMs) => (isSteady ? Math.max(0, toMs - fromMs) * (1 - drift) : 0),
  };
}

/** A lease of `leaseMs` that began at one instant of true time in [startMinMs, startMaxMs]. */
export interface Lease {
  readonly leaseMs: number;
  readonly startMinMs: number;
  readonly startMaxMs: number;
  /** Somebody was told that it is over. */
  readonly seenOver: boolean;
}

export function mayBeOver(lease: Lease, time: LeaseTime, toMs: number): boolean {
  if (lease.seenOver) return true;
  return time.elapsedMaxMs(lease.startMinMs, toMs) + ROUNDING_MS >= lease.leaseMs;
}

export function mayRun(lease: Lease, time: LeaseTime, fromMs: number): boolean {
  if (lease.seenOver) return false;
  return time.elapsedMinMs(lease.startMaxMs, fromMs) - ROUNDING_MS < lease.leaseMs;
}

/**
 * True when `remainingMs` can be what is left of the lease at one instant in [fromMs, toMs], or, if `isAtLeast`, more than
 * that is left.
 */
export function mayRemain(
  lease: Lease,
  time: LeaseTime,
  fromMs: number,
  toMs: number,
  remainingMs: number,
  isAtLeast = false,
): boolean {
  const most = lease.leaseMs - time.elapsedMinMs(lease.startMaxMs, fromMs) + ROUNDING_MS;
  const least = lease.leaseMs - time.elapsedMaxMs(lease.startMinMs, toMs) - ROUNDING_MS;
  return remainingMs >= 0 && remainingMs <= most && (isAtLeast || remainingMs >= least);
}

/** True when `retentionMs` may have passed since the lease was over. */
export function mayBePast(
  lease: Lease,
  time: LeaseTime,
  toMs: number,
  retentionMs: number,
): boolean {
  const elapsed = time.elapsedMaxMs(lease.startMinMs, toMs);
  return elapsed + ROUNDING_MS >= lease.leaseMs + retentionMs;
}

export function leaseKey(lease: Lease | null): string {
  if (lease === null) return "-";
  if (lease.seenOver) return `over ${lease.leaseMs} ${lease.startMinMs}`;
  return `${lease.leaseMs} ${lease.startMinMs} ${lease.startMaxMs}`;
}
