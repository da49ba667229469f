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
export type SnapshotPurpose = "repair" | "drain" | "balance";

type Rates = Pick<
  SnapshotSettings,
  "bytesPerSecond" | "balanceBytesPerSecond" | "plannedLeastBytesPerSecond" | "behindMs"
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

export class SnapshotPace {
  private readonly all: SendRate;
  private readonly planned: SendRate;
  private readonly balance: SendRate;
  private watchedSinceMs: number;
  private ticks = 0;
  private lateMs = 0;
  /** Something of a planned move left since ticks are watched. */
  private isUsed = false;

  constructor(
    private readonly rates: Rates,
    nowMs: number,
  ) {
    this.all = new SendRate(rates.bytesPerSecond, nowMs);
    this.planned = new SendRate(this.leastBytes, nowMs);
    this.balance = new SendRate(rates.balanceBytesPerSecond, nowMs);
    this.watchedSinceMs = nowMs;
  }

  private get leastBytes(): number {
    return Math.min(this.rates.plannedLeastBytesPerSecond, this.rates.bytesPerSecond);
  }

  /** What planned moves may take now (bytes per second). */
  get plannedBytesPerSecond(): number {
    return this.planned.bytesPerSecond;
  }

  /** Whether more may be made for sending now. */
  allows(purpose: SnapshotPurpose, nowMs: number): boolean {
    if (!this.all.allows(nowMs)) return false;
    if (purpose !== "repair" && !this.planned.allows(nowMs)) return false;
    return purpose !== "balance" || this.balance.allows(nowMs);
  }

  charge(purpose: SnapshotPurpose, bytes: number): void {
    this.all.charge(bytes);
    if (purpose === "repair") return;
    this.isUsed = true;
    this.planned.charge(bytes);
    if (purpose === "balance") this.balance.charge(bytes);
  }

  /** A tick of the node came, `lateMs` after its time. */
  ticked(nowMs: number, lateMs: number): void {
    this.ticks++;
    this.lateMs += Math.max(0, lateMs);
    if (nowMs - this.watchedSinceMs < WATCH_MS) return;
    const isBehind = this.lateMs > this.rates.behindMs * this.ticks;
    const now = this.planned.bytesPerSecond;
    // A time in which nothing was sent says nothing: the next move begins slowly again.
    const next = this.isUsed ? now * (isBehind ? SLOWER : FASTER) : this.leastBytes;
    const bounded = Math.min(Math.max(next, this.leastBytes), this.rates.bytesPerSecond);
    if (bounded !== now) this.planned.change(bounded, nowMs);
    this.watchedSinceMs = nowMs;
    this.ticks = 0;
    this.lateMs = 0;
    this.isUsed = false;
  }
}
