/**
 * How busy the process was in the last seconds: the lag of its event loop, the durable writes of
 * its log, and the requests that ended.
 *
 * Invariants: 1. A time is the worse one of two windows, the last that ended and the one under way:
 * it is at most twice WINDOW_MS old. A rate is that of the last window. 2. Observing costs no
 * allocation.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { LoadPort } from "../../ports.js";

const WINDOW_MS = 10_000;
/** Durations kept of one window; the latest ones. */
const DURATIONS_MAX = 1024;
const NANOS_PER_MS = 1e6;
/** A node at rest is woken so often: 500 samples of a window are enough for its worst percent. */
const RESOLUTION_MS = 20;
const WORST = 0.99;

interface Counted {
  readonly requests: number;
  readonly failed: number;
}

export class RecentLoad implements LoadPort {
  private readonly delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  private readonly syncs = new Float64Array(DURATIONS_MAX);
  private syncCount = 0;
  private windowEndMs: number;
  private lastLagMs = 0;
  private lastSyncMs = 0;
  private largestLagMs = 0;
  private counted: Counted & { readonly atMs: number };
  private rates: Counted = { requests: 0, failed: 0 };

  /** `totals`: requests since the start. */
  constructor(
    private readonly nowMs: () => number,
    private readonly totals: () => Counted,
  ) {
    const atMs = nowMs();
    this.windowEndMs = atMs + WINDOW_MS;
    this.counted = { atMs, requests: 0, failed: 0 };
    this.delay.enable();
  }

  /** Since the start (ms). */
  get loopLagMaxMs(): number {
    return Math.max(this.largestLagMs, this.delay.max / NANOS_PER_MS - RESOLUTION_MS);
  }

  /** A durable write of the log took so long. */
  logSynced(durationMs: number): void {
    this.syncs[this.syncCount++ % DURATIONS_MAX] = durationMs;
  }

  loopLagP99Ms(): number {
    this.turnOver();
    return Math.max(this.lastLagMs, this.lagMs());
  }

  logSyncP99Ms(): number {
    this.turnOver();
    return Math.max(this.lastSyncMs, this.syncMs());
  }

  requestsPerSecond(): number {
    this.turnOver();
    return this.rates.requests;
  }

  failedPerSecond(): number {
    this.turnOver();
    return this.rates.failed;
  }

  close(): void {
    this.delay.disable();
  }

  private turnOver(): void {
    const nowMs = this.nowMs();
    if (nowMs < this.windowEndMs) return;
    // Nobody asked for long: what was measured meanwhile is no window of its own.
    this.windowEndMs = nowMs + WINDOW_MS;
    this.lastLagMs = this.lagMs();
    this.lastSyncMs = this.syncMs();
    this.largestLagMs = this.loopLagMaxMs;
    this.delay.reset();
    this.syncCount = 0;
    const { atMs, ...before } = this.counted;
    const counted = this.totals();
    const seconds = (nowMs - atMs) / 1000;
    const requests = (counted.requests - before.requests) / seconds;
    this.rates = { requests, failed: (counted.failed - before.failed) / seconds };
    this.counted = { ...counted, atMs: nowMs };
  }

  private lagMs(): number {
    if (this.delay.count === 0) return 0;
    return Math.max(0, this.delay.percentile(100 * WORST) / NANOS_PER_MS - RESOLUTION_MS);
  }

  private syncMs(): number {
    const count = Math.min(this.syncCount, DURATIONS_MAX);
    if (count === 0) return 0;
    const sorted = this.syncs.slice(0, count).sort();
    return sorted[Math.ceil(count * WORST) - 1] ?? 0;
  }
}
