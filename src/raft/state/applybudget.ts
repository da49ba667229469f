/**
 * The bytes of committed entries that were handed out for applying and are not acknowledged: when
 * to hand out more.
 *
 * Invariants:
 * 1. Bytes are given back exactly once, by the first acknowledgement at or behind the last entry of
 *    their batch.
 * 2. After a batch that was cut short nothing is handed out until an acknowledgement arrives.
 */
import { assert } from "../../base/assert.js";
import type { LogIndex } from "./types.js";

export class ApplyBudget {
  private readonly maxBytes: number;
  /** Last index and bytes of each outstanding batch, two numbers each, in order. */
  private batches: number[] = [];
  private outstandingBytes = 0;
  private exhausted = false;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  get paused(): boolean {
    return this.exhausted;
  }

  get freeBytes(): number {
    return this.maxBytes - this.outstandingBytes;
  }

  handOut(last: LogIndex, bytes: number, cutShort: boolean): void {
    this.batches.push(last, bytes);
    this.outstandingBytes += bytes;
    this.exhausted = this.outstandingBytes >= this.maxBytes || cutShort;
  }

  /** Everything up to `index` is applied, or covered by a state snapshot that is installed. */
  acknowledge(index: LogIndex): void {
    let done = 0;
    while (done < this.batches.length && (this.batches[done] as number) <= index) {
      this.outstandingBytes -= this.batches[done + 1] as number;
      done += 2;
    }
    if (done === this.batches.length) this.batches.length = 0;
    else if (done > 0) this.batches.splice(0, done);
    assert(this.batches.length > 0 || this.outstandingBytes === 0, "bytes are given back once");
    this.exhausted = this.outstandingBytes >= this.maxBytes;
  }
}
