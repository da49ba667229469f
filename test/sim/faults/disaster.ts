/**
 * The disks of a majority of the founders are emptied, one after the other, whoever else is down
 * meanwhile: while the cluster is founded, or when it has run for long (P-191).
 *
 * What is right afterwards depends on what is left. Invariants: 1. Where any disk says that a
 * cluster was founded, one of those disks stays. 2. What is lost is read off the disks: fewer than
 * a majority of the directories of every founding are there.
 */
import type { Prng } from "../../../src/base/prng.js";
import { IDENTITY_KEY, decodeIdentity } from "../../../src/host/storage/identity.js";
import type { Server } from "../world/server.js";
import { World } from "../world/world.js";

export interface DisasterPlan {
  readonly atMs: number;
  /** Disks that are emptied: a majority, or all but one; one stays in any case. */
  readonly victims: number;
  /** The last of them is emptied so much later, at most (ms). */
  readonly withinMs: number;
}

export function disasterPlan(prng: Prng, founders: number): DisasterPlan {
  const [fromMs, lastsMs] = [
    [0, 60],
    [0, 3000],
    [6000, 8000],
  ][prng.below(3)] as [number, number];
  const majority = Math.floor(founders / 2) + 1;
  return {
    atMs: fromMs + prng.below(lastsMs),
    victims: prng.chance(1, 2) ? majority : founders - 1,
    withinMs: [1, 300, 5000][prng.below(3)] as number,
  };
}

export interface DisasterWorld {
  readonly world: World;
  readonly servers: readonly Server[];
  keepDown(server: Server, afterMs: number): void;
  /** A disk was emptied: somebody has its node removed. */
  repair(server: Server): void;
  /** Some node has applied a member list. */
  readonly isEstablished: boolean;
}

/** Somebody may be about to found with the others: what is lost must be so for that long (ms). */
const SURE_AFTER_MS = 1000;

export class Disaster {
  /** From here on nothing may be granted; null: not yet. */
  lostAtMs: number | null = null;
  private readonly prng: Prng;
  private seenAtMs: number | null = null;

  constructor(
    private readonly scene: DisasterWorld,
    private readonly plan: DisasterPlan,
  ) {
    this.prng = scene.world.prng("disaster");
  }

  /** `struck` is called when the first disk is emptied. */
  start(struck: () => void): void {
    const { world, servers } = this.scene;
    world.schedule(this.plan.atMs, () => {
      struck();
      const { prng } = this;
      const left = [...servers];
      for (let count = Math.min(this.plan.victims, left.length - 1); count > 0; count--) {
        const [victim] = left.splice(prng.below(left.length), 1) as [Server];
        const restMs = prng.chance(1, 2) ? World.between(prng, 100, 8000) : 0;
        world.schedule(prng.below(this.plan.withinMs), () => this.empty(victim, restMs));
      }
      for (const other of left) {
        if (!prng.chance(1, 2) || !other.isUp) continue;
        this.scene.keepDown(other, World.between(prng, 100, 8000));
        other.end("kill", "down while others lose their disks");
      }
      this.look();
    });
  }

  private empty(server: Server, restMs: number): void {
    const holders = this.scene.servers.filter(({ rows }) => rows.value(IDENTITY_KEY) !== null);
    if (holders.length === 1 && holders[0] === server) return;
    if (restMs > 0) this.scene.keepDown(server, restMs);
    const wasUp = server.isUp;
    server.isDamaged = true;
    server.wipe();
    if (!wasUp && restMs === 0) server.start();
    this.scene.repair(server);
  }

  private look(): void {
    const { world } = this.scene;
    if (!this.isLost()) this.seenAtMs = null;
    else this.seenAtMs ??= world.nowMs;
    if (this.seenAtMs === null || world.nowMs < this.seenAtMs + SURE_AFTER_MS) {
      world.schedule(250, () => this.look());
      return;
    }
    this.lostAtMs = world.nowMs;
    world.say(0, "a majority of the directories that the cluster was founded with is gone");
  }

  private isLost(): boolean {
    const { servers, isEstablished } = this.scene;
    let isFounded = false;
    for (const { rows } of servers) {
      const bytes = rows.value(IDENTITY_KEY);
      const identity = bytes === null ? null : decodeIdentity(bytes);
      if (identity === null || identity.isJoiner) continue;
      isFounded = true;
      const { founders } = identity;
      const there = founders.filter(({ nodeId, storageId }) => {
        const server = servers[nodeId - 1];
        // Where the cluster stands, a founder that never founded only joins it.
        const isIn = !isEstablished || server?.rows.value(IDENTITY_KEY) !== null;
        return server?.storageId === storageId && isIn;
      });
      if (there.length * 2 > founders.length) return false;
    }
    return isFounded;
  }
}
