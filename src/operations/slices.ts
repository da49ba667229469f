/**
 * What reads that go on over several turns may hold together.
 *
 * Owns nothing but its counts. Invariant: what a read holds is given back when it closes, on every
 * path.
 */

/** Reads that may be between two slices at a time, and what they may hold together (bytes). */
const SLICED_READS_MAX = 256;
const SLICED_BYTES_MAX = 256 * 1024 * 1024;

/** The reads of a node between two slices, and the bytes that they hold. */
export interface SlicedReads {
  reads: number;
  bytes: number;
}

/** What one read between two slices holds of that. */
export class SlicedShare {
  private isOpen = false;
  private heldBytes = 0;

  constructor(private readonly sliced: SlicedReads) {}

  /** Holds `totalBytes` from now on; false when there is no room, and nothing has changed. */
  hold(totalBytes: number): boolean {
    const { sliced } = this;
    if (!this.isOpen && sliced.reads >= SLICED_READS_MAX) return false;
    if (sliced.bytes - this.heldBytes + totalBytes > SLICED_BYTES_MAX) return false;
    if (!this.isOpen) sliced.reads++;
    this.isOpen = true;
    sliced.bytes += totalBytes - this.heldBytes;
    this.heldBytes = totalBytes;
    return true;
  }

  close(): void {
    const { sliced } = this;
    if (this.isOpen) sliced.reads--;
    sliced.bytes -= this.heldBytes;
    this.isOpen = false;
    this.heldBytes = 0;
  }
}
