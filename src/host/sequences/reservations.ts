/**
 * Serving from blocks and reserving new ones: what happens to confirmed waiters of one group.
 *
 * Invariants: 1. `serve` and `reserve` run only in turns in which the state may be read: a
 * confirmed round, or the end of an applied command. 2. A waiter that finds no room is in exactly
 * one place: ready, or the reservation in flight. 3. MaxValueExceeded and NotFound are said from
 * the state as read in such a turn, never from the block alone. 4. One reservation per sequence is
 * in flight; requests that find no room gather for the next.
 */
import { assert } from "../../base/assert.js";
import { textSizeBytes } from "../../base/bytes.js";
import { INT32_MAX, INT64_MAX } from "../../base/int64.js";
import {
  type AllocationOutcome,
  SequenceType,
  type SequenceRecord,
} from "../../machine/commands/command.js";
import {
  Block,
  type BlockGroup,
  type BlockKernels,
  type BlockPorts,
  type BlockSettings,
  SHARE_ITEMS_MAX,
  type Waiter,
  endAborted,
  endMoved,
  endWaiter,
  latestDeadlineMs,
} from "./block.js";
import type { SequenceEntries, SequenceEntry } from "./sequence-entry.js";
import type { FinalPropose, ProposalResult } from "../requests/results.js";

/** Sequences with a block in memory, per group; beyond it an idle one is handed back. */
const BLOCKS_MAX = 65_536;
/** Reservations made in vain for one request before it is sent back. */
const ATTEMPTS_MAX = 4;
/** Idle blocks looked for at once when there are too many. */
const EVICTION_TRIES = 8;
/** Bytes of a sequence command beside its texts, at most. */
export const COMMAND_BYTES = 96;

export class Reservations {
  constructor(
    private readonly entries: SequenceEntries,
    private readonly group: BlockGroup,
    private readonly settings: BlockSettings,
    private readonly ports: BlockPorts,
    private readonly kernels: BlockKernels,
    /** Takes back waiters that need another round. */
    private readonly requeue: (waiters: readonly Waiter[]) => void,
    private readonly blocksMax = BLOCKS_MAX,
  ) {}

  /** Serves the waiters of a confirmed round, each sequence once. */
  serveRound(waiters: readonly Waiter[]): void {
    const touched: SequenceEntry[] = [];
    let entry: SequenceEntry | null = null;
    for (const waiter of waiters) {
      if (waiter.ended) continue;
      if (entry === null || entry.name !== waiter.name) entry = this.entries.of(waiter.name);
      if (!entry.touched) {
        entry.touched = true;
        touched.push(entry);
      }
      entry.ready.push(waiter);
    }
    for (const served of touched) {
      served.touched = false;
      this.serve(served);
      this.entries.forget(served);
    }
  }

  /** Serves what waits at `entry`. Only in a turn in which the state may be read. */
  private serve(entry: SequenceEntry): void {
    if (entry.ready.length === 0) return;
    if (entry.update !== null) {
      for (const waiter of entry.ready.splice(0)) endWaiter(waiter, SequenceType.mustRetry, null);
      return;
    }
    const block = this.usableBlock(entry);
    if (block !== null) entry.ready = this.share(block, entry.ready);
    if (entry.ready.length > 0 && entry.reserving === null) this.reserve(entry);
  }

  /** Hands the rest of the block back; it serves nobody from now on. */
  returnBlock(entry: SequenceEntry, propose: FinalPropose): void {
    const pinned = entry.pin();
    const cursor = entry.cursor();
    if (pinned === null || cursor === null) {
      entry.inflight--;
      if (pinned !== null) pinned.pins--;
      return;
    }
    const sizeBytes = COMMAND_BYTES + textSizeBytes(entry.name);
    propose({ kind: "return-block", name: entry.name, cursor }, sizeBytes, (result) => {
      // What was handed back belongs to the next reservation, even if the record looks as before.
      if (result.status === "applied") this.ports.meter.sequenceBlock("returned");
      if (result.status === "applied" && entry.block === pinned) entry.block = null;
      this.entries.landed(entry, pinned, result);
    });
  }

  /** The open block, compared with the record as often as the block lease asks. */
  private usableBlock(entry: SequenceEntry): Block | null {
    const { block } = entry;
    if (block === null || block.closed) return null;
    const nowMs = this.ports.clock.monotonicMs();
    if (nowMs - block.checkedAtMs >= this.settings.blockLeaseMs) {
      block.checkedAtMs = nowMs;
      if (!block.matches(this.group.machine.reads.getSequence(entry.name))) {
        entry.block = null;
        return null;
      }
    }
    return block;
  }

  /** Answers those that fit from the front of `waiters`; returns the others. */
  private share(block: Block, waiters: Waiter[]): Waiter[] {
    const before = block.remaining;
    const served = block.share(this.kernels, waiters, 0);
    if (block.remaining < before) this.ports.meter.sequenceValues(before - block.remaining);
    return served === waiters.length ? [] : waiters.slice(served);
  }

  /** Reserves one block for all that wait, or says NotFound and MaxValueExceeded from the state. */
  private reserve(entry: SequenceEntry): void {
    const record = this.group.machine.reads.getSequence(entry.name);
    if (record === null) {
      if (entry.inflight === 0) entry.block = null;
      for (const waiter of entry.ready.splice(0)) endWaiter(waiter, SequenceType.notFound, null);
      return;
    }
    const batch = this.takeFitting(entry, record);
    if (batch.length === 0) return;
    let count = 0;
    for (const waiter of batch) count += waiter.count;
    const pinned = entry.pin();
    const { resets } = this.entries;
    entry.reserving = batch;
    entry.reservedFrom = record;
    entry.reservationDies = false;
    this.group.propose(
      {
        kind: "reserve-block",
        name: entry.name,
        count,
        defaultBlockSize: this.settings.defaultBlockSize,
        cursor: entry.cursor(),
      },
      COMMAND_BYTES + textSizeBytes(entry.name),
      latestDeadlineMs(batch),
      (result) => this.reserved(entry, pinned, batch, resets, result),
    );
  }

