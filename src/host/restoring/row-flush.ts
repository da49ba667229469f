/**
 * The rows of a restore on their way to a state store, with bounded memory: those of images
 * straight into it, those of logs through a table of changes.
 *
 * Owns the memtable. Invariants: 1. One write is under way at a time; rows of an image may come
 * meanwhile, and nothing else. 2. A full disk ends the restore. 3. Rows of an image come in order,
 * into a generation that nobody reads before `flush` has ended. 4. Where sums are kept, each change
 * of a row is in them, with what was there before it.
 */
import { failure, ok } from "../../base/result.js";
import type { ChunkRow } from "../../machine/snapshot/chunk-row.js";
import {
  type ByteKey,
  KIND_AT,
  KeySpace,
  groupOfRow,
  writeByteKey,
} from "../../machine/store/keys.js";
import { Memtable } from "../../machine/store/memtable.js";
import { rowSlabs } from "../../machine/store/row-memory.js";
import { RowSums } from "../../machine/store/row-sums.js";
import type { EntrySorter } from "../../machine/store/row-table.js";
import type { StoreChange, StorePort } from "../../ports.js";
import type { RestoreDone, RestoreFault } from "./restore-faults.js";

/** Rows in memory beyond which they are flushed (bytes). */
const HELD_BYTES_MAX = 16 * 1024 * 1024;
/** Rows of an image that are written together (bytes); as many may be gathered meanwhile. */
const IMAGE_BYTES_MAX = 8 * 1024 * 1024;
const IMAGE_ROW_OVERHEAD_BYTES = 200;
/** Rows of the store that are kept in memory (bytes). */
const CACHE_BYTES = 8 * 1024 * 1024;

export class RowFlush {
  readonly memtable: Memtable;
  private readonly sums = new Map<number, RowSums>();
  private readonly slabs = rowSlabs();
  private image: StoreChange[] = [];
  private imageBytes = 0;
  private isWriting = false;
  private fault: RestoreFault | null = null;
  /** Waits for the write that is under way. */
  private settled: (() => void) | null = null;

  constructor(
    private readonly store: StorePort,
    sorter: EntrySorter | undefined,
    private readonly keepsSums = false,
    private readonly heldBytesMax = HELD_BYTES_MAX,
  ) {
    // What is taken from the buffer of a file must not keep all of the buffer.
    const options = { store, cacheBytes: CACHE_BYTES, copiesValues: true };
    this.memtable = new Memtable(sorter === undefined ? options : { ...options, sorter });
  }

  get isDue(): boolean {
    return this.memtable.sizeBytes > this.heldBytesMax;
  }

  /** A row of an image; of one image at a time. */
  readonly imageRow = (prefix: ByteKey, row: ChunkRow): void => {
    const { bytes, kind, nameAt, nameEnd, valueAt, valueEnd } = row;
    const nameStart = prefix.length + 1;
    const key = this.slabs.take(nameStart + nameEnd - nameAt);
    writeByteKey(prefix, key);
    key[prefix.length] = kind;
    key.set(bytes.subarray(nameAt, nameEnd), nameStart);
    const value = this.slabs.copy(bytes.subarray(valueAt, valueEnd));
    this.image.push({ key, value });
    this.imageBytes += key.length + value.length + IMAGE_ROW_OVERHEAD_BYTES;
    if (this.keepsSums) this.sumsOf(groupOfRow(key)).addPlaced(row);
  };

  /** Between two slices of a file: keeps the memory bounded. */
  relieve(done: RestoreDone<null>): void {
    if (this.isDue) return this.flush(done);
    if (this.imageBytes <= IMAGE_BYTES_MAX) return done(ok(null));
    // It goes on while these are written; the next ones wait for it.
    this.settle((settled) => {
      if (settled.ok) this.writeImage();
      done(settled);
    });
  }

  /** Makes everything durable that came. */
  flush(done: RestoreDone<null>): void {
    this.settle((settled) => {
      if (!settled.ok) return done(settled);
      this.writeImage();
      this.settle((written) => (written.ok ? this.flushChanges(done) : done(written)));
    });
  }

  private writeImage(): void {
    if (this.image.length === 0) return;
    const rows = this.image;
    this.image = [];
    this.imageBytes = 0;
    this.write(rows);
  }

  private flushChanges(done: RestoreDone<null>): void {
    const { changes } = this.memtable.freeze();
    if (this.keepsSums) for (const change of changes) this.sum(change);
    this.write(changes);
    this.settle((written) => {
      if (written.ok) this.memtable.dropImmutable();
      done(written);
    });
  }

  private write(changes: readonly StoreChange[]): void {
    this.isWriting = true;
    this.store.write(changes, (written) => {
      this.isWriting = false;
      if (!written.ok) {
        this.fault ??= failure("IoError", `The state store is full: ${written.message}`);
      }
      const { settled } = this;
      this.settled = null;
      settled?.();
    });
  }

  /** `done`: when nothing is being written, with the first fault of all writes. */
  private settle(done: RestoreDone<null>): void {
    const then = (): void => done(this.fault ?? ok(null));
    if (this.isWriting) this.settled = then;
    else then();
  }

  /** What was stored of a group, as far as it was flushed. */
  sumsOf(partition: number): RowSums {
    let sums = this.sums.get(partition);
    if (sums === undefined) this.sums.set(partition, (sums = new RowSums()));
    return sums;
  }

  private sum({ key, value }: StoreChange): void {
    if (key[0] !== KeySpace.groupRows) return;
    const sums = this.sumsOf(groupOfRow(key));
    const [kind, nameAt] = [key[KIND_AT] as number, KIND_AT + 1];
    const before = this.store.get(key);
    if (before !== null) sums.count(-1, kind, key, nameAt, key.length, before);
    if (value !== null) sums.count(1, kind, key, nameAt, key.length, value);
  }

  close(done: () => void): void {
    this.settle(() => this.store.close(done));
  }
}
