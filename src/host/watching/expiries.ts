/**
 * Sees to it that lease clocks are committed soon after the ends of watched leases (W11): by
 * itself where this node leads, by a wish to the leader elsewhere.
 *
 * Owns the timer and the wishes of other nodes. Invariants: 1. A clock is committed for ends that
 * are due alone, and once for all that are. 2. A wish is repeated when another node leads, and now
 * and then. 3. Without watched leases and wishes it does nothing (W15).
 */
import type { TimerHandle } from "../../ports.js";
import type { WatchedLeases } from "./leases.js";
import type { WatchGroup, WatchPorts } from "./watching.js";

/** Between two looks, at least (ms): what ends in between shares one entry. */
const GRID_MS = 50;
/** How often it is looked who leads (ms), and a wish repeated. */
const LOOK_MS = 250;
const REPEAT_MS = 5000;
/** Later ends are looked at again then: a wish is another node's word, and timers have bounds. */
const AHEAD_MAX_MS = 3_600_000;
/** Of one entry on its way. */
const ADVANCE_MS = 5000;
/** Ends that other nodes wish for, of one partition. */
const WISHES_MAX = 256;

interface Wished {
  readonly leaseMs: number;
  readonly leader: number;
  readonly atMs: number;
}

export class Expiries {
  private timer: TimerHandle | null = null;
  private timerMs = Infinity;
  private lookedMs = -Infinity;
  private readonly advancing = new Set<number>();
  private readonly wished = new Map<number, Wished>();
  private readonly wishes = new Map<number, Set<number>>();

  constructor(
    private readonly ports: WatchPorts,
    private readonly leases: WatchedLeases,
  ) {}

  /** An end of the partition may be the first one now. */
  noted(partition: number): void {
    const group = this.ports.group(partition);
    if (group !== null) this.arm(this.leftMs(group, this.leases.nextMs(partition)));
  }

  /** Another node watches a lease that ends then. */
  wish(partition: number, leaseMs: number): void {
    const group = this.ports.group(partition);
    if (group?.isServing() !== true) return;
    const ends = this.wishes.get(partition) ?? new Set();
    if (ends.size >= WISHES_MAX) return;
    this.wishes.set(partition, ends.add(leaseMs));
    this.arm(leaseMs - group.leaseNowMs());
  }

  close(): void {
    this.timer?.cancel();
    this.timer = null;
    this.timerMs = Infinity;
    this.wishes.clear();
    this.wished.clear();
  }

  /** Time until a look is due for an end of the group. */
  private leftMs(group: WatchGroup, endMs: number): number {
    if (endMs === Infinity) return Infinity;
    if (!group.isServing()) return this.isWished(group, endMs) ? LOOK_MS : 0;
    if (this.advancing.has(group.partition)) return LOOK_MS;
    return Math.max(0, endMs - group.leaseNowMs());
  }

  private isWished(group: WatchGroup, endMs: number): boolean {
    const last = this.wished.get(group.partition);
    if (last?.leaseMs !== endMs || last.leader !== group.leaderNode()) return false;
    return this.ports.clock.monotonicMs() - last.atMs < REPEAT_MS;
  }

  private arm(inMs: number): void {
    if (inMs === Infinity) return;
    const nowMs = this.ports.clock.monotonicMs();
    const atMs = Math.max(nowMs + Math.min(inMs, AHEAD_MAX_MS), this.lookedMs + GRID_MS);
    if (atMs >= this.timerMs) return;
    this.timer?.cancel();
    this.timerMs = atMs;
    this.timer = this.ports.timer.after(Math.max(0, atMs - nowMs), () => this.look());
  }

  private look(): void {
    this.timer = null;
    this.timerMs = Infinity;
    if (this.ports.isClosing()) return;
    this.lookedMs = this.ports.clock.monotonicMs();
    let nextMs = Infinity;
    for (const partition of this.leases.held()) {
      const group = this.ports.group(partition);
      const endMs = this.leases.nextMs(partition);
      if (group === null || endMs === Infinity) continue;
      if (this.leftMs(group, endMs) <= 0) this.act(group, endMs);
      nextMs = Math.min(nextMs, this.leftMs(group, endMs));
    }
    for (const [partition, ends] of this.wishes) {
      const group = this.ports.group(partition);
      if (group?.isServing() !== true) {
        this.wishes.delete(partition);
        continue;
      }
      const leaseMs = group.leaseNowMs();
      for (const endMs of ends) {
        if (endMs > leaseMs) {
          nextMs = Math.min(nextMs, endMs - leaseMs);
          continue;
        }
        ends.delete(endMs);
        this.advance(group);
      }
      if (ends.size === 0) this.wishes.delete(partition);
    }
    this.arm(nextMs);
  }

  private act(group: WatchGroup, endMs: number): void {
    const { partition } = group;
    if (group.isServing()) return this.advance(group);
    const leader = group.leaderNode();
    const atMs = this.ports.clock.monotonicMs();
    this.wished.set(partition, { leaseMs: endMs, leader, atMs });
    if (leader !== 0) this.ports.wishClock(partition, endMs);
  }

  private advance(group: WatchGroup): void {
    const { partition } = group;
    if (this.advancing.has(partition)) return;
    const leaseMs = Math.floor(group.leaseNowMs());
    if (group.machine.leaseMs >= leaseMs) return;
    this.advancing.add(partition);
    const untilMs = this.ports.clock.monotonicMs() + ADVANCE_MS;
    group.advanceClock(leaseMs, untilMs, () => {
      this.advancing.delete(partition);
      this.noted(partition);
    });
  }
}
