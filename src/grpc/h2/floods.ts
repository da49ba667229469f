/**
 * What a client may do to a connection beside calling: frames that cost the server and lead to
 * nothing.
 *
 * Invariants: 1. So many at once, and then no more than flow back with time and with real work, so
 * that no client that calls is ever stopped.
 */
import {
  IDLE_FRAMES_BURST_MAX,
  IDLE_FRAMES_PER_SECOND,
  IDLE_FRAMES_PER_WORK,
} from "../../base/limits.js";

export class IdleFrames {
  private left = IDLE_FRAMES_BURST_MAX;
  private countedMs: number;

  constructor(private readonly nowMs: () => number) {
    this.countedMs = nowMs();
  }

  /** Something of use came. */
  worked(): void {
    if (this.left < IDLE_FRAMES_BURST_MAX) this.left += IDLE_FRAMES_PER_WORK;
  }

  /** Counts one; false when it is one too many. */
  take(): boolean {
    this.left -= 1;
    if (this.left >= 0) return true;
    const nowMs = this.nowMs();
    const back = Math.floor(((nowMs - this.countedMs) / 1000) * IDLE_FRAMES_PER_SECOND);
    this.countedMs = nowMs;
    this.left = Math.min(IDLE_FRAMES_BURST_MAX, this.left + back);
    return this.left >= 0;
  }
}
