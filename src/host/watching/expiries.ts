/**
 * Sees to it that lease clocks are committed soon after the ends of watched leases (W11): by
 * itself where this node leads, by a wish to the leader elsewhere.
 *
 * Owns the timer and the wishes of other nodes. Invariants: 1. A clock is committed for ends that
 * are due alone, and once for all that are. 2. A wish is kept until its time is committed, and
 * repeated when nobody took it, when another node leads, and now and then. 3. Without watched
 * leases and wishes it does nothing (W15).
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

  /** Another node watches a lease that ends then. False: it is to ask again, or somebody else. */
  wish(partition: number, leaseMs: number): boolean {
    const group = this.ports.group(partition);
    if (group?.isLeader() !== true) return false;
    const ends = this.wishes.get(partition) ?? new Set();
    if (ends.size >= WISHES_MAX) return false;
    this.wishes.set(partition, ends.add(leaseMs));
    this.arm(this.wishLeftMs(group, leaseMs));
    return true;
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

  /** As `leftMs`, of a wish at the leader: it may have been asked before it serves. */
  private wishLeftMs(group: WatchGroup, endMs: number): number {
    return group.isServing() ? this.leftMs(group, endMs) : LOOK_MS;
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
    this.arm(Math.min(nextMs, this.lookAtWishes()));
  }

  /** Returns in how many ms a look is due again. */
  private lookAtWishes(): number {
    let nextMs = Infinity;
    for (const [partition, ends] of this.wishes) {
      const group = this.ports.group(partition);
      if (group?.isLeader() !== true) {
        this.wishes.delete(partition);
        continue;
      }
      for (const endMs of ends) {
        if (endMs <= group.machine.leaseMs) {
          ends.delete(endMs);
          continue;
        }
        if (this.wishLeftMs(group, endMs) <= 0) this.advance(group);
        nextMs = Math.min(nextMs, this.wishLeftMs(group, endMs));
      }
      if (ends.size === 0) this.wishes.delete(partition);
    }
    return nextMs;
  }

  private act(group: WatchGroup, endMs: number): void {
    const { partition } = group;
    if (group.isServing()) return this.advance(group);
    const leader = group.leaderNode();
    const atMs = this.ports.clock.monotonicMs();
    const wished = { leaseMs: endMs, leader, atMs };
    this.wished.set(partition, wished);
    if (leader === 0) return;
    this.ports.wishClock(partition, endMs, (isTaken) => {
      if (!isTaken && this.wished.get(partition) === wished) this.wished.delete(partition);
    });
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
