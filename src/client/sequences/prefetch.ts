/**
 * A local supply of sequence values, reserved ahead in ranges.
 *
 * Owns the ranges that it reserved and has not handed out. Invariants: 1. A value is handed out
 * once. 2. At most one reservation is under way, and at most two ranges are held. 3. Values
 * reserved and never handed out are counted and reported, never hidden. 4. A failure is told to
 * those who waited for that reservation, to nobody later.
 */
import { ClosedError, MaxValueExceededError } from "../values/errors.js";
import { int32Of, toSafeNumber } from "../values/numbers.js";
import { callOptions, type CallOptions } from "../values/options.js";
import type { SequenceRange } from "./sequence-shapes.js";

/** Options of `prefetch`. */
export interface PrefetchOptions extends CallOptions {
  /** Reserve the next range when so many values of the current one are left (default: half). */
  readonly refillAt?: number | undefined;
}

interface Failed {
  readonly error: unknown;
}
type Reserve = (count: number, options: CallOptions) => Promise<SequenceRange>;

/**
 * A local supply of one sequence. Honest about gaps: values are unique, but not dense: what is
 * reserved and not taken (at `close`, at a crash, after an update of the sequence) is skipped for
 * ever, and values of several supplies interleave. Values reserved before an update of the sequence
 * belong to its old incarnation: close the supply when you update.
 *
 * @example
 * const supply = client.sequence("events").prefetch(10_000);
 * for (const event of events) event.id = await supply.next();
 * supply.close();
 */
export class SequencePrefetch {
  private readonly reserve: Reserve;
  private readonly options: CallOptions;
  private readonly refillAt: number;
  private count: number;
  private value = 0n;
  private step = 1n;
  private left = 0;
  private spare: SequenceRange | null = null;
  /** The reservation under way; resolves with what it failed with, or null. */
  private refill: Promise<Failed | null> | null = null;
  private closed = false;

  /** @internal */
  constructor(reserve: Reserve, count: number, options: PrefetchOptions = {}) {
    this.reserve = reserve;
    this.count = count;
    const { signal, deadlineMs } = callOptions(options);
    const { refillAt = count >>> 1 } = options;
    this.options = { signal, deadlineMs };
    this.refillAt = int32Of("refillAt", refillAt, 0);
    void this.startRefill();
  }

  /** Values that are reserved and not handed out. */
  get available(): number {
    return this.left + (this.spare?.count ?? 0);
  }

  /**
   * The next value; at once while the supply lasts. Rejects with what the reservation that it
   * waited for failed with (MaxValueExceededError, NotFoundError, TimeoutError; the next call tries
   * again), or with ClosedError.
   */
  next(): Promise<bigint> {
    if (this.left > 0) return Promise.resolve(this.take());
    return this.wait();
  }

  /** The next value if there is one without waiting, else undefined. Costs no promise. */
  tryNext(): bigint | undefined {
    if (this.left === 0 && !this.adopt()) {
      void this.startRefill();
      return undefined;
    }
    return this.take();
  }

  /** `next` as a number. Rejects with SvcRangeError (outcome `done`) beyond 2^53. */
  async nextNumber(): Promise<number> {
    return toSafeNumber(await this.next(), "done");
  }

  /**
   * Ends the supply. `unused`: values reserved and never handed out; they are gaps now. `underWay`:
   * values of a reservation that is not answered yet; they are gaps too if it takes effect.
   */
  close(): { readonly unused: number; readonly underWay: number } {
    const unused = this.available;
    const underWay = this.refill === null ? 0 : this.count;
    this.closed = true;
    this.left = 0;
    this.spare = null;
    return { unused, underWay };
  }

  /** As `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  private take(): bigint {
    const value = this.value;
    this.value = value + this.step;
    this.left -= 1;
    if (this.left <= this.refillAt && this.spare === null) void this.startRefill();
    return value;
  }

  /** Makes the spare range the current one. */
  private adopt(): boolean {
    const range = this.spare;
    if (range === null) return false;
    this.spare = null;
    this.value = range.start;
    this.left = range.count;
    this.step = range.count > 1 ? (range.end - range.start) / BigInt(range.count - 1) : 1n;
    return true;
  }

  private async wait(): Promise<bigint> {
    for (;;) {
      if (this.closed) throw new ClosedError();
      if (this.left > 0 || this.adopt()) return this.take();
      const failed = await this.startRefill();
      // Another waiter may have been served by a reservation that came after this one.
      if (failed !== null && this.left === 0 && this.spare === null) throw failed.error;
    }
  }

  /** Whoever waits for it is told of its failure; a failure that nobody waited for is forgotten. */
  private startRefill(): Promise<Failed | null> {
    if (this.closed) return Promise.resolve(null);
    this.refill ??= this.fetch().then(
      (range) => {
        this.refill = null;
        if (!this.closed) this.spare = range;
        return null;
      },
      (error: unknown) => {
        this.refill = null;
        return { error };
      },
    );
    return this.refill;
  }

  /** Near the end of a bounded sequence smaller ranges may still be had. */
  private async fetch(): Promise<SequenceRange> {
    for (;;) {
      try {
        return await this.reserve(this.count, this.options);
      } catch (error) {
        if (!(error instanceof MaxValueExceededError) || this.count === 1) throw error;
        this.count = Math.ceil(this.count / 2);
      }
    }
  }
}