  /** Takes those that one reservation can serve; ends those that no allocation can. */
  private takeFitting(entry: SequenceEntry, record: SequenceRecord): Waiter[] {
    const { ranges, compact } = this.kernels;
    for (;;) {
      const items = Math.min(entry.ready.length, SHARE_ITEMS_MAX);
      if (items === 0) return [];
      const slice = entry.ready.slice(0, items);
      slice.forEach((waiter, item) => (ranges.counts[item] = waiter.count));
      const open = entry.block !== null && entry.block.matches(record) ? entry.block : null;
      const current = open === null || entry.deletes > 0 ? record.currentValue : open.last;
      const { increment, maxValue } = record;
      ranges.allocate(items, { current, increment, maxValue: maxValue ?? undefined });
      const fitting = slice.filter((_, item) => ranges.verdicts[item] === 0);
      const others = slice.filter((_, item) => ranges.verdicts[item] !== 0);
      // Whoever would fit alone is judged again once those before it have theirs, or have not.
      const room = ((maxValue ?? INT64_MAX) - current) / increment;
      const later = others.filter((waiter) => BigInt(waiter.count) <= room);
      const beyond = others.filter((waiter) => BigInt(waiter.count) > room);
      const counts = fitting.map((waiter) => waiter.count);
      const { taken } = compact.share(counts, INT32_MAX);
      entry.ready = fitting.slice(taken).concat(later, entry.ready.slice(items));
      for (const waiter of beyond) endWaiter(waiter, SequenceType.maxValueExceeded, null);
      if (taken > 0) return fitting.slice(0, taken);
      assert(fitting.length + later.length === 0, "the first that fits alone is taken");
    }
  }

  private reserved(
    entry: SequenceEntry,
    pinned: Block | null,
    batch: readonly Waiter[],
    resets: number,
    result: ProposalResult,
  ): void {
    entry.reserving = null;
    const waiting = batch.filter((waiter) => !waiter.ended);
    if (resets !== this.entries.resets) {
      entry.unpin(pinned, { status: "unknown" }, null);
      return waiting.forEach(endMoved);
    }
    if (result.status === "applied") {
      assert(result.outcome.kind === "allocation", "a reservation ends as an allocation");
      this.installBlock(entry, waiting, result.outcome);
    } else {
      this.refuse(entry, waiting, result);
    }
    this.entries.landed(entry, pinned, result);
    if (result.status === "applied") this.serve(entry);
    else this.requeue(entry.ready.splice(0));
    this.entries.forget(entry);
    this.evict();
  }

  private refuse(entry: SequenceEntry, waiting: readonly Waiter[], result: ProposalResult): void {
    if (result.status === "aborted") return waiting.forEach(endAborted);
    if (result.status !== "refused") {
      for (const waiter of waiting) endWaiter(waiter, SequenceType.mustRetry, null);
      return;
    }
    const refusal = result.reason === "not-leader" ? "moved" : result.reason;
    // Whoever gathered meanwhile would meet the same refusal: saying it now costs less than another
    // try.
    for (const waiter of [...waiting, ...entry.ready.splice(0)]) {
      endWaiter(waiter, SequenceType.mustRetry, refusal);
    }
  }

  private installBlock(entry: SequenceEntry, waiting: Waiter[], outcome: AllocationOutcome): void {
    if (outcome.type === SequenceType.success) {
      const nowMs = this.ports.clock.monotonicMs();
      this.ports.meter.sequenceBlock("reserved");
      const { before, increment, count } = outcome;
      const block = new Block(outcome, before, increment, count, nowMs);
      entry.block = block;
      const rest = this.share(block, waiting);
      assert(rest.length === 0, "a reservation covers everybody it was made for");
      if (entry.reservationDies) entry.block = null;
      return;
    }
    if (outcome.type !== SequenceType.maxValueExceeded) {
      for (const waiter of waiting) endWaiter(waiter, outcome.type, null);
      return;
    }
    // Another allocation came first. Judge each again by what is left now, a bounded number of
    // times.
    const again: Waiter[] = [];
    for (const waiter of waiting) {
      waiter.attempts++;
      if (waiter.attempts < ATTEMPTS_MAX) again.push(waiter);
      else endWaiter(waiter, SequenceType.mustRetry, null);
    }
    entry.ready = again.concat(entry.ready);
  }

  /** Hands an idle block back when there are too many; a busy one moves to the end of the order. */
  private evict(): void {
    for (let tries = 0; this.entries.size > this.blocksMax && tries < EVICTION_TRIES; tries++) {
      const oldest = this.entries.rotate();
      assert(oldest !== null, "a table beyond its bound is not empty");
      if (oldest.block === null || !oldest.isQuiet()) continue;
      if (oldest.block.remaining === 0) {
        oldest.block = null;
        this.entries.forget(oldest);
        continue;
      }
      const deadlineMs = this.ports.clock.monotonicMs() + this.settings.blockLeaseMs;
      this.returnBlock(oldest, (command, sizeBytes, done) =>
        this.group.propose(command, sizeBytes, deadlineMs, done),
      );
    }
  }
}
