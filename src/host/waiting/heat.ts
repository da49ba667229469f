/**
 * How often a lock changes hands.
 *
 * Pure memory of the latest times.
 */

/** So many hand-overs within that time (ms), and a lock is hot. */
const HOT_HANDOVERS = 4;
const HOT_MS = 100;
/** The latest hand-overs of one lock. */
export class Heat {
  private readonly times: number[] = [];

  note(nowMs: number): void {
    this.times.push(nowMs);
    if (this.times.length > HOT_HANDOVERS) this.times.shift();
  }

  /** From then on it is forgotten, if nothing comes before (monotonic ms). */
  get endMs(): number {
    return (this.times.at(-1) ?? -Infinity) + HOT_MS;
  }

  isHot(nowMs: number): boolean {
    const [first] = this.times;
    return this.times.length === HOT_HANDOVERS && first !== undefined && nowMs - first <= HOT_MS;
  }
}
