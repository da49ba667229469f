/**
 * The rows of one write to the state store, as the binding wants them, sealed and copied: its
 * thread reads them while the loop goes on.
 *
 * Invariants: 1. Rows keep the order of the changes. 2. All lie in one allocation: thousands of
 * small arrays would each be moved off the heap by the binding. 3. A value begins at a multiple of
 * ALIGNED_BYTES, so that the checksum reads whole words.
 */
import type lmdb from "node-lmdb";
import { assert } from "../../base/assert.js";
import { SEAL_BYTES, sealRow } from "./rowseal.js";
import { LMDB_KEY_MAX_BYTES } from "./storekeys.js";

export type TableName = "short" | "long";

/** One row to put, or to delete when `value` is null. */
export interface TableChange {
  readonly table: TableName;
  readonly key: Uint8Array;
  readonly value: Uint8Array | null;
}

const ALIGNED_BYTES = 4;

export class RowBatch {
  /** Those of the changes that were taken so far. */
  readonly rows: lmdb.BatchOperationArray[] = [];
  private readonly pool: Uint8Array;
  private usedBytes = 0;

  /** Throws AssertionError where a key is none that LMDB takes. */
  constructor(
    private readonly changes: readonly TableChange[],
    private readonly tables: Readonly<Record<TableName, lmdb.Dbi>>,
  ) {
    let total = 0;
    for (const { key, value } of changes) {
      assert(key.length > 0 && key.length <= LMDB_KEY_MAX_BYTES, "an LMDB key has 1 to 511 bytes");
      total += key.length + (value === null ? 0 : value.length + SEAL_BYTES + ALIGNED_BYTES);
    }
    this.pool = new Uint8Array(total);
  }

  get isWhole(): boolean {
    return this.rows.length === this.changes.length;
  }

  /** Takes the next `count` changes, or those that are left. */
  takeSome(count: number): void {
    const { rows, changes, tables } = this;
    const end = Math.min(changes.length, rows.length + count);
    for (let at = rows.length; at < end; at++) {
      const { table, key, value } = changes[at] as TableChange;
      const dbi = tables[table];
      if (value === null) rows.push([dbi, this.take(key)]);
      else rows.push([dbi, this.take(key), this.takeSealed(key, value)]);
    }
  }

  private take(bytes: Uint8Array): Buffer {
    const start = this.usedBytes;
    this.pool.set(bytes, start);
    this.usedBytes += bytes.length;
    return this.takenFrom(start);
  }

  private takeSealed(key: Uint8Array, value: Uint8Array): Buffer {
    const { pool } = this;
    const start = (this.usedBytes + ALIGNED_BYTES - 1) & -ALIGNED_BYTES;
    pool.set(value, start);
    this.usedBytes = start + value.length;
    sealRow(key, pool, start, this.usedBytes);
    this.usedBytes += SEAL_BYTES;
    return this.takenFrom(start);
  }

  /** The binding takes any byte array; its types say Buffer, which is dearer to make. */
  private takenFrom(start: number): Buffer {
    return new Uint8Array(this.pool.buffer, start, this.usedBytes - start) as Buffer;
  }
}
