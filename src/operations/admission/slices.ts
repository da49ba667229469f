/**
 * Reads of many rows go on over several turns of the loop: what they may look at in one turn, all
 * callers of this node together, and what they may hold between two turns.
 *
 * Owns its counts and the slices that wait. Invariants: 1. One turn looks at no more than
 * TURN_VISITS (and one row) whatever the number of callers. 2. Slices run in the order in which
 * they were asked for; who goes on waits behind everybody else. 3. What a read holds is given back
 * when it closes, on every path.
 */
import type { TimerPort } from "../../ports.js";

/**
 * Visits of one turn: some 5 ms. A visit is one row looked at, shown or not, or one KiB of it, so
 * that the same number bounds the bytes that are copied.
 */
export const TURN_VISITS = 2000;
/** Visits of one slice: several callers get theirs in one turn. */
export const SLICE_VISITS = 500;
/** Reads that may be between two slices at a time, and what they may hold together (bytes). */
const SLICED_READS_MAX = 256;
const SLICED_BYTES_MAX = 256 * 1024 * 1024;

/** What a turn may still look at; whoever reads counts it down. */
export interface TurnShare {
  visitsLeft: number;
}

type Slice = (turn: TurnShare) => void;

/** The reads of a node that go on over several turns. */
export class SlicedReads {
  /** Reads between two slices, and the bytes that they hold. */
  reads = 0;
  bytes = 0;
  private readonly turn: TurnShare = { visitsLeft: TURN_VISITS };
  private readonly waiting: Slice[] = [];
  private isRunning = false;
  private isArmed = false;

  constructor(private readonly timer: TimerPort) {}

  /** Calls `slice` when it is its turn: now, if this turn has visits left and nobody waits. */
  next(slice: Slice): void {
    this.waiting.push(slice);
    if (!this.isRunning) this.run();
  }

  private run(): void {
    const { turn, waiting } = this;
    this.isRunning = true;
    while (turn.visitsLeft > 0) {
      const slice = waiting.shift();
      if (slice === undefined) break;
      slice(turn);
    }
    this.isRunning = false;
    if (this.isArmed || turn.visitsLeft === TURN_VISITS) return;
    this.isArmed = true;
    this.timer.after(0, () => {
      this.isArmed = false;
      turn.visitsLeft = TURN_VISITS;
      this.run();
    });
  }
}

/** What one read between two slices holds of that. */
export class SlicedShare {
  private isOpen = false;
  private heldBytes = 0;

  constructor(private readonly sliced: SlicedReads) {}

  /** Holds `totalBytes` from now on; false when there is no room, and nothing has changed. */
  hold(totalBytes: number): boolean {
    const { sliced } = this;
    if (!this.isOpen && sliced.reads >= SLICED_READS_MAX) return false;
    if (sliced.bytes - this.heldBytes + totalBytes > SLICED_BYTES_MAX) return false;
    if (!this.isOpen) sliced.reads++;
    this.isOpen = true;
    sliced.bytes += totalBytes - this.heldBytes;
    this.heldBytes = totalBytes;
    return true;
  }

  close(): void {
    const { sliced } = this;
    if (this.isOpen) sliced.reads--;
    sliced.bytes -= this.heldBytes;
    this.isOpen = false;
    this.heldBytes = 0;
  }
}
