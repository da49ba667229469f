/**
 * Memory for the bytes of small rows: carved from slabs, because an allocation of its own for every row costs more than
 * the row's whole decision.
 *
 * Owns the slab in use. Invariants: 1. Bytes handed out are never handed out again: a slab goes when no row views it.
 * 2. A row above LARGE_BYTES has memory of its own. 3. A live row pins its slab, so the owner of a table counts what was
 * written, not what is live, and copies rows that are to stay for long.
 */
import type { ByteWriter } from "../base/codec.js";

const SLAB_BYTES = 64 * 1024;
const LARGE_BYTES = 4 * 1024;

let slab = new ArrayBuffer(SLAB_BYTES);
let used = 0;

/** A row of what `writer` has written. */
export function finishRow(writer: ByteWriter): Uint8Array {
  const size = writer.sizeBytes;
  if (size > LARGE_BYTES) return writer.finish();
  if (used + size > SLAB_BYTES) {
    slab = new ArrayBuffer(SLAB_BYTES);
    used = 0;
  }
  const row = new Uint8Array(slab, used, size);
  used += size;
  writer.copyTo(row);
  return row;
}
