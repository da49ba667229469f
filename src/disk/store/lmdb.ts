/**
 * The guarded LMDB environment: the only importer of node-lmdb, which crashes the process when
 * misused.
 *
 * Owns one environment, its two tables and one read transaction.
 *
 * Invariants: 1. State is checked before every native call; one environment per path and
 * process. 2. Keys and values are byte arrays of legal length; what is read is a copy. 3. Writes
 * go through batchWrite only: one transaction, fully durable, off the event loop, one at a time.
 * 4. The read transaction lives until the end of the turn at most (P-123), and is gone before
 * the map is resized or made anew. 5. No unsynced mode and no writable map (P-118). 6. Every
 * value is stored with a checksum and comes out only when it fits (P-130). 7. Pages of the file
 * that are resident because somebody read them are given back between writes, when they are more
 * than MAPPED_MAX_BYTES.
 */
import lmdb from "node-lmdb";
import { assert, present } from "../../base/assert.js";
import { type Result, failure, ok } from "../../base/result.js";
import type { TimerPort } from "../../ports.js";
import { residentFileBytes } from "./resident.js";
import { SEAL_BYTES, openRow, sealRow } from "./rowseal.js";
import { LMDB_KEY_MAX_BYTES } from "./storekeys.js";

export type TableName = "short" | "long";

/** One row to put, or to delete when `value` is null. */
export interface TableChange {
  readonly table: TableName;
  readonly key: Uint8Array;
  readonly value: Uint8Array | null;
}

/**
 * "full": map or disk; nothing was written. "failed": anything else; the environment is doubtful.
 */
export type LmdbWriteCode = "full" | "failed";

const KEYS = { keyIsBuffer: true } as const;
const ALIGNED_BYTES = 4;
/**
 * Of pages of files, those of the program included. The system keeps them in its cache all the
 * same: one that is read again costs a fault, and no read of the disk.
 */
const MAPPED_MAX_BYTES = 128 * 2 ** 20;
/** Between two looks for that in turns that only read: a look costs what some reads cost (ms). */
const LOOK_EVERY_MS = 250;
/** Result codes of batchWrite per row. */
const DONE = 0;
const MISSING = 2;

export class LmdbEnvironment {
  private readonly env = new lmdb.Env();
  private readonly tables: Record<TableName, lmdb.Dbi>;
  private open = true;
  private writing = false;
  private reading: lmdb.Txn | null = null;
  /** The read transaction holds a snapshot now. */
  private fresh = false;
  /** Since when it holds it. */
  private freshSinceMs = 0;
  private mapBytes: number;
  private lookedMs = -Infinity;
  /** How often the file was mapped anew, to give its pages back. */
  remaps = 0;
  private readonly pageBytes: number;

  /**
   * Opens or creates. Throws what LMDB says. `mapBytes`: address space, a multiple of the page
   * size.
   */
  constructor(
    path: string,
    mapBytes: number,
    private readonly timers: TimerPort,
    private readonly mapped: () => number = residentFileBytes,
  ) {
    assert(path.length > 0 && Number.isSafeInteger(mapBytes), "an environment has path and size");
    this.mapBytes = mapBytes;
    this.env.open({ path, mapSize: mapBytes, maxDbs: 2, maxReaders: 16, noReadAhead: false });
    const table = (name: TableName): lmdb.Dbi => this.env.openDbi({ name, create: true, ...KEYS });
    this.tables = { short: table("short"), long: table("long") };
    this.pageBytes = this.env.stat().pageSize;
  }

  get mapSizeBytes(): number {
    return this.mapBytes;
  }

  /** Bytes of the file up to its last used page. */
  sizeBytes(): number {
    assert(this.open, "the store is open");
    return (this.env.info().lastPageNumber + 1) * this.pageBytes;
  }

  /** Bytes of the pages that hold rows. */
  usedBytes(): number {
    let pages = 0;
    const transaction = this.snapshot();
    for (const table of Object.values(this.tables)) {
      const stat = table.stat(transaction) as lmdb.Stat & { readonly overflowPages: number };
      pages += stat.treeBranchPageCount + stat.treeLeafPageCount + stat.overflowPages;
    }
    return pages * this.pageBytes;
  }

  /** For so long the snapshot is held that is held now (ms); 0 without one. */
  readAgeMs(): number {
    return this.fresh ? performance.now() - this.freshSinceMs : 0;
  }

  /** "damaged": what is stored is not what was written. */
  get(table: TableName, key: Uint8Array): Uint8Array | "damaged" | null {
    assert(key.length > 0 && key.length <= LMDB_KEY_MAX_BYTES, "an LMDB key has 1 to 511 bytes");
    const value = this.snapshot().getBinary(this.tables[table], asBuffer(key), KEYS);
    return value === null ? null : (openRow(key, value) ?? "damaged");
  }

