/**
 * Who waits for one lock, first in, first out.
 *
 * Pure data. Owns the places. Invariants: 1. An owner has one place at most; all its requests share
 * it (Q7). 2. Places stand in the order in which they were taken in; a place that is taken again
 * keeps its turn (Q8). 3. A place without a living request is passed over and delays nobody. 4. A
 * place that is out of the queue comes into it no more.
 */
import { assert } from "../../base/assert.js";
import { equalBytes } from "../../base/bytes.js";
import { toByteKey } from "../../machine/store/keys.js";
import type { DueItem } from "./due-heap.js";
import { Heat } from "./heat.js";
import type { Succession } from "./succession.js";

/** How a wait ends. */
export type WaitEnd =
  | {
      readonly kind: "granted";
      readonly token: bigint;
      /** What is left of the lease at the decision (ms); null: not known any more. */
      readonly leaseLeftMs: number | null;
      /** When that was, at the earliest (monotonic ms). */
      readonly decidedMs: number;
      readonly waiters: number;
    }
  | {
      readonly kind: "busy";
      readonly position: number;
      readonly waiters: number;
    }
  /** Cancelled, or the wait did not begin: no effect. */
  | { readonly kind: "aborted" }
  /** This node leads no more, or cannot prove it; nothing was done. */
  | { readonly kind: "moved" }
  /** Nobody knows whether the lock was granted. */
  | { readonly kind: "unknown" }
  /** A bound is reached, or the node stops; no effect. */
  | { readonly kind: "refused"; readonly reason: "overloaded" | "shutting-down" }
  /** Another outcome of the decision (an input that apply does not take). */
  | { readonly kind: "failed"; readonly type: number };

/** How a request goes away before it was answered. */
export type Leaving =
  /** By its caller's word, or with its connection on purpose: the place goes too. */
  | "cancelled"
  /** Nobody knows whether it comes back: its place is kept for a moment (Q8). */
  | "left";

/** An acquire by its number, and one try of it (uint64). */
export interface Trial {
  /** Not 0. */
  readonly waitId: bigint;
  readonly attempt: bigint;
}

/** What is asked of a lock, and who waits for the answer. */
export interface Wish {
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  readonly note: Uint8Array | null;
  /** When the wait is over, and when the answer must have been given (monotonic ms). */
  readonly untilMs: number;
  readonly deadlineMs: number;
  /** The acquire that it is a try of; null: of none that is named. */
  readonly trial: Trial | null;
  /** Called once, in a later turn than the ask. */
  done(end: WaitEnd): void;
}

/** A request that waits. Due at the end of its wait, then at its deadline. */
export class Waiter implements DueItem {
  dueMs = 0;
  heapAt = -1;
  /** It is to be answered with "aborted", or not at all, once no try of its place is open. */
  isCancelled = false;
  isEnded = false;
  /** Its wait is over: it is answered as soon as that is proved, or a try of its place ends. */
  isOver = false;

  constructor(
    readonly wish: Wish,
    readonly place: Place,
    /** Monotonic ms, whole. */
    readonly sinceMs: number,
  ) {}
}

export class Place implements DueItem {
  /** Until when it is kept without a request. */
  dueMs = 0;
  heapAt = -1;
  /** The oldest first: as a rule one, which no list with room for more is made for. */
  waiters: readonly Waiter[] = [];
  /** Of them, those that were not cancelled. */
  living = 0;
  /** Its try-locks that are on their way: one at most. */
  tries = 0;
  /** Out of the queue: granted, or given up. */
  isOut = false;
  /** Another request of its owner may be told of a grant that a try of its made. */
  isShared = false;
  /** Where there may be heirs: the acquire of all its requests, and their highest try. */
  trial: Trial | null = null;

  constructor(
    readonly queue: Queue,
    readonly key: string,
    readonly owner: Uint8Array,
    readonly expiresMs: number,
    readonly note: Uint8Array | null,
  ) {}
}

/** Who is known to hold the lock, and until when (lease clock, ms). */
export interface Held {
  readonly owner: Uint8Array;
  readonly endMs: number;
  readonly token: bigint;
}

/** Below every token that is granted. */
export const NO_TOKEN = -1n;

/** Names a lock: the ephemeral and the persistent one of a resource are two. */
export function keyOf(resource: string, isEphemeral: boolean): string {
  return (isEphemeral ? "e" : "p") + resource;
}

