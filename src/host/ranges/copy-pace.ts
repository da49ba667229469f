/**
 * How fast ranges are copied from this node: so many bytes in a second, over all moves.
 *
 * Invariant: what was taken is paid for before the next part, so that a large part only delays what
 * follows it.
 */
const SECOND_MS = 1000;

export class CopyPace {
  private freeAtMs = -Infinity;

  constructor(private readonly bytesPerSecond: number) {}

  /** How long the next part has to wait (ms); 0 = not at all. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.freeAtMs - nowMs);
  }

  took(sizeBytes: number, nowMs: number): void {
    const beginMs = Math.max(this.freeAtMs, nowMs);
    this.freeAtMs = beginMs + (sizeBytes * SECOND_MS) / this.bytesPerSecond;
  }
}
