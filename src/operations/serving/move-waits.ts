/**
 * Requests that met a partition which does not own their key, with nothing done: each waits until
 * this node has applied a newer map than the one it was placed by, or for a short pause, and is
 * placed anew.
 *
 * Between the cut and the adoption of a range, and after a move that was given up, the map does not
 * change again: hence the pause. Owns the list of those who wait. Invariants: 1. One timer serves
 * all of them; who waits is admitted, which bounds the list. 2. A wait ends in a later turn, by the
 * deadline of its request or a little after it, and soon when the node closes its store (P-162).
 * 3. The pause of one request grows while its map stays the same.
 */
import { assert } from "../../base/assert.js";
import type { ClockPort, TimerPort } from "../../ports.js";
import type { Refusal } from "../api/answers.js";
import type { NodeAccess } from "../api/host-view.js";

/** How often those who wait look at the map (ms). */
const LOOK_MS = 5;
/** The first pause, and the longest one (ms). */
const PAUSE_MS = 5;
const PAUSE_MAX_MS = 40;

interface Waiting {
  readonly usedVersion: number;
  readonly untilMs: number;
  readonly resume: () => void;
}

export class MoveWaits {
  /** Times that a request, or items of a call, met a partition that does not own the key. */
  refused = 0;
  private waiting: Waiting[] = [];
  private isLooking = false;

  constructor(
    private readonly ports: { readonly clock: ClockPort; readonly timer: TimerPort },
    private readonly placement: { readonly mapVersion: number },
    private readonly node: Pick<NodeAccess, "closing">,
  ) {}

  get count(): number {
    return this.waiting.length;
  }

  get nowMs(): number {
    return this.ports.clock.monotonicMs();
  }

  get isClosing(): boolean {
    return this.node.closing;
  }

  /** Calls `resume` once the map is newer than `usedVersion`, or at `untilMs`. */
  add(usedVersion: number, untilMs: number, resume: () => void): void {
    this.waiting.push({ usedVersion, untilMs, resume });
    if (!this.isLooking) this.lookLater();
  }

  private lookLater(): void {
    this.isLooking = true;
    this.ports.timer.after(LOOK_MS, () => {
      this.isLooking = false;
      const all = this.waiting;
      this.waiting = [];
      const { mapVersion } = this.placement;
      const { nowMs, isClosing } = this;
      for (const one of all) {
        const isDue = isClosing || mapVersion > one.usedVersion || one.untilMs <= nowMs;
        if (isDue) one.resume();
        else this.waiting.push(one);
      }
      if (this.waiting.length > 0 && !this.isLooking) this.lookLater();
    });
  }
}

/** The waits of one request, or of some items of one call, on its journey. */
export class MovePauses {
  private usedVersion = -1;
  private pauseMs = 0;
  private isWaiting = false;

  /** `pauseMaxMs`: longer for who does much in vain each time. */
  constructor(
    private readonly waits: MoveWaits,
    private readonly deadlineMs: number,
    private readonly pauseMaxMs = PAUSE_MAX_MS,
  ) {}

  /**
   * To be called when nothing was done by a map of `usedVersion`: `again` when the request is to be
   * placed anew, `over` when its time is up, or with a refusal when this node stops.
   */
  next(usedVersion: number, again: () => void, over: (refusal: Refusal | null) => void): void {
    assert(!this.isWaiting, "a request waits for one thing at a time");
    this.waits.refused++;
    const isNewer = usedVersion !== this.usedVersion;
    this.pauseMs = isNewer ? PAUSE_MS : Math.min(this.pauseMaxMs, 2 * this.pauseMs);
    this.usedVersion = usedVersion;
    this.isWaiting = true;
    const untilMs = Math.min(this.deadlineMs, this.waits.nowMs + this.pauseMs);
    this.waits.add(usedVersion, untilMs, () => {
      this.isWaiting = false;
      if (this.waits.isClosing) over("shutting-down");
      else if (this.waits.nowMs < this.deadlineMs) again();
      else over(null);
    });
  }
}
