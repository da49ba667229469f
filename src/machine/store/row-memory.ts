/**
 * Memory for the bytes of rows: slabs, because an allocation of its own for every row costs more
 * than the row's whole decision.
 *
 * Invariants: 1. A live row pins its slab: rows that stay are copied to slabs of rows that stay.
 */
import { ByteSlabs } from "../../base/byte-slabs.js";
import type { ByteWriter } from "../../base/codec.js";

const SLAB_BYTES = 64 * 1024;
const LARGE_BYTES = 4 * 1024;

/** Slabs for rows that stay, or go, together. */
export function rowSlabs(): ByteSlabs {
  return new ByteSlabs(SLAB_BYTES, LARGE_BYTES);
}

/** Slabs of rows just written, most of which are soon written again or flushed. */
const written = rowSlabs();

/** A row of what `writer` has written. */
export function finishRow(writer: ByteWriter): Uint8Array {
  const row = written.take(writer.sizeBytes);
  writer.copyTo(row);
  return row;
}
