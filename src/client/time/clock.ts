/**
 * The monotonic clock that leases are counted on.
 *
 * Owns the offset that it has seen. Invariants: 1. It never runs backwards and never slower than
 * `performance.now`. 2. Time in which the machine was suspended counts: `performance.now` stands
 * still then, the uptime of the system does not. 3. The wall clock plays no part.
 */
import { uptime } from "node:os";
import type { MonotonicClock } from "../values/options.js";

/** The uptime is read at most so often (ms). */
const UPTIME_INTERVAL_MS = 1;
/** Differences up to this are the resolution of the uptime, not a suspension (ms). */
const SUSPENSION_MIN_MS = 50;

export class SystemClock implements MonotonicClock {
  private suspendedMs = 0;
  private readonly offsetMs: number;
  private readMs: number;

  constructor() {
    this.readMs = performance.now();
    this.offsetMs = uptime() * 1000 - this.readMs;
  }

  nowMs(): number {
    const nowMs = performance.now();
    if (nowMs - this.readMs >= UPTIME_INTERVAL_MS) {
      this.readMs = nowMs;
      const awayMs = uptime() * 1000 - this.offsetMs - nowMs;
      if (awayMs > this.suspendedMs + SUSPENSION_MIN_MS) this.suspendedMs = awayMs;
    }
    return nowMs + this.suspendedMs;
  }
}