export class Queue implements DueItem {
  /** When the lease that is waited for may be over, or the next try is due (monotonic ms). */
  dueMs = 0;
  heapAt = -1;
  private readonly places = new Map<string, Place>();
  /** Places with a living request. */
  living = 0;
  /** Tries of its places that are on their way. */
  triesOpen = 0;
  /** As decisions of this leadership told last; null: nobody holds it, or that is not known. */
  held: Held | null = null;
  /** The highest token that is known to have been granted. */
  seenToken = NO_TOKEN;
  /** A try could not be made: none is before this (monotonic ms). */
  retryAtMs = 0;
  /** Called, once each, when a try ends. */
  afterTry: (() => void)[] = [];
  /** Of a lock that may have heirs. */
  succession: Succession | null = null;
  readonly heat = new Heat();

  constructor(
    readonly key: string,
    readonly resource: string,
    readonly isEphemeral: boolean,
  ) {}

  /** Places, with those that are kept for who may come back. */
  get size(): number {
    return this.places.size;
  }

  isHeldBy(owner: Uint8Array): boolean {
    return this.held !== null && equalBytes(this.held.owner, owner);
  }

  see(token: bigint): void {
    if (token > this.seenToken) this.seenToken = token;
  }

  /** Another request of `owner`, not one of those that wait, may be told that it holds the lock. */
  askedBy(owner: Uint8Array): void {
    const place = this.find(owner);
    if (place !== null) place.isShared = true;
  }

  find(owner: Uint8Array): Place | null {
    return this.places.get(toByteKey(owner)) ?? null;
  }

  add({ owner, expiresMs, note }: Pick<Wish, "owner" | "expiresMs" | "note">): Place {
    const key = toByteKey(owner);
    assert(!this.places.has(key), "an owner has one place");
    const place = new Place(this, key, owner, expiresMs, note);
    this.places.set(key, place);
    return place;
  }

  /** Of those at `place` and of one more; null: they are not tries of one acquire. */
  trialWith({ waiters, trial }: Place, added: Trial | null): Trial | null {
    if (waiters.length === 0 && trial?.waitId !== added?.waitId) return added;
    return highest(trial, added);
  }

  /** Of those at `place`, as `trialWith`. */
  trialOf({ waiters: [first, ...more] }: Place): Trial | null {
    let trial = first?.wish.trial ?? null;
    for (const { wish } of more) trial = highest(trial, wish.trial);
    return trial;
  }

  /** One request more at `place`. */
  join(place: Place, waiter: Waiter): void {
    place.waiters = place.waiters.length === 0 ? [waiter] : [...place.waiters, waiter];
    if (place.living++ === 0) this.living++;
  }

  /** The request stays, and counts as one of those who wait no more. */
  cancel(waiter: Waiter): void {
    if (waiter.isCancelled) return;
    waiter.isCancelled = true;
    const { place } = waiter;
    if (--place.living === 0 && !place.isOut) this.living--;
  }

  /** The request leaves its place. */
  leave(waiter: Waiter): void {
    this.cancel(waiter);
    const { place } = waiter;
    assert(place.waiters.includes(waiter), "a request leaves its place once");
    place.waiters = place.waiters.filter((each) => each !== waiter);
  }

  remove(place: Place): void {
    assert(this.places.get(place.key) === place, "a place stands in its queue");
    this.places.delete(place.key);
    if (place.living > 0) this.living--;
    place.isOut = true;
  }

  /** The first place with a living request. */
  first(): Place | null {
    if (this.living === 0) return null;
    for (const place of this.places.values()) if (place.living > 0) return place;
    return null;
  }

  /** How many wait, and the place of `owner` among them; 0 = none. */
  standing(owner: Uint8Array | null): { readonly waiters: number; readonly position: number } {
    const place = owner === null ? null : this.find(owner);
    return { waiters: this.living, position: place === null ? 0 : this.positionOf(place) };
  }

  /** Of all places, the first one first. */
  waiters(): readonly Waiter[] {
    return [...this.places.values()].flatMap((place) => place.waiters);
  }

  /** 1 = next; 0 = it has no living request. */
  positionOf(sought: Place): number {
    let position = 0;
    for (const place of this.places.values()) {
      if (place.living > 0) position++;
      if (place === sought) return place.living > 0 ? position : 0;
    }
    return 0;
  }

  /** Of all places with a living request, by one walk: 1 = next. */
  positions(): ReadonlyMap<Place, number> {
    const found = new Map<Place, number>();
    for (const place of this.places.values())
      if (place.living > 0) found.set(place, found.size + 1);
    return found;
  }

  all(): IterableIterator<Place> {
    return this.places.values();
  }
}

/** The higher try; null: they are not of one acquire. */
function highest(one: Trial | null, other: Trial | null): Trial | null {
  if (one === null || other === null || one.waitId !== other.waitId) return null;
  return other.attempt > one.attempt ? other : one;
}
