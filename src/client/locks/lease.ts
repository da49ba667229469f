/**
 * Watches one lease on the monotonic clock and says when it can no longer be trusted.
 *
 * Owns a timer and an abort controller. Invariants: 1. The signal aborts before the lease can have
 * ended: the lease is counted from before its request was sent, and a margin for drift is taken
 * off. 2. Whoever looks at the signal sees an ended lease at once, even when no timer had a chance
 * to run (a blocked event loop). 3. What was aborted stays so. 4. A wait is re-armed in short
 * slices, so that a suspended machine and long leases are no special cases.
 */
import type { ClientPlatform, Timer } from "../time/platform.js";
import { LockLostError } from "../values/errors.js";
import type { MonotonicClock } from "../values/options.js";

/** Share of the lease, and least time, that is given away for drift and reaction. */
const MARGIN_SHARE = 0.02;
const MARGIN_MIN_MS = 10;
/** The margin takes at most this share of a short lease. */
const MARGIN_MAX_SHARE = 0.25;
const SLICE_MIN_MS = 5;
const SLICE_MAX_MS = 1000;
const SLICE_SHARE = 0.1;

/** How much of a lease of `leaseMs` is not relied on (ms). */
export function leaseMarginMs(leaseMs: number): number {
  return Math.min(leaseMs * MARGIN_MAX_SHARE, Math.max(MARGIN_MIN_MS, leaseMs * MARGIN_SHARE));
}

export class LeaseWatch {
  readonly signal: AbortSignal;
  private readonly controller = new AbortController();
  private readonly platform: ClientPlatform;
  private readonly clock: MonotonicClock;
  private readonly resource: string;
  private readonly onLost: () => void;
  private trustedUntilMs = Number.NEGATIVE_INFINITY;
  private sliceMs = SLICE_MAX_MS;
  private timer: Timer | null = null;
  private checking = false;

  /** `onLost`: called once, when the lease ran out here. */
  constructor(
    platform: ClientPlatform,
    clock: MonotonicClock,
    resource: string,
    onLost: () => void,
  ) {
    this.platform = platform;
    this.clock = clock;
    this.resource = resource;
    this.onLost = onLost;
    this.signal = this.watchedSignal();
  }

  /** True while the lease can be relied on. */
  get held(): boolean {
    this.check();
    return !this.controller.signal.aborted;
  }

  /** Time for which it can be relied on from now (ms, 0 = it cannot). */
  get remainingMs(): number {
    return this.held ? Math.max(0, this.trustedUntilMs - this.clock.nowMs()) : 0;
  }

  /** The lease was granted for `leaseMs` by a request sent at `sentMs` (or later). */
  granted(sentMs: number, leaseMs: number): void {
    this.check();
    this.trustedUntilMs = sentMs + leaseMs - leaseMarginMs(leaseMs);
    this.sliceMs = Math.min(SLICE_MAX_MS, Math.max(SLICE_MIN_MS, leaseMs * SLICE_SHARE));
    this.check();
    this.arm();
  }

  /** A request that may shorten the lease to `leaseMs` leaves at `sentMs`; undone by `granted`. */
  mayShorten(sentMs: number, leaseMs: number): void {
    const untilMs = sentMs + leaseMs - leaseMarginMs(leaseMs);
    if (untilMs >= this.trustedUntilMs) return;
    this.trustedUntilMs = untilMs;
    this.arm();
  }

  /** Ends the watch: the signal aborts now, with this reason. */
  end(code: "lock-lost" | "lock-released" | "lock-not-held", why: string): void {
    this.timer?.cancel();
    this.timer = null;
    if (this.controller.signal.aborted) return;
    this.controller.abort(new LockLostError(code, this.resource, why));
  }

  /** Aborts when the time is over. */
  check(): void {
    if (this.controller.signal.aborted || this.trustedUntilMs === Number.NEGATIVE_INFINITY) return;
    if (this.clock.nowMs() < this.trustedUntilMs) return;
    this.end("lock-lost", "was not renewed before its lease could have ended");
    this.onLost();
  }

  private arm(): void {
    this.timer?.cancel();
    this.timer = null;
    if (this.controller.signal.aborted) return;
    const leftMs = this.trustedUntilMs - this.clock.nowMs();
    // Timers fire up to a millisecond early or late; the margin covers late, the check covers
    // early.
    const waitMs = Math.max(1, Math.floor(Math.min(this.sliceMs, leftMs)));
    this.timer = this.platform.after(waitMs, () => {
      this.check();
      this.arm();
    });
  }

  /**
   * The controller's signal with `aborted`, `reason` and `throwIfAborted` that look at the clock
   * first. After a blocked event loop these are asked before any timer has run.
   */
  private watchedSignal(): AbortSignal {
    const { signal } = this.controller;
    const prototype = AbortSignal.prototype;
    const read = <Value>(name: "aborted" | "reason"): (() => Value) => {
      const getter = Object.getOwnPropertyDescriptor(prototype, name)?.get;
      return () => {
        this.guardedCheck();
        return getter?.call(signal) as Value;
      };
    };
    Object.defineProperties(signal, {
      aborted: { get: read<boolean>("aborted"), configurable: true },
      reason: { get: read<unknown>("reason"), configurable: true },
      throwIfAborted: {
        value: () => {
          this.guardedCheck();
          prototype.throwIfAborted.call(signal);
        },
        configurable: true,
      },
    });
    return signal;
  }

  /** `check` reads the signal itself: once is enough. */
  private guardedCheck(): void {
    if (this.checking) return;
    this.checking = true;
    try {
      this.check();
    } finally {
      this.checking = false;
    }
  }
}
