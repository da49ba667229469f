/**
 * The queue of one group's commands before they enter the log, and the cutting of batches from it.
 *
 * Owns the queued waiters. Invariants: 1. First in, first out; a cut batch is closed: nothing slips
 * in afterwards (P-071). 2. Commands and bytes are bounded here and over the node (`Budget`);
 * beyond a bound a command is refused at once, with no effect. 3. A deadline is looked at until the
 * command is cut, never after: what ends here is certainly without effect. 4. Bytes are taken from
 * the budget exactly once, and go with the command when it is cut. 5. What is joined to a command
 * is taken in with it and cut with it, beyond the bounds of a batch: there is one at most for each.
 */
import { assert } from "../../base/assert.js";
import type { Command } from "../../machine/commands/command.js";
import type { Completions } from "./completions.js";
import { Gathering } from "./gathering.js";
import type { ProposalDone, ProposalMarks, ProposalResult } from "./results.js";

/** A caller that waits for the outcome of its command. */
export interface Waiter {
  readonly command: Command;
  readonly sizeBytes: number;
  deadlineMs: number;
  /** null once it has been answered. */
  done: ProposalDone | null;
  /** It is cut into the same entry as the one before it, whose end it shares until then. */
  readonly isJoined?: boolean;
  /** Filled in when the command is applied. */
  readonly marks?: ProposalMarks | null;
}

/** Command bytes queued or in unapplied entries, over all groups of the node. */
export class Budget {
  private used = 0;
  /** Commands that were let in. */
  commands = 0;

  constructor(private readonly maxBytes: number) {}

  get usedBytes(): number {
    return this.used;
  }

  /** Takes `sizeBytes` unless the bound forbids it; an empty budget grants any size. */
  take(sizeBytes: number): boolean {
    if (this.used > 0 && this.used + sizeBytes > this.maxBytes) return false;
    this.used += sizeBytes;
    return true;
  }

  /** Takes `sizeBytes` beyond the bound. */
  takeAnyway(sizeBytes: number): void {
    this.used += sizeBytes;
  }

  give(sizeBytes: number): void {
    this.used -= sizeBytes;
    assert(this.used >= 0, "no more bytes are given back than were taken");
  }
}

export interface BatcherLimits {
  readonly batchEntriesMax: number;
  readonly batchBytesMax: number;
  readonly lingerMs: number;
  readonly queuedCommandsMax: number;
  readonly queuedBytesMax: number;
  readonly inFlightEntriesMax: number;
}

const ABORTED: ProposalResult = { status: "aborted" };
const COMPACT_AT = 1024;

export class Batcher {
  private queue: Waiter[] = [];
  private head = 0;
  private live = 0;
  private bytes = 0;
  private oldestSinceMs = 0;
  private earliest = Infinity;
  private readonly gathering = new Gathering();

  constructor(
    private readonly limits: BatcherLimits,
    private readonly budget: Budget,
    private readonly completions: Completions,
  ) {}

  /** Commands that wait here. */
  get queuedCommands(): number {
    return this.live;
  }

  get queuedBytes(): number {
    return this.bytes;
  }

  /** No queued command has a deadline before this. */
  get earliestDeadlineMs(): number {
    return this.earliest;
  }

  /** Takes a waiter in, or returns false: overloaded. */
  enqueue(waiter: Waiter, nowMs: number): boolean {
    const { limits } = this;
    if (this.live >= limits.queuedCommandsMax) return false;
    if (this.live > 0 && this.bytes + waiter.sizeBytes > limits.queuedBytesMax) return false;
    if (!this.budget.take(waiter.sizeBytes)) return false;
    this.budget.commands++;
    if (this.live === 0) this.oldestSinceMs = nowMs;
    this.push(waiter);
    return true;
  }

  /** Takes `waiter` in right behind the one that was taken in last, which it is joined to. */
  enqueueJoined(waiter: Waiter): void {
    assert(waiter.isJoined === true && this.live > 0, "what is joined has one before it");
    this.budget.takeAnyway(waiter.sizeBytes);
    this.budget.commands++;
    this.push(waiter);
  }

  private push(waiter: Waiter): void {
    this.queue.push(waiter);
    this.live++;
    this.bytes += waiter.sizeBytes;
    if (waiter.deadlineMs < this.earliest) this.earliest = waiter.deadlineMs;
  }

