/**
 * Spreads leaderships over the nodes, now and then, by ordered transfers.
 *
 * Invariants: 1. Only groups that serve, are quiet about membership and have caught-up candidates
 * are moved, and none whose ephemeral data would be lost. 2. Without its setting nothing is moved.
 */
import { type LedGroup, planLeaderMoves } from "../../control/leader-balance.js";
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
    const leads = new Map<number, number>();
    const groups: LedGroup[] = [];
    for (const { partition, leadership, members } of replicas) {
      const { leader } = leadership;
      const candidates = members.membership.voters.filter(
        (node) => node === this.nodeId || this.isUp(node),
      );
      for (const node of candidates) leads.set(node, leads.get(node) ?? 0);
      if (leader !== 0) leads.set(leader, (leads.get(leader) ?? 0) + 1);
      if (leader !== this.nodeId) continue;
      groups.push({ partition, candidates, ledForMs: Infinity, isChanging: false });
    }
    const nodes = [...leads].map(([nodeId, count]) => ({ nodeId, leads: count }));
    const facts = { self: this.nodeId, isLeaving: false, nodes, groups };
    for (const { partition, to } of planLeaderMoves(facts)) {
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
