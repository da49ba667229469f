/**
 * Callers that need the committed lease clock to move: a read saw a lease that the leader believes
 * to be over, and nobody may be told before the log says so (P-051, P-064).
 *
 * May call: base, this folder. Invariants: 1. One clock command is on its way at a time, for all who
 * wait; it satisfies those whose time it reached, and the others cause the next one. 2. No caller, no
 * clock command. 3. Every caller ends once, at its own deadline at the latest.
 */
import type { Command } from "../machine/command.js";
import type { Answers } from "./answers.js";
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
  private waiting: AdvanceWaiter[] = [];
  private onItsWay = false;
  private earliest = Infinity;

  /** `propose` queues the clock command like any other. */
  constructor(
    private readonly answers: Answers,
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

  get waitingCount(): number {
    return this.waiting.length;
  }

  add(leaseTimeMs: number, deadlineMs: number, done: ProposalDone): void {
    this.waiting.push({ leaseTimeMs, deadlineMs, done });
    if (deadlineMs < this.earliest) this.earliest = deadlineMs;
    if (!this.onItsWay) this.send();
  }

  /** Ends those whose deadline has passed; the command itself had no other effect than time. */
  expire(nowMs: number): void {
    if (nowMs < this.earliest) return;
    this.earliest = Infinity;
    const kept: AdvanceWaiter[] = [];
    for (const waiter of this.waiting) {
      if (waiter.deadlineMs <= nowMs) this.answers.proposal(waiter.done, UNKNOWN);
      else {
        kept.push(waiter);
        if (waiter.deadlineMs < this.earliest) this.earliest = waiter.deadlineMs;
      }
    }
    this.waiting = kept;
  }

  private send(): void {
    this.onItsWay = true;
    let deadlineMs = 0;
    for (const waiter of this.waiting) deadlineMs = Math.max(deadlineMs, waiter.deadlineMs);
    this.propose(COMMAND, COMMAND_BYTES, deadlineMs, (result) => this.finish(result));
  }

  /** Runs as an answer, at the end of a turn: callers may be called directly. */
  private finish(result: ProposalResult): void {
    this.onItsWay = false;
    const { waiting } = this;
    this.waiting = [];
    this.earliest = Infinity;
    for (const waiter of waiting) {
      const late = result.status === "applied" && result.leaseMs < waiter.leaseTimeMs;
      if (!late) waiter.done(result);
      else {
        this.waiting.push(waiter);
        if (waiter.deadlineMs < this.earliest) this.earliest = waiter.deadlineMs;
      }
    }
    if (this.waiting.length > 0 && !this.onItsWay) this.send();
  }
}
