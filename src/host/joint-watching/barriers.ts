/**
 * How far all parts of a joint watch have come, and whether they go by one map (W4, W9).
 *
 * Owns the numbers of its barriers. Invariants: 1. A barrier is passed where all parts came to it,
 * and their nodes and this one went by one map then: by another one, keys that moved may be of no
 * part. 2. What is asked for while one is under way is told with the next one. 3. One that was
 * passed stays passed.
 */
import { WatchKind } from "../../base/result-types.js";
import type { AskedPart } from "./asked-part.js";

/** Until it is looked again whether all go by one map (ms). */
const MAP_AGAIN_MS = 20;

export interface BarrierHome {
  readonly request: { readonly kind: number };
  readonly parts: ReadonlySet<AskedPart>;
  /** Every partition has a part, and all of them are told. */
  readonly isStanding: boolean;
  /** Sees to it that every partition has a part, by the map of now. */
  cut(): void;
  pump(): void;
  /** `callback` is not called where the watch is over. */
  after(delayMs: number, callback: () => void): void;
}

export class Barriers {
  /** The one that parts were asked for last; 0: none. */
  last = 0;
  /** Of the map that the watch was cut by. */
  mapVersion = -1;
  private wanted = 0;
  private passed = 0;
  /** One more is wanted when all have said that they came to the last one. */
  private isDue = false;
  private isLookDue = false;

  constructor(private readonly home: BarrierHome) {}

  /** Asks for one; returns its number, for `hasPassed`. */
  ask(): number {
    // One that is under way began before.
    if (this.cameTo < this.last) this.isDue = true;
    else this.raise();
    this.wanted = this.isDue ? this.last + 1 : this.last;
    return this.wanted;
  }

  /** All was told that was answered to anybody before it was asked for. */
  hasPassed(barrier: number): boolean {
    return this.passed >= barrier;
  }

  raise(): void {
    this.last++;
    this.isDue = false;
    for (const part of this.home.parts) part.sync(this.last);
  }

  /** Parts may have come to the last one. */
  look(): void {
    const { cameTo } = this;
    if (this.isOneMap) this.passed = Math.max(this.passed, cameTo);
    if (cameTo < this.last) return;
    if (this.isDue) this.raise();
    else if (this.passed < this.wanted) this.lookAgain();
  }

  /** In a while it is seen to it that all go by the map of then. */
  lookAgain(): void {
    if (this.isLookDue) return;
    this.isLookDue = true;
    this.home.after(MAP_AGAIN_MS, () => {
      this.isLookDue = false;
      this.home.cut();
      if (this.passed < this.wanted && this.cameTo >= this.last) this.raise();
      this.home.pump();
    });
  }

  /** All parts were created, or came to their last barrier, by one map. */
  get isOneMap(): boolean {
    const { request, parts } = this.home;
    // Locks and sequences do not move.
    if (request.kind > WatchKind.bucket) return true;
    return [...parts].every(({ mapVersion }) => mapVersion === this.mapVersion);
  }

  /** Up to which one all parts have said that they came to it; -1: none. */
  private get cameTo(): number {
    if (!this.home.isStanding) return -1;
    return Math.min(...[...this.home.parts].map(({ syncedTo }) => syncedTo));
  }
}
