/**
 * Who leads which partition, and at which client endpoint, as far as this node knows; and the
 * requests that wait until somebody does.
 *
 * Owns what was learned about partitions that this node does not host. Invariants: 1. For a hosted
 * partition the group itself is asked; what others said is never believed above it (P-109), unless
 * its replica comes only now and has heard of nobody. Nobody tells the groups of a node outside the
 * member list anything: it counts as hosting none. 2. Waits are bounded in number and time, and end
 * when the node stops. 3. However many wait for locks, there is a place for the holder's release
 * (P-181).
 */
import { META_PARTITION, type PartitionId, partitionId } from "../../base/ids.js";
import type { PartitionRecord } from "../../machine/commands/command.js";
import type { ClockPort, TimerPort } from "../../ports.js";
import type { GroupAccess, NodeAccess } from "../api/host-view.js";
import { type RouteHint, RouteProvenance } from "../api/answers.js";
import type { OperationsSettings } from "../api/settings.js";

interface Waiting {
  readonly untilMs: number;
  /** It is bounded by who took it in, and takes no place here from others: it waits for a lock. */
  readonly isLasting?: boolean;
  readonly isOver: (nowMs: number) => boolean;
  readonly resume: (came: boolean) => void;
}

/** How often those who wait for a leader look again (ms). */
const LOOK_MS = 10;
/** Partitions that are not hosted here and whose leader is remembered. */
const LEARNED_MAX = 4096;

function remember(map: Map<number, number>, partition: number, node: number): void {
  map.set(partition, node);
  for (const oldest of map.keys()) {
    if (map.size <= LEARNED_MAX) break;
    map.delete(oldest);
  }
}

export class Leaders {
  private readonly learned = new Map<number, number>();
  /** Who was reported to lead a partition and did not: not believed until another one is. */
  private readonly disproved = new Map<number, number>();
  /** Which replicas of here come only now, as asked since the meta partition applied something. */
  private readonly arriving = new Map<number, boolean>();
  private arrivingIndex = -1;
  /** Partitions whose next leader was waited for in vain. */
  private readonly leaderless = new Set<number>();
  private waiting: Waiting[] = [];
  /** Those that wait for locks besides: they are looked at behind the others. */
  private lasting: Waiting[] = [];
  private looking = false;
  private turns = 0;

  constructor(
    private readonly node: NodeAccess,
    private readonly settings: OperationsSettings,
    private readonly ports: { readonly clock: ClockPort; readonly timer: TimerPort },
  ) {}

  /** The node that leads `partition`, this one included; 0 = unknown. */
  of(partition: number): number {
    const group = this.hosted(partition);
    if (group === null) return this.learned.get(partition) ?? this.reported(partition);
    if (group.isLeader()) return this.settings.nodeId;
    const leader = group.leaderNode();
    if (leader === 0 && this.arrives(partition)) {
      return this.learned.get(partition) ?? this.reported(partition);
    }
    return leader === this.settings.nodeId ? 0 : leader;
  }

  /** A replica of it is here that comes only now: it may not have heard of its group yet. */
  private arrives(partition: number): boolean {
    if (this.node.closing) return false;
    const { machine } = this.node.metaGroup();
    if (this.arrivingIndex !== machine.appliedIndex) this.arriving.clear();
    this.arrivingIndex = machine.appliedIndex;
    const known = this.arriving.get(partition);
    if (known !== undefined) return known;
    const replicas = machine.meta.partition(partition)?.replicas ?? [];
    const own = replicas.find(({ nodeId }) => nodeId === this.settings.nodeId);
    this.arriving.set(partition, own?.role === "learner");
    return own?.role === "learner";
  }

  /** This node has a replica of `partition` that hears of its leader. */
  private follows(partition: number): boolean {
    return this.hosted(partition) !== null && !this.arrives(partition);
  }

  private reported(partition: number): number {
    const node = this.node.reportedLeader(partitionId(partition));
    return node === this.settings.nodeId || node === this.disproved.get(partition) ? 0 : node;
  }

  /** The group of `partition`, if this node is told what becomes of it. */
  private hosted(partition: number): GroupAccess | null {
    return this.node.isOutside ? null : this.node.group(partitionId(partition));
  }

  /**
   * Another node to ask about `partition`; 0 = none. For a partition that is hosted elsewhere and
   * whose leader is unknown, or out of reach, those that may lead it in turn.
   */
  other(partition: number, isReachable: (node: number) => boolean): number {
    const leader = this.of(partition);
    if (leader === this.settings.nodeId) return 0;
    if (leader !== 0 && isReachable(leader)) return leader;
    if (this.follows(partition) || this.node.closing) return leader;
    const nodes = this.candidates(this.node.metaGroup().machine.meta.partition(partition));
    for (let tried = 0; tried < nodes.length; tried++) {
      const node = nodes[this.turns++ % nodes.length] ?? 0;
      if (isReachable(node)) return node;
    }
    return 0;
  }

