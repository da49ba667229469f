/**
 * A cluster of real processes whose partitions are placed: some founders, and nodes that come later. What their
 * placement says is read over REST and compared.
 *
 * Invariants: 1. A node that is not among the founders joins through them. 2. Nothing is waited for without an end, and what was waited for is told when it does not come.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import {
  type Addresses,
  ServerProcess,
  foundersOf,
  freePorts,
  nodeFlags,
  serverMain,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { call } from "../net/processes.js";

/** Replicas move within seconds; some of the waits are for bounds of half a minute (ms). */
const PATIENCE_MS = 120_000;

export interface Replica {
  readonly endpoint: string;
  readonly role: "Voter" | "Learner" | "Removing";
}

export interface PartitionPlacement {
  readonly partitionId: number;
  readonly generation: number;
  readonly effectiveReplicationFactor: number;
  readonly hostedLocally: boolean;
  readonly replicas: readonly Replica[];
}

export interface Placement {
  readonly replicationFactor: number;
  readonly rebalancerEnabled: boolean;
  readonly hostedPartitionCount: number;
  readonly partitions: readonly PartitionPlacement[];
}

/** Waits until `check` holds; throws with what `tell` says when it does not. */
export async function eventually(
  what: string,
  check: () => Promise<boolean> | boolean,
  tell: () => Promise<string> | string = () => "",
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (!(await check())) {
    if (performance.now() > endMs) throw new Error(`not in time: ${what}\n${await tell()}`);
    await sleep(100);
  }
}

export class PlacedNodes {
  readonly directory = temporaryDirectory();
  private readonly processes = new Map<number, ServerProcess>();

  private constructor(
    private readonly founders: number,
    private readonly ports: readonly number[],
    private readonly flags: readonly string[],
    private readonly preload: string | null,
  ) {}

  /** `founders` nodes, all ready, and ports for `others` more. `preload`: a module that each loads before its program. */
  static async start(
    founders: number,
    others: number,
    flags: readonly string[],
    preload: string | null = null,
  ): Promise<PlacedNodes> {
    const nodes = new PlacedNodes(founders, await freePorts(founders + others), flags, preload);
    for (let id = 1; id <= founders; id++) nodes.launch(id);
    await Promise.all([...nodes.processes.values()].map((node) => node.ready()));
    return nodes;
  }

  get running(): readonly number[] {
    return [...this.processes.keys()].sort((one, other) => one - other);
  }

  /** `flags`: instead of those that all nodes have. */
  launch(id: number, flags = this.flags): ServerProcess {
    const list = foundersOf(this.ports.slice(0, this.founders));
    const own = [`--peer-port=${this.port(id)}`, `--raft-nodeid=${id}`];
    const all = nodeFlags(this.pathOf(id), ...own, `--initial-cluster=${list}`, ...flags);
    const before = this.preload === null ? [] : ["--import", this.preload];
    const node = new ServerProcess(all, [process.execPath, ...before, serverMain]);
    this.processes.set(id, node);
    return node;
  }

  node(id: number): ServerProcess {
    const node = this.processes.get(id);
    if (node === undefined) throw new Error(`node ${id} runs`);
    return node;
  }

  addresses(id: number): Promise<Addresses> {
    return this.node(id).addresses();
  }

  endpointOf(id: number): string {
    return `127.0.0.1:${this.port(id)}`;
  }

  idOf(endpoint: string): number {
    return 1 + this.ports.findIndex((port) => endpoint === `127.0.0.1:${port}`);
  }

  async kill(id: number): Promise<void> {
    const node = this.node(id);
    this.processes.delete(id);
    await node.kill();
  }

  /** Its disk is gone. */
  async lose(id: number): Promise<void> {
    await this.kill(id);
    rmSync(this.pathOf(id), { recursive: true, force: true });
  }

  call(id: number, path: string, body?: object): Promise<unknown> {
    return call(this.node(id), path, body);
  }

  async placement(id: number): Promise<Placement> {
    return (await this.call(id, "/v1/cluster/placement")) as Placement;
  }

  /** Replicas by node as the map lists them, in whatever role. */
  async counts(by: number): Promise<ReadonlyMap<number, number>> {
    const counts = new Map<number, number>();
    for (const { replicas } of (await this.placement(by)).partitions) {
      for (const { endpoint } of replicas) {
        const id = this.idOf(endpoint);
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
    }
    return counts;
  }

  /** Waits until each partition has exactly `factor` voters, all on `members`, and the counts are within one. */
  async settled(by: number, factor: number, members: readonly number[]): Promise<void> {
    const check = async (): Promise<boolean> => {
      const { partitions } = await this.placement(by);
      const isWhole = partitions.every(({ replicas }) => {
        const isRight = ({ endpoint, role }: Replica): boolean =>
          role === "Voter" && members.includes(this.idOf(endpoint));
        return replicas.length === factor && replicas.every(isRight);
      });
      const counts = await this.counts(by);
      const all = members.map((id) => counts.get(id) ?? 0);
      return isWhole && Math.max(...all) - Math.min(...all) <= 1;
    };
    await eventually(`${factor} voters on ${members.join(", ")}`, check, () => this.told(by));
  }

  /** The placement in short, for messages. */
  async told(by: number): Promise<string> {
    const { partitions } = await this.placement(by);
    const lines = partitions.map(({ partitionId, replicas }) => {
      const list = replicas.map(({ endpoint, role }) => `${this.idOf(endpoint)} ${role}`);
      return `${partitionId}: ${list.join(", ")}`;
    });
    const { http } = await this.addresses(by);
    const readyz = await (await fetch(`http://${http}/readyz?verbose`)).text();
    return `${lines.join("\n")}\n${readyz}\n${this.node(by).log.slice(-3000)}`;
  }

  /** Who leads the meta partition, by what `by` knows; 0 = nobody known. */
  async metaLeader(by: number): Promise<number> {
    const overview = (await this.call(by, "/v1/cluster/overview")) as { metaLeaderNodeId: number };
    return overview.metaLeaderNodeId;
  }

  async end(): Promise<void> {
    await Promise.all([...this.processes.values()].map((node) => node.kill()));
    this.directory.remove();
  }

  private pathOf(id: number): string {
    return join(this.directory.path, `node${id}`);
  }

  private port(id: number): number {
    const port = this.ports[id - 1];
    if (port === undefined) throw new Error(`node ${id} has a port`);
    return port;
  }
}
