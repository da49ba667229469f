/**
 * Which lives of a peer have asked this node, and which of them may have lost an answer.
 *
 * Invariants: 1. A farewell is made only for a life to which every answer arrives that left: none
 * of its calls was carried out without its knowing. A link that was down here may have taken
 * answers with it, though the peer, whose own link it is not, noticed nothing. 2. What is kept is
 * bounded.
 */
import { farewell } from "../wire/frames.js";

/** Of lives before so many others nothing can be on its way any more. */
const LOST_EPOCHS_MAX = 16;

export class HeardCalls {
  /** Of the last call that came; 0: none. */
  private epoch = 0;
  private lastId = 0;
  /** Of calls since the link was last lost. */
  private readonly heard = new Set<number>();
  private readonly lost = new Set<number>();

  /** Calls of the peer's life `epoch` came, `lastId` the last of them. */
  came(epoch: number, lastId: number): void {
    this.epoch = epoch;
    this.lastId = lastId;
    this.heard.add(epoch);
  }

  /** Answers to calls that came may never arrive. */
  mayHaveLost(): void {
    for (const epoch of this.heard) {
      this.lost.delete(epoch);
      this.lost.add(epoch);
    }
    this.heard.clear();
    for (const oldest of this.lost) {
      if (this.lost.size <= LOST_EPOCHS_MAX) break;
      this.lost.delete(oldest);
    }
  }

  /** The frame that says that nothing but what was answered was taken; null: that is not known. */
  get farewell(): Uint8Array | null {
    return this.lost.has(this.epoch) ? null : farewell(this.epoch, this.lastId);
  }
}
