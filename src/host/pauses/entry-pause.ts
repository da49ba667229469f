/**
 * A moment in which the leader of a group cuts no entries, because somebody reads several groups as
 * of one instant: what is queued waits, what was cut goes on.
 *
 * It proves nothing: whoever asked for it checks that nothing changed. Invariants: 1. A pause ends
 * by itself, and whoever asks meanwhile shares it. 2. After a pause comes twice as long without
 * one: callers who write get their turn however many read.
 */
import { ENTRY_PAUSE_MAX_MS, ENTRY_REST_FACTOR } from "../../base/limits.js";

export class EntryPause {
  private untilMs = 0;
  private nextMs = 0;

  begin(nowMs: number, forMs: number): void {
    if (nowMs < this.nextMs) return;
    const pauseMs = Math.min(forMs, ENTRY_PAUSE_MAX_MS);
    this.untilMs = nowMs + pauseMs;
    this.nextMs = this.untilMs + ENTRY_REST_FACTOR * pauseMs;
  }

  isOn(nowMs: number): boolean {
    return nowMs < this.untilMs;
  }

  /** To be called in every turn of the group. */
  pass(nowMs: number): void {
    if (!this.isOn(nowMs)) this.untilMs = 0;
  }

  /** When it ends; Infinity without one. */
  get wakeAtMs(): number {
    return this.untilMs === 0 ? Infinity : this.untilMs;
  }
}
