/**
 * The rows of a restore on their way to a state store, with bounded memory.
 *
 * Owns the memtable. Invariants: 1. One flush is under way at a time, and nothing is written to the
 * memtable meanwhile. 2. A full disk ends the restore.
 */
import { failure, ok } from "../../base/result.js";
import { Memtable } from "../../machine/store/memtable.js";
import type { EntrySorter } from "../../machine/store/row-table.js";
import type { StorePort } from "../../ports.js";
import type { RestoreDone } from "./restore-faults.js";

/** Rows in memory beyond which they are flushed (bytes). */
const HELD_BYTES_MAX = 16 * 1024 * 1024;
/** Rows of the store that are kept in memory (bytes). */
const CACHE_BYTES = 8 * 1024 * 1024;

export class RowFlush {
  readonly memtable: Memtable;

  constructor(
    private readonly store: StorePort,
    sorter: EntrySorter | undefined,
    private readonly heldBytesMax = HELD_BYTES_MAX,
  ) {
    // What is taken from the buffer of a file must not keep all of the buffer.
    const options = { store, cacheBytes: CACHE_BYTES, copiesValues: true };
    this.memtable = new Memtable(sorter === undefined ? options : { ...options, sorter });
  }

  get isDue(): boolean {
    return this.memtable.sizeBytes > this.heldBytesMax;
  }

  /** Makes everything durable that is in the memtable. */
  flush(done: RestoreDone<null>): void {
    const { changes } = this.memtable.freeze();
    this.store.write(changes, (written) => {
      if (!written.ok)
        return done(failure("IoError", `The state store is full: ${written.message}`));
      this.memtable.dropImmutable();
      done(ok(null));
    });
  }

  close(done: () => void): void {
    this.store.close(done);
  }
}
