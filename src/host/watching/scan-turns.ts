/**
 * Whose turn it is to read the state of many names: few watches of a node at a time (W4, W6), the
 * others in the order in which they asked.
 *
 * Owns the turns. Invariants: 1. At most WATCH_SCANS_MAX have one. 2. Nobody who asks later is
 * before one who waits. 3. Who can take nothing more gives its turn back, and asks anew: a slow
 * reader keeps nobody waiting.
 */
import { WATCH_SCANS_MAX } from "../../base/limits.js";

/** Who reads. */
export interface Scanner {
  /** Its turn has come. Not called in the turn of its own question. */
  hasNews(): void;
  /** What it reads is taken. */
  isHeard(): boolean;
}

export class ScanTurns {
  private readonly reading = new Set<Scanner>();
  private readonly waiting = new Set<Scanner>();

  /** For tests and checkers. */
  get count(): number {
    return this.reading.size;
  }

  /** Whether `who` may read on now; false: it is told when. */
  ask(who: Scanner): boolean {
    if (this.reading.has(who)) return true;
    this.waiting.add(who);
    this.give(who);
    return this.reading.has(who);
  }

  /** `who` reads no more, or wants to no more. */
  leave(who: Scanner): void {
    this.waiting.delete(who);
    if (this.reading.delete(who)) this.give(null);
  }

  /** Somebody is full: turns of those who cannot go on are for others. */
  freeStuck(): void {
    for (const who of this.reading) if (!who.isHeard()) this.leave(who);
  }

  private give(asking: Scanner | null): void {
    for (const next of this.waiting) {
      if (this.reading.size >= WATCH_SCANS_MAX) return;
      this.waiting.delete(next);
      this.reading.add(next);
      if (next !== asking) next.hasNews();
    }
  }
}