  /** Who may lead the partition beside this node, as far as the map applied here says. */
  private candidates(record: PartitionRecord | null): readonly number[] {
    const { meta } = this.node.metaGroup().machine;
    const isPlaced = record?.mode === "placed";
    const nodes = isPlaced
      ? record.replicas.filter(({ role }) => role !== "learner")
      : meta.members().filter(({ role }) => role === "voter");
    return nodes.map(({ nodeId }) => nodeId).filter((node) => node !== this.settings.nodeId);
  }

  /** `node` answered for `partition`, or was named by one that does not lead it; 0 forgets. */
  learn(partition: number, node: number): void {
    this.learned.delete(partition);
    this.disproved.delete(partition);
    if (this.follows(partition)) return;
    const reported = node === 0 ? this.reported(partition) : 0;
    if (node !== 0) remember(this.learned, partition, node);
    else if (reported !== 0) remember(this.disproved, partition, reported);
  }

  /** Advertised client endpoint of `node`; "" = it has none, or it is unknown. */
  endpointOf(node: number): string {
    if (node === this.settings.nodeId) return this.settings.clientEndpoint;
    return node === 0 ? "" : (this.node.clientEndpointOf?.(node) ?? "");
  }

  /** Client endpoint of the leader of the meta partition; "" = unknown, or it has none. */
  metaEndpoint(): string {
    return this.endpointOf(this.of(META_PARTITION));
  }

  /**
   * Where to go with a request that was not carried out here: to the leader, or where that is
   * unknown and nothing of the partition is here, to a node that has a replica of it; null when
   * nobody is known who `isReachable`.
   */
  hint(
    partition: PartitionId,
    generation: number,
    isReachable: (node: number) => boolean,
  ): RouteHint | null {
    if (!this.settings.routingHints) return null;
    const leader = this.of(partition);
    if (leader === this.settings.nodeId) return null;
    const nodes = leader === 0 ? this.replicas(partition) : [leader];
    const to = nodes.find((node) => isReachable(node) && this.endpointOf(node) !== "");
    if (to === undefined) return null;
    const endpoint = this.endpointOf(to);
    return { partitionId: partition, endpoint, provenance: RouteProvenance.forwarded, generation };
  }

  /** Other nodes that have a replica of the partition, as far as is known here. */
  hosts(partition: number): readonly number[] {
    if (this.node.closing) return [];
    const leader = this.of(partition);
    const nodes = new Set(this.candidates(this.node.metaGroup().machine.meta.partition(partition)));
    if (leader !== 0 && leader !== this.settings.nodeId) nodes.add(leader);
    return [...nodes];
  }

  /** The nodes that have a replica of a placed partition which is not here. */
  private replicas(partition: number): readonly number[] {
    if (this.follows(partition) || this.node.closing) return [];
    const record = this.node.metaGroup().machine.meta.partition(partition);
    return record?.mode === "placed" ? this.candidates(record) : [];
  }

  /**
   * Calls `resume` in a later turn: with true once `isOver` says so, with false at `untilMs` or
   * when the node stops. Returns false, and takes nothing, when too many wait.
   */
  wait(waiting: Waiting): boolean {
    const isFull = this.waiting.length >= Math.max(1, this.settings.inflightMax / 2);
    if (isFull && waiting.isLasting !== true) return false;
    this.keep(waiting);
    if (!this.looking) this.lookLater();
    return true;
  }

  private keep(waiting: Waiting): void {
    (waiting.isLasting === true ? this.lasting : this.waiting).push(waiting);
  }

  /**
   * Nobody led `partition` for as long as is waited: until somebody does, nobody waits for it. A
   * node that lost the others answers at once, so that its callers go elsewhere (P-150).
   */
  giveUp(partition: PartitionId): void {
    if (this.of(partition) !== 0 || this.hosted(partition) === null) return;
    this.leaderless.add(partition);
    if (!this.looking) this.lookLater();
  }

  /** Whether it was given up to wait for a leader of `partition`. */
  isGivenUp(partition: PartitionId): boolean {
    return this.leaderless.has(partition);
  }

  private lookLater(): void {
    this.looking = true;
    this.ports.timer.after(LOOK_MS, () => {
      this.looking = false;
      const all = [...this.waiting, ...this.lasting];
      this.waiting = [];
      this.lasting = [];
      const nowMs = this.ports.clock.monotonicMs();
      for (const partition of this.leaderless) {
        if (this.of(partition) !== 0) this.leaderless.delete(partition);
      }
      for (const waiting of all) {
        if (this.node.shuttingDown) waiting.resume(false);
        else if (waiting.isOver(nowMs)) waiting.resume(true);
        else if (waiting.untilMs <= nowMs) waiting.resume(false);
        else this.keep(waiting);
      }
      const more = this.waiting.length + this.lasting.length + this.leaderless.size > 0;
      if (more && !this.looking && !this.node.shuttingDown) this.lookLater();
    });
  }
}
