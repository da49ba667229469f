/**
 * Which rows there are of a group, in three numbers that do not depend on the order in which rows
 * come and go: so rows can be counted as they are written, and again as they are read back.
 *
 * Invariants: 1. A row that was added and taken away again leaves nothing behind. 2. Against
 * accident, not against an adversary.
 */
import { PRIME_1, rotate, xxh32, xxh32Of } from "../../base/xxhash.js";
import { keyHash, keyHashOf } from "./digest.js";
import type { ByteKey } from "./keys.js";

export class RowSums {
  private rows = 0;
  private low = 0;
  private high = 0;

  /** A row as a scan shows it. */
  add(kind: number, name: ByteKey, value: Uint8Array): void {
    const key = keyHash(kind, name);
    this.change(1, key, xxh32(value, key));
  }

  /** A row whose name lies in `bytes` from `at` to `end`; `count`: 1, or -1 to take it away. */
  count(
    count: 1 | -1,
    kind: number,
    bytes: Uint8Array,
    at: number,
    end: number,
    value: Uint8Array,
  ): void {
    const key = keyHashOf(kind, bytes, at, end);
    this.change(count, key, xxh32(value, key));
  }

  /** A row that lies in a chunk. */
  addPlaced(row: PlacedRow): void {
    const key = keyHashOf(row.kind, row.bytes, row.nameAt, row.nameEnd);
    this.change(1, key, xxh32Of(row.view, key, row.valueAt, row.valueEnd));
  }

  private change(count: 1 | -1, key: number, value: number): void {
    this.rows += count;
    this.low = (this.low + count * (value | 0)) | 0;
    this.high = (this.high + count * Math.imul(rotate(value | 0, 13) ^ key, PRIME_1)) | 0;
  }

  toString(): string {
    const hex = (value: number): string => (value >>> 0).toString(16).padStart(8, "0");
    return `${this.rows} rows ${hex(this.high)}${hex(this.low)}`;
  }
}

/** Where a row lies, as `ChunkRow` tells it. */
export interface PlacedRow {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly kind: number;
  readonly nameAt: number;
  readonly nameEnd: number;
  readonly valueAt: number;
  readonly valueEnd: number;
}
