/**
 * A cluster that was restored, or forced out of what was left, in the world of the one that it comes
 * from: its machines, its clients, and what is seen of them.
 *
 * Invariants: 1. It shares wires, time and the directory of backups with all others, and nothing else.
 * 2. Its nodes are production nodes on the rows that a restore made.
 */
import type { Prng } from "../../../src/base/prng.js";
import { FencedStore } from "../../judge/checkers/clients/fenced-store.js";
import { boundsOf } from "../../judge/checkers/nodes/bounded-size.js";
import { HistoryRecorder } from "../../judge/history.js";
import { Client, type ClientCounts } from "../clients/client.js";
import type { SimNetwork } from "../net/network.js";
import { type Plan, hostSettingsOf, operationsSettingsOf } from "../plan/plan.js";
import { NodeChecks } from "../world/nodechecks.js";
import type { GroupSample } from "../world/observe.js";
import { type ClusterHome, Server, type ServerEvents } from "../world/server.js";
import type { World } from "../world/world.js";
import type { Life } from "../world/process.js";
import type { Beginning } from "./shadow.js";
import { Truth } from "./truth.js";

/** Clients of a restored cluster, and how long they think (ms). */
const CLIENTS = 2;
const THINK_MS = 120;
/** Mean time between two faults of its own (ms). */
const FAULT_EVERY_MS = 4000;
const JOIN_AFTER_MS = 1500;

export interface SecondClusterOptions {
  readonly number: number;
  readonly name: string;
  readonly clusterId: string;
  readonly firstNode: number;
  readonly rows: Beginning;
  readonly copy: ReadonlyMap<string, Uint8Array>;
  /** Another node joins it. */
  readonly grows: boolean;
  readonly violate: (text: string) => void;
  /** A machine was built; one of its lives opened, or ended. */
  readonly built: (server: Server) => void;
  readonly ended: (server: Server, isPowerLoss: boolean) => void;
}

export class SecondCluster {
  readonly servers: Server[] = [];
  readonly history = new HistoryRecorder(50_000);
  readonly truth: Truth;
  readonly checks: NodeChecks;
  readonly home: ClusterHome;
  readonly beganMs: number;
  readonly counts: ClientCounts = {
    ...{ calls: 0, ok: 0, refused: 0, unknown: 0, vanished: 0, retries: 0 },
  };
  private readonly clients: Client[] = [];
  private readonly prng: Prng;
  private isPeace = false;
  kills = 0;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly network: SimNetwork,
    readonly options: SecondClusterOptions,
  ) {
    const { number, clusterId, firstNode, violate } = options;
    this.beganMs = world.nowMs;
    this.truth = new Truth(() => world.nowMs);
    this.prng = world.prng(`second cluster ${number}`);
    this.home = { clusterId, founders: [firstNode], suffix: ` of restore ${number}` };
    const host = hostSettingsOf(plan, firstNode, "");
    const bounds = boundsOf(host, operationsSettingsOf(plan, firstNode), plan.segmentBytes);
    const tell = (text: string): void => violate(`${options.name}: ${text}`);
    this.checks = new NodeChecks(tell, bounds, 2, true, Infinity, host.electionEndMs);
    // Replicas that a restore made are there before the map names their node again.
    Object.assign(this.checks.replicas, { sample: () => undefined });
  }

  get name(): string {
    return this.options.name;
  }

  private build(nodeId: number): Server {
    const { world, plan, network, checks, options, home } = this;
    const events: ServerEvents = {
      violation: (text) => options.violate(`${options.name}: ${text}`),
      recovered: (node, log) => checks.recovered(node, log),
      sent: (...frame) => checks.sent(...frame),
      started: (server) => {
        if (server.running !== null) this.truth.attach(server.running.node);
      },
      entry: (node, group, index, term, previousTerm, digest) =>
        checks.entry(node, group, index, term, previousTerm, digest),
      appended: (group, entry) => this.truth.appended(group, entry),
      ended: (server, _why, kind) => {
        options.ended(server, kind === "power-loss");
        const delayMs = this.isPeace ? 10 : 1 + this.prng.below(1500);
        world.schedule(delayMs, () => server.start());
      },
      wiped: () => undefined,
    };
    const server = new Server(world, plan, nodeId, network, events, home);
    this.servers.push(server);
    options.built(server);
    return server;
  }

  start(): void {
    const { world, plan, options } = this;
    const { firstNode, copy, number, grows } = options;
    const first = this.build(firstNode);
    first.rows.restore(copy);
    first.isRestored = true;
    first.start();
    if (grows) {
      world.schedule(JOIN_AFTER_MS, () => {
        if (this.isPeace) return;
        const joiner = this.build(10 * number + 2);
        joiner.seeds = () => [firstNode];
        joiner.start();
      });
    }
    const shared = { unique: 1_000_000 * number, large: 0, store: new FencedStore() };
    const ofClients: Plan = { ...plan, thinkMs: THINK_MS };
    for (let at = 1; at <= CLIENTS; at++) {
      const { servers, history, counts } = this;
      const id = 100 * number + at;
      const client = new Client(world, ofClients, id, servers, history, counts, shared);
      this.clients.push(client);
      client.start();
    }
    this.strikeLater();
  }

  private strikeLater(): void {
    this.world.schedule(1 + this.prng.below(2 * FAULT_EVERY_MS), () => {
      if (this.isPeace) return;
      const server = this.servers[this.prng.below(this.servers.length)] as Server;
      if (server.isUp && this.plan.faults.length > 0) {
        this.kills++;
        server.end(this.prng.chance(1, 2) ? "kill" : "power-loss", "killed by the world");
      }
      this.strikeLater();
    });
  }

  /** True when it is a life of one of its machines. */
  ran(life: Life): boolean {
    const server = this.servers.find((each) => each.life === life);
    if (server === undefined) return false;
    server.running?.watch.look(server.running.node, this.world.nowMs, this.tell);
    return true;
  }

  private readonly tell = (sample: GroupSample): void => {
    this.world.trace.mix(sample.appliedIndex);
    this.checks.sample(sample);
  };

  settle(): void {
    this.isPeace = true;
    for (const server of this.servers) if (!server.isUp) server.start();
  }

  stopClients(): void {
    for (const client of this.clients) client.stop();
  }

  /** Why it is not whole; null when it is. */
  unsettled(): string | null {
    const { servers, name, clients } = this;
    for (const { nodeId, running } of servers) {
      if (running === null) return `node ${nodeId} of ${name} is not up`;
      const health = running.node.health();
      if (!health.ready) {
        return `node ${nodeId} of ${name} is not ready: ${health.reason ?? "?"}`;
      }
    }
    return clients.some((client) => client.isWaiting) ? `a client of ${name} still waits` : null;
  }
}
