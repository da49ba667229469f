/**
 * How much reads of one turn of the event loop may take out of the state.
 *
 * Owns the count of the turn. Invariants: 1. A turn reads at most TURN_MAX_BYTES of large values,
 * the last one excepted; whoever comes later proves leadership anew, in a later turn (P-200). 2.
 * Small values are not counted.
 */
import type { TimerPort } from "../../ports.js";

/** Some 5 ms of copying. */
const TURN_MAX_BYTES = 8 * 1024 * 1024;
/** From this size on a value is counted (bytes). */
const LARGE_VALUE_BYTES = 16 * 1024;

export class ReadTurn {
  private leftBytes = TURN_MAX_BYTES;

  constructor(private readonly timer: TimerPort) {}

  get hasRoom(): boolean {
    return this.leftBytes > 0;
  }

  /** Counts a value that was read. */
  spend(sizeBytes: number): void {
    if (sizeBytes < LARGE_VALUE_BYTES) return;
    if (this.leftBytes === TURN_MAX_BYTES) {
      this.timer.after(0, () => (this.leftBytes = TURN_MAX_BYTES));
    }
    this.leftBytes -= sizeBytes;
  }

  /** Calls back in a later turn. */
  later(callback: () => void): void {
    this.timer.after(0, callback);
  }
}
