/**
 * The requests that wait in a group, and their ends.
 *
 * Owns who has not ended, by the time at which something is due for it. Invariants: 1. A waiter
 * ends once, and is told in a later turn than the one that took it in. 2. Ends of very many are
 * spread over turns.
 */
import { DueHeap } from "./due-heap.js";
import type { WaitEnd, Waiter } from "./queue.js";
import type { WaitTally } from "./wait-tally.js";
import type { WaitingPorts } from "./waiting.js";

/** Requests that end in one turn, when the leadership does or the waits of very many are over. */
const ENDS_PER_TURN = 512;

type End = readonly [waiter: Waiter, end: WaitEnd];

export class WaiterEnds {
  private readonly due = new DueHeap<Waiter>();

  constructor(
    private readonly ports: WaitingPorts,
    private readonly tally: WaitTally,
  ) {}

  get nextMs(): number {
    return this.due.nextMs;
  }

  begin(waiter: Waiter): void {
    this.tally.waiters++;
    this.due.set(waiter, waiter.wish.untilMs);
  }

  /** One for which something is due at `nowMs`; null: there is none. */
  take(nowMs: number): Waiter | null {
    return this.due.take(nowMs);
  }

  dueAgain(waiter: Waiter, atMs: number): void {
    this.due.set(waiter, atMs);
  }

  /** In a turn that is later than the one that took it in. */
  end(waiter: Waiter, end: WaitEnd): void {
    if (!this.isEnding(waiter)) return;
    waiter.place.queue.leave(waiter);
    this.finish(waiter, end);
  }

  endLater(waiter: Waiter, end: WaitEnd): void {
    if (!this.isEnding(waiter)) return;
    waiter.place.queue.leave(waiter);
    this.ports.timer.soon(() => this.finish(waiter, end));
  }

  /** Ends all of them, whose places are gone. */
  endAll(ends: readonly End[]): void {
    const open = ends.filter(([waiter]) => this.isEnding(waiter));
    this.ports.timer.soon(() => {
      this.inParts(open, (part) => {
        for (const [waiter, end] of part) this.finish(waiter, end);
      });
    });
  }

  /** Calls `each` with a part of `items` now, and with one more in each later turn. */
  inParts<T>(items: readonly T[], each: (part: readonly T[]) => void): void {
    each(items.slice(0, ENDS_PER_TURN));
    const rest = items.slice(ENDS_PER_TURN);
    if (rest.length > 0) this.ports.timer.soon(() => this.inParts(rest, each));
  }

  private isEnding(waiter: Waiter): boolean {
    if (waiter.isEnded) return false;
    waiter.isEnded = true;
    this.due.remove(waiter);
    this.tally.waiters--;
    return true;
  }

  private finish({ wish, sinceMs }: Waiter, end: WaitEnd): void {
    this.tally.ended(end.kind, this.ports.clock.monotonicMs() - sinceMs);
    wish.done(end);
  }
}
