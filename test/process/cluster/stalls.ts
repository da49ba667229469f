/**
 * How often the machine let a process of a test stand still: what it did to the nodes beside it, no node's metric
 * tells as soon.
 */

/** How often it is looked (ms). */
const LOOK_MS = 25;
/** A look that comes so late counts: longer than a beat of a group, shorter than an election takes (ms). */
const LATE_MS = 250;

export class Stalls {
  private count = 0;
  private lastMs = performance.now();
  private readonly timer = setInterval(() => this.look(), LOOK_MS).unref();

  /** Since the last call. */
  take(): number {
    this.look();
    const { count } = this;
    this.count = 0;
    return count;
  }

  end(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const nowMs = performance.now();
    if (nowMs - this.lastMs > LOOK_MS + LATE_MS) this.count += 1;
    this.lastMs = nowMs;
  }
}
