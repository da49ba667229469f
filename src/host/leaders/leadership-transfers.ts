/**
 * Gives leaderships away: before a graceful stop, or when this node cannot lead as it should.
 *
 * Invariants: 1. Leadership goes only to a voter that is linked and has answered lately; the one
 * with the longest log first (P-016). 2. An order that came to nothing is given again, until
 * somebody else leads or the caller gives up. 3. Whoever became leader just now, or is about to,
 * has not heard an answer of anybody yet: it is not alone for that.
 */
import type { PeerProgress } from "../../raft/state/types.js";
import type { GroupOwner } from "../group/group-owner.js";
import type { Replica } from "../group/replica.js";
import type { TransferReason } from "../requests/transfer-tally.js";

/** Pause before an order is repeated (ms). */
const REPEAT_MS = 300;

export class LeadershipTransfers implements GroupOwner {
  private readonly orderedMs = new Map<Replica, number>();

  constructor(
    private readonly isUp: (node: number) => boolean,
    private readonly nowMs: () => number,
  ) {}

  /** Whether `replica` leads a group, or may have won it, that somebody else could lead. */
  isNeeded(replica: Replica): boolean {
    const { role, membership, id } = replica.core.status();
    if (role !== "leader" && role !== "candidate") return false;
    const nowMs = this.nowMs();
    return membership.voters.some((voter) => voter !== id && this.mayTake(replica, voter, nowMs));
  }

  private mayTake(replica: Replica, node: number, nowMs: number): boolean {
    return this.isUp(node) && !replica.move.isRefusedBy(node, nowMs);
  }

  /**
   * Orders the transfer of one group's leadership, unless it was ordered just now. True: ordered.
   */
  order(replica: Replica, nowMs: number, reason: TransferReason): boolean {
    const orderedMs = this.orderedMs.get(replica) ?? -Infinity;
    if (nowMs < orderedMs + REPEAT_MS) return false;
    const successor = this.successor(replica);
    if (successor === null) return false;
    this.orderedMs.set(replica, nowMs);
    return replica.moveTo({ to: successor, mustCarry: false, reason });
  }

  removed(replica: Replica): void {
    this.orderedMs.delete(replica);
  }

  private successor(replica: Replica): number | null {
    const { progress, membership, id } = replica.core.status();
    const nowMs = this.nowMs();
    let best: PeerProgress | null = null;
    for (const peer of progress) {
      const isVoter = membership.voters.includes(peer.id) && peer.id !== id && !peer.learner;
      if (!isVoter || !peer.active || !this.mayTake(replica, peer.id, nowMs)) continue;
      if (best === null || peer.match > best.match) best = peer;
    }
    return best === null ? null : best.id;
  }
}
