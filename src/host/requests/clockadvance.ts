/**
 * Callers that need the committed lease clock to move: a read saw a lease that the leader believes
 * to be over, and nobody may be told before the log says so (P-051, P-064).
 *
 * Invariants: 1. One clock command is on its way at a time. It ends those who caused it and those
 * who joined it in time; who came too late for it shares the next one. So a caller causes at most
 * two entries. 2. No caller, no clock command. 3. Every caller ends once, at its own deadline at
 * the latest.
 */
import type { Command } from "../../machine/commands/command.js";
import type { Completions } from "./completions.js";
import type { ProposalDone, ProposalResult } from "./results.js";

interface AdvanceWaiter {
  readonly leaseTimeMs: number;
  readonly deadlineMs: number;
  readonly done: ProposalDone;
}

const COMMAND: Command = { kind: "advance-clock" };
const COMMAND_BYTES = 2;
const UNKNOWN: ProposalResult = { status: "unknown" };

export class ClockAdvances {
  /** Caused the command that is on its way. */
  private sent: AdvanceWaiter[] = [];
  /** Came after it. */
  private waiting: AdvanceWaiter[] = [];
  private onItsWay = false;
  private earliest = Infinity;

  /** `propose` queues the clock command like any other. */
  constructor(
    private readonly completions: Completions,
    private readonly propose: (
      command: Command,
      sizeBytes: number,
      deadlineMs: number,
      done: ProposalDone,
    ) => void,
  ) {}

  get earliestDeadlineMs(): number {
    return this.earliest;
  }

  add(leaseTimeMs: number, deadlineMs: number, done: ProposalDone): void {
    this.keep({ leaseTimeMs, deadlineMs, done }, this.waiting);
    if (!this.onItsWay) this.send();
  }

  /** Ends those whose deadline has passed; the command itself had no other effect than time. */
  expire(nowMs: number): void {
    if (nowMs < this.earliest) return;
    this.earliest = Infinity;
    this.sent = this.expireList(this.sent, nowMs);
    this.waiting = this.expireList(this.waiting, nowMs);
  }

  private expireList(list: readonly AdvanceWaiter[], nowMs: number): AdvanceWaiter[] {
    const kept: AdvanceWaiter[] = [];
    for (const waiter of list) {
      if (waiter.deadlineMs <= nowMs) this.completions.proposal(waiter.done, UNKNOWN);
      else this.keep(waiter, kept);
    }
    return kept;
  }

  private keep(waiter: AdvanceWaiter, list: AdvanceWaiter[]): void {
    list.push(waiter);
    if (waiter.deadlineMs < this.earliest) this.earliest = waiter.deadlineMs;
  }

  private send(): void {
    this.onItsWay = true;
    this.sent = this.waiting;
    this.waiting = [];
    let deadlineMs = 0;
    for (const waiter of this.sent) deadlineMs = Math.max(deadlineMs, waiter.deadlineMs);
    this.propose(COMMAND, COMMAND_BYTES, deadlineMs, (result) => this.finish(result));
  }

  /** Runs as an answer, at the end of a turn: callers may be called directly. */
  private finish(result: ProposalResult): void {
    this.onItsWay = false;
    const ended = this.sent;
    const { waiting } = this;
    this.sent = [];
    this.waiting = [];
    this.earliest = Infinity;
    for (const waiter of waiting) {
      const inTime = result.status !== "applied" || result.leaseMs >= waiter.leaseTimeMs;
      if (inTime) ended.push(waiter);
      else this.keep(waiter, this.waiting);
    }
    if (this.waiting.length > 0) this.send();
    for (const waiter of ended) waiter.done(result);
  }
}
