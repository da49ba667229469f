/**
 * How busy the process was in the last seconds: the lag of its event loop, the durable writes of
 * its log, and the requests that ended.
 *
 * Invariants: 1. A time is the worse one of two windows, the last that ended and the one under way:
 * it is at most twice WINDOW_MS old. A rate is that of the last window. 2. Observing costs no
 * allocation.
 */
import type { LoadPort } from "../../ports.js";

const WINDOW_MS = 10_000;
/** Durations kept of one window; the latest ones. */
const DURATIONS_MAX = 1024;
const WORST = 0.99;

/** Durations of one window. */
class Durations {
  private readonly kept = new Float64Array(DURATIONS_MAX);
  private count = 0;

  add(durationMs: number): void {
    this.kept[this.count++ % DURATIONS_MAX] = durationMs;
  }

  clear(): void {
    this.count = 0;
  }

  /** 0 when there are none. */
  worstMs(): number {
    const count = Math.min(this.count, DURATIONS_MAX);
    const sorted = this.kept.slice(0, count).sort();
    return sorted[Math.ceil(count * WORST) - 1] ?? 0;
  }
}

interface Counted {
  readonly requests: number;
  readonly failed: number;
}

export class RecentLoad implements LoadPort {
  private readonly lags = new Durations();
  private readonly syncs = new Durations();
  private windowEndMs: number;
  private lastLagMs = 0;
  private lastSyncMs = 0;
  /** Since the start (ms). */
  loopLagMaxMs = 0;
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
  }

  /** The event loop came round so late. */
  loopCame(lateMs: number): void {
    this.lags.add(lateMs);
    if (lateMs > this.loopLagMaxMs) this.loopLagMaxMs = lateMs;
  }

  /** A durable write of the log took so long. */
  logSynced(durationMs: number): void {
    this.syncs.add(durationMs);
  }

  loopLagP99Ms(): number {
    this.turnOver();
    return Math.max(this.lastLagMs, this.lags.worstMs());
  }

  logSyncP99Ms(): number {
    this.turnOver();
    return Math.max(this.lastSyncMs, this.syncs.worstMs());
  }

  requestsPerSecond(): number {
    this.turnOver();
    return this.rates.requests;
  }

  failedPerSecond(): number {
    this.turnOver();
    return this.rates.failed;
  }

  private turnOver(): void {
    const nowMs = this.nowMs();
    if (nowMs < this.windowEndMs) return;
    // Nobody asked for long: what was measured meanwhile is no window of its own.
    this.windowEndMs = nowMs + WINDOW_MS;
    this.lastLagMs = this.lags.worstMs();
    this.lastSyncMs = this.syncs.worstMs();
    this.lags.clear();
    this.syncs.clear();
    const { atMs, ...before } = this.counted;
    const counted = this.totals();
    const seconds = (nowMs - atMs) / 1000;
    const requests = (counted.requests - before.requests) / seconds;
    this.rates = { requests, failed: (counted.failed - before.failed) / seconds };
    this.counted = { ...counted, atMs: nowMs };
  }
}
