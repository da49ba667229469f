/**
 * Frames that a link sent, kept so that some can come a second time, late and out of their order.
 *
 * Invariants: 1. Only the last ones are kept. 2. A call is none of them: the second time it is another call, and may
 * well be carried out.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { PeerLane } from "../../../src/ports.js";

const KEPT_MAX = 256;
/** Frames that come again together, at most. */
const RUN_MAX = 4;

export interface SentFrame {
  readonly lane: PeerLane;
  readonly bytes: Uint8Array;
}

export class SentFrames {
  private readonly frames: SentFrame[] = [];

  keep(lane: PeerLane, bytes: Uint8Array): void {
    if (lane === "calls") return;
    this.frames.push({ lane, bytes });
    if (this.frames.length > KEPT_MAX) this.frames.shift();
  }

  /** The last one that was sent on `lane`; null: none is kept. */
  lastOf(lane: PeerLane): Uint8Array | null {
    return this.frames.filter((frame) => frame.lane === lane).at(-1)?.bytes ?? null;
  }

  /** Some that were sent one after the other. */
  draw(prng: Prng): readonly SentFrame[] {
    const first = prng.below(this.frames.length + 1);
    return this.frames.slice(first, first + 1 + prng.below(RUN_MAX));
  }
}
