/**
 * Three real nodes that are stopped by SIGTERM and started again one after the other, perhaps with another program, under
 * callers that are connected to the others and repeat nothing.
 *
 * Invariants: 1. Every call has one end, which is counted by its type. 2. A node is stopped only when no caller waits at
 * it any more. 3. Only processes started here are signalled.
 */
import { join } from "node:path";
import { GrpcCaller, type Json, type ServiceName } from "../contract/wire.js";
import { metricsOf } from "./metrics.js";
import {
  type Addresses,
  ServerProcess,
  nodeFlags,
  serverMain,
  sleep,
  temporaryDirectory,
  foundersOf,
  freePorts,
} from "./server-process.js";

/** How a node is started: what comes before its flags. */
export type Command = readonly string[];
export const PRESENT: Command = [process.execPath, serverMain];

/** What a call may say that succeeded, or was refused for what it asked. */
const MUST_RETRY_OR_WORSE: Readonly<Record<string, readonly number[]>> = {
  Sequencer: [5, 6, 99],
  Locker: [101, 104, 99],
  KeyValuer: [101, 102, 99],
};

export class Rolling {
  private readonly directory = temporaryDirectory();
  private readonly processes = new Map<number, ServerProcess>();
  private readonly callers = new Map<number, GrpcCaller>();
  private readonly waiting = new Map<number, number>();
  private ports: readonly number[] = [];
  private grpcPorts: readonly number[] = [];
  private httpPorts: readonly number[] = [];
  private http = new Map<number, string>();
  private avoided = 0;
  private running = false;
  private open = 0;
  /** Calls that ended as they should, and how the others ended. */
  answered = 0;
  readonly refusals = new Map<string, number>();

  /** `command`: of all nodes, until they are restarted with another one. */
  constructor(
    private readonly flags: readonly string[],
    private readonly command: Command = PRESENT,
  ) {}

  async start(): Promise<void> {
    const drawn = await freePorts(9);
    this.ports = drawn.slice(0, 3);
    this.grpcPorts = drawn.slice(3, 6);
    this.httpPorts = drawn.slice(6);
    for (const id of [1, 2, 3]) this.launch(id, this.command);
    await Promise.all([1, 2, 3].map((id) => this.ready(id)));
  }

  /** Starts a node that does not run. */
  launch(id: number, command: Command): ServerProcess {
    const own = [`--raft-nodeid=${id}`, `--initial-cluster=${foundersOf(this.ports)}`];
    const listeners = [
      `--peer-port=${String(this.ports[id - 1])}`,
      `--grpc-port=${String(this.grpcPorts[id - 1])}`,
      `--http-port=${String(this.httpPorts[id - 1])}`,
    ];
    const flags = nodeFlags(this.path(id), ...listeners, ...own, ...this.flags);
    const node = new ServerProcess(flags, command);
    this.processes.set(id, node);
    return node;
  }

  /** The data directory of a node. */
  path(id: number): string {
    return join(this.directory.path, String(id));
  }

  /** Where programs find the nodes, whichever of them run. */
  get urls(): { readonly grpc: readonly string[]; readonly rest: readonly string[] } {
    const all = (ports: readonly number[]): readonly string[] =>
      ports.map((port) => `http://127.0.0.1:${port}`);
    return { grpc: all(this.grpcPorts), rest: all(this.httpPorts) };
  }

  node(id: number): ServerProcess {
    const node = this.processes.get(id);
    if (node === undefined) throw new Error(`node ${id} was not started`);
    return node;
  }

  /** It is asked too from then on. */
  async ready(id: number): Promise<void> {
    const addresses: Addresses = await this.node(id).ready();
    this.callers.set(id, new GrpcCaller(addresses.grpc));
    this.http.set(id, addresses.http);
    if (this.avoided === id) this.avoided = 0;
  }

  /** One call to a node that is not about to stop; its fields, or null when it was refused. */
  async call(service: ServiceName, name: string, fields: Json, turn: number): Promise<Json | null> {
    const ids = [1, 2, 3].filter((id) => id !== this.avoided);
    const id = ids[turn % ids.length] as number;
    this.waiting.set(id, (this.waiting.get(id) ?? 0) + 1);
    const reply = await this.callers.get(id)?.call(service, name, fields);
    this.waiting.set(id, (this.waiting.get(id) ?? 0) - 1);
    const type = Number(reply?.fields["Type"] ?? -1);
    const isRefused = reply?.code !== 0 || MUST_RETRY_OR_WORSE[service]?.includes(type) === true;
    if (!isRefused) {
      this.answered++;
      return reply?.fields ?? null;
    }
    const end = `${name} status ${String(reply?.code)} type ${type}`;
    this.refusals.set(end, (this.refusals.get(end) ?? 0) + 1);
    return null;
  }

  /** `count` callers, each with one call after the other, until `halt`. */
  load(count: number): void {
    this.running = true;
    for (let at = 0; at < count; at++) void this.caller(at);
  }

  private async caller(at: number): Promise<void> {
    this.open++;
    const Durability = at % 2;
    const Owner = Buffer.from(`owner ${at}`);
    for (let turn = at; this.running; turn++) {
      const Key = `bucket/${at}`;
      const Resource = `lock/${at}`;
      const Value = Buffer.alloc(100, turn & 255);
      await this.call("KeyValuer", "TrySetKeyValue", { Key, Value, Durability }, turn);
      await this.call("KeyValuer", "TryGetKeyValue", { Key, Revision: -1, Durability }, turn);
      const lock = { Resource, Owner, ExpiresMs: 60_000, Durability };
      await this.call("Locker", "TryLock", lock, turn);
      await this.call("Locker", "Unlock", lock, turn);
      const sequence = { Name: `sequence ${at % 8}`, Durability: 1 };
      await this.call("Sequencer", "NextSequenceValue", sequence, turn);
    }
    this.open--;
  }

  async halt(): Promise<void> {
    this.running = false;
    while (this.open > 0) await sleep(20);
  }

  /** Stops node `id` by SIGTERM, once nobody calls it any more. */
  async stop(id: number): Promise<void> {
    this.avoided = id;
    while ((this.waiting.get(id) ?? 0) > 0) await sleep(10);
    const { code } = await this.node(id).stop();
    if (code !== 0) throw new Error(`node ${id} ended with ${String(code)}`);
  }

  async restart(id: number, command = this.command): Promise<void> {
    await this.stop(id);
    this.launch(id, command);
    await this.ready(id);
  }

  /** Sum of the terms of all groups: it grows with every change of a leader. */
  async terms(): Promise<number> {
    const id = this.avoided === 1 ? 2 : 1;
    let sum = 0;
    for (const [name, value] of await metricsOf(String(this.http.get(id)))) {
      if (name.startsWith("svc_raft_term")) sum += value;
    }
    return sum;
  }

  async end(): Promise<void> {
    for (const process of this.processes.values()) await process.kill();
    this.directory.remove();
  }
}
