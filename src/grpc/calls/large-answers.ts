/**
 * Large answers: counted while they wait for their client, encoded a few per turn.
 *
 * Owns the queue of what is to be encoded. Invariants: 1. A turn encodes at most
 * ENCODED_PER_TURN_BYTES, a single larger answer excepted. 2. What is counted is given back when
 * it was sent or its stream is gone, and a client that takes nothing for too long loses its stream.
 */
import { HTTP_SILENCE_MS } from "../../base/limits.js";
import type { UnsentBytes } from "../../base/unsent.js";
import type { Call } from "../h2/call.js";

/** Some 5 ms. */
const ENCODED_PER_TURN_BYTES = 8 * 1024 * 1024;

interface Ticket {
  readonly sizeBytes: number;
  readonly encode: () => void;
}

export class LargeAnswers {
  private queue: Ticket[] = [];
  private armed = false;

  constructor(readonly unsent: UnsentBytes) {}

  /** Has `encode` called in a later turn that has room for so many bytes. */
  encodeLater(sizeBytes: number, encode: () => void): void {
    this.queue.push({ sizeBytes, encode });
    if (this.armed) return;
    this.armed = true;
    setImmediate(this.round);
  }

  /**
   * Counts the answer of a call with one answer until its stream is gone. False: there is no room,
   * and the answer is not to be sent.
   */
  hold(call: Pick<Call, "cut" | "whenGone">, sizeBytes: number): boolean {
    const { unsent } = this;
    if (!unsent.admits(sizeBytes)) return false;
    unsent.take(sizeBytes);
    const timer = setTimeout(() => call.cut(), HTTP_SILENCE_MS);
    call.whenGone(() => {
      clearTimeout(timer);
      unsent.give(sizeBytes);
    });
    return true;
  }

  private readonly round = (): void => {
    let leftBytes = ENCODED_PER_TURN_BYTES;
    let done = 0;
    // What an encoding asks for joins the queue behind the others.
    for (; done < this.queue.length && leftBytes > 0; done++) {
      const { sizeBytes, encode } = this.queue[done] as Ticket;
      leftBytes -= sizeBytes;
      encode();
    }
    this.queue = this.queue.slice(done);
    this.armed = this.queue.length > 0;
    if (this.armed) setImmediate(this.round);
  };
}
