/**
 * A row where it lies in the bytes of a chunk, so that rows are looked at without being copied.
 *
 * Invariants: 1. There is one for all rows of a chunk: what it shows is valid until the visitor of
 * the row returns. 2. What it hands out is a view, or a key of its own.
 */
import { type ByteKey, toByteKey } from "../store/keys.js";

export class ChunkRow {
  readonly view: DataView;
  kind = 0;
  /** Name and value, each from its first byte to behind its last. */
  nameAt = 0;
  nameEnd = 0;
  valueAt = 0;
  valueEnd = 0;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get name(): Uint8Array {
    return this.bytes.subarray(this.nameAt, this.nameEnd);
  }

  get nameKey(): ByteKey {
    return toByteKey(this.name);
  }

  get value(): Uint8Array {
    return this.bytes.subarray(this.valueAt, this.valueEnd);
  }

  get sizeBytes(): number {
    return this.nameEnd - this.nameAt + (this.valueEnd - this.valueAt);
  }
}
