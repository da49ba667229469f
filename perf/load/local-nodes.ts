/**
 * Real nodes on loopback for the measurements: started together, known by their ports, killed and
 * restarted by id; others join them.
 *
 * Owns its processes and their data. Invariants: 1. Ports are free when they are drawn; a start that
 * meets a taken one fails loudly. 2. Only processes started here are ended.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import {
  serverMain,
  ServerProcess,
  freePorts,
  sleep,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";

export interface NodePorts {
  readonly peer: number;
  readonly grpc: number;
  readonly http: number;
}

export class LocalNodes {
  private readonly directory = temporaryDirectory();
  private readonly processes = new Map<number, ServerProcess>();
  readonly ports = new Map<number, NodePorts>();

  private constructor(
    private readonly founders: number,
    private readonly flags: readonly string[],
    private readonly command: readonly string[],
  ) {}

  /**
   * Founds a cluster of nodes 1 to `founders`. `main`: the program; usually that of this tree. `words`
   * are for Node.
   */
  static async start(
    flags: readonly string[],
    founders = 3,
    main = serverMain,
    words: readonly string[] = [],
  ): Promise<LocalNodes> {
    const nodes = new LocalNodes(founders, flags, [process.execPath, ...words, main]);
    // All at once: a port that was let go may be drawn again.
    const drawn = await freePorts(3 * founders);
    for (let id = 1; id <= founders; id++) {
      const [peer, grpc, http] = drawn.slice(3 * id - 3) as [number, number, number];
      nodes.ports.set(id, { peer, grpc, http });
    }
    for (const id of nodes.ids) nodes.begin(id);
    try {
      await nodes.ready();
    } catch (error) {
      await nodes.end();
      throw error;
    }
    return nodes;
  }

  private async draw(id: number): Promise<void> {
    const [peer, grpc, http] = (await freePorts(3)) as [number, number, number];
    this.ports.set(id, { peer, grpc, http });
  }

  /** Process ids, in the order of the nodes. */
  get pids(): readonly number[] {
    return [...this.processes.values()].map(({ child }) => child.pid ?? 0);
  }

  get ids(): readonly number[] {
    return [...this.ports.keys()];
  }

  /** A node with an empty directory joins; it may have the id of one that left. */
  async join(id: number): Promise<void> {
    this.ports.delete(id);
    rmSync(this.pathOf(id), { recursive: true, force: true });
    const through = [...this.ports.values()].map(({ peer }) => `127.0.0.1:${peer}`).join(",");
    await this.draw(id);
    this.launch(id, `--join=${through}`);
  }

  /** SIGTERM; returns when the process is gone. */
  async stop(id: number): Promise<void> {
    await this.processes.get(id)?.stop();
  }

  portsOf(id: number): NodePorts {
    const ports = this.ports.get(id);
    if (ports === undefined) throw new Error(`there is no node ${id}`);
    return ports;
  }

  /** Starts the process of a founder, with the data that it has. */
  begin(id: number): void {
    const founders = [...this.ports].filter(([each]) => each <= this.founders);
    const members = founders.map(([each, at]) => `${each}=127.0.0.1:${at.peer}`).join(",");
    this.launch(id, `--initial-cluster=${members}`);
  }

  private pathOf(id: number): string {
    return join(this.directory.path, String(id));
  }

  private launch(id: number, first: string): void {
    const { peer, grpc, http } = this.portsOf(id);
    const flags = [
      `--raft-nodeid=${id}`,
      first,
      `--peer-port=${peer}`,
      `--grpc-port=${grpc}`,
      `--http-port=${http}`,
      "--https-port=off",
      "--log-level=error",
      `--storage-path=${this.pathOf(id)}`,
      ...this.flags,
    ];
    this.processes.set(id, new ServerProcess(flags, this.command));
  }

  /** SIGKILL; returns when the process is gone. */
  async kill(id: number): Promise<void> {
    await this.processes.get(id)?.kill();
  }

  /** Waits until every node, or each of these, says that it is ready. */
  async ready(ids: readonly number[] = this.ids): Promise<void> {
    const endMs = performance.now() + 120_000;
    for (const id of ids) {
      while (!(await this.isReady(id))) {
        if (performance.now() > endMs) throw new Error(`node ${id} does not become ready`);
        await sleep(50);
      }
    }
  }

  private async isReady(id: number): Promise<boolean> {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.portsOf(id).http}/v1/cluster/health`);
      await answer.text();
      return answer.status === 200;
    } catch {
      return false;
    }
  }

  /** Which node leads each partition, as node `id` sees it; 0 = unknown. */
  async leaders(id: number): Promise<Map<number, number>> {
    const answer = await fetch(`http://127.0.0.1:${this.portsOf(id).http}/v1/cluster/routing`);
    const body = (await answer.json()) as { leaders: { partitionId: number; endpoint: string }[] };
    const found = new Map<number, number>();
    for (const { partitionId, endpoint } of body.leaders) {
      const port = Number(endpoint.slice(endpoint.lastIndexOf(":") + 1));
      const node = this.ids.find((each) => this.portsOf(each).grpc === port);
      found.set(partitionId, node ?? 0);
    }
    return found;
  }

  /** The plain (unlabelled) metrics of a node. */
  async metrics(id: number): Promise<Map<string, number>> {
    const answer = await fetch(`http://127.0.0.1:${this.portsOf(id).http}/metrics`);
    const found = new Map<string, number>();
    for (const line of (await answer.text()).split("\n")) {
      const [name, value] = line.split(" ");
      if (name !== undefined && value !== undefined) found.set(name, Number(value));
    }
    return found;
  }

  /** Resident memory of each node, in MiB. */
  async residentMiB(): Promise<string> {
    const parts: string[] = [];
    for (const id of this.ids) {
      const bytes = (await this.metrics(id)).get("process_resident_memory_bytes") ?? 0;
      parts.push(`node ${id} ${(bytes / 1024 ** 2).toFixed(0)} MiB`);
    }
    return parts.join(", ");
  }

  async end(): Promise<void> {
    for (const process of this.processes.values()) await process.kill();
    this.directory.remove();
  }
}
