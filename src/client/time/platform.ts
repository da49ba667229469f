/**
 * What the client takes from the platform that passes or is drawn: clocks, timers, randomness.
 *
 * Types only. Invariants: 1. Nothing else below src/client reads a clock, sets a timer or draws a
 * number of its own; the packages that own the sockets do, and are handed `wallMs`. 2. Keys and
 * owners are names, not chance: they come from node:crypto, not from here.
 */

/** One call to come. */
export interface Timer {
  /** It will not be called any more. */
  cancel(): void;
  /** It keeps the process alive (as from the start). */
  ref(): void;
  /** It does not keep the process alive. */
  unref(): void;
}

/** Replaced in tests, which decide when time passes. */
export interface ClientPlatform {
  /** Milliseconds since an arbitrary start, with fractions; never goes back. */
  nowMs(): number;
  /** Milliseconds since the system started, those in which it was suspended with them. */
  uptimeMs(): number;
  /** Unix milliseconds; may jump. Only for packages that keep their own deadlines by it. */
  wallMs(): number;
  /**
   * Calls `callback` once, `delayMs` from now or later. A timer of the platform may be shorter than
   * `delayMs`; that is seen to inside.
   */
  after(delayMs: number, callback: () => void): Timer;
  /** Calls `callback` once, after the input that waits now was taken. */
  soon(callback: () => void): void;
  /** A number from 0 to below 1. */
  random(): number;
}
