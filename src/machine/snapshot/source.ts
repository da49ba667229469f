/**
 * Reads one group's state as it was at one index, chunk by chunk, while entries go on being
 * applied.
 *
 * Watches the memtable: a row that is about to change and was not read yet is kept as it was. Owned
 * by the host, who closes it. Invariants: 1. What comes out is exactly the state at the index of
 * `record`, in key order. 2. Rows kept are bounded: beyond the bound the snapshot fails and gives
 * nothing more. 3. A row behind the cursor is not kept.
 */
import { assert } from "../../base/assert.js";
import type { GroupRecord } from "../commands/group-record.js";
import { ChunkWriter, SnapshotDigest, snapshotRecord } from "./format.js";
import { fromByteKey, generationPrefix, keySuccessor, type ByteKey } from "../store/keys.js";
import { HeldRows } from "../store/held-rows.js";
import type { ChangeWatcher, Memtable } from "../store/memtable.js";

export interface SnapshotChunk {
  readonly bytes: Uint8Array;
  /** True for the last chunk. */
  readonly last: boolean;
}

export type RowSight = (kind: number, value: Uint8Array) => void;

export class SnapshotSource implements ChangeWatcher {
  /** Position and settings of the snapshot. */
  readonly record: GroupRecord;
  private readonly prefix: ByteKey;
  private readonly end: ByteKey;
  private readonly held: HeldRows;
  private readonly maxHeldBytes: number;
  private readonly writer: ChunkWriter;
  private readonly digest = new SnapshotDigest();
  private readonly unwatch: () => void;
  /** The next key that may come out. */
  private cursor: ByteKey;
  private state: "reading" | "done" | "overrun" = "reading";
  private started = false;

  /** `seen`: is shown the value of each row that goes into a chunk. */
  constructor(
    memtable: Memtable,
    group: number,
    record: GroupRecord,
    maxHeldBytes: number,
    private readonly seen: RowSight | null = null,
  ) {
    this.held = new HeldRows(memtable);
    this.record = record;
    this.maxHeldBytes = maxHeldBytes;
    this.prefix = generationPrefix(group, record.generation);
    this.end = keySuccessor(this.prefix) as ByteKey;
    this.cursor = this.prefix;
    this.writer = new ChunkWriter(group);
    this.unwatch = memtable.watch(this);
  }

  /** Bytes of old rows kept so far. */
  get heldBytes(): number {
    return this.held.sizeBytes;
  }

  beforeChange(key: ByteKey): void {
    if (this.state !== "reading" || key < this.cursor || key >= this.end) return;
    this.held.keep(key);
    if (this.held.sizeBytes > this.maxHeldBytes) {
      this.state = "overrun";
      this.unwatch();
    }
  }

  /**
   * The next chunk of about `maxBytes` (one row at least); "overrun" when too much changed
   * meanwhile. Not after the last.
   */
  next(maxBytes: number): SnapshotChunk | "overrun" {
    if (this.state === "overrun") return "overrun";
    assert(this.state === "reading", "a snapshot ends with its last chunk");
    this.writer.begin();
    if (!this.started) {
      const bytes = snapshotRecord(this.record);
      this.writer.record(bytes);
      this.digest.record(bytes);
      this.started = true;
    }
    const last = this.fill(maxBytes);
    if (last) {
      this.writer.end(this.digest);
      this.close();
    }
    return { bytes: this.writer.finish(last), last };
  }

  /** Writes rows until the chunk is full; true when the end was reached. */
  private fill(maxBytes: number): boolean {
    let full = false;
    this.held.scan(this.cursor, this.end, (key, value) => {
      this.cursor = `${key}\0`;
      if (value !== null) {
        const kind = key.charCodeAt(this.prefix.length);
        const name = key.slice(this.prefix.length + 1);
        this.writer.row(kind, fromByteKey(name), value);
        this.digest.row(kind, name, value);
        this.seen?.(kind, value);
      }
      full = this.writer.sizeBytes >= maxBytes;
      return !full;
    });
    return !full;
  }

  /** Stops watching. Safe to call again. */
  close(): void {
    if (this.state === "reading") this.state = "done";
    this.unwatch();
  }
}
