/**
 * Spreads leaderships over the nodes, now and then, by ordered transfers.
 *
 * Invariants: 1. Only groups that serve, are quiet about membership and have caught-up candidates
 * are moved, and none whose ephemeral data would be lost. 2. Without its setting nothing is moved.
 */
import { planLeaderMoves } from "../../control/leader-balance.js";
import type { Replica } from "../group/replica.js";

export class Balancer {
  private nextAtMs: number;

  constructor(
    private readonly nodeId: number,
    /** Pause between looks (ms); 0 = never. */
    private readonly everyMs: number,
    private readonly replicas: () => readonly Replica[],
    private readonly isUp: (node: number) => boolean,
    nowMs: number,
  ) {
    this.nextAtMs = nowMs + everyMs;
  }

  /** Called once per tick. */
  check(nowMs: number): void {
    if (this.everyMs === 0 || nowMs < this.nextAtMs) return;
    this.nextAtMs = nowMs + this.everyMs;
    const replicas = this.replicas().filter((replica) => !replica.members.isAlone);
    const groups = replicas.map((replica) => ({
      partition: replica.partition,
      leader: replica.leadership.leader,
      candidates: replica.members.membership.voters.filter(
        (node) => node === this.nodeId || this.isUp(node),
      ),
    }));
    for (const { partition, to } of planLeaderMoves(this.nodeId, groups)) {
      const replica = replicas.find((each) => each.partition === partition);
      if (replica === undefined || !this.mayMove(replica, to)) continue;
      replica.moveTo({ to, mustCarry: true });
    }
  }

  private mayMove(replica: Replica, to: number): boolean {
    if (!replica.leadership.isServing) return false;
    const { progress, membership } = replica.core.status();
    if (membership.votersOutgoing.length > 0) return false;
    const peer = progress.find((each) => each.id === to);
    return peer !== undefined && peer.state === "replicate" && !peer.learner;
  }
}
