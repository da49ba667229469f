/**
 * How replicas come to this node and go from it, durably: the row of each life, and what is deleted
 * of those that are over.
 *
 * Come: the row says live, durably, and only then there is a replica that answers anything. Go: the
 * replica ends; the row says dropping, durably; the log forgets the group; its rows are deleted in
 * slices; the row says gone, and keeps term, vote and the last generation of rows for ever. A start
 * goes on at what the row says.
 *
 * Invariants: 1. Nothing of a replica is deleted before its row says so durably. 2. No life begins
 * before everything of the former one is gone from log and store. 3. Term and vote never go back
 * over all lives (P-003), and generations of rows do not come again. 4. Slices are bounded in rows,
 * and so is the number of groups that are deleted at the same time.
 */
import { assert } from "../../base/assert.js";
import { type Incarnation, type PartitionId, partitionId } from "../../base/ids.js";
import { ERASED_ROWS_MAX, ERASING_MAX } from "../../base/limits.js";
import { type Result, failure, ok } from "../../base/result.js";
import { eraseGroup } from "../../machine/snapshot/restore.js";
import { keySuccessor, nodeRowKey } from "../../machine/store/keys.js";
import type { Memtable } from "../../machine/store/memtable.js";
import type { LogPort } from "../../ports.js";
import {
  type LastWords,
  type ReplicaRow,
  decodeReplicaRow,
  encodeReplicaRow,
  replicaRowKey,
} from "../storage/replica-row.js";

const ROWS_PREFIX = nodeRowKey("replica/");

export interface ReplicaLivesDeps {
  readonly memtable: Memtable;
  readonly log: Pick<LogPort, "forgetGroup">;
  /** `done` is called, in no turn, when everything put into the memtable until now is durable. */
  flushSoon(done: () => void): void;
  /** The memtable has room for more changes. */
  mayFill(): boolean;
  /** A life may begin now, or one is wholly over; called in no turn. */
  changed(partition: PartitionId): void;
}

export class ReplicaLives {
  private readonly rows = new Map<PartitionId, ReplicaRow>();
  /** Rows that say live, and are not durable yet. */
  private readonly coming = new Set<PartitionId>();
  /** Groups of which nothing is left in the log, to be deleted from the store. */
  private erasing: PartitionId[] = [];
  /** Replicas that were dropped to the end. */
  drops = 0;

  constructor(private readonly deps: ReplicaLivesDeps) {}

  /** Reads what earlier starts left; the drops among it go on. */
  load(): Result<null, "damaged-state"> {
    let damaged: string | null = null;
    this.deps.memtable.scan(ROWS_PREFIX, keySuccessor(ROWS_PREFIX), (key, value) => {
      const row = decodeReplicaRow(value);
      if (row === null) damaged = key;
      else this.rows.set(partitionId(Number(key.slice(ROWS_PREFIX.length))), row);
      return damaged === null;
    });
    if (damaged !== null) {
      const what = `The row ${String(damaged).slice(1)} of the state store is damaged.`;
      return failure("damaged-state", what);
    }
    for (const [partition, row] of this.rows) if (row.state === "dropping") this.forget(partition);
    return ok(null);
  }

  /** The last life of a replica of `partition`; null when there was none, or never a row of it. */
  row(partition: PartitionId): ReplicaRow | null {
    return this.rows.get(partition) ?? null;
  }

  /** A life is on its way in or out: `changed` comes when that is over. */
  isBusy(partition: PartitionId): boolean {
    return this.coming.has(partition) || this.rows.get(partition)?.state === "dropping";
  }

  /** Lives that have not begun yet. */
  get comingCount(): number {
    return this.coming.size;
  }

  /** Begins a life; it is one when `changed` is called. */
  come(partition: PartitionId, life: Incarnation): void {
    assert(!this.isBusy(partition), "one life at a time");
    const former = this.rows.get(partition);
    assert(former === undefined || life > former.incarnation, "lives follow each other");
    const { term, vote, lastGeneration } = former ?? { term: 0, vote: 0, lastGeneration: 0 };
    this.put(partition, { incarnation: life, state: "live", term, vote, lastGeneration });
    this.coming.add(partition);
    this.deps.flushSoon(() => {
      this.coming.delete(partition);
      this.deps.changed(partition);
    });
  }

  /** Ends the life of a replica that runs no more: everything of it goes. */
  drop(partition: PartitionId, last: LastWords): void {
    assert(!this.isBusy(partition), "a life ends once");
    this.put(partition, { ...last, state: "dropping" });
    this.deps.flushSoon(() => this.forget(partition));
  }

  /** Once per tick: deletes some rows. */
  tick(): void {
    for (const partition of this.erasing.slice(0, ERASING_MAX)) {
      if (!this.deps.mayFill()) return;
      if (eraseGroup(this.deps.memtable, partition, ERASED_ROWS_MAX) === 0) this.end(partition);
    }
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.erasing.length > 0;
  }

  private forget(partition: PartitionId): void {
    this.deps.log.forgetGroup(partition, () => this.erasing.push(partition));
  }

  private end(partition: PartitionId): void {
    this.erasing = this.erasing.filter((each) => each !== partition);
    const row = this.rows.get(partition);
    assert(row?.state === "dropping", "what is deleted was dropped");
    this.deps.memtable.put(replicaRowKey(partition), encodeReplicaRow({ ...row, state: "gone" }));
    this.deps.flushSoon(() => {
      this.rows.set(partition, { ...row, state: "gone" });
      this.drops++;
      this.deps.changed(partition);
    });
  }

  private put(partition: PartitionId, row: ReplicaRow): void {
    this.rows.set(partition, row);
    this.deps.memtable.put(replicaRowKey(partition), encodeReplicaRow(row));
  }
}
