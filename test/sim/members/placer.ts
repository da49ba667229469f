/**
 * The hand that moves replicas in a world: orders to the partition map, drawn at random, while
 * everything else goes on. Leaders of groups carry them out and report by themselves.
 *
 * It knows the newest partition map that any node has applied, and remembers nothing but which nodes
 * once had a replica. Invariants: 1. It orders what apply accepts or refuses, never around it. 2. In
 * peace nothing new is ordered.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { PartitionRecord, ReplicaChange } from "../../../src/machine/commands/command.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import type { HandPlan } from "./placementplan.js";

/** Told of what is ordered by hand. */
export interface HandEvents {
  /** An order leaves that was decided on `generation` of the record. */
  orderedByHand(partition: number, generation: number): void;
  /** It was carried out, and made generation `made`. */
  orderDone(partition: number, generation: number, made: number): void;
}

export class Placer {
  readonly counts = { orders: 0, done: 0, again: 0, cancelled: 0, kept: 0 };
  private readonly prng: Prng;
  /** "partition/node": had a replica once. */
  private readonly former = new Set<string>();
  /** What the last order for a partition was decided on. */
  private readonly older = new Map<number, PartitionRecord>();
  private isOver = false;

  constructor(
    private readonly world: World,
    private readonly plan: HandPlan,
    private readonly servers: readonly Server[],
    private readonly told: HandEvents,
  ) {
    this.prng = world.prng("placer");
  }

  start(): void {
    this.world.schedule(1 + this.prng.below(2 * this.plan.everyMs), () => {
      if (this.isOver) return;
      this.act();
      this.start();
    });
  }

  settle(): void {
    this.isOver = true;
  }

  /** The newest that any node has applied. */
  private records(): readonly PartitionRecord[] {
    let newest: readonly PartitionRecord[] = [];
    let version = -1;
    for (const { running } of this.servers) {
      if (running === null || running.node.closing) continue;
      const { meta } = running.node.metaGroup().machine;
      const known: number = meta.cluster()?.mapVersion ?? -1;
      if (known <= version) continue;
      version = known;
      newest = meta.partitions().filter(({ mode }) => mode === "placed");
    }
    return newest;
  }

  private act(): void {
    const records = this.records();
    const newest = records[this.prng.below(Math.max(1, records.length))];
    if (newest === undefined) return;
    // Now and then what was decided on an older record, which is too late.
    const older = this.older.get(newest.partitionId);
    const record = older !== undefined && this.prng.chance(1, 8) ? older : newest;
    this.older.set(newest.partitionId, newest);
    const change = this.changeOf(record);
    const meta = this.servers.find(({ running }) => running?.node.metaGroup().isServing());
    const running = meta?.running ?? null;
    if (change === null || running === null) return;
    const { life, node } = running;
    const { partitionId: id, generation } = record;
    const items = [{ partitionId: id, generation, change }];
    this.counts.orders++;
    this.told.orderedByHand(id, generation);
    life.enter(() => {
      const deadlineMs = node.nowMs() + 2000;
      const command = { kind: "change-replicas", items } as const;
      node.metaGroup().proposeFinal(command, 200, deadlineMs, (result) => {
        const outcome = result.status === "applied" ? result.outcome : null;
        const [item] = outcome?.kind === "meta" ? outcome.items : [];
        if (item?.status !== "done") return;
        this.told.orderDone(id, generation, item.generation);
        this.noteDone(record, change);
      });
    });
  }

  private noteDone({ partitionId: id, replicas }: PartitionRecord, change: ReplicaChange): void {
    this.counts.done++;
    for (const { nodeId } of replicas) this.former.add(`${id}/${nodeId}`);
    if (change.kind === "cancel") this.counts.cancelled++;
    if (change.kind === "keep") this.counts.kept++;
    if (change.kind === "add" && this.former.has(`${id}/${change.nodeId}`)) this.counts.again++;
  }

  private changeOf({ partitionId: id, replicas }: PartitionRecord): ReplicaChange | null {
    const { prng } = this;
    const learner = replicas.find(({ role }) => role === "learner");
    // Now and then an order beside a replica that is on its way, which is refused.
    const isHasty = prng.chance(1, 4);
    if (learner !== undefined && !isHasty) {
      return prng.chance(1, 6) ? { kind: "cancel", nodeId: learner.nodeId } : null;
    }
    const going = replicas.find(({ role }) => role === "removing");
    if (going !== undefined && !isHasty) {
      return prng.chance(1, 3) ? { kind: "keep", nodeId: going.nodeId } : null;
    }
    const listed = replicas.map(({ nodeId }) => nodeId);
    const one = <T>(list: readonly T[]): T | null =>
      list[prng.below(Math.max(1, list.length))] ?? null;
    const able = this.servers.filter(({ isDamaged, isLost, isRetired }) => {
      return !isDamaged && !isLost && !isRetired;
    });
    const others = able.map(({ nodeId }) => nodeId).filter((node) => !listed.includes(node));
    const known = others.filter((node) => this.former.has(`${id}/${node}`));
    const goes = one(listed) ?? 0;
    const comes = prng.chance(2, 3) ? (one(known) ?? one(others)) : one(others);
    const isFull = listed.length >= this.plan.most;
    // Nobody takes a voter away while another one is gone for good.
    const isWhole = listed.every((node) => able.some(({ nodeId }) => nodeId === node));
    const hasSpare = isWhole && listed.length > this.plan.least;
    if (comes === null || (hasSpare && prng.chance(1, 5))) {
      return hasSpare ? { kind: "remove", nodeId: goes } : null;
    }
    return { kind: "add", nodeId: comes, replaces: isFull || prng.chance(2, 3) ? goes : 0 };
  }
}
