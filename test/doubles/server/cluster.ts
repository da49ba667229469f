/**
 * Several stand-in nodes that serve one set of data: each partition has a leader among those that are up; the others
 * forward to it and say so. Which node leads, refuses, or is wrong about it, a test decides.
 */
import {
  hashPartition,
  keyHashText,
  lockHashText,
  sequenceHashText,
} from "../../../src/base/routing.js";
import type { Answer } from "./messages.js";
import { StandIn, type Asked, type Hint, type Reply } from "./stand-in.js";

export const POOL = 16;
const MUST_RETRY = { sequence: 5, lock: 101, kv: 101 } as const;

export class StandInCluster {
  readonly nodes: StandIn[] = [];
  readonly up: boolean[] = [];
  /** Executed by a node for itself, and for another. */
  executed = 0;
  forwarded = 0;
  /** Decides before the cluster does: null = it is the cluster's business. */
  before: (asked: Asked, at: number) => Reply | null = () => null;
  /** The leader of a partition as node `at` sees it; -1 = none. */
  leader: (partition: number, at: number) => number = (partition) => this.natural(partition);
  /** Whether answers carry hints. */
  hints = true;
  /** Whether GetRoutingMetadata is answered. */
  describes = true;
  /** What a node is called in hints; default: as it is reached. */
  endpointOf: (at: number) => string = (at) => (this.nodes[at] as StandIn).endpoint;
  private readonly counters = new Map<string, number>();
  private readonly keyed = new Map<string, number>();
  private readonly values = new Map<string, Uint8Array | null>();
  private readonly owners = new Map<string, string>();

  static async open(count: number): Promise<StandInCluster> {
    const cluster = new StandInCluster();
    for (let at = 0; at < count; at++) {
      cluster.up.push(true);
      cluster.nodes.push(await StandIn.open((asked) => cluster.answer(asked, at)));
    }
    return cluster;
  }

  get addresses(): string[] {
    return this.nodes.map((node) => node.address);
  }

  /** Leaders spread over the nodes that are up. */
  natural(partition: number): number {
    for (let step = 0; step < this.nodes.length; step++) {
      const at = (partition + step) % this.nodes.length;
      if (this.up[at] === true) return at;
    }
    return -1;
  }

  stopNode(at: number): void {
    this.up[at] = false;
    (this.nodes[at] as StandIn).stop();
  }

  async startNode(at: number): Promise<void> {
    await (this.nodes[at] as StandIn).start();
    this.up[at] = true;
  }

  close(): void {
    for (const node of this.nodes) node.stop();
  }

  partitionOf({ method, name }: Asked): number {
    if (["lock", "extend", "unlock"].includes(method))
      return hashPartition(lockHashText(name), POOL);
    const key = ["set", "get", "delete"].includes(method);
    return hashPartition(key ? keyHashText(name) : sequenceHashText(name), POOL);
  }

  private answer(asked: Asked, at: number): Reply {
    const early = this.before(asked, at);
    if (early !== null) return early;
    if (asked.method === "metadata") return this.metadata(at);
    const partition = this.partitionOf(asked);
    const leader = this.leader(partition, at);
    if (leader < 0 || this.up[leader] !== true) return { type: mustRetryOf(asked) };
    if (leader === at) this.executed += 1;
    else this.forwarded += 1;
    const provenance = leader === at ? 1 : 2;
    const route: Hint = { partitionId: partition, endpoint: this.endpointOf(leader), provenance };
    return { ...this.execute(asked), route: this.hints ? route : null };
  }

  private metadata(at: number): Reply {
    if (!this.describes) return { status: 12 };
    const Leaders = Array.from({ length: POOL }, (_, index) => {
      const leader = this.leader(index + 1, at);
      return { PartitionId: index + 1, Endpoint: leader < 0 ? "" : this.endpointOf(leader) };
    });
    return {
      type: 0,
      metadata: {
        Initialized: true,
        SchemaVersion: 1,
        HashAlgorithm: "svc.bucket-jump-xxh32-v1",
        HashPoolSize: POOL,
        HashPartitionOffset: 1,
        Coherent: true,
        Leaders,
      },
    };
  }

  private execute(asked: Asked): Answer {
    const { method, name, key, owner } = asked;
    switch (method) {
      case "next":
      case "reserve": {
        const known = key === null ? undefined : this.keyed.get(key);
        const value = known ?? (this.counters.get(name) ?? 0) + 1;
        if (known === undefined) this.counters.set(name, value);
        if (key !== null) this.keyed.set(key, value);
        return { type: 0, value };
      }
      case "set":
        this.values.set(name, asked.value);
        return { type: 0, value: 1 };
      case "get": {
        const bytes = this.values.get(name);
        return bytes === undefined ? { type: 103 } : { type: 3, value: 1, bytes };
      }
      case "lock": {
        const holder = this.owners.get(name) ?? owner;
        if (holder !== owner) return { type: 1 };
        this.owners.set(name, owner);
        return { type: 0, value: 1 };
      }
      case "extend":
        return this.owners.get(name) === owner ? { type: 2, value: 1 } : { type: 102 };
      case "unlock":
        if (this.owners.get(name) !== owner) return { type: 102 };
        this.owners.delete(name);
        return { type: 3 };
      default:
        return { type: 99 };
    }
  }
}

function mustRetryOf({ method }: Asked): number {
  if (["lock", "extend", "unlock"].includes(method)) return MUST_RETRY.lock;
  return ["set", "get", "delete"].includes(method) ? MUST_RETRY.kv : MUST_RETRY.sequence;
}
