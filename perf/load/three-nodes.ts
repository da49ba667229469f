/**
 * Three real nodes on loopback for the measurements: started together, known by their ports, killed
 * and restarted by id.
 *
 * Owns its processes and their data. Invariants: 1. Ports are free when they are drawn; a start that
 * meets a taken one fails loudly. 2. Only processes started here are ended.
 */
import { createServer } from "node:net";
import { join } from "node:path";
import {
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";

export interface NodePorts {
  readonly peer: number;
  readonly grpc: number;
  readonly http: number;
}

/** A port that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

export class ThreeNodes {
  readonly ids = [1, 2, 3] as const;
  private readonly directory = temporaryDirectory();
  private readonly processes = new Map<number, ServerProcess>();

  private constructor(
    readonly ports: ReadonlyMap<number, NodePorts>,
    private readonly flags: readonly string[],
  ) {}

  static async start(flags: readonly string[]): Promise<ThreeNodes> {
    const ports = new Map<number, NodePorts>();
    for (const id of [1, 2, 3]) {
      ports.set(id, { peer: await freePort(), grpc: await freePort(), http: await freePort() });
    }
    const nodes = new ThreeNodes(ports, flags);
    for (const id of nodes.ids) nodes.begin(id);
    await nodes.ready();
    return nodes;
  }

  portsOf(id: number): NodePorts {
    const ports = this.ports.get(id);
    if (ports === undefined) throw new Error(`there is no node ${id}`);
    return ports;
  }

  /** Starts the process of a node, with the data that it has. */
  begin(id: number): void {
    const { peer, grpc, http } = this.portsOf(id);
    const members = [...this.ports].map(([each, at]) => `${each}=127.0.0.1:${at.peer}`).join(",");
    this.processes.set(
      id,
      new ServerProcess([
        `--raft-nodeid=${id}`,
        `--initial-cluster=${members}`,
        `--peer-port=${peer}`,
        `--grpc-port=${grpc}`,
        `--http-port=${http}`,
        "--https-port=off",
        "--log-level=error",
        `--storage-path=${join(this.directory.path, String(id))}`,
        ...this.flags,
      ]),
    );
  }

  /** SIGKILL; returns when the process is gone. */
  async kill(id: number): Promise<void> {
    await this.processes.get(id)?.kill();
  }

  /** Waits until every node says that it is ready. */
  async ready(): Promise<void> {
    const endMs = performance.now() + 120_000;
    for (const id of this.ids) {
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
