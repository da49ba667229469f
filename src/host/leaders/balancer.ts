/**
 * Spreads leaderships over the nodes, now and then, by ordered transfers.
 *
 * While every group is on every node, a node counts from its own groups who leads how much; else
 * from what the nodes report. Invariants: 1. Only groups that serve, are quiet about membership and
 * have caught-up candidates are moved, and none whose ephemeral data would be lost. 2. Without its
 * setting nothing is moved. 3. Where reports count, who said nothing lately, leaves or takes no
 * writes gets nothing, and a group that came since the last look stays.
 */
import type { PartitionId } from "../../base/ids.js";
import { type LedGroup, planLeaderMoves } from "../../control/leader-balance.js";
import type { Replica } from "../group/replica.js";

/** What is known of who leads how much, where the groups of this node do not tell. */
export interface ReportedLeads {
  /** By node, this one included: of those that may lead. */
  readonly leads: ReadonlyMap<number, number>;
  /** This node leaves the cluster. */
  readonly isLeaving: boolean;
}

export interface BalancerDeps {
  readonly nodeId: number;
  /** Pause between looks (ms); 0 = never. */
  readonly everyMs: number;
  replicas(): readonly Replica[];
  isUp(node: number): boolean;
  /** null while every group is on every node. */
  reported(): ReportedLeads | null;
  /** A change of the group's members is due or under way. */
  isChanging(partition: PartitionId): boolean;
}

export class Balancer {
  private nextAtMs: number;
  /** Since when groups have been led here, as far as looks tell (ms). */
  private ledSinceMs = new Map<PartitionId, number>();

  constructor(
    private readonly deps: BalancerDeps,
    nowMs: number,
  ) {
    this.nextAtMs = nowMs + deps.everyMs;
  }

  /** Called once per tick. */
  check(nowMs: number): void {
    const { deps } = this;
    if (deps.everyMs === 0 || nowMs < this.nextAtMs) return;
    this.nextAtMs = nowMs + deps.everyMs;
    const replicas = deps.replicas().filter((replica) => !replica.members.isAlone);
    const reported = deps.reported();
    const leads = reported?.leads ?? this.countLed(replicas);
    const nodes = [...leads].map(([nodeId, count]) => ({ nodeId, leads: count }));
    const groups = this.ledGroups(replicas, reported !== null, nowMs);
    const isLeaving = reported?.isLeaving === true;
    for (const { partition, to } of planLeaderMoves({
      ...{ self: deps.nodeId, isLeaving, nodes, groups },
    })) {
      const replica = replicas.find((each) => each.partition === partition);
      if (replica === undefined || !this.mayMove(replica, to)) continue;
      const reason = isLeaving ? "leave" : "balance";
      replica.moveTo({ to, mustCarry: !isLeaving, reason });
    }
  }

  /** Whoever may lead a group of this node, and how many of them it leads. */
  private countLed(replicas: readonly Replica[]): ReadonlyMap<number, number> {
    const leads = new Map<number, number>();
    for (const replica of replicas) {
      const { leader } = replica.leadership;
      for (const node of this.candidatesOf(replica)) leads.set(node, leads.get(node) ?? 0);
      if (leader !== 0) leads.set(leader, (leads.get(leader) ?? 0) + 1);
    }
    return leads;
  }

  private candidatesOf({ members }: Replica): readonly number[] {
    const { nodeId } = this.deps;
    return members.membership.voters.filter((node) => node === nodeId || this.deps.isUp(node));
  }

  private ledGroups(replicas: readonly Replica[], isPlaced: boolean, nowMs: number): LedGroup[] {
    const own = replicas.filter(({ leadership }) => leadership.leader === this.deps.nodeId);
    const before = this.ledSinceMs;
    this.ledSinceMs = new Map(
      own.map(({ partition }) => [partition, before.get(partition) ?? nowMs]),
    );
    return own.map((replica) => {
      const { partition } = replica;
      const ledForMs = isPlaced ? nowMs - (before.get(partition) ?? nowMs) : Infinity;
      const isChanging = isPlaced && this.deps.isChanging(partition);
      return { partition, candidates: this.candidatesOf(replica), ledForMs, isChanging };
    });
  }

  private mayMove(replica: Replica, to: number): boolean {
    if (!replica.leadership.isServing) return false;
    const { progress, membership } = replica.core.status();
    if (membership.votersOutgoing.length > 0) return false;
    const peer = progress.find((each) => each.id === to);
    return peer !== undefined && peer.state === "replicate" && !peer.learner;
  }
}
