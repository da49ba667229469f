/**
 * The ends of leases of watched names (W11): which are due at a lease time of their partition.
 *
 * Owns the heaps. Invariants: 1. A name stands in the heap of its partition once, with the end that
 * was known when it was noted: whether it has ended is for its row to say. 2. There are at most
 * WATCHED_LEASES_MAX of them.
 */
import { WATCHED_LEASES_MAX } from "../../base/limits.js";
import { type DueItem, DueHeap } from "../waiting/due-heap.js";
import type { NameSort } from "./filters.js";

interface Lease extends DueItem {
  readonly sort: NameSort;
  readonly name: string;
}

interface PartitionLeases {
  readonly heap: DueHeap<Lease>;
  readonly byName: Map<string, Lease>;
}

export class WatchedLeases {
  private readonly partitions = new Map<number, PartitionLeases>();
  private count = 0;

  get size(): number {
    return this.count;
  }

  /** False: there are too many. */
  note(partition: number, sort: NameSort, name: string, endMs: number): boolean {
    let leases = this.partitions.get(partition);
    if (leases === undefined) {
      leases = { heap: new DueHeap(), byName: new Map() };
      this.partitions.set(partition, leases);
    }
    const id = `${sort}/${name}`;
    let lease = leases.byName.get(id);
    if (lease === undefined) {
      if (this.count >= WATCHED_LEASES_MAX) return false;
      lease = { sort, name, dueMs: endMs, heapAt: -1 };
      leases.byName.set(id, lease);
      this.count++;
    }
    leases.heap.set(lease, endMs);
    return true;
  }

  /** When the first of the partition is due (lease time); infinity: there is none. */
  nextMs(partition: number): number {
    return this.partitions.get(partition)?.heap.nextMs ?? Infinity;
  }

  /** Takes out one that is due at `leaseMs`; null: none is. */
  take(partition: number, leaseMs: number): { sort: NameSort; name: string } | null {
    const leases = this.partitions.get(partition);
    const lease = leases?.heap.take(leaseMs) ?? null;
    if (leases === undefined || lease === null) return null;
    leases.byName.delete(`${lease.sort}/${lease.name}`);
    this.count--;
    return lease;
  }

  /** The partitions that have some. */
  held(): IterableIterator<number> {
    return this.partitions.keys();
  }

  drop(partition: number): void {
    this.count -= this.partitions.get(partition)?.byName.size ?? 0;
    this.partitions.delete(partition);
  }

  clear(): void {
    this.partitions.clear();
    this.count = 0;
  }
}
