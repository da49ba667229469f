/**
 * How many reads of one batch stream may be in flight: as many as their answers leave room for.
 *
 * Owns what is reserved. Invariants: 1. A read reserves what its answer is expected to take: at
 * first the worst of its kind, then what the stream's answers were like, so that small values are
 * read in any number and large ones a few at a time. 2. One read is always let through when
 * nothing is reserved.
 */
import type { AnswerExtent } from "../calls/answer-size.js";

/** Answers of a stream that are expected, or wait for its peer, together (bytes). */
const AHEAD_MAX_BYTES = 8 * 1024 * 1024;
/** Expected at first (bytes). */
const FIRST_VALUE_BYTES = 1024 * 1024;
const FIRST_LIST_BYTES = 4 * 1024 * 1024;
/** A smaller answer lowers the expectation by this part of the difference. */
const FALL = 8;

export class ReadAhead {
  private reservedBytes = 0;
  private valueBytes = FIRST_VALUE_BYTES;
  private listBytes = FIRST_LIST_BYTES;

  /** What a request whose answer has `extent` reserves (bytes). */
  expectedBytes(extent: AnswerExtent): number {
    if (extent === "small") return 0;
    return extent === "value" ? this.valueBytes : this.listBytes;
  }

  /** Whether a request that reserves so much may begin while `waitingBytes` wait for the peer. */
  admits(sizeBytes: number, waitingBytes: number): boolean {
    if (sizeBytes === 0 || this.reservedBytes === 0) return true;
    return this.reservedBytes + sizeBytes + waitingBytes <= AHEAD_MAX_BYTES;
  }

  reserve(sizeBytes: number): void {
    this.reservedBytes += sizeBytes;
  }

  /** Ends a reservation: the answer took `actualBytes`. */
  settle(extent: AnswerExtent, sizeBytes: number, actualBytes: number): void {
    if (extent === "small") return;
    this.reservedBytes -= sizeBytes;
    if (extent === "value") this.valueBytes = learned(this.valueBytes, actualBytes);
    else this.listBytes = learned(this.listBytes, actualBytes);
  }
}

/** Up at once, down slowly. At least one byte, so that every read counts. */
function learned(expected: number, actual: number): number {
  if (actual >= expected) return actual;
  return Math.max(1, Math.floor(expected - (expected - actual) / FALL));
}
