/**
 * Counts the bytes of answers that wait for clients to read them, over all front ends of a node
 * (contract 11).
 *
 * Invariants: 1. What is taken is given back once. 2. What `admits` lets in never brings the sum
 * over `maxBytes`.
 */
import { assert } from "./assert.js";
import { UNSENT_ANSWERS_MAX_BYTES } from "./limits.js";

export class UnsentBytes {
  private held = 0;

  constructor(readonly maxBytes = UNSENT_ANSWERS_MAX_BYTES) {}

  /** Bytes that wait now. */
  get bytes(): number {
    return this.held;
  }

  /** True when nothing more fits: new requests are refused as overload. */
  get isFull(): boolean {
    return this.held >= this.maxBytes;
  }

  /** True when so many more bytes fit. */
  admits(sizeBytes: number): boolean {
    return this.held + sizeBytes <= this.maxBytes;
  }

  take(sizeBytes: number): void {
    this.held += sizeBytes;
  }

  give(sizeBytes: number): void {
    this.held -= sizeBytes;
    assert(this.held >= 0, "what is given back was taken");
  }
}
