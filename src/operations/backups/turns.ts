/**
 * Backups, restores and collections of a node, one after the other.
 *
 * Invariants: 1. One holds the turn at a time; who waits gets it in the order in which they came.
 * 2. Whoever does not get it in time is told so, once, and never gets it. 3. No callback comes in
 * the turn of the call.
 */
import type { TimerHandle, TimerPort } from "../../ports.js";

interface Waiter {
  readonly timer: TimerHandle;
  readonly done: (release: (() => void) | null) => void;
}

export class Turns {
  private isTaken = false;
  private readonly waiters: Waiter[] = [];

  constructor(private readonly timer: TimerPort) {}

  /** `done`: with what gives the turn back, or null when it did not come within `waitMs`. */
  take(waitMs: number, done: (release: (() => void) | null) => void): void {
    if (!this.isTaken) {
      this.isTaken = true;
      return this.timer.soon(() => done(this.release()));
    }
    const timer = this.timer.after(Math.max(0, waitMs), () => {
      this.waiters.splice(this.waiters.indexOf(waiter), 1);
      done(null);
    });
    const waiter: Waiter = { timer, done };
    this.waiters.push(waiter);
  }

  private release(): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const next = this.waiters.shift();
      if (next === undefined) {
        this.isTaken = false;
        return;
      }
      next.timer.cancel();
      this.timer.soon(() => next.done(this.release()));
    };
  }
}
