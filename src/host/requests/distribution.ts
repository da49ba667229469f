/**
 * A histogram that is a few numbers: what is observed on hot paths.
 *
 * Invariants: 1. Observing costs no allocation. 2. Counts only grow.
 */
export class Distribution {
  /** Of each bucket by itself; the last is without bound. */
  readonly counts: Float64Array;
  sum = 0;

  /** `bounds`: upper ones, ascending, each within its bucket. */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += value;
  }
}