  /**
   * Whether a batch is to be cut now. An idle group cuts at once (after the linger, and when the
   * callers of the entry before it are there again); while an entry is on its way the next batch
   * grows, and only a full one goes out behind it.
   */
  isDue(nowMs: number, inFlightEntries: number): boolean {
    if (this.live === 0) return false;
    const { limits } = this;
    const full = this.live >= limits.batchEntriesMax || this.bytes >= limits.batchBytesMax;
    if (full) return inFlightEntries < limits.inFlightEntriesMax;
    // Without a linger the clock has no say: what is queued inside a turn is younger than its time.
    const lingered = limits.lingerMs === 0 || nowMs >= this.oldestSinceMs + limits.lingerMs;
    return inFlightEntries === 0 && lingered && !this.gathering.isOn(this.live, nowMs);
  }

  /** When what is queued is due by time alone; Infinity: it waits for no time. */
  get dueMs(): number {
    if (this.live === 0) return Infinity;
    const { lingerMs } = this.limits;
    const gatheredMs = this.gathering.endOf(this.live);
    if (lingerMs === 0) return gatheredMs;
    const lingerEndMs = this.oldestSinceMs + lingerMs;
    return gatheredMs === Infinity ? lingerEndMs : Math.max(lingerEndMs, gatheredMs);
  }

  /** An entry of `commands` that took `tookMs` was applied, and none is on its way. */
  applied(commands: number, tookMs: number, nowMs: number): void {
    this.gathering.begin(commands, this.live, tookMs, nowMs);
  }

  /** Cuts the next batch; it may be empty when all that was queued had passed its deadline. */
  cut(nowMs: number): Waiter[] {
    const batch: Waiter[] = [];
    let batchBytes = 0;
    const { batchEntriesMax } = this.limits;
    while (this.head < this.queue.length) {
      const waiter = this.queue[this.head] as Waiter;
      const isJoined = waiter.isJoined === true && batch.length > 0;
      if (batch.length >= batchEntriesMax && !isJoined) break;
      if (waiter.done === null) {
        this.head++;
        continue;
      }
      if (waiter.deadlineMs <= nowMs) {
        this.head++;
        this.end(waiter, ABORTED);
        continue;
      }
      const grown = batchBytes + waiter.sizeBytes;
      if (batch.length > 0 && !isJoined && grown > this.limits.batchBytesMax) break;
      this.head++;
      this.live--;
      this.bytes -= waiter.sizeBytes;
      batchBytes = grown;
      batch.push(waiter);
    }
    this.compact();
    this.gathering.end();
    this.oldestSinceMs = nowMs;
    return batch;
  }

  /** Commands held in memory: those that wait, and ended ones that no cut has passed yet. */
  get heldCommands(): number {
    return this.queue.length - this.head;
  }

  /**
   * Ends what is queued beyond its deadline, and lets go of all that ended: while nothing can be
   * cut (a flush that hangs), callers come and go, and their commands must not stay.
   */
  expire(nowMs: number): void {
    if (nowMs < this.earliest) return;
    this.earliest = Infinity;
    const kept: Waiter[] = [];
    for (let at = this.head; at < this.queue.length; at++) {
      const waiter = this.queue[at] as Waiter;
      if (waiter.done === null) continue;
      if (waiter.deadlineMs <= nowMs) {
        this.end(waiter, ABORTED);
        continue;
      }
      kept.push(waiter);
      if (waiter.deadlineMs < this.earliest) this.earliest = waiter.deadlineMs;
    }
    this.queue = kept;
    this.head = 0;
  }

  /** Ends everything that is queued with `result`. */
  endAll(result: ProposalResult): void {
    for (let at = this.head; at < this.queue.length; at++) {
      const waiter = this.queue[at] as Waiter;
      if (waiter.done !== null) this.end(waiter, result);
    }
    this.queue = [];
    this.head = 0;
    this.earliest = Infinity;
    this.gathering.end();
    assert(this.live === 0 && this.bytes === 0, "an ended queue counts nothing (P-034)");
  }

  private end(waiter: Waiter, result: ProposalResult): void {
    assert(waiter.done !== null, "a waiter ends once");
    this.completions.proposal(waiter.done, result);
    waiter.done = null;
    this.live--;
    this.bytes -= waiter.sizeBytes;
    this.budget.give(waiter.sizeBytes);
  }

  private compact(): void {
    if (this.head === this.queue.length) {
      this.queue = [];
      this.head = 0;
      this.earliest = Infinity;
    } else if (this.head >= COMPACT_AT && this.head * 2 >= this.queue.length) {
      this.queue.splice(0, this.head);
      this.head = 0;
    }
  }
}
