/**
 * What rows with heirs say, of those that were written not long ago: a lock that changes hands
 * thousands of times a second is read again with every command, and reading costs more than all
 * that is decided about it.
 *
 * Invariants: 1. A row is known by its bytes as an object: who has the same object has the same
 * row, whatever group or node it is of. 2. The number of rows is bounded, and nothing that is kept
 * of them is a view on an entry or a request.
 */

/** Locks that change hands at a time. */
const KEPT = 64;

export class RecentRows<Row> {
  private readonly bytes: (Uint8Array | null)[] = new Array<null>(KEPT).fill(null);
  private readonly rows: (Row | null)[] = new Array<null>(KEPT).fill(null);
  private last = 0;

  /** Null: it is not known. */
  find(bytes: Uint8Array): Row | null {
    const { last } = this;
    for (let back = 0; back < KEPT; back++) {
      const at = (last - back) & (KEPT - 1);
      if (this.bytes[at] === bytes) return this.rows[at] as Row;
    }
    return null;
  }

  /** `row`: what is read from `bytes`; changed by nobody. */
  note(bytes: Uint8Array, row: Row): void {
    this.last = (this.last + 1) & (KEPT - 1);
    this.bytes[this.last] = bytes;
    this.rows[this.last] = row;
  }
}
