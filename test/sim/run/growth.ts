/**
 * How cost grows with the cluster: one calm world of a given number of nodes and groups, brought up,
 * left alone, put under light load, and measured in each phase.
 *
 * Judges nothing; the profile "wide" does. Invariants: 1. What is counted (frames, bytes, events,
 * simulated time) is a function of seed, size and commit; processor time and memory are the
 * machine's. 2. Memory is measured outside of the run, after a collection, against the time before
 * the world was made. 3. What the false disk and store hold is no memory of the nodes and is left
 * out.
 */
import { runInNewContext } from "node:vm";
import { setFlagsFromString } from "node:v8";
import { FencedStore } from "../../judge/checkers/clients/fenced-store.js";
import { Client, type ClientCounts } from "../clients/client.js";
import { HistoryRecorder } from "../../judge/history.js";
import type { HostSettings } from "../../../src/host/settings.js";
import { SimNetwork } from "../net/network.js";
import { type Plan, planOf } from "../plan/plan.js";
import { Server } from "../world/server.js";
import { guarded } from "../world/tripwire.js";
import { World } from "../world/world.js";

/** A cluster that does not stand after so long never will (simulated ms). */
const START_WITHIN_MS = 120_000;
/** Groups go to sleep, and what the start left is flushed (simulated ms). */
const SETTLE_MS = 40_000;
const LOOK_EVERY_MS = 50;
/** Replicas that are not spread after so long never will be (simulated ms). */
const SPREAD_WITHIN_MS = 10_800_000;
const SPREAD_LOOK_MS = 1000;
const BROKEN_MS = 10_000;

export interface GrowthOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly groups: number;
  /** Replicas of each data partition; 0 = on every node. */
  readonly factor: number;
  /** Length of the windows in which traffic is measured (simulated ms). */
  readonly idleMs: number;
  readonly loadMs: number;
}

/** What happened in some stretch of simulated time, in the whole cluster. */
export interface KeySpan {
  readonly simulatedMs: number;
  readonly events: number;
  readonly turns: number;
  readonly frames: number;
  readonly bytes: number;
  /** Operations that were answered with a result. */
  readonly operations: number;
  /** Processor time (ms). */
  readonly usedMs: number;
}

/** Bytes per group replica: per group and node that hosts it. */
export interface ReplicaMemory {
  readonly heap: number;
  readonly arrayBuffers: number;
  /** Of the log, on the disk. */
  readonly log: number;
  /** Of the state store, on the disk. */
  readonly store: number;
}

export interface Growth {
  readonly nodes: number;
  readonly groups: number;
  readonly factor: number;
  readonly replicas: number;
  /** Replicas of data partitions on the node that has most. */
  readonly most: number;
  /** From the first process to the moment in which every group was served and every node ready. */
  readonly start: KeySpan;
  /** From then on until the replicas are spread evenly; nothing where they are on every node. */
  readonly spread: KeySpan;
  readonly idle: KeySpan;
  /** The ten seconds after the link between two nodes broke, of an idle cluster. */
  readonly broken: KeySpan;
  readonly load: KeySpan;
  /** Groups that sleep on all nodes in the end of the idle stretch. */
  readonly quiesced: number;
  readonly memory: ReplicaMemory;
  readonly traceHash: string;
}

/** Wires and disks of one room, the same in each seed. */
const CALM: Pick<Plan, "network" | "disk" | "segmentBytes" | "thinkMs" | "requestTimeoutMs"> = {
  network: { baseMs: 0.1, jitterMs: 0.1, slowPerMillion: 0 },
  disk: { readMs: 0.1, writeMs: 0.5 },
  segmentBytes: 512 << 10,
  thinkMs: 100,
  requestTimeoutMs: 10_000,
};

const PLACING: Partial<HostSettings> = {
  rebalancerEnabled: true,
  placementPassEveryMs: 5000,
  deadMemberMs: 300_000,
};

interface Mark {
  readonly nowMs: number;
  readonly events: number;
  readonly turns: number;
  readonly frames: number;
  readonly bytes: number;
  readonly operations: number;
  readonly usedMs: number;
}

/** The light workload of the profile "wide" on another number of nodes and groups. */
export function growthPlan({ seed, nodes, groups, factor }: GrowthOptions): Plan {
  const plan = planOf(seed, "wide", { nodes, groups, faults: [] });
  const placing = factor === 0 ? {} : { ...PLACING, replicationFactor: factor };
  return { ...plan, ...CALM, host: { ...plan.host, ...placing } };
}

class GrowingWorld {
  readonly world: World;
  readonly servers: Server[] = [];
  private readonly network: SimNetwork;
  private readonly clients: Client[] = [];
  private readonly counts: ClientCounts = {
    calls: 0,
    ok: 0,
    refused: 0,
    unknown: 0,
    vanished: 0,
    retries: 0,
  };

  constructor(private readonly plan: Plan) {
    this.world = new World(plan.seed);
    const silenceMs = (plan.host.electionMs ?? 1000) * 0.7;
    this.network = new SimNetwork(this.world, { ...plan.network, silenceMs });
    const events = {
      violation: (text: string): void => {
        throw new Error(text);
      },
      started: (): void => undefined,
      entry: (): void => undefined,
      ended: (server: Server, why: string): void => {
        throw new Error(`node ${server.nodeId} ends: ${why}`);
      },
      wiped: (): void => undefined,
    };
    const founders = Array.from({ length: plan.nodes }, (_, at) => at + 1);
    for (let nodeId = 1; nodeId <= plan.nodes + plan.joiners; nodeId++) {
      const server = new Server(this.world, plan, nodeId, this.network, events);
      if (nodeId > plan.nodes) server.seeds = () => founders;
      this.servers.push(server);
    }
  }

