/**
 * Who leads which partition, and at which client endpoint, as far as this node knows; and the
 * requests that wait until somebody does.
 *
 * Owns what was learned about partitions that this node does not host. Invariants: 1. For a hosted
 * partition the group itself is asked; what others said is never believed above it (P-109). Nobody
 * tells the groups of a node outside the member list anything: it counts as hosting none. 2. Waits
 * are bounded in number and time, and end when the node stops.
 */
import { META_PARTITION, type PartitionId, partitionId } from "../../base/ids.js";
import type { ClockPort, TimerPort } from "../../ports.js";
import type { GroupAccess, NodeAccess } from "../api/host-view.js";
import { type RouteHint, RouteProvenance } from "../api/answers.js";
import type { OperationsSettings } from "../api/settings.js";

interface Waiting {
  readonly untilMs: number;
  readonly isOver: (nowMs: number) => boolean;
  readonly resume: (came: boolean) => void;
}

/** How often those who wait for a leader look again (ms). */
const LOOK_MS = 10;
/** Partitions that are not hosted here and whose leader is remembered. */
const LEARNED_MAX = 4096;

export class Leaders {
  private readonly learned = new Map<number, number>();
  /** Partitions whose next leader was waited for in vain. */
  private readonly leaderless = new Set<number>();
  private waiting: Waiting[] = [];
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
    if (group === null) return this.learned.get(partition) ?? 0;
    if (group.isLeader()) return this.settings.nodeId;
    const leader = group.leaderNode();
    return leader === this.settings.nodeId ? 0 : leader;
  }

  /** The group of `partition`, if this node is told what becomes of it. */
  private hosted(partition: number): GroupAccess | null {
    return this.node.isOutside ? null : this.node.group(partitionId(partition));
  }

  /**
   * Another node to ask about `partition`; 0 = none. For a partition that is hosted elsewhere and
   * of which nothing is known, the voters in turn.
   */
  other(partition: number): number {
    const { nodeId } = this.settings;
    const leader = this.of(partition);
    if (leader !== 0) return leader === nodeId ? 0 : leader;
    if (this.hosted(partition) !== null || this.node.closing) return 0;
    const voters = this.node
      .metaGroup()
      .machine.meta.members()
      .filter((member) => member.role === "voter" && member.nodeId !== nodeId);
    return voters[this.turns++ % Math.max(1, voters.length)]?.nodeId ?? 0;
  }

  /** `node` answered for `partition`, or was named by one that does not lead it; 0 forgets. */
  learn(partition: number, node: number): void {
    this.learned.delete(partition);
    if (node === 0 || this.hosted(partition) !== null) return;
    this.learned.set(partition, node);
    for (const oldest of this.learned.keys()) {
      if (this.learned.size <= LEARNED_MAX) break;
      this.learned.delete(oldest);
    }
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

  /** Where to go with a request that was not carried out here; null when that is unknown. */
  hint(partition: PartitionId, generation: number): RouteHint | null {
    if (!this.settings.routingHints) return null;
    const leader = this.of(partition);
    const endpoint = leader === this.settings.nodeId ? "" : this.endpointOf(leader);
    if (endpoint === "") return null;
    return { partitionId: partition, endpoint, provenance: RouteProvenance.forwarded, generation };
  }

  /**
   * Calls `resume` in a later turn: with true once `isOver` says so, with false at `untilMs` or
   * when the node stops. Returns false, and takes nothing, when too many wait.
   */
  wait(waiting: Waiting): boolean {
    if (this.waiting.length >= Math.max(1, this.settings.inflightMax / 2)) return false;
    this.waiting.push(waiting);
    if (!this.looking) this.lookLater();
    return true;
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
      const all = this.waiting;
      this.waiting = [];
      const nowMs = this.ports.clock.monotonicMs();
      for (const partition of this.leaderless) {
        if (this.of(partition) !== 0) this.leaderless.delete(partition);
      }
      for (const waiting of all) {
        if (this.node.shuttingDown) waiting.resume(false);
        else if (waiting.isOver(nowMs)) waiting.resume(true);
        else if (waiting.untilMs <= nowMs) waiting.resume(false);
        else this.waiting.push(waiting);
      }
      const more = this.waiting.length > 0 || this.leaderless.size > 0;
      if (more && !this.looking && !this.node.shuttingDown) this.lookLater();
    });
  }
}
