/**
 * Who waits for which lock at which leader, written down from outside: what the checkers of waiting
 * hold the queues of the leaders against. A naive second version of the queue, which decides nothing.
 *
 * Invariants: 1. A place has the turn of its first request (Q7, Q8). 2. Where clocks apart can make
 * two of one moment, whether a place was still kept is open: such a place is never judged by.
 * 3. All times are true times.
 */

/** A place without a request is kept so long by the clock of its node (Q8, ms). */
const KEPT_MS = 2000;
/** By how much true time may differ from that: clocks, and turns that come late. */
const KEPT_SLACK_MS = 250;

export type SeenEnd = "granted" | "busy" | "aborted" | "moved" | "unknown" | "refused" | "failed";

export interface SeenRequest {
  readonly place: SeenPlace;
  readonly askedMs: number;
  /** It waits no more: cancelled, left or ended. */
  isGone: boolean;
  ends: number;
}

export interface SeenPlace {
  readonly queue: SeenQueue;
  readonly owner: string;
  readonly turn: number;
  /** Requests that wait. */
  living: number;
  /** Tries of it that are on their way: it stays until they are decided. */
  tries: number;
  /** Since when without a break it has had one. */
  livingMs: number;
  /** When the last request went, without its owner's wish; null: none did. */
  leftMs: number | null;
  /** It came back at a moment at which it may have lost its turn. */
  isOpen: boolean;
  /** It came back, and kept its turn. */
  hasReturned: boolean;
  isOut: boolean;
}

/** A stretch in which somebody waited for a lock at one leader without a break. */
export interface Stretch {
  readonly fromMs: number;
  toMs: number;
}

/** Of one lock, in the memory of one leader of one term. */
export class SeenQueue {
  /** The latest last. */
  readonly stretches: Stretch[] = [];
  private places = new Map<string, SeenPlace>();
  /** Owners that went for good; while a try of theirs is on its way, their place may be there yet. */
  private readonly former = new Set<string>();
  private turns = 0;

  /** `lock`: as histories name it. */
  constructor(
    readonly lock: string,
    readonly partition: number,
    readonly node: number,
    readonly term: number,
  ) {}

  get living(): number {
    let living = 0;
    for (const place of this.places.values()) if (place.living > 0) living++;
    return living;
  }

  find(owner: string): SeenPlace | null {
    return this.places.get(owner) ?? null;
  }

  asked(owner: string, atMs: number): SeenRequest {
    const place = this.takePlace(owner, atMs);
    if (place.living++ === 0) place.livingMs = atMs;
    this.note(atMs);
    return { place, askedMs: atMs, isGone: false, ends: 0 };
  }

  /** The owner stood at the leader before, behind those that were carried over before it (Q11). */
  carriedOver(owner: string, atMs: number): void {
    if (!this.places.has(owner)) this.add(owner, false).leftMs = atMs;
  }

  /** Who waits, in their order, as far as that is certain. */
  get standing(): readonly string[] {
    const places = [...this.places.values()].filter(({ living, isOpen }) => living > 0 && !isOpen);
    return places.sort((one, other) => one.turn - other.turn).map(({ owner }) => owner);
  }

  /** The request waits no more; `isKept`: its owner may come back. */
  gone(request: SeenRequest, isKept: boolean, atMs: number): void {
    if (request.isGone) return;
    request.isGone = true;
    const { place } = request;
    place.living--;
    if (place.living === 0) {
      place.leftMs = isKept ? atMs : null;
      if (!isKept) {
        this.former.add(place.owner);
        this.drop(place, atMs);
      }
    }
    this.note(atMs);
  }

  /** The place is granted the lock, or fails: its requests end soon, and wait no more. */
  drop(place: SeenPlace, atMs: number): void {
    if (place.isOut) return;
    place.isOut = true;
    if (this.places.get(place.owner) === place) this.places.delete(place.owner);
    this.note(atMs);
  }

  /** Whatever waits here waits no more. */
  reset(atMs: number): void {
    for (const place of this.places.values()) place.isOut = true;
    this.places = new Map();
    this.note(atMs);
  }

  /** Places with a request whose turn is before that of `place`, as far as that is certain. */
  before(place: SeenPlace): SeenPlace[] {
    if (place.isOpen) return [];
    return [...this.places.values()].filter(({ living, turn, isOpen }) => {
      return living > 0 && !isOpen && turn < place.turn;
    });
  }

  /** Older places that nobody asks for at present. */
  passedOver(place: SeenPlace): number {
    let passed = 0;
    for (const { living, turn } of this.places.values()) {
      if (living === 0 && turn < place.turn) passed++;
    }
    return passed;
  }

  private takePlace(owner: string, atMs: number): SeenPlace {
    const known = this.places.get(owner);
    if (known !== undefined) {
      if (known.living > 0) return known;
      const awayMs = atMs - (known.leftMs ?? -Infinity);
      if (awayMs < KEPT_MS - KEPT_SLACK_MS) {
        known.hasReturned = true;
        known.leftMs = null;
        return known;
      }
      if (known.tries > 0) {
        known.isOpen = true;
        return known;
      }
      this.drop(known, atMs);
      if (awayMs < KEPT_MS + KEPT_SLACK_MS) return this.add(owner, true);
    }
    return this.add(owner, this.former.has(owner));
  }

  private add(owner: string, isOpen: boolean): SeenPlace {
    const counts = { turn: this.turns++, living: 0, tries: 0, livingMs: 0, leftMs: null };
    const is = { isOpen, hasReturned: false, isOut: false };
    const place: SeenPlace = { queue: this, owner, ...counts, ...is };
    this.places.set(owner, place);
    return place;
  }

  private note(atMs: number): void {
    const last = this.stretches.at(-1);
    const isOpen = last?.toMs === Infinity;
    const isLiving = this.living > 0;
    if (isLiving && !isOpen) this.stretches.push({ fromMs: atMs, toMs: Infinity });
    if (!isLiving && isOpen) last.toMs = atMs;
  }
}
