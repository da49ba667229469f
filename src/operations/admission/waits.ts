/**
 * The requests that wait for locks on this node, counted apart from all others: so many of them
 * that nobody else were served must not be possible, nor may they be refused because others come.
 *
 * Owns the count. Invariants: 1. Every entry is left once. 2. Whoever waits for a caller of this
 * node is told when it stops; who waits for another node's is told by that one.
 */
import type { WaitControl } from "../api/context.js";

export class Waits {
  private readonly own = new Set<WaitControl>();
  private others = 0;
  /** No wait of an own caller goes on, nor begins. */
  isStopping = false;

  constructor(private readonly waitsMax: number) {}

  get count(): number {
    return this.own.size + this.others;
  }

  /** Takes in a request of an own caller; false: too many wait. */
  enter(control: WaitControl): boolean {
    if (this.count >= this.waitsMax) return false;
    this.own.add(control);
    return true;
  }

  leave(control: WaitControl): void {
    this.own.delete(control);
  }

  /** Takes in a request that another node waits for; false: too many wait. */
  enterOther(): boolean {
    if (this.count >= this.waitsMax) return false;
    this.others++;
    return true;
  }

  leaveOther(): void {
    this.others--;
  }

  /** The node stops: own callers are told to ask another one, and find their places there. */
  endAll(): void {
    this.isStopping = true;
    for (const control of [...this.own]) control.leave("left");
  }
}
