/**
 * A cluster of placed partitions and a hand that moves their replicas: orders to the meta partition,
 * and what the leaders of the groups have applied as reports to it.
 *
 * Invariants: 1. It proposes only what the leader of meta, or of a group, may propose. 2. It
 * remembers nothing: what is next follows from the records.
 */
import { assert } from "../../../src/base/assert.js";
import { type PartitionId, partitionId } from "../../../src/base/ids.js";
import type { Replica } from "../../../src/host/group/replica.js";
import type { Node } from "../../../src/host/node.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type {
  ItemOutcome,
  MetaCommand,
  MetaOutcome,
  PartitionRecord,
  ReplicaChange,
} from "../../../src/machine/commands/command.js";
import {
  decodeReplicaRow,
  replicaRowKey,
  type ReplicaRow,
} from "../../../src/host/storage/replica-row.js";
import { inShort } from "../machine/placement.js";
import { Cluster } from "./peerworld.js";

export function replicaOf(node: Node, partition: number): Replica | null {
  return node["parts"].registry.find(partitionId(partition))?.replica ?? null;
}

/** What the node keeps of its replica of a partition, durable or not; null: nothing. */
export function rowOf(node: Node, partition: number): ReplicaRow | null {
  const bytes = node["parts"].registry.memtable.get(replicaRowKey(partitionId(partition)));
  return bytes === null ? null : decodeReplicaRow(bytes);
}

export class PlacedCluster extends Cluster {
  constructor(size: number, replicationFactor: number, settings: Partial<HostSettings> = {}) {
    const byHand = { rebalancerEnabled: false, initialPartitions: 2, flushAgeMs: 50 };
    super(size, { replicationFactor, ...byHand, ...settings });
  }

  /** The node that serves meta. */
  private get metaNode(): Node | null {
    const id = this.serverOf(0);
    return id === null ? null : this.node(id);
  }

  /** The newest record that any node has applied. */
  record(partition: number): PartitionRecord {
    const records = [...this.nodes.values()].map((node) => {
      return node.metaGroup().machine.meta.partition(partition);
    });
    const known = records.filter((record) => record !== null);
    const newest = known.sort((a, b) => b.generation - a.generation)[0];
    assert(newest !== undefined, "the partition has a record");
    return newest;
  }

  /** The record in short: "1 voter, 3 learner@2 for 1". */
  told(partition: number): string {
    return this.record(partition).replicas.map(inShort).join(", ");
  }

  /** The nodes that have a replica now, ascending. */
  hosts(partition: number): number[] {
    const ids = [...this.nodes].filter(([, node]) => replicaOf(node, partition) !== null);
    return ids.map(([id]) => id).sort((a, b) => a - b);
  }

  /** Has a command about placement decided; what became of its one item. */
  decide(
    command: Extract<MetaCommand, { readonly items: unknown }>,
  ): ItemOutcome["status"] | "undecided" {
    return this.decideMeta(command)?.items[0]?.status ?? "undecided";
  }

  /** Has a command of meta decided by its leader; null = there is none, or no answer in time. */
  decideMeta(command: MetaCommand): MetaOutcome | null {
    const meta = this.metaNode?.metaGroup();
    let end: MetaOutcome | "open" | null = null;
    meta?.proposeFinal(command, 200, this.nowMs + 2000, (result) => {
      const outcome = result.status === "applied" ? result.outcome : null;
      end = outcome?.kind === "meta" ? outcome : "open";
    });
    const isOver = (): boolean => end !== null || meta === undefined;
    for (const endMs = this.nowMs + 3000; !isOver() && this.nowMs < endMs;) this.pass(10);
    return (end as MetaOutcome | "open" | null) === "open" ? null : end;
  }

  order(partition: number, change: ReplicaChange): ItemOutcome["status"] | "undecided" {
    const { generation } = this.record(partition);
    return this.decide({
      kind: "change-replicas",
      items: [{ partitionId: partition, generation, change }],
    });
  }

  /** The leader of the group tells what it has applied, if there is one. */
  report(partition: number): void {
    const id = this.serverOf(partition);
    const replica = id === null ? null : replicaOf(this.node(id), partition);
    if (replica?.members.isEstablished !== true) return;
    const { voters, votersOutgoing, learners } = replica.members.membership;
    if (votersOutgoing.length > 0) return;
    const { membershipIndex: configIndex, placedGeneration: restsOn } = replica.machine;
    const item = { partitionId: partition, configIndex, voters, learners, restsOn };
    this.decide({ kind: "report-replicas", items: [item] });
  }

  /** Reports until nobody comes or goes. */
  carryThrough(partition: number, limitMs = 60_000): void {
    const endMs = this.nowMs + limitMs;
    while (this.record(partition).replicas.some(({ role }) => role !== "voter")) {
      assert(this.nowMs < endMs, `the replicas come to rest: ${this.told(partition)}`);
      this.pass(100);
      this.report(partition);
    }
    const listed = this.record(partition).replicas.map(({ nodeId }) => nodeId);
    this.passUntil(() => this.hosts(partition).join() === listed.join());
  }

  /** Puts a replica in the place of another. */
  move(partition: number, from: number, to: number): void {
    const status = this.order(partition, { kind: "add", nodeId: to, replaces: from });
    assert(status === "done", `node ${to} may come: ${status}`);
    this.carryThrough(partition);
  }

  /** Rows of a partition that the store of a node holds, its record among them. */
  rowsOf(id: number, partition: PartitionId): number {
    let count = 0;
    for (const { key } of this.world(id).store.rows.values()) {
      const isGroups = key[0] === 1 || key[0] === 2;
      if (isGroups && new DataView(key.buffer, key.byteOffset).getUint32(1) === partition) count++;
    }
    return count;
  }
}
