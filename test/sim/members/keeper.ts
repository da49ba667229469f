/**
 * Whoever looks after the placement of a world: sets factors, loses machines for good and has them
 * removed, and now and then asks for the removal of a member that lives.
 *
 * Invariants: 1. Numbers come from the schedule of faults. 2. No machine is lost that the atlas says
 * is needed. 3. A member that may be removed although it lives counts as lost until it is known what
 * came of it; when that stays unknown its machine is taken away, as soon as nobody needs it: who moves
 * replicas does not know that it counts as lost. 4. In peace nothing new begins.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { LeaveAnswer } from "../../../src/operations/api/administration.js";
import { administer } from "../../doubles/operations/administration.js";
import type { Atlas } from "../faults/fault-budget.js";
import type { Faults } from "../faults/faults.js";
import type { PlacementKind } from "../faults/kinds.js";
import type { Plan } from "../plan/plan.js";
import type { OpenCall, Server } from "../world/server.js";
import type { World } from "../world/world.js";
import type { KeeperPlan } from "./placementplan.js";

/** A call may take so long (ms). */
const ANSWER_WITHIN_MS = 15_000;
/** So often it is looked whether a machine is still needed (ms). */
const LOOK_EVERY_MS = 500;

export class Keeper {
  readonly counts = { factors: 0, machinesLost: 0, removalsRefused: 0 };
  private readonly prng: Prng;
  private isOver = false;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly keeper: KeeperPlan,
    private readonly servers: readonly Server[],
    private readonly faults: Faults,
    private readonly atlas: Atlas,
    /** A removal of a living member was refused. */
    private readonly refused: () => void,
  ) {
    this.prng = world.prng("keeper");
  }

  start(): void {
    this.world.schedule(1 + this.prng.below(2 * this.keeper.everyMs), () => {
      if (this.isOver) return;
      this.act();
      this.start();
    });
  }

  settle(): void {
    this.isOver = true;
  }

  /** What was begun and is not at its end; null when there is nothing. */
  unfinished(): string | null {
    for (const { nodeId } of this.atlas.doomed) return `node ${nodeId} may be removed`;
    return null;
  }

  private act(): void {
    const { faults, keeper } = this;
    const number = ++faults.count;
    const kind = keeper.kinds[this.prng.below(keeper.kinds.length)] as PlacementKind;
    const prng = this.prng.fork(kind);
    if (this.plan.without.includes(number) || !faults.isEstablished) return;
    const done = (node: number): void => faults.saw(kind, number, node);
    switch (kind) {
      case "set-factor":
        return this.setFactor(prng, done);
      case "lose-machine":
        return this.loseMachine(prng, done);
      case "remove-living":
        return this.removeLiving(prng, done);
    }
  }

  private get members(): readonly Server[] {
    return this.servers.filter((server) => {
      const { isDamaged, isLost, isRetired, nodeId } = server;
      return !isDamaged && !isLost && !isRetired && this.atlas.roleOf(nodeId) !== null;
    });
  }

  private one(from: readonly Server[], prng: Prng): Server | null {
    return from[prng.below(Math.max(1, from.length))] ?? null;
  }

  private able(prng: Prng): Server | null {
    const able = this.members.filter((server) => {
      const { atlas } = this;
      return !atlas.leaving.has(server) && !atlas.doomed.has(server) && atlas.mayLose(server);
    });
    return this.one(able, prng);
  }

  /** Perhaps one that a replica is on its way to. */
  private expecting(prng: Prng): Server | null {
    const leader = this.members.find((each) => each.running?.node.metaGroup().isServing() === true);
    const records = leader?.running?.node.metaGroup().machine.meta.partitions() ?? [];
    const learners = records.flatMap(({ replicas }) =>
      replicas.filter((r) => r.role === "learner"),
    );
    const expecting = this.members.filter((server) => {
      const { atlas } = this;
      const isExpecting = learners.some(({ nodeId }) => nodeId === server.nodeId);
      return isExpecting && !atlas.leaving.has(server) && !atlas.doomed.has(server);
    });
    const server = this.one(expecting, prng);
    return server !== null && this.atlas.mayLose(server) ? server : null;
  }

  private setFactor(prng: Prng, done: (node: number) => void): void {
    const { factors } = this.keeper;
    // Who does not lead meta refuses, and names who does.
    const leader = this.members.find((each) => each.running?.node.metaGroup().isServing() === true);
    const server = prng.chance(1, 5) ? this.one(this.members, prng) : (leader ?? null);
    const running = server?.running ?? null;
    if (running === null || running.node.shuttingDown) return;
    const partitions = this.plan.host.initialPartitions ?? 1;
    const partitionId = 1 + prng.below(partitions);
    const replicationFactor = factors[prng.below(factors.length)] as number;
    const { life, operations } = running;
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + ANSWER_WITHIN_MS;
      const context = { deadlineMs, forwardHops: 0, requestId: `factor-${partitionId}` };
      const request = { partitionId, replicationFactor };
      administer(operations, "cluster.setReplicationFactor", request, context, (answer) => {
        if (answer.success) this.counts.factors++;
      });
    });
    done(0);
  }

  private loseMachine(prng: Prng, done: (node: number) => void): void {
    const server = (prng.chance(1, 2) ? this.expecting(prng) : null) ?? this.able(prng);
    if (server === null) return;
    this.counts.machinesLost++;
    this.takeAway(server);
    done(server.nodeId);
  }

  private takeAway(server: Server): void {
    server.isRetired = true;
    server.end("power-loss", "its machine is gone for good");
    this.faults.scrap(server);
  }

  /** Somebody takes a living member for a dead one. */
  private removeLiving(prng: Prng, done: (node: number) => void): void {
    const server = this.able(prng);
    const others = this.members.filter((other) => other !== server && other.running !== null);
    const asked = this.one(others, prng);
    const running = asked?.running ?? null;
    if (server?.running === null || server === null || asked === null || running === null) return;
    this.atlas.doomed.add(server);
    const { life, operations } = running;
    const end = (answer: LeaveAnswer | null): void => {
      this.world.schedule(1, () => this.took(server, answer));
    };
    const call: OpenCall = { ended: () => end(null), disturbed: () => undefined };
    asked.openCall(call);
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + ANSWER_WITHIN_MS;
      const context = { deadlineMs, forwardHops: 0, requestId: `remove-${server.nodeId}` };
      administer(operations, "cluster.leave", { nodeId: server.nodeId }, context, (answer) => {
        asked.closeCall(call);
        end(answer);
      });
    });
    done(server.nodeId);
  }

  private took(server: Server, answer: LeaveAnswer | null): void {
    const { atlas, world } = this;
    world.say(server.nodeId, `its removal is answered: ${answer?.outcome ?? "not at all"}`);
    if (answer?.outcome.startsWith("Refused") === true) {
      atlas.doomed.delete(server);
      this.counts.removalsRefused++;
      return this.refused();
    }
    this.giveUp(server, answer?.left === true);
  }

  /** `isRemoved`: it is no member any more. */
  private giveUp(server: Server, isRemoved: boolean): void {
    const { atlas, world } = this;
    const isThere = !server.isRetired && !server.isDamaged && !server.isLost;
    if (isThere && !isRemoved && !atlas.mayLose(server)) {
      world.schedule(LOOK_EVERY_MS, () => this.giveUp(server, false));
      return;
    }
    atlas.doomed.delete(server);
    if (isThere) this.takeAway(server);
  }
}
