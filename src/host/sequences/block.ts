/**
 * One reserved block of a sequence in the leader's memory, and the sharing of its values.
 *
 * Owns the cursor of the block.
 *
 * Invariants: 1. A value leaves a block once and never comes back. 2. A block whose cursor went
 * into a command serves nobody (`closed`) until every such command is known to have had no effect:
 * the cursor in the command stays exact. 3. No BigInt is made per value: arithmetic runs in 32-bit
 * words, once per batch.
 */
import { assert } from "../../base/assert.js";
import { Int64 } from "../../base/int64.js";
import type { BlockCursor, SequenceRecord } from "../../machine/commands/command.js";
import { SequenceType } from "../../machine/commands/command.js";
import type { ClockPort, MeterPort, TimerPort } from "../../ports.js";
import type { CompactKernel, RangesKernel } from "../../wasm/kernels.js";
import type { Group } from "../group/group.js";

/** The kernels that share a block out. */
export interface BlockKernels {
  readonly compact: Pick<CompactKernel, "share">;
  readonly ranges: Pick<
    RangesKernel,
    "allocate" | "current" | "counts" | "startLow" | "startHigh" | "endLow" | "endHigh" | "verdicts"
  >;
}

/** What blocks need of their group. */
export interface BlockGroup extends Pick<Group, "propose" | "read"> {
  readonly machine: { readonly reads: { getSequence(name: string): SequenceRecord | null } };
}

export interface BlockSettings {
  readonly defaultBlockSize: number;
  /** Longest time a block is used without comparing it with the record. */
  readonly blockLeaseMs: number;
  readonly keysRetainedMax: number;
  readonly keysRetainedMs: number;
}

export interface BlockPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly meter: Pick<MeterPort, "sequenceValues" | "sequenceBlock">;
}

/**
 * Why an allocation was refused although nothing was done; null for every other end. "moved": this
 * leadership ended before a value was handed out. Asking its successor skips values at most (S8).
 */
export type BlockRefusal =
  "overloaded" | "not-initialized" | "shutting-down" | "not-available-at-level" | "moved" | null;

/**
 * `type`: a SequenceType. On success `start` to `end`, covered by the record's `revision`; else
 * zeros.
 */
export type BlockDone = (
  type: number,
  start: Int64,
  end: Int64,
  revision: number,
  refusal: BlockRefusal,
) => void;

/** One keyless next or reserve that waits for its values. */
export interface Waiter {
  readonly name: string;
  readonly count: number;
  readonly deadlineMs: number;
  readonly done: BlockDone;
  ended: boolean;
  /** Reservations that were made for it in vain because another allocation came between. */
  attempts: number;
}

/** Items that one kernel call takes. */
export const SHARE_ITEMS_MAX = 8192;

export function latestDeadlineMs(waiters: readonly Waiter[]): number {
  let latest = 0;
  for (const waiter of waiters) if (waiter.deadlineMs > latest) latest = waiter.deadlineMs;
  return latest;
}

/** Ends a waiter without values. Nothing happens when it ended before. */
export function endWaiter(waiter: Waiter, type: number, refusal: BlockRefusal): void {
  assert(type !== SequenceType.success, "a success carries values");
  if (waiter.ended) return;
  waiter.ended = true;
  waiter.done(type, Int64.ZERO, Int64.ZERO, 0, refusal);
}

/** Ends a waiter that was stopped before anything was done for it. */
export function endAborted(waiter: Waiter): void {
  endWaiter(waiter, SequenceType.aborted, null);
}

/** Ends a waiter whose leader leads no more: its values, if any were reserved, are skipped. */
export function endMoved(waiter: Waiter): void {
  endWaiter(waiter, SequenceType.mustRetry, "moved");
}

export class Block {
  readonly incarnation: number;
  readonly revision: number;
  readonly increment: bigint;
  /** The last value of the block. */
  readonly end: bigint;
  /** What was handed out last; before the first hand-out, the value below the block. */
  last: bigint;
  /** Values not handed out. */
  remaining: number;
  /** Commands in flight that carry this block's cursor. */
  pins = 0;
  /** A command with this block's cursor ended without a known outcome. */
  doubtful = false;
  /** When the record was last compared with the block, monotonic ms. */
  checkedAtMs: number;

  constructor(
    place: { readonly incarnation: number; readonly revision: number },
    before: bigint,
    increment: bigint,
    count: number,
    nowMs: number,
  ) {
    assert(increment >= 1n && count >= 1, "a block holds values in ascending order");
    this.incarnation = place.incarnation;
    this.revision = place.revision;
    this.increment = increment;
    this.last = before;
    this.end = before + increment * BigInt(count);
    this.remaining = count;
    this.checkedAtMs = nowMs;
  }

  get closed(): boolean {
    return this.pins > 0 || this.doubtful;
  }

  matches(record: SequenceRecord | null): boolean {
    return (
      record !== null &&
      record.incarnation === this.incarnation &&
      record.revision === this.revision
    );
  }

  cursor(): BlockCursor {
    return {
      incarnation: this.incarnation,
      revision: this.revision,
      lastHandedOut: this.last,
    };
  }

  /**
   * Hands values to the waiters from `from` on, in order, until one does not fit the rest. Returns
   * the position of the first that was not served. No waiter has ended before.
   */
  share(kernels: BlockKernels, waiters: readonly Waiter[], from: number): number {
    assert(!this.closed, "a closed block serves nobody");
    let at = from;
    while (at < waiters.length) {
      const items = Math.min(waiters.length - at, SHARE_ITEMS_MAX);
      const taken = this.shareSlice(kernels, waiters, at, items);
      at += taken;
      if (taken < items) break;
    }
    return at;
  }

  private shareSlice(
    kernels: BlockKernels,
    waiters: readonly Waiter[],
    from: number,
    items: number,
  ): number {
    const { ranges, compact } = kernels;
    for (let item = 0; item < items; item++) {
      ranges.counts[item] = (waiters[from + item] as Waiter).count;
    }
    let taken = 1;
    let total = ranges.counts[0] as number;
    if (items > 1) {
      const shared = compact.share(ranges.counts.subarray(0, items), this.remaining);
      taken = shared.taken;
      total = shared.total;
    } else if (total > this.remaining) {
      taken = 0;
    }
    if (taken === 0) return 0;
    const granted = ranges.allocate(taken, {
      current: this.last,
      increment: this.increment,
      maxValue: this.end,
    });
    assert(granted === taken, "what fits the rest by number fits it by value");
    this.last = ranges.current();
    this.remaining -= total;
    assert(this.remaining >= 0 && this.last <= this.end, "a block hands out what it holds");
    for (let item = 0; item < taken; item++)
      this.give(ranges, waiters[from + item] as Waiter, item);
    return taken;
  }

  /**
   * Answers one waiter from the kernel's words. Callbacks only queue: they never reach the kernels
   * in this turn.
   */
  private give(ranges: BlockKernels["ranges"], waiter: Waiter, item: number): void {
    assert(!waiter.ended, "a waiter ends once");
    waiter.ended = true;
    const start = new Int64(ranges.startHigh[item] as number, ranges.startLow[item] as number);
    const end =
      waiter.count === 1
        ? start
        : new Int64(ranges.endHigh[item] as number, ranges.endLow[item] as number);
    waiter.done(SequenceType.success, start, end, this.revision, null);
  }
}
