/**
 * The deadlines of all calls under way, at the cost of a list operation each.
 *
 * Owns one timer and a list per duration; in a list, calls end in the order in which they began
 * (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987, scheme 1 per duration).
 * Invariants: 1. A call is in at most one list. 2. Nothing expires early. 3. After a long pause of
 * the event loop, answers that arrived meanwhile are taken before anything expires. 4. Without
 * calls no timer keeps the process alive.
 */
import type { ClientPlatform, Timer } from "./platform.js";

/** What can expire. The links belong to the lists. */
export interface Expiring {
  /** Changes only while it is in no list. */
  durationMs: number;
  expireAtMs: number;
  /** True while it is in a list. */
  listed: boolean;
  previous: Expiring | null;
  next: Expiring | null;
  expire(): void;
  /** The client is closed. */
  discard(): void;
}

interface List {
  first: Expiring | null;
  last: Expiring | null;
}

/** A timer this late means that the loop was blocked (ms). */
const LATE_MS = 20;

export class Deadlines {
  private readonly platform: ClientPlatform;
  private readonly lists = new Map<number, List>();
  private timer: Timer | null = null;
  private timerAtMs = Number.POSITIVE_INFINITY;
  private count = 0;
  /** When the last watch began: of a call that just begins, now. */
  addedMs = 0;

  constructor(platform: ClientPlatform) {
    this.platform = platform;
  }

  /** Begins to watch; `expireAtMs` is set from now. */
  add(entry: Expiring): void {
    const { durationMs } = entry;
    this.addedMs = this.platform.nowMs();
    entry.expireAtMs = this.addedMs + durationMs;
    let list = this.lists.get(durationMs);
    if (list === undefined) {
      list = { first: null, last: null };
      this.lists.set(durationMs, list);
    }
    entry.listed = true;
    entry.previous = list.last;
    entry.next = null;
    if (list.last === null) list.first = entry;
    else list.last.next = entry;
    list.last = entry;
    this.count += 1;
    if (this.count === 1) this.timer?.ref();
    if (entry.expireAtMs < this.timerAtMs) this.arm(entry.expireAtMs);
  }

  /** Ends the watch; does nothing when it ended before. */
  remove(entry: Expiring): void {
    const list = this.lists.get(entry.durationMs);
    if (!entry.listed || list === undefined) return;
    entry.listed = false;
    if (entry.previous === null) list.first = entry.next;
    else entry.previous.next = entry.next;
    if (entry.next === null) list.last = entry.previous;
    else entry.next.previous = entry.previous;
    entry.previous = null;
    entry.next = null;
    this.count -= 1;
    if (this.count === 0) this.timer?.unref();
    // Odd durations come and go; the few usual ones are kept.
    if (list.first === null && this.lists.size > 8) this.lists.delete(entry.durationMs);
  }

  /** Discards every entry and ends the timer. */
  close(): void {
    this.timer?.cancel();
    this.timer = null;
    this.timerAtMs = Number.POSITIVE_INFINITY;
    for (const list of this.lists.values()) {
      while (list.first !== null) {
        const entry = list.first;
        this.remove(entry);
        entry.discard();
      }
    }
    this.lists.clear();
  }

  private arm(atMs: number): void {
    this.timer?.cancel();
    this.timer = null;
    this.timerAtMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.max(1, Math.ceil(atMs - this.platform.nowMs()));
    this.timer = this.platform.after(waitMs, () => this.fired(atMs));
    if (this.count === 0) this.timer.unref();
  }

  private fired(atMs: number): void {
    // One turn for the answers that wait in the sockets: whoever was answered has not timed out.
    if (this.platform.nowMs() - atMs > LATE_MS) this.platform.soon(() => this.expireDue());
    else this.expireDue();
  }

  private expireDue(): void {
    const nowMs = this.platform.nowMs();
    for (const list of this.lists.values()) {
      while (list.first !== null && list.first.expireAtMs <= nowMs) {
        const entry = list.first;
        this.remove(entry);
        entry.expire();
      }
    }
    // What expired may have begun to be watched anew, in any list.
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const { first } of this.lists.values()) {
      if (first !== null) earliestMs = Math.min(earliestMs, first.expireAtMs);
    }
    this.arm(earliestMs);
  }
}
