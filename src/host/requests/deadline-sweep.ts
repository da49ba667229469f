/**
 * One timer for many deadlines: armed for the earliest, it asks its owner to end what is due and
 * when to come again.
 *
 * Owns the timer. Invariant: an armed timer never lies behind a deadline that was announced.
 */
import type { ClockPort, TimerHandle, TimerPort } from "../../ports.js";

export class DeadlineSweep {
  private timer: TimerHandle | null = null;
  private armedMs = Number.POSITIVE_INFINITY;

  /**
   * `expire` ends what is due at the given monotonic time and returns the earliest deadline left
   * (or infinity).
   */
  constructor(
    private readonly ports: { readonly clock: ClockPort; readonly timer: TimerPort },
    private readonly expire: (nowMs: number) => number,
  ) {}

  /** Something waits that must have ended at `deadlineMs`. */
  expectBy(deadlineMs: number): void {
    if (deadlineMs >= this.armedMs) return;
    this.timer?.cancel();
    this.armedMs = deadlineMs;
    const delayMs = Math.max(0, deadlineMs - this.ports.clock.monotonicMs());
    this.timer = this.ports.timer.after(delayMs, () => {
      this.timer = null;
      this.armedMs = Number.POSITIVE_INFINITY;
      const nextMs = this.expire(this.ports.clock.monotonicMs());
      if (nextMs < Number.POSITIVE_INFINITY) this.expectBy(nextMs);
    });
  }

  /** Nothing is announced any more. */
  stop(): void {
    this.timer?.cancel();
    this.timer = null;
    this.armedMs = Number.POSITIVE_INFINITY;
  }
}
