/**
 * Spreads leaderships over the nodes, now and then, by ordered transfers.
 *
 * Invariants: 1. Only groups that serve, are quiet about membership and have caught-up candidates
 * are moved, and none whose ephemeral data would be lost. 2. Without its setting nothing is moved.
 */
import { planLeaderMoves } from "../../control/leader-balance.js";
import type { GroupDriver } from "../group/driver.js";

export class Balancer {
  private nextAtMs: number;

  constructor(
    private readonly nodeId: number,
    /** Pause between looks (ms); 0 = never. */
    private readonly everyMs: number,
    private readonly drivers: () => readonly GroupDriver[],
    private readonly isUp: (node: number) => boolean,
    nowMs: number,
  ) {
    this.nextAtMs = nowMs + everyMs;
  }

  /** Called once per beat. */
  check(nowMs: number): void {
    if (this.everyMs === 0 || nowMs < this.nextAtMs) return;
    this.nextAtMs = nowMs + this.everyMs;
    const drivers = this.drivers().filter((driver) => !driver.members.isAlone);
    const groups = drivers.map((driver) => ({
      partition: driver.partition,
      leader: driver.leadership.leader,
      candidates: driver.members.membership.voters.filter(
        (node) => node === this.nodeId || this.isUp(node),
      ),
    }));
    for (const { partition, to } of planLeaderMoves(this.nodeId, groups)) {
      const driver = drivers.find((each) => each.partition === partition);
      if (driver === undefined || !this.mayMove(driver, to)) continue;
      driver.moveTo({ to, mustCarry: true });
    }
  }

  private mayMove(driver: GroupDriver, to: number): boolean {
    if (!driver.leadership.isServing) return false;
    const { progress, membership } = driver.core.status();
    if (membership.votersOutgoing.length > 0) return false;
    const peer = progress.find((each) => each.id === to);
    return peer !== undefined && peer.state === "replicate" && !peer.learner;
  }
}
