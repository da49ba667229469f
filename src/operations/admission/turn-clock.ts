/**
 * The time of a turn of the event loop: many ask in one turn, and one look at the clock serves them
 * all.
 *
 * Invariant: the time is of the turn in which it is asked for.
 */
import type { ClockPort, TimerPort } from "../../ports.js";

export class TurnClock {
  private isKnown = false;
  private ms = 0;

  constructor(
    private readonly clock: ClockPort,
    private readonly timer: TimerPort,
  ) {}

  /** On the monotonic clock (ms); as it was when this turn asked first. */
  nowMs(): number {
    return this.isKnown ? this.ms : this.look();
  }

  /** On the monotonic clock (ms), as it is; for the rest of the turn too. */
  look(): number {
    this.ms = this.clock.monotonicMs();
    if (!this.isKnown) {
      this.isKnown = true;
      this.timer.soon(this.forget);
    }
    return this.ms;
  }

  private readonly forget = (): void => {
    this.isKnown = false;
  };
}
