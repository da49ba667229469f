/**
 * The entries that this node's log got from its own leadership and has not applied yet: their bytes
 * for the log, their decoded commands for apply, and the callers that wait for them.
 *
 * Invariants: 1. Waiters are keyed by (term, index) and end exactly once: with the outcome when
 * that very entry is applied, whoever leads then, and otherwise as "unknown" (P-033). 2. An entry
 * leaves when it is applied or when another one takes its index; its bytes then go back to the
 * budget. 3. Nothing is proposed again from here (P-032).
 */
import { assert } from "../../base/assert.js";
import type { Command, EntryStamp } from "../../machine/commands/command.js";
import type { Completions } from "./completions.js";
import type { Budget, Waiter } from "./batcher.js";
import type { ProposalResult } from "./results.js";

export interface ProposedEntry {
  readonly index: number;
  readonly term: number;
  /** As the log stores it. */
  readonly kind: number;
  readonly payload: Uint8Array;
  /** null for the empty entry that begins a term, and for membership changes. */
  readonly stamp: EntryStamp | null;
  readonly commands: readonly Command[];
  readonly waiters: readonly Waiter[];
  /** What the waiters took from the budget. */
  readonly sizeBytes: number;
  readonly proposedAtMs: number;
}

const UNKNOWN: ProposalResult = { status: "unknown" };

export class Proposals {
  /** By index, ascending in order of insertion. */
  private readonly entries = new Map<number, ProposedEntry>();
  private waiting = 0;
  private withCommands = 0;
  private earliest = Infinity;

  constructor(
    private readonly budget: Budget,
    private readonly completions: Completions,
  ) {}

  /** Callers not yet answered. */
  get waitingCount(): number {
    return this.waiting;
  }

  /** Entries with commands that are on their way. */
  get entryCount(): number {
    return this.withCommands;
  }

  /** Their commands, whoever still waits for them. */
  get commandCount(): number {
    let count = 0;
    for (const { commands } of this.entries.values()) count += commands.length;
    return count;
  }

  get earliestDeadlineMs(): number {
    return this.earliest;
  }

  /** The age of the oldest entry still on its way (ms); 0 when there is none. */
  oldestAgeMs(nowMs: number): number {
    for (const entry of this.entries.values()) return nowMs - entry.proposedAtMs;
    return 0;
  }

  /** Takes in an entry that the core gave a position. It replaces everything from there on. */
  add(entry: ProposedEntry): void {
    this.truncateFrom(entry.index);
    this.entries.set(entry.index, entry);
    if (entry.waiters.length === 0) return;
    this.withCommands++;
    this.waiting += entry.waiters.length;
    for (const waiter of entry.waiters) {
      if (waiter.deadlineMs < this.earliest) this.earliest = waiter.deadlineMs;
    }
  }

  /** The entry at (term, index); null when another term's, or none, is there. */
  at(index: number, term: number): ProposedEntry | null {
    const entry = this.entries.get(index);
    return entry !== undefined && entry.term === term ? entry : null;
  }

  /**
   * Removes and returns the entry at (term, index) for applying. One of another term that is there
   * lost its place: its callers are told so.
   */
  take(index: number, term: number): ProposedEntry | null {
    const entry = this.entries.get(index);
    if (entry === undefined) return null;
    this.entries.delete(index);
    if (entry.waiters.length > 0) this.withCommands--;
    this.budget.give(entry.sizeBytes);
    if (entry.term === term) return entry;
    this.endWaiters(entry);
    return null;
  }

  /** The caller behind `waiter` gets `result`, unless its deadline came first. */
  answer(waiter: Waiter, result: ProposalResult): void {
    if (waiter.done === null) return;
    this.completions.proposal(waiter.done, result);
    waiter.done = null;
    this.waiting--;
  }

  /** Ends the waiters whose deadline has passed; their entries stay, for they may commit yet. */
  expire(nowMs: number): void {
    if (nowMs < this.earliest) return;
    this.earliest = Infinity;
    for (const entry of this.entries.values()) {
      for (const waiter of entry.waiters) {
        if (waiter.done === null) continue;
        if (waiter.deadlineMs <= nowMs) this.answer(waiter, UNKNOWN);
        else if (waiter.deadlineMs < this.earliest) this.earliest = waiter.deadlineMs;
      }
    }
  }

  /** The leadership was lost: whoever waits is told by `untilMs`, if nothing is known before. */
  endBy(untilMs: number): void {
    if (this.waiting === 0) return;
    for (const entry of this.entries.values()) {
      for (const waiter of entry.waiters) {
        if (waiter.deadlineMs > untilMs) waiter.deadlineMs = untilMs;
      }
    }
    if (untilMs < this.earliest) this.earliest = untilMs;
  }

  /** Ends every waiter as unknown (the node ends); the entries stay. */
  endAll(): void {
    for (const entry of this.entries.values()) this.endWaiters(entry);
    this.earliest = Infinity;
    assert(this.waiting === 0, "nobody waits any more (P-034)");
  }

  /** Ends and drops everything: a snapshot came in place of the whole log. */
  dropAll(): void {
    this.truncateFrom(0);
  }

  /**
   * The log was written anew from `first` on, and ends at `last` now: ends and drops what it does
   * not hold any more. `termAt` gives the terms of what it holds there.
   */
  rewritten(first: number, last: number, termAt: (index: number) => number): void {
    for (const [at, entry] of this.entries) {
      if (at >= first && (at > last || entry.term !== termAt(at))) this.drop(at, entry);
    }
  }

  private truncateFrom(index: number): void {
    for (const [at, entry] of this.entries) {
      if (at >= index) this.drop(at, entry);
    }
  }

  private drop(at: number, entry: ProposedEntry): void {
    this.entries.delete(at);
    if (entry.waiters.length > 0) this.withCommands--;
    this.budget.give(entry.sizeBytes);
    this.endWaiters(entry);
  }

  private endWaiters(entry: ProposedEntry): void {
    for (const waiter of entry.waiters) this.answer(waiter, UNKNOWN);
  }
}
