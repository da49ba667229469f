/**
 * How many bytes of images may leave: a bucket that fills with time.
 *
 * Invariants: 1. Over any stretch of time no more leaves than the rate allows, plus one tenth of a
 * second's worth and one chunk.
 */

export class SendRate {
  private readonly burstBytes: number;
  private leftBytes: number;

  constructor(
    private readonly bytesPerSecond: number,
    private filledAtMs: number,
  ) {
    this.burstBytes = bytesPerSecond / 10;
    this.leftBytes = this.burstBytes;
  }

  /** Whether something may be made for sending at `nowMs`. */
  allows(nowMs: number): boolean {
    const earned = ((nowMs - this.filledAtMs) * this.bytesPerSecond) / 1000;
    this.leftBytes = Math.min(this.burstBytes, this.leftBytes + earned);
    this.filledAtMs = nowMs;
    return this.leftBytes > 0;
  }

  charge(bytes: number): void {
    this.leftBytes -= bytes;
  }
}
