/**
 * For how long the next entry of a group waits for the callers of the one before it.
 *
 * Callers who ask again as soon as they are answered fall into two halves: while the entry of one
 * is on its way the other one queues, and would go as soon as that is applied, without those who
 * ask again a moment later. So entries would stay half as full as they could be for ever, and an
 * entry costs more than what is in it. Owns what is waited for. Invariants: 1. Nothing waits for
 * longer than the entry before it took, nor for longer than GATHERING_MAX_MS. 2. Where one command
 * came behind one alone nothing waits: these two callers may have nothing to do with each other, as
 * where a lock is let go while somebody else tries to take it. 3. Where nobody comes fewer are
 * waited for after the next entry.
 */
import { GATHERING_MAX_MS } from "../../base/limits.js";

export class Gathering {
  /** As many commands are there, or `endMs` has come: then it ends. */
  private expected = 0;
  private endMs = 0;

  /**
   * An entry of `commands` was applied that took `tookMs`, none is on its way, `queued` wait:
   * together these are the callers there are, unless it was one and one.
   */
  begin(commands: number, queued: number, tookMs: number, nowMs: number): void {
    this.expected = Math.max(commands, queued) < 2 ? 0 : commands + queued;
    this.endMs = nowMs + Math.min(tookMs, GATHERING_MAX_MS);
  }

  /** Whether `queued` commands are still to wait for others. */
  isOn(queued: number, nowMs: number): boolean {
    return queued < this.expected && nowMs < this.endMs;
  }

  /** When `queued` commands wait no longer; Infinity: they do not wait. */
  endOf(queued: number): number {
    return queued < this.expected ? this.endMs : Infinity;
  }

  /** A batch was cut, or nothing is queued any more. */
  end(): void {
    this.expected = 0;
  }
}
