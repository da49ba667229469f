/**
 * A wait for something that says nothing of how long it takes.
 *
 * Invariant: whoever waits hears exactly once, at its deadline at the latest (C9).
 */
import type { ClockPort, TimerPort } from "../../ports.js";

export interface DeadlinePorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
}

/**
 * Calls `done` once: with what the answer of this function is called with, or with false when
 * `deadlineMs` (monotonic) has come before.
 */
export function byDeadline(
  { clock, timer }: DeadlinePorts,
  deadlineMs: number,
  done: (isDone: boolean) => void,
): (isDone: boolean) => void {
  let isTold = false;
  const tell = (isDone: boolean): void => {
    if (isTold) return;
    isTold = true;
    late.cancel();
    done(isDone);
  };
  const leftMs = Math.max(0, Math.ceil(deadlineMs - clock.monotonicMs()));
  const late = timer.after(leftMs, () => tell(false));
  return tell;
}
