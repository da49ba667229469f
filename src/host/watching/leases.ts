/**
 * The ends of leases of watched names (W11): which are due at a lease time of their partition, and
 * which one a command may write over.
 *
 * Owns the heaps. Invariants: 1. A name stands in the heap of its partition once, with the end that
 * was known when it was noted: whether it has ended is for its row to say. 2. There are at most
 * WATCHED_LEASES_MAX of them. 3. Names that nobody watches any more are forgotten, a part of them
 * at a time.
 */
import { WATCHED_LEASES_MAX } from "../../base/limits.js";
import type { Command } from "../../machine/commands/command.js";
import { type WatchEvent, isExpiry } from "../../machine/events.js";
import { type DueItem, DueHeap } from "../waiting/due-heap.js";
import type { NameSort } from "./filters.js";

/** Names of one part, looked at in one turn. */
const PRUNED_NAMES = 5000;

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
  /** Walks all of them once; null: nobody ceased to be watched since the last walk. */
  private walk: Iterator<readonly [PartitionLeases, Lease]> | null = null;
  private isWalkDue = false;

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
    const id = idOf(sort, name);
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
    leases.byName.delete(idOf(lease.sort, lease.name));
    this.count--;
    return lease;
  }

  /** Some names are not watched any more. */
  pruneSoon(): void {
    this.isWalkDue = true;
  }

  /** Forgets what is not watched, of the next part. */
  prune(isWatched: (sort: NameSort, name: string) => boolean): void {
    if (this.walk === null && this.isWalkDue) {
      this.isWalkDue = false;
      this.walk = this.all();
    }
    for (let left = PRUNED_NAMES; left > 0 && this.walk !== null; left--) {
      const next = this.walk.next();
      if (next.done === true) {
        this.walk = null;
        return;
      }
      const [leases, lease] = next.value;
      if (isWatched(lease.sort, lease.name)) continue;
      leases.heap.remove(lease);
      leases.byName.delete(idOf(lease.sort, lease.name));
      this.count--;
    }
  }

  private *all(): Generator<readonly [PartitionLeases, Lease], void> {
    for (const leases of this.partitions.values()) {
      for (const lease of leases.byName.values()) yield [leases, lease];
    }
  }

  /** The partitions that have some. */
  held(): IterableIterator<number> {
    return this.partitions.keys();
  }

  /** Forgets what it has of the partition: all, or one sort. */
  drop(partition: number, sort: NameSort | null = null): void {
    this.endWalk();
    const leases = this.partitions.get(partition);
    if (leases === undefined) return;
    for (const [id, lease] of sort === null ? [] : [...leases.byName]) {
      if (lease.sort !== sort) continue;
      leases.heap.remove(lease);
      leases.byName.delete(id);
      this.count--;
    }
    if (sort !== null) return;
    this.count -= leases.byName.size;
    this.partitions.delete(partition);
  }

  clear(): void {
    this.endWalk();
    this.partitions.clear();
    this.count = 0;
  }

  /** What it walks over is another thing from now on. */
  private endWalk(): void {
    this.isWalkDue ||= this.walk !== null;
    this.walk = null;
  }
}

function idOf(sort: NameSort, name: string): string {
  return `${sort}/${name}`;
}

/** The lease of a name, as its row has it. */
export interface LeaseState {
  /** It runs until then; null: none runs. */
  readonly untilMs: number | null;
  /** It ended by itself; null: it runs, or the last change was another one. */
  readonly end: { readonly event: WatchEvent; readonly endMs: number } | null;
}

/** `told`: what a name is told to be, made only where nothing runs: it has a copy of the value. */
export function leaseState(
  untilMs: number | null,
  endMs: number | null,
  told: () => WatchEvent,
): LeaseState {
  if (untilMs !== null || endMs === null) return { untilMs, end: null };
  const event = told();
  return { untilMs, end: isExpiry(event) ? { event, endMs } : null };
}

/** The row that a command may write over although its lease has ended. */
export function overwrittenBy(command: Command): { sort: NameSort; name: string } | null {
  switch (command.kind) {
    case "kv-set":
    case "kv-delete":
      return { sort: "key", name: command.key };
    case "try-lock":
    case "lock-with-note":
    case "lock-heir":
    case "try-unlock":
    case "unlock-grant":
    // Of an heir, whose predecessor's lease is over.
    case "extend-grant":
    case "force-unlock":
      return { sort: "lock", name: command.resource };
    default:
      return null;
  }
}
