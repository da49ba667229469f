/**
 * The guarded LMDB environment: the only caller of node-lmdb, which crashes the process when
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
import { RowBatch, type TableChange, type TableName } from "./row-batch.js";
import { openRow } from "./rowseal.js";
import { LMDB_KEY_MAX_BYTES } from "./storekeys.js";

/**
 * "full": map or disk; nothing was written. "failed": anything else; the environment is doubtful.
 */
export type LmdbWriteCode = "full" | "failed";

const KEYS = { keyIsBuffer: true } as const;
/**
 * Of pages of files, those of the program included. The system keeps them in its cache all the
 * same: one that is read again costs a fault, and no read of the disk.
 */
const MAPPED_MAX_BYTES = 128 * 2 ** 20;
/** Between two looks for that in turns that only read: a look costs what some reads cost (ms). */
const LOOK_EVERY_MS = 250;
/** Rows that are made ready in one turn: a flush of 2000 rows stopped the loop for 3 ms by that. */
const SLICE_ROWS = 512;
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

  /**
   * Writes all changes in one durable transaction on the thread pool. Many rows are made ready in
   * slices, each a turn of its own: `changes` stays as it is until `done`.
   */
  write(
    changes: readonly TableChange[],
    done: (result: Result<null, LmdbWriteCode>) => void,
  ): void {
    assert(this.open && !this.writing, "one write at a time, on an open store");
    const batch = new RowBatch(changes, this.tables);
    this.writing = true;
    const goOn = (): void => {
      batch.takeSome(SLICE_ROWS);
      if (batch.isWhole) this.hand(batch.rows, changes, done);
      else this.timers.after(0, goOn);
    };
    goOn();
  }

  private hand(
    rows: lmdb.BatchOperationArray[],
    changes: readonly TableChange[],
    done: (result: Result<null, LmdbWriteCode>) => void,
  ): void {
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
