/**
 * A leader whose disk hangs, that takes no writes for want of space, or that cannot apply what it
 * is to serve from, gives its groups away: its heartbeats would go on, and nothing would ever
 * commit or be answered (P-017, P-192).
 *
 * Invariants: 1. Only writes that were handed to the log count: a lost quorum is no reason. 2.
 * First the leadership is offered; where nobody takes it, the group falls silent, so that the
 * others elect. 3. It ends by itself when the write becomes durable.
 */
import type { GroupOwner } from "../group/group-owner.js";
import type { Replica } from "../group/replica.js";
import type { LeadershipTransfers } from "./leadership-transfers.js";

/** A node without room offers a group this often: another one may be full as well (ms). */
const OFFER_EVERY_MS = 30_000;

interface Open {
  readonly record: object;
  readonly sinceMs: number;
}

export class DiskStallTransfers implements GroupOwner {
  private readonly open = new Map<Replica, Open>();
  private closedSinceMs = Infinity;
  /** When each group was last offered because of closed intake: nobody may have room. */
  private readonly offeredMs = new Map<Replica, number>();
  /** Since when each group is led without being served, for want of what is to be applied first. */
  private readonly behindMs = new Map<Replica, number>();
  /** Groups that were given away, or fell silent, because of a hanging write. */
  count = 0;

  constructor(
    private readonly transfers: LeadershipTransfers,
    /** Age of a write at which the disk counts as hanging (ms). */
    private readonly stalledAfterMs: number,
    /** Time for somebody else to take over, before the group falls silent (ms). */
    private readonly patienceMs: number,
  ) {}

  /** Told once per tick whether the node takes writes. */
  noteIntake(isOpen: boolean, nowMs: number): void {
    if (isOpen) this.closedSinceMs = Infinity;
    else if (this.closedSinceMs === Infinity) this.closedSinceMs = nowMs;
  }

  /** Looks at one group, once per tick. Returns whether it is to be ticked. */
  check(replica: Replica, nowMs: number): boolean {
    const sinceMs = Math.min(this.closedSinceMs, this.behindSinceMs(replica, nowMs));
    if (nowMs >= sinceMs + this.stalledAfterMs) this.giveAway(replica, nowMs);
    const record = replica.oldestWrite;
    if (record === null || !replica.leadership.isLeading || replica.members.isAlone) {
      this.open.delete(replica);
      return true;
    }
    const known = this.open.get(replica);
    if (known === undefined || known.record !== record) {
      this.open.set(replica, { record, sinceMs: nowMs });
      return true;
    }
    const ageMs = nowMs - known.sinceMs;
    if (ageMs < this.stalledAfterMs) return true;
    if (this.transfers.order(replica, nowMs, "disk")) this.count++;
    return ageMs < this.stalledAfterMs + this.patienceMs;
  }

  removed(replica: Replica): void {
    this.open.delete(replica);
    this.offeredMs.delete(replica);
    this.behindMs.delete(replica);
  }

  private behindSinceMs(replica: Replica, nowMs: number): number {
    const { isLeading, isServing } = replica.leadership;
    if (!isLeading || isServing || replica.applier.backlog === 0) {
      this.behindMs.delete(replica);
      return Infinity;
    }
    const sinceMs = this.behindMs.get(replica) ?? nowMs;
    this.behindMs.set(replica, sinceMs);
    return sinceMs;
  }

  private giveAway(replica: Replica, nowMs: number): void {
    if (!this.transfers.isNeeded(replica)) return;
    if (nowMs < (this.offeredMs.get(replica) ?? -Infinity) + OFFER_EVERY_MS) return;
    this.offeredMs.set(replica, nowMs);
    if (this.transfers.order(replica, nowMs, "disk")) this.count++;
  }
}
