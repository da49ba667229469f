/**
 * What this node watches for others between the two rounds of their reads.
 *
 * Owns the watches and their timer. Invariants: 1. Watches are bounded in number and time: each
 * costs something at every change. 2. A watch is asked about once, and closed then or when its time
 * is over.
 */
import type { ClockPort, TimerPort } from "../../ports.js";
import type { SpanWatch } from "./span-watch.js";

const WATCHES_MAX = 128;
/** Long for two rounds, short for a node that forgets (ms). */
const WATCH_MS = 1000;
const LOOK_MS = 250;

interface Held {
  readonly watch: SpanWatch;
  readonly untilMs: number;
}

export class HeldWatches {
  private readonly held = new Map<number, Held>();
  private lastId = 0;
  private isLooking = false;

  constructor(private readonly ports: { readonly clock: ClockPort; readonly timer: TimerPort }) {}

  get count(): number {
    return this.held.size;
  }

  /** Names the watch, which is kept from now on; 0 = there is no room, and it is closed. */
  keep(watch: SpanWatch): number {
    if (this.held.size >= WATCHES_MAX) {
      watch.close();
      return 0;
    }
    const id = ++this.lastId;
    this.held.set(id, { watch, untilMs: this.ports.clock.monotonicMs() + WATCH_MS });
    if (!this.isLooking) this.lookLater();
    return id;
  }

  /** Gives the watch to the caller, who closes it; null when it is not kept any more. */
  take(id: number): SpanWatch | null {
    const held = this.held.get(id);
    this.held.delete(id);
    return held?.watch ?? null;
  }

  private lookLater(): void {
    this.isLooking = true;
    this.ports.timer.after(LOOK_MS, () => {
      this.isLooking = false;
      const nowMs = this.ports.clock.monotonicMs();
      for (const [id, { watch, untilMs }] of this.held) {
        if (untilMs > nowMs) continue;
        watch.close();
        this.held.delete(id);
      }
      if (this.held.size > 0) this.lookLater();
    });
  }
}
