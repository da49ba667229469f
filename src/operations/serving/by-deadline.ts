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
 * Calls `done` once: with what the answer of this function is called with, or with `late` when
 * `deadlineMs` (monotonic) has come before.
 */
export function byDeadline<Value>(
  { clock, timer }: DeadlinePorts,
  deadlineMs: number,
  late: Value,
  done: (value: Value) => void,
): (value: Value) => void {
  let isTold = false;
  const tell = (value: Value): void => {
    if (isTold) return;
    isTold = true;
    limit.cancel();
    done(value);
  };
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  const limit = timer.after(leftMs, () => tell(late));
  return tell;
}
