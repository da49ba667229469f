/**
 * Up to where the log of a group was flushed, and when: what tells which of its entries are older
 * than a window of time.
 *
 * Owns the samples of one group. Invariants: 1. No entry above `from` is older than the window, but
 * some that are younger may be told apart only later: by a slot of time, and never too early. 2.
 * There are SLOTS + 2 samples at most. 3. Times are of the monotonic clock of this life of the
 * node.
 */
interface LogSample {
  readonly index: number;
  readonly atMs: number;
}

/** Samples are that far apart at least, as parts of the window. */
const SLOTS = 64;

export class LogSamples {
  private readonly slots: LogSample[] = [];
  /** Flushed within the slot of the last sample. */
  private latest: LogSample | null = null;
  /** Where the window begins while all of it lies in this life. */
  private base = 0;

  constructor(private readonly windowMs: number) {}

  /** All entries up to `index` are flushed. */
  note(index: number, atMs: number): void {
    const last = this.slots[this.slots.length - 1];
    const sample = { index, atMs };
    if (last !== undefined && atMs - last.atMs < this.windowMs / SLOTS) {
      this.latest = sample;
      return;
    }
    this.slots.push(sample);
    this.latest = null;
  }

  /** The entries above this are wanted; those up to it are older than the window. */
  from(nowMs: number): number {
    const { slots, latest } = this;
    const oldMs = nowMs - this.windowMs;
    while (slots[0] !== undefined && slots[0].atMs <= oldMs) {
      this.base = Math.max(this.base, slots[0].index);
      slots.shift();
    }
    if (slots.length === 0 && latest !== null && latest.atMs <= oldMs) {
      this.base = Math.max(this.base, latest.index);
      this.latest = null;
    }
    return this.base;
  }

  /** What is up to `index` is given up: the window begins anew. */
  restart(index: number): void {
    this.slots.length = 0;
    this.latest = null;
    this.base = index;
  }
}
