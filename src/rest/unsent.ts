/**
 * Bounds the answers that wait for clients to read them.
 *
 * Owns the sum of their sizes. May call base. Invariants: 1. Small answers are not counted:
 * connections and streams bound them. 2. Large ones together never exceed UNSENT_ANSWERS_MAX_BYTES;
 * what does not fit is refused as overload, which only reads can meet. 3. A client that takes too
 * long over a large answer loses it.
 */
import {
  HTTP_SILENCE_MS,
  LARGE_ANSWER_CHARACTERS,
  UNSENT_ANSWERS_MAX_BYTES,
} from "../base/limits.js";

/** The part of a response that tells when it is over. */
export interface Closing {
  once(event: "close", listener: () => void): unknown;
  destroy(): unknown;
}

export class UnsentAnswers {
  private size = 0;

  /** True when an answer of so many characters may be sent now. */
  admits(characters: number): boolean {
    return (
      characters < LARGE_ANSWER_CHARACTERS || this.size + characters <= UNSENT_ANSWERS_MAX_BYTES
    );
  }

  /** Counts an answer until its response is closed. */
  track(response: Closing, characters: number): void {
    if (characters < LARGE_ANSWER_CHARACTERS) return;
    this.size += characters;
    const timer = setTimeout(() => response.destroy(), HTTP_SILENCE_MS);
    response.once("close", () => {
      clearTimeout(timer);
      this.size -= characters;
    });
  }

  /** Characters counted now. */
  get waiting(): number {
    return this.size;
  }
}