  /**
   * Visits the rows from `first` on in order until `visit` returns false. `visit` may not write.
   * `value` reads the value of the row; null: it is damaged.
   */
  scan(
    table: TableName,
    first: Uint8Array,
    visit: (key: Uint8Array, value: () => Uint8Array | null) => boolean,
  ): void {
    assert(first.length <= LMDB_KEY_MAX_BYTES, "an LMDB key has 1 to 511 bytes");
    const cursor = new lmdb.Cursor<Buffer>(this.snapshot(), this.tables[table], KEYS);
    try {
      let key =
        first.length === 0 ? cursor.goToFirst(KEYS) : cursor.goToRange(asBuffer(first), KEYS);
      const value = (): Uint8Array | null => {
        const stored = present(cursor.getCurrentBinary(), "a cursor stands on a row");
        return openRow(present(key, "a cursor stands on a row"), stored);
      };
      while (key !== null) {
        if (!visit(plain(key), value)) return;
        key = cursor.goToNext(KEYS);
      }
    } finally {
      cursor.close();
    }
  }

  /** Writes all changes in one durable transaction on the thread pool. */
  write(
    changes: readonly TableChange[],
    done: (result: Result<null, LmdbWriteCode>) => void,
  ): void {
    assert(this.open && !this.writing, "one write at a time, on an open store");
    const rows = this.batchOf(changes);
    this.writing = true;
    this.env.batchWrite(rows, KEYS, (error: Error | null, results: readonly number[]) => {
      this.writing = false;
      // What was written must be seen from here on.
      this.release();
      this.relieve();
      if (error !== null && error !== undefined) return done(writeFailure(error.message));
      for (const [at, code] of results.entries()) {
        const missing = code === MISSING && changes[at]?.value === null;
        // The rest was committed all the same: the transaction was not what it should be.
        if (code !== DONE && !missing) return done(writeFailure(`row result ${String(code)}`));
      }
      done(ok(null));
    });
  }

  /** The rows as the binding wants them, copied: its thread reads them while the loop goes on. */
  private batchOf(changes: readonly TableChange[]): lmdb.BatchOperationArray[] {
    let total = 0;
    for (const { key, value } of changes) {
      assert(key.length > 0 && key.length <= LMDB_KEY_MAX_BYTES, "an LMDB key has 1 to 511 bytes");
      total += key.length + (value === null ? 0 : value.length + SEAL_BYTES + ALIGNED_BYTES);
    }
    // One allocation: thousands of small arrays would each be moved off the heap by the binding.
    const pool = new Uint8Array(total);
    let at = 0;
    const taken = (start: number): Buffer =>
      asBuffer(new Uint8Array(pool.buffer, start, at - start));
    const take = (bytes: Uint8Array): Buffer => {
      const start = at;
      pool.set(bytes, start);
      at += bytes.length;
      return taken(start);
    };
    const takeSealed = (key: Uint8Array, value: Uint8Array): Buffer => {
      // Aligned, so that the checksum reads whole words.
      at = (at + ALIGNED_BYTES - 1) & -ALIGNED_BYTES;
      const start = at;
      pool.set(value, start);
      at += value.length;
      sealRow(key, pool, start, at);
      at += SEAL_BYTES;
      return taken(start);
    };
    return changes.map(({ table, key, value }) => {
      const dbi = this.tables[table];
      return value === null ? [dbi, take(key)] : [dbi, take(key), takeSealed(key, value)];
    });
  }

  /** Enlarges the map. */
  grow(mapBytes: number): void {
    assert(this.open && !this.writing, "the map grows between writes");
    assert(mapBytes > this.mapBytes, "the map grows only");
    this.endReading();
    this.env.resize(mapBytes);
    this.mapBytes = mapBytes;
  }

  /** Maps the file anew where too much of it is resident: none of its pages is then. */
  private relieve(): void {
    if (!this.open || this.writing) return;
    this.lookedMs = performance.now();
    if (this.mapped() <= MAPPED_MAX_BYTES) return;
    this.endReading();
    this.env.resize(this.mapBytes);
    this.remaps++;
  }

  /** Only between writes. */
  close(): void {
    assert(this.open && !this.writing, "the store is closed once, between writes");
    this.endReading();
    this.open = false;
    this.env.close();
  }

  /** A read transaction on the newest durable state, shared by all reads of this turn. */
  private snapshot(): lmdb.Txn {
    assert(this.open, "the store is open");
    if (this.reading !== null && this.fresh) return this.reading;
    if (this.reading === null) this.reading = this.env.beginTxn({ readOnly: true });
    else this.reading.renew();
    this.fresh = true;
    this.freshSinceMs = performance.now();
    this.timers.soon(() => {
      this.release();
      if (performance.now() >= this.lookedMs + LOOK_EVERY_MS) this.relieve();
    });
    return this.reading;
  }

  private release(): void {
    if (this.reading === null || !this.fresh) return;
    this.reading.reset();
    this.fresh = false;
  }

  private endReading(): void {
    if (this.reading !== null) this.reading.abort();
    this.reading = null;
    this.fresh = false;
  }
}

function writeFailure(message: string): Result<null, LmdbWriteCode> {
  const full = message.includes("MDB_MAP_FULL") || message.includes("No space left");
  const code = full || message.includes("quota exceeded") ? "full" : "failed";
  return failure(code, `the state store was not written: ${message}`);
}

/** The binding takes any byte array; its types say Buffer, which is dearer to make. */
function asBuffer(bytes: Uint8Array): Buffer {
  return bytes as Buffer;
}

/** Without the Buffer's own meaning of slice, which does not copy. */
function plain(bytes: Buffer): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
