/**
 * How fast snapshots leave a node: all together, those of planned moves, and those for balance.
 *
 * What has lost a replica is repaired as fast as disks and network are meant to go. A drain and a
 * balance can wait: reading, sending, and what the other side does with it take the processor and
 * the disk from whoever is served meanwhile. They begin slowly, get faster each second in which the
 * node keeps up with its work, and at once slower when it does not.
 *
 * Invariants: 1. Over any stretch of time no more of a purpose leaves than its rate allows, plus
 * one tenth of a second's worth and one chunk. 2. A repair waits for no planned move, but for its
 * share of the whole. 3. Planned moves never stand still: the least rate is theirs. 4. Time comes
 * from outside; how late the node is, is told by its ticks.
 */
import type { SnapshotSettings } from "./snapshot-limits.js";

/** What a snapshot is for: a replica, or its log, that is missing, or a move that was planned. */
export type SnapshotPurpose = "repair" | PlannedPurpose;

const PLANNED_PURPOSES = ["drain", "balance"] as const;
type PlannedPurpose = (typeof PLANNED_PURPOSES)[number];

export interface PlannedBytes {
  readonly purpose: PlannedPurpose;
  readonly bytesPerSecond: number;
}

type Rates = Pick<
  SnapshotSettings,
  | "bytesPerSecond"
  | "balanceBytesPerSecond"
  | "drainLeastBytesPerSecond"
  | "balanceLeastBytesPerSecond"
  | "behindMs"
>;

/** How long ticks are watched before the rate of planned moves changes (ms). */
const WATCH_MS = 1000;
/** The rate after such a time, of the one before. */
const FASTER = 1.5;
const SLOWER = 0.5;

/** How many bytes may leave: a bucket that fills with time. */
class SendRate {
  private leftBytes: number;

  constructor(
    private perSecond: number,
    private filledAtMs: number,
  ) {
    this.leftBytes = perSecond / 10;
  }

  get bytesPerSecond(): number {
    return this.perSecond;
  }

  /** Whether something may be made for sending at `nowMs`. */
  allows(nowMs: number): boolean {
    const earned = ((nowMs - this.filledAtMs) * this.perSecond) / 1000;
    this.leftBytes = Math.min(this.perSecond / 10, this.leftBytes + earned);
    this.filledAtMs = nowMs;
    return this.leftBytes > 0;
  }

  charge(bytes: number): void {
    this.leftBytes -= bytes;
  }

  /** Another rate from now on. */
  change(bytesPerSecond: number, nowMs: number): void {
    this.allows(nowMs);
    this.perSecond = bytesPerSecond;
  }
}

/** The rate of one sort of planned moves: between its least, where it begins, and its most. */
class PlannedRate extends SendRate {
  private readonly leastBytes: number;
  /** Something left since it was adapted last. */
  private isUsed = false;

  constructor(
    leastBytes: number,
    private readonly mostBytes: number,
    nowMs: number,
  ) {
    super(Math.min(leastBytes, mostBytes), nowMs);
    this.leastBytes = this.bytesPerSecond;
  }

  override charge(bytes: number): void {
    this.isUsed = true;
    super.charge(bytes);
  }

  adapt(isBehind: boolean, nowMs: number): void {
    const now = this.bytesPerSecond;
    // A time in which nothing was sent says nothing: the next move begins slowly again.
    const next = this.isUsed ? now * (isBehind ? SLOWER : FASTER) : this.leastBytes;
    const bounded = Math.min(Math.max(next, this.leastBytes), this.mostBytes);
    if (bounded !== now) this.change(bounded, nowMs);
    this.isUsed = false;
  }
}

export class SnapshotPace {
  private readonly all: SendRate;
  private readonly planned: Readonly<Record<PlannedPurpose, PlannedRate>>;
  private watchedSinceMs: number;
  private ticks = 0;
  private lateMs = 0;

  constructor(
    private readonly rates: Rates,
    nowMs: number,
  ) {
    const { bytesPerSecond, balanceBytesPerSecond } = rates;
    this.all = new SendRate(bytesPerSecond, nowMs);
    this.planned = {
      drain: new PlannedRate(rates.drainLeastBytesPerSecond, bytesPerSecond, nowMs),
      balance: new PlannedRate(rates.balanceLeastBytesPerSecond, balanceBytesPerSecond, nowMs),
    };
    this.watchedSinceMs = nowMs;
  }

  /** What planned moves may take now (bytes per second). */
  plannedRates(): readonly PlannedBytes[] {
    return PLANNED_PURPOSES.map((purpose) => {
      return { purpose, bytesPerSecond: this.planned[purpose].bytesPerSecond };
    });
  }

  /** Whether more may be made for sending now. */
  allows(purpose: SnapshotPurpose, nowMs: number): boolean {
    if (!this.all.allows(nowMs)) return false;
    return purpose === "repair" || this.planned[purpose].allows(nowMs);
  }

  charge(purpose: SnapshotPurpose, bytes: number): void {
    this.all.charge(bytes);
    if (purpose !== "repair") this.planned[purpose].charge(bytes);
  }

  /** A tick of the node came, `lateMs` after its time. */
  ticked(nowMs: number, lateMs: number): void {
    this.ticks++;
    this.lateMs += Math.max(0, lateMs);
    if (nowMs - this.watchedSinceMs < WATCH_MS) return;
    const isBehind = this.lateMs > this.rates.behindMs * this.ticks;
    for (const purpose of PLANNED_PURPOSES) this.planned[purpose].adapt(isBehind, nowMs);
    this.watchedSinceMs = nowMs;
    this.ticks = 0;
    this.lateMs = 0;
  }
}
