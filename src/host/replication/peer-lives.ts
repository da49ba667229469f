/**
 * Which life of its group's replica each node is in, as far as the applied partition map says: what
 * messages of one group are bound to.
 *
 * A replica that was dropped and placed again has forgotten what it acknowledged: nothing that was
 * said by one life counts for another. Invariants: 1. What is known of a node never goes back. 2.
 * Where nothing is known the founding life is meant: in full replication there is no other.
 */
import { FOUNDING_INCARNATION, type Incarnation } from "../../base/ids.js";
import type { ReplicaRecord } from "../../machine/commands/command.js";

/** Why a message is not listened to. */
export type StrayReason = "unhosted" | "receiver-life" | "sender-life";

export class PeerLives {
  private readonly lives = new Map<number, Incarnation>();

  /** `own`: the life of the replica on this node. */
  constructor(readonly own: Incarnation) {}

  /** The life of the replica on `node`. */
  of(node: number): Incarnation {
    return this.lives.size === 0 ? FOUNDING_INCARNATION : this.lookUp(node);
  }

  private lookUp(node: number): Incarnation {
    return this.lives.get(node) ?? FOUNDING_INCARNATION;
  }

  /** The replicas of a newer record. */
  learn(replicas: readonly ReplicaRecord[]): void {
    for (const { nodeId, incarnation } of replicas) {
      if (incarnation > this.of(nodeId)) this.lives.set(nodeId, incarnation);
    }
  }

  /**
   * Why what life `fromLife` of `node` sent to life `toLife` of this replica is not listened to;
   * null: it is. A sender's life that is not known yet is news: the map here may be old (P-089).
   */
  strayReason(node: number, fromLife: number, toLife: number): StrayReason | null {
    if (toLife !== this.own) return "receiver-life";
    return fromLife < this.of(node) ? "sender-life" : null;
  }
}
