/**
 * Places that go with a planned move of the leadership: the order in which those who wait at the
 * old leader stand, for the one that comes (Q11).
 *
 * Best effort: what is lost of it costs an order, and nothing else. Invariants: 1. They count for
 * the very next term, so that nobody led in between, and for CARRIED_MS from their arrival on. 2.
 * Who stands there is nobody who waits: the places are those of who may come back (Q8). 3. What is
 * sent and kept is bounded.
 */
import type { ClockPort } from "../../ports.js";
import { keyOf } from "./queue.js";

export interface CarriedPlace {
  readonly resource: string;
  readonly isEphemeral: boolean;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  readonly note: Uint8Array | null;
}

/** Of one partition; and about what each takes beside its texts. */
export const CARRIED_PLACES_MAX = 16_384;
const CARRIED_BYTES_MAX = 1 << 20;
const PLACE_BYTES = 16;
/** An election, and the first of those who come. */
const CARRIED_MS = 10_000;

/** The first of `places` that fit into one call. */
export function thatFit(places: Iterable<CarriedPlace>): readonly CarriedPlace[] {
  const taken: CarriedPlace[] = [];
  let sizeBytes = 0;
  for (const place of places) {
    const { resource, owner, note } = place;
    // UTF-8 has three bytes at most for what a string has one unit for.
    sizeBytes += PLACE_BYTES + 3 * resource.length + owner.length + (note?.length ?? 0);
    if (taken.length >= CARRIED_PLACES_MAX || sizeBytes > CARRIED_BYTES_MAX) break;
    taken.push(place);
  }
  return taken;
}

export class CarriedPlaces {
  private readonly byKey = new Map<string, CarriedPlace[]>();
  /** Of the leadership that they come from. */
  private term = 0;
  private untilMs = 0;

  constructor(private readonly clock: ClockPort) {}

  /** They came from the leader of `term`, instead of any that came before. */
  came(term: number, places: readonly CarriedPlace[]): void {
    this.byKey.clear();
    this.term = term;
    this.untilMs = this.clock.monotonicMs() + CARRIED_MS;
    for (const place of places) {
      const key = keyOf(place.resource, place.isEphemeral);
      const list = this.byKey.get(key);
      if (list === undefined) this.byKey.set(key, [place]);
      else list.push(place);
    }
  }

  /** Those of one lock, in their order, for the leadership of `term`; once. */
  take(key: string, term: number): readonly CarriedPlace[] {
    if (this.byKey.size === 0) return [];
    if (term !== this.term + 1 || this.clock.monotonicMs() > this.untilMs) {
      if (term > this.term) this.byKey.clear();
      return [];
    }
    const places = this.byKey.get(key) ?? [];
    this.byKey.delete(key);
    return places;
  }
}
