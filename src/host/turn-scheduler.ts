/**
 * When the host works: one turn at a time, asked for by whoever has something for it to do.
 *
 * Owns the one timer of the host. Invariants: 1. A turn never begins inside another one, nor in the
 * turn of the call that asked for it. 2. Any number of requests before a turn begins give one turn.
 * 3. The timer holds an absolute monotonic time, which is checked again when it fires (P-156). 4.
 * After `close` no timer is armed; a turn that is asked for still comes, so that late callers get
 * their answer.
 */
import { assert } from "../base/assert.js";
import type { ClockPort, TimerHandle, TimerPort } from "../ports.js";

export class TurnScheduler {
  private soonAsked = false;
  private laterAsked = false;
  private running = false;
  private closed = false;
  private wakeMs = Infinity;
  private wakeTimer: TimerHandle | null = null;
  /** Turns begun so far. */
  count = 0;

  /** `body` does one turn; `nowMs` is the monotonic time at its begin. */
  constructor(
    private readonly clock: ClockPort,
    private readonly timer: TimerPort,
    private readonly body: (nowMs: number) => void,
  ) {}

  /** Asks for a turn before new input is read. */
  request(): void {
    if (this.soonAsked) return;
    this.soonAsked = true;
    this.timer.soon(this.onSoon);
  }

  /** Asks for a turn after other input had its chance: for work that was cut into slices. */
  requestLater(): void {
    if (this.laterAsked || this.soonAsked || this.closed) return;
    this.laterAsked = true;
    this.timer.after(0, this.onLater);
  }

  /** Asks for a turn at `atMs` (monotonic) or a little later; an earlier wish stays. */
  wakeAt(atMs: number): void {
    if (atMs >= this.wakeMs || this.closed) return;
    this.wakeTimer?.cancel();
    this.wakeMs = atMs;
    this.armTimer();
  }

  get isRunning(): boolean {
    return this.running;
  }

  /** Nothing runs by time any more. */
  close(): void {
    this.closed = true;
    this.wakeTimer?.cancel();
    this.wakeTimer = null;
    this.wakeMs = Infinity;
  }

  private armTimer(): void {
    const delayMs = Math.max(0, Math.ceil(this.wakeMs - this.clock.monotonicMs()));
    this.wakeTimer = this.timer.after(delayMs, this.onTimer);
  }

  private readonly onSoon = (): void => {
    this.soonAsked = false;
    this.run();
  };

  private readonly onLater = (): void => {
    this.laterAsked = false;
    this.run();
  };

  private readonly onTimer = (): void => {
    this.wakeTimer = null;
    if (this.closed) return;
    if (this.clock.monotonicMs() < this.wakeMs) {
      this.armTimer();
      return;
    }
    this.wakeMs = Infinity;
    this.run();
  };

  private run(): void {
    assert(!this.running, "a turn does not begin inside another one");
    this.running = true;
    this.count++;
    this.body(this.clock.monotonicMs());
    this.running = false;
  }
}
