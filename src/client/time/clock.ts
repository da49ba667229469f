/**
 * The monotonic clock that leases are counted on.
 *
 * Owns the offset that it has seen. Invariants: 1. It never runs backwards and never slower than
 * the clock of the platform. 2. Time in which the machine was suspended counts: that clock stands
 * still then, the uptime of the system does not. 3. The wall clock plays no part.
 */
import type { MonotonicClock } from "../values/options.js";
import type { ClientPlatform } from "./platform.js";

/** The uptime is read at most so often (ms). */
const UPTIME_INTERVAL_MS = 1;
/** Differences up to this are the resolution of the uptime, not a suspension (ms). */
const SUSPENSION_MIN_MS = 50;

export class SystemClock implements MonotonicClock {
  private readonly platform: ClientPlatform;
  private suspendedMs = 0;
  private readonly offsetMs: number;
  private readMs: number;

  constructor(platform: ClientPlatform) {
    this.platform = platform;
    this.readMs = platform.nowMs();
    this.offsetMs = platform.uptimeMs() - this.readMs;
  }

  nowMs(): number {
    const nowMs = this.platform.nowMs();
    if (nowMs - this.readMs >= UPTIME_INTERVAL_MS) {
      this.readMs = nowMs;
      const awayMs = this.platform.uptimeMs() - this.offsetMs - nowMs;
      if (awayMs > this.suspendedMs + SUSPENSION_MIN_MS) this.suspendedMs = awayMs;
    }
    return nowMs + this.suspendedMs;
  }
}
