/**
 * The real clock, timers, randomness and fatal exit.
 *
 * Invariants: 1. `monotonicMs` never goes back and does not know the wall clock. 2. `after` re-arms
 * in slices, because a platform timer above 2^31 − 1 ms fires at once. 3. The fatal path writes
 * synchronously: buffered output is lost at exit.
 */
import { writeSync } from "node:fs";
import { randomBytes } from "node:crypto";
import type {
  ClockPort,
  EntropyPort,
  FatalPort,
  LogFields,
  TimerHandle,
  TimerPort,
} from "./ports.js";

const TIMER_SLICE_MAX_MS = 2_000_000_000;

export const systemClock: ClockPort = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
};

class SlicedTimer implements TimerHandle {
  private readonly dueMs: number;
  private readonly callback: () => void;
  private timer: NodeJS.Timeout | null = null;

  constructor(delayMs: number, callback: () => void) {
    this.dueMs = performance.now() + delayMs;
    this.callback = callback;
    this.arm();
  }

  private arm(): void {
    const restMs = Math.max(0, this.dueMs - performance.now());
    this.timer = setTimeout(
      () => {
        // A timer may fire a fraction early: the deadline decides, not the timer.
        if (this.dueMs - performance.now() > 0.5) this.arm();
        else this.callback();
      },
      Math.min(Math.ceil(restMs), TIMER_SLICE_MAX_MS),
    );
  }

  cancel(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

export const systemTimers: TimerPort = {
  after: (delayMs, callback) => new SlicedTimer(delayMs, callback),
  soon: (callback) => {
    setImmediate(callback);
  },
};

export const systemEntropy: EntropyPort = {
  uint32: () => randomBytes(4).readUInt32LE(0),
};

/** Exit code after a fatal fault (storage failure, broken invariant). */
export const EXIT_FATAL = 1;

/**
 * Ends the process with EXIT_FATAL after one line on stderr; `before` gets a chance to note the
 * reason.
 */
export function processFatal(before: (reason: string) => void): FatalPort {
  return {
    fatal(reason: string, fields?: LogFields): void {
      before(reason);
      const detail = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
      try {
        writeSync(2, `fatal: ${reason}${detail}\n`);
      } finally {
        process.exit(EXIT_FATAL);
      }
    },
  };
}
