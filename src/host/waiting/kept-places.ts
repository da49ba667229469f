/**
 * Places that lost their connection, kept for a moment for who may come back (Q8).
 *
 * Owns their times. Invariants: 1. The tally counts those that are kept. 2. A place is kept for
 * LOCK_PLACE_KEPT_MS by the clock, also where the node stood still and its timers come late.
 */
import { LOCK_PLACE_KEPT_MS } from "../../base/limits.js";
import type { ClockPort } from "../../ports.js";
import { DueHeap } from "./due-heap.js";
import type { Place } from "./queue.js";
import type { WaitTally } from "./wait-tally.js";

export class KeptPlaces {
  private readonly places = new DueHeap<Place>();

  constructor(
    private readonly clock: ClockPort,
    private readonly tally: Pick<WaitTally, "placesLeft">,
  ) {}

  /** When the first is kept no longer; infinity: there is none. */
  get nextMs(): number {
    return this.places.nextMs;
  }

  keep(place: Place): void {
    const { size } = this.places;
    this.places.set(place, this.clock.monotonicMs() + LOCK_PLACE_KEPT_MS);
    this.tally.placesLeft += this.places.size - size;
  }

  /** It is kept no more: somebody came back, or it is out of its queue. */
  release(place: Place): void {
    const { size } = this.places;
    this.places.remove(place);
    this.tally.placesLeft += this.places.size - size;
  }

  /** Who comes back now finds the turn of `place` gone. A place that is being tried stays. */
  isLate(place: Place): boolean {
    return place.heapAt >= 0 && place.tries === 0 && place.dueMs <= this.clock.monotonicMs();
  }

  /** One that is kept no longer; null: none is due. */
  take(nowMs: number): Place | null {
    const place = this.places.take(nowMs);
    if (place !== null) this.tally.placesLeft--;
    return place;
  }
}
