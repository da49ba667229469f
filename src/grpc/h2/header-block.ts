/**
 * The header block of a request: one frame, or one and its continuations.
 *
 * Owns the parts of a block that is not complete. Invariants: 1. Between the parts nothing else may
 * come. 2. A block has a bound in bytes and in frames, whatever it holds.
 */
import { HEADER_BLOCK_MAX_BYTES } from "../../base/limits.js";

/** Parts of a block of the largest size that are not tiny (frames). */
const PARTS_MAX = 32;

export class HeaderBlock {
  /** Stream of the block that goes on; 0 = none does. */
  stream = 0;
  endsStream = false;
  private parts: Buffer[] = [];
  private sizeBytes = 0;

  begin(stream: number, endsStream: boolean): void {
    this.stream = stream;
    this.endsStream = endsStream;
  }

  /** Adds a part; false: the block is larger than permitted. */
  add(bytes: Buffer, start: number, end: number): boolean {
    this.sizeBytes += end - start;
    if (this.sizeBytes > HEADER_BLOCK_MAX_BYTES || this.parts.length === PARTS_MAX) return false;
    this.parts.push(Buffer.from(bytes.subarray(start, end)));
    return true;
  }

  /** The whole block. */
  take(): Buffer {
    const whole = Buffer.concat(this.parts);
    this.parts = [];
    this.sizeBytes = 0;
    this.stream = 0;
    return whole;
  }
}
