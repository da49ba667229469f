/**
 * How many rows this node holds, and how many locks are held where it leads: counted beside all
 * else, now and then, and only while somebody reads metrics.
 *
 * Owns a timer while it counts. Invariants: 1. Nobody waits for a count: a scrape gets the last
 * one. 2. A slice takes about SLICE_MS, and between two there is SLICE_PAUSE_MS. 3. After a count
 * nothing is read for ten times as long as it took, and for PAUSE_MS at least. 4. A node that
 * closes is not read.
 */
import type { PartitionId } from "../../base/ids.js";
import { type CountedRow, type RowCensus, type RowCounts, noRows } from "../../machine/census.js";
import { family, scalar } from "./exposition.js";

const SLICE_MS = 1;
const SLICE_VISITS = 100;
const SLICE_PAUSE_MS = 50;
const PAUSE_MS = 30_000;
const PAUSE_FACTOR = 10;

/** A group as far as it is counted. */
interface CountedGroup {
  readonly partition: PartitionId;
  readonly machine: { openCensus(): RowCensus };
  isServing(): boolean;
}

interface CensusSource {
  readonly closing: boolean;
  groups(): readonly CountedGroup[];
  group(partition: PartitionId): CountedGroup | null;
}

interface CensusPorts {
  nowMs(): number;
  after(delayMs: number, callback: () => void): { cancel(): void };
}

interface Count {
  readonly rows: RowCounts;
  heldLocks: number;
}

export class NodeCensus {
  private last: Count = { rows: noRows(), heldLocks: 0 };
  private nextMs = -Infinity;
  private beganMs = 0;
  private count: Count | null = null;
  private groups: CountedGroup[] = [];
  private open: { readonly group: CountedGroup; readonly census: RowCensus } | null = null;
  private timer: { cancel(): void } | null = null;

  constructor(
    private readonly source: CensusSource,
    private readonly ports: CensusPorts,
  ) {}

  /** Somebody reads: the next count begins, if it is time. */
  wanted(): void {
    const nowMs = this.ports.nowMs();
    if (this.count !== null || nowMs < this.nextMs || this.source.closing) return;
    this.beganMs = nowMs;
    this.count = { rows: noRows(), heldLocks: 0 };
    this.groups = [...this.source.groups()];
    this.slice();
  }

  close(): void {
    this.timer?.cancel();
    this.count = null;
  }

  lines(lines: string[]): void {
    const { rows, heldLocks } = this.last;
    const held = "Locks held in partitions that this node leads, as counted last";
    scalar(lines, "svc_locks_held", "gauge", held, heldLocks);
    const name = "svc_rows";
    family(lines, name, "gauge", "Rows of replicas of this node, as counted last");
    for (const [kind, count] of Object.entries(rows)) {
      lines.push(`${name}{kind="${kind}"} ${count}`);
    }
  }

  private slice(): void {
    const { ports, source } = this;
    const untilMs = ports.nowMs() + SLICE_MS;
    while (this.count !== null && !source.closing && ports.nowMs() < untilMs) {
      if (!this.step(this.count)) return this.ended(this.count);
    }
    if (this.count === null || source.closing) return;
    this.timer = ports.after(SLICE_PAUSE_MS, () => this.slice());
  }

  /** False: there is nothing left. */
  private step(count: Count): boolean {
    if (this.open === null) {
      const group = this.groups.shift();
      if (group === undefined) return false;
      // It may have left meanwhile.
      if (this.source.group(group.partition) !== group) return true;
      this.open = { group, census: group.machine.openCensus() };
    }
    const { group, census } = this.open;
    if (this.source.group(group.partition) !== group) this.open = null;
    else if (census.next(SLICE_VISITS)) {
      this.open = null;
      if (group.isServing()) count.heldLocks += census.heldLocks;
      for (const kind of Object.keys(census.rows) as CountedRow[]) {
        count.rows[kind] += census.rows[kind];
      }
    }
    return true;
  }

  private ended(count: Count): void {
    const nowMs = this.ports.nowMs();
    this.last = count;
    this.count = null;
    this.nextMs = nowMs + Math.max(PAUSE_MS, (nowMs - this.beganMs) * PAUSE_FACTOR);
  }
}
