/**
 * Bounds the answers that wait for clients to read them.
 *
 * Invariants: 1. Small answers are not counted: connections and streams bound them.
 * 2. Large ones, those of the other front end included, never exceed the node's count; what does
 * not fit is refused as overload, which only reads can meet. 3. A client that takes too long over a
 * large answer loses it.
 */
import { HTTP_SILENCE_MS, LARGE_ANSWER_CHARACTERS } from "../../base/limits.js";
import type { UnsentBytes } from "../../base/unsent.js";

/** The part of a response that tells when it is over. */
export interface Closing {
  once(event: "close", listener: () => void): unknown;
  destroy(): unknown;
}

export class UnsentAnswers {
  constructor(readonly count: UnsentBytes) {}

  /** True when so much waits that nothing new is to be begun. */
  get isFull(): boolean {
    return this.count.isFull;
  }

  /** True when an answer of so many characters may be sent now. */
  admits(characters: number): boolean {
    return characters < LARGE_ANSWER_CHARACTERS || this.count.admits(characters);
  }

  /** Counts an answer until its response is closed. */
  track(response: Closing, characters: number): void {
    if (characters < LARGE_ANSWER_CHARACTERS) return;
    this.count.take(characters);
    const timer = setTimeout(() => response.destroy(), HTTP_SILENCE_MS);
    response.once("close", () => {
      clearTimeout(timer);
      this.count.give(characters);
    });
  }
}
