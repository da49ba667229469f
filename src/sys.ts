/**
 * The real clock, timers, randomness and fatal exit.
 *
 * Invariants: 1. `monotonicMs` never goes back and does not know the wall clock. 2. `after` re-arms
 * in slices, because a platform timer above 2^31 − 1 ms fires at once. 3. `soon` keeps the order of
 * the calls, is never re-entered, and lets new input be read after a bounded number of generations.
 * 4. The fatal path writes synchronously: buffered output is lost at exit.
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
/**
 * A turn of the host, the log write that it leads to, and one more. Beyond that input gets its
 * chance, so that callbacks that ask for each other without end stop nothing else.
 */
const SOON_GENERATIONS_MAX = 3;

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

/**
 * What is to be called soon. One immediate of the platform calls all of it, and what that asks for
 * in its turn too: a platform immediate that is asked for inside another waits for a whole round of
 * the event loop, which a lonely write would pay for between its entry and the disk.
 */
export class SoonQueue {
  private queue: (() => void)[] = [];
  private head = 0;
  private armed = false;

  /** `immediate`: the platform's, unless a test takes its place. */
  constructor(private readonly immediate: (callback: () => void) => unknown = setImmediate) {}

  readonly add = (callback: () => void): void => {
    this.queue.push(callback);
    if (!this.armed) this.arm();
  };

  private arm(): void {
    this.armed = true;
    this.immediate(this.run);
  }

  private readonly run = (): void => {
    try {
      for (let generation = 0; generation < SOON_GENERATIONS_MAX; generation++) {
        const end = this.queue.length;
        while (this.head < end) (this.queue[this.head++] as () => void)();
      }
    } finally {
      // Also after one that threw, in a process that goes on after that: it takes nobody with it.
      this.queue = this.queue.slice(this.head);
      this.head = 0;
      this.armed = false;
      if (this.queue.length > 0) this.arm();
    }
  };
}

const systemSoon = new SoonQueue();

export const systemTimers: TimerPort = {
  after: (delayMs, callback) => new SlicedTimer(delayMs, callback),
  soon: systemSoon.add,
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
