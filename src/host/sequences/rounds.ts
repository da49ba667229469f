/**
 * Rounds: everybody who arrived in one turn is confirmed by one read of the group, which proves
 * that this node leads.
 *
 * Owns everybody who waits for a round.
 *
 * Invariants: 1. A round begins after all whom it confirms arrived. 2. A round that was begun
 * before a reset confirms nobody.
 */
import { SequenceType } from "../../machine/commands/command.js";
import type { TimerPort } from "../../ports.js";
import type { ReadResult } from "../requests/results.js";
import { type BlockGroup, type Waiter, endAborted, endMoved, latestDeadlineMs } from "./block.js";

export class Rounds {
  private arrivals: Waiter[] = [];
  private readonly underWay = new Set<readonly Waiter[]>();
  private gathering = false;
  /** Counts resets: what was begun under another number belongs to a leadership that ended. */
  private resets = 0;

  /**
   * `confirmed` gets a round's waiters in a turn in which the state may be read; some may have
   * ended.
   */
  constructor(
    private readonly group: Pick<BlockGroup, "read">,
    private readonly timer: TimerPort,
    private readonly confirmed: (waiters: readonly Waiter[]) => void,
  ) {}

  arrive(waiter: Waiter): void {
    this.arrivals.push(waiter);
    this.gather();
  }

  /** Another round for those who were confirmed before. */
  arriveAgain(waiters: readonly Waiter[]): void {
    for (const waiter of waiters) this.arrivals.push(waiter);
    if (waiters.length > 0) this.gather();
  }

  /** Leadership or state ended. */
  reset(): void {
    this.resets++;
  }

  /** `sweep` ends those of the waiters who are due with the type. */
  expire(sweep: (waiters: readonly Waiter[], type: number) => void): void {
    sweep(this.arrivals, SequenceType.aborted);
    for (const batch of this.underWay) sweep(batch, SequenceType.mustRetry);
    this.arrivals = this.arrivals.filter((waiter) => !waiter.ended);
  }

  /** One round for all that arrived in this turn. */
  private gather(): void {
    if (this.gathering) return;
    this.gathering = true;
    this.timer.soon(() => {
      this.gathering = false;
      const batch = this.arrivals;
      this.arrivals = [];
      if (batch.length === 0) return;
      this.underWay.add(batch);
      const { resets } = this;
      this.group.read(latestDeadlineMs(batch), (result) => {
        this.underWay.delete(batch);
        this.ended(batch, resets, result);
      });
    });
  }

  private ended(batch: readonly Waiter[], resets: number, result: ReadResult): void {
    if (result.status === "confirmed" && resets === this.resets) return this.confirmed(batch);
    const end = result.status === "aborted" ? endAborted : endMoved;
    for (const waiter of batch) end(waiter);
  }
}
