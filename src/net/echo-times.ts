/**
 * When echoes are due: of all connections at the same times, so that a process at rest wakes once
 * for them, and for whatever else it looks at now and then.
 *
 * Pure. Invariant: whoever waits with the same period, from whenever on, waits for the same time.
 */

/**
 * From `nowMs` to the next multiple of `everyMs` (ms), and a millisecond more. A timer that fires
 * early by less than that has reached its own.
 */
export function untilEchoMs(nowMs: number, everyMs: number): number {
  return everyMs + 1 - ((nowMs + 1) % everyMs);
}
