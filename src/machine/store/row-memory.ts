/**
 * Memory for the bytes of small rows: carved from slabs, because an allocation of its own for every
 * row costs more than the row's whole decision.
 *
 * Invariants: 1. Bytes handed out are never handed out again: a slab goes when no row views it. 2.
 * A row above LARGE_BYTES has memory of its own. 3. A live row pins its slab: rows that stay are
 * copied to slabs of rows that stay.
 */
import type { ByteWriter } from "../../base/codec.js";

const SLAB_BYTES = 64 * 1024;
const LARGE_BYTES = 4 * 1024;

export class RowSlabs {
  private slab: ArrayBuffer | null = null;
  private used = SLAB_BYTES;

  private take(size: number): Uint8Array {
    if (this.slab === null || this.used + size > SLAB_BYTES) {
      this.slab = new ArrayBuffer(SLAB_BYTES);
      this.used = 0;
    }
    const row = new Uint8Array(this.slab, this.used, size);
    this.used += size;
    return row;
  }

  /** A row of what `writer` has written. */
  finish(writer: ByteWriter): Uint8Array {
    const size = writer.sizeBytes;
    if (size > LARGE_BYTES) return writer.finish();
    const row = this.take(size);
    writer.copyTo(row);
    return row;
  }

  copy(bytes: Uint8Array): Uint8Array {
    if (bytes.length > LARGE_BYTES) return bytes.slice();
    const row = this.take(bytes.length);
    row.set(bytes);
    return row;
  }
}

/** Slabs of rows just written, most of which are soon written again or flushed. */
const written = new RowSlabs();

export function finishRow(writer: ByteWriter): Uint8Array {
  return written.finish(writer);
}