  mark(): Mark {
    let turns = 0;
    for (const { running } of this.servers) turns += running?.node.facts().turns ?? 0;
    const { user, system } = process.cpuUsage();
    return {
      nowMs: this.world.nowMs,
      events: this.world.events,
      turns,
      frames: this.network.counts.frames,
      bytes: this.network.counts.bytes,
      operations: this.counts.ok,
      usedMs: (user + system) / 1000,
    };
  }

  since(begin: Mark): KeySpan {
    const end = this.mark();
    return {
      simulatedMs: end.nowMs - begin.nowMs,
      events: end.events - begin.events,
      turns: end.turns - begin.turns,
      frames: end.frames - begin.frames,
      bytes: end.bytes - begin.bytes,
      operations: end.operations - begin.operations,
      usedMs: end.usedMs - begin.usedMs,
    };
  }

  /** Brings all nodes up; throws when the cluster does not come to stand. */
  start(): KeySpan {
    const begin = this.mark();
    for (const server of this.servers) server.start();
    const { world } = this;
    while (!this.stands()) {
      if (world.nowMs > START_WITHIN_MS) throw new Error("the cluster does not come to stand");
      world.run(world.nowMs + LOOK_EVERY_MS);
    }
    return this.since(begin);
  }

  private stands(): boolean {
    const served = new Set<number>();
    for (const { running } of this.servers) {
      if (running === null || !running.node.health().ready) return false;
      for (const group of running.node.groups()) if (group.isServing()) served.add(group.partition);
    }
    return served.size === (this.plan.host.initialPartitions ?? 0) + 1;
  }

  /** Waits until no node has two replicas more than another, and nothing is on its way. */
  spread(): KeySpan {
    const begin = this.mark();
    const { world } = this;
    while (!this.isSpread()) {
      if (world.nowMs > SPREAD_WITHIN_MS) throw new Error("replicas are not spread evenly");
      world.run(world.nowMs + SPREAD_LOOK_MS);
    }
    return this.since(begin);
  }

  private isSpread(): boolean {
    const meta = this.servers[0]?.running?.node.metaGroup().machine.meta;
    const records = meta?.partitions().filter(({ mode }) => mode === "placed") ?? [];
    if (records.length === 0) return true;
    const counts = new Map(meta?.members().map(({ nodeId }) => [nodeId, 0]));
    for (const { replicas } of records) {
      for (const { nodeId, role } of replicas) {
        if (role !== "voter") return false;
        counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
      }
    }
    return Math.max(...counts.values()) - Math.min(...counts.values()) < 2;
  }

  /** Replicas of data partitions on the node that has most. */
  most(): number {
    return Math.max(...this.servers.map(({ running }) => (running?.node.groups().length ?? 1) - 1));
  }

  idle(forMs: number): KeySpan {
    const begin = this.mark();
    this.world.run(this.world.nowMs + forMs);
    return this.since(begin);
  }

  breakLink(forMs: number): KeySpan {
    const begin = this.mark();
    this.servers[0]?.running?.port.link(2)?.breakNow();
    this.world.run(this.world.nowMs + forMs);
    return this.since(begin);
  }

  load(forMs: number): KeySpan {
    const { world, servers, counts, plan } = this;
    const begin = this.mark();
    const cursor = { unique: 1, large: 0, store: new FencedStore() };
    const history = new HistoryRecorder(200_000);
    for (let number = 1; number <= plan.clients; number++) {
      this.clients.push(new Client(world, plan, number, servers, history, counts, cursor));
    }
    for (const client of this.clients) client.start();
    world.run(world.nowMs + forMs);
    for (const client of this.clients) client.stop();
    return this.since(begin);
  }

  replicas(): number {
    return this.servers.reduce((sum, { running }) => sum + (running?.node.groups().length ?? 0), 0);
  }

  quiesced(): number {
    const awake = new Set<number>();
    const all = new Set<number>();
    for (const { running } of this.servers) {
      for (const group of running?.node.groups() ?? []) {
        all.add(group.partition);
        if (!group.facts().quiesced) awake.add(group.partition);
      }
    }
    return all.size - awake.size;
  }

  /** What lies on disks and in stores (bytes). */
  stored(): { log: number; store: number } {
    let log = 0;
    let store = 0;
    for (const { running, rows } of this.servers) {
      log += running?.node.facts().logBytes ?? 0;
      store += rows.bytes;
    }
    return { log, store };
  }
}

interface Used {
  readonly heap: number;
  readonly arrayBuffers: number;
}

function memoryUsed(collect: () => void): Used {
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return { heap: heapUsed, arrayBuffers };
}

/** Measures one size of cluster. Takes processor time in the order of a minute for large ones. */
export function measureGrowth(options: GrowthOptions): Growth {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const before = memoryUsed(collect);
  const growing = new GrowingWorld(growthPlan(options));
  const start = guarded(() => growing.start());
  const spread = guarded(() => growing.spread());
  guarded(() => growing.idle(SETTLE_MS));
  const idle = guarded(() => growing.idle(options.idleMs));
  const after = memoryUsed(collect);
  const { log, store } = growing.stored();
  const replicas = growing.replicas();
  const quiesced = growing.quiesced();
  const broken = guarded(() => growing.breakLink(BROKEN_MS));
  const load = guarded(() => growing.load(options.loadMs));
  const memory = {
    heap: (after.heap - before.heap) / replicas,
    arrayBuffers: (after.arrayBuffers - before.arrayBuffers - log - store) / replicas,
    log: log / replicas,
    store: store / replicas,
  };
  const { nodes, groups, factor } = options;
  const size = { nodes, groups, factor, replicas, most: growing.most() };
  const traceHash = growing.world.trace.hash();
  return { ...size, start, spread, idle, broken, load, quiesced, memory, traceHash };
}
