/**
 * The leader's side of a group's lease clock (contract T1 to T3).
 *
 * Invariants: 1. Runs only while this node leads and has applied its own-term entry, from the last
 * value on that is known of the leader before (logged, or as it was heard), at the pace of the
 * monotonic clock: without a leader the lease clock stands still, and no wall clock is involved. 2.
 * `next` never goes back (P-062). 3. All values are whole, safe, non-negative milliseconds.
 */
import { assert } from "../../base/assert.js";

export class LeaseClock {
  private baseLeaseMs = 0;
  private baseMonotonicMs = 0;
  private lastGivenMs = 0;
  private running = false;

  /** Begins a leadership at `leaseMs`. */
  start(leaseMs: number, monotonicMs: number): void {
    assert(Number.isSafeInteger(leaseMs) && leaseMs >= 0, "lease time is a whole number of ms");
    assert(!this.running, "a lease clock is started once per leadership");
    this.baseLeaseMs = leaseMs;
    this.baseMonotonicMs = monotonicMs;
    this.lastGivenMs = leaseMs;
    this.running = true;
  }

  stop(): void {
    this.running = false;
  }

  /** The estimate of the lease time at `monotonicMs`. */
  nowMs(monotonicMs: number): number {
    assert(this.running, "lease time passes only under a serving leader");
    const elapsedMs = Math.max(0, Math.floor(monotonicMs - this.baseMonotonicMs));
    return Math.max(this.lastGivenMs, this.baseLeaseMs + elapsedMs);
  }

  /** The lease time of a batch that is cut at `monotonicMs`. */
  next(monotonicMs: number): number {
    this.lastGivenMs = this.nowMs(monotonicMs);
    assert(Number.isSafeInteger(this.lastGivenMs), "lease time stays a safe integer");
    return this.lastGivenMs;
  }
}
