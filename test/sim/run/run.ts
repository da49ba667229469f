/**
 * One run: a world, its machines, clients and faults, made from a plan; then peace, in which what
 * is left must become whole again; then the verdict.
 *
 * Invariants: 1. A run is synchronous and touches nothing of the platform (see `tripwire.ts`).
 * 2. The same plan gives the same result. 3. What nobody answers or nobody can check is told in the
 * counts, so that a run in which nothing happened is not taken for a good one.
 */
import { BackupRun } from "../backups/backup-run.js";
import { Atlas } from "../faults/fault-budget.js";
import type { SharedWork } from "../clients/workload.js";
import { FencedStore } from "../../judge/checkers/clients/fenced-store.js";
import type { Verdict } from "../../judge/checkers/verdict.js";
import { Client, type ClientCounts } from "../clients/client.js";
import { Faults } from "../faults/faults.js";
import { type History, HistoryRecorder } from "../../judge/history.js";
import { SimNetwork } from "../net/network.js";
import type { GroupSample, Observer } from "../world/observe.js";
import { Operator } from "../members/operator.js";
import { Upgrades } from "../members/upgrades.js";
import type { PartitionId } from "../../../src/base/ids.js";
import type { LogEntry } from "../../../src/ports.js";
import { seenEntry } from "../world/seen-entry.js";
import { Keeper } from "../members/keeper.js";
import { Placer } from "../members/placer.js";
import { RangeWorld } from "./range-world.js";
import type { EntryHook } from "../world/logmirror.js";
import { PeaceBound, waitsForTheGone } from "./peace-bound.js";
import {
  isOwing,
  lookAtPlacement,
  newestMeta,
  passesOf,
  peaceOf,
  versionsOf,
} from "./placement-peace.js";
import type { Heard } from "../../judge/checkers/replicas/acks-of-one-life.js";
import { unsettled, unsettledLoss } from "./liveness.js";
import type { Plan } from "../plan/plan.js";
import type { Life } from "../world/process.js";
import { ReadMeter, metered } from "../world/readmeter.js";
import { Server } from "../world/server.js";
import { guarded } from "../world/tripwire.js";
import { World } from "../world/world.js";
import { WaitWorld } from "../waiting/waitworld.js";
import { WatchWorld } from "../watching/watchworld.js";

/** Time in which a healed cluster must serve and agree (ms). */
const PEACE_MS = 30_000;
/** And when nodes join and leave: whoever began to, must have done it by then (ms). */
const MEMBERS_PEACE_MS = 120_000;
/** Without a majority nothing may come of so much peace (ms). */
const LOST_PEACE_MS = 15_000;
/** Pause between the starts of nodes that join (ms). */
const JOIN_EVERY_MS = 100;
/** And when replicas move: a pair of partition and node may rest for five minutes meanwhile (ms). */
const PLACED_PEACE_MS = 600_000;
/** Passes of the allocator in which nothing more may happen. */
const QUIET_PASSES = 22;
/** Clients ask on for this long in peace, then fall silent. */
const LAST_CALLS_MS = 3000;
/** The fastest clock of a world is so much too fast; see the faults of clocks. */
export const CLOCK_DRIFT = 0.05;

export interface RunResult {
  readonly plan: Plan;
  readonly violations: readonly string[];
  readonly traceHash: string;
  readonly events: number;
  readonly simulatedMs: number;
  readonly clients: ClientCounts;
  readonly faults: Readonly<Record<string, number>>;
  readonly starts: number;
  /** Faults that the schedule drew, those left out included. */
  readonly faultsDrawn: number;
  readonly history: History;
  readonly samples: number;
  /** When the disks of a majority were gone; null: they never were. */
  readonly lostAtMs: number | null;
  /** What the outside store says of the tokens that it was shown. */
  readonly fenced: Verdict;
  readonly words: readonly string[];
  readonly backups: BackupRun | null;
  readonly waits: WaitWorld | null;
  readonly watches: WatchWorld | null;
  /** Counts of what the world did beyond faults: torn sectors, lost names and so on. */
  readonly effects: Readonly<Record<string, number>>;
}

export interface RunOptions {
  /** Lines of words kept; 0 = none. */
  readonly linesMax?: number;
  /** Told of everything that nodes do. */
  readonly checks?: Observer;
  /** Called with what reports a violation and ends the run. */
  readonly onViolate?: (violate: (text: string) => void) => void;
  /** Called with the world before it begins: tests plant faults of their own. */
  readonly prepare?: (world: World, servers: readonly Server[]) => void;
}

class Run {
  readonly world: World;
  readonly servers: Server[] = [];
  readonly clients: Client[] = [];
  readonly violations: string[] = [];
  readonly history = new HistoryRecorder(200_000);
  readonly counts: ClientCounts = {
    calls: 0,
    ok: 0,
    refused: 0,
    unknown: 0,
    vanished: 0,
    retries: 0,
  };
  readonly shared: SharedWork = { unique: 1, large: 0, store: new FencedStore() };
  readonly faults: Faults;
  readonly network: SimNetwork;
  readonly atlas: Atlas;
  readonly reads = new ReadMeter();
  /** null: nobody changes who belongs to the cluster. */
  readonly operator: Operator | null;
  /** null: all nodes run the same program. */
  readonly upgrades: Upgrades | null;
  /** null: nobody moves replicas by hand. */
  readonly placer: Placer | null;
  /** null: nobody sets factors, or loses machines. */
  readonly keeper: Keeper | null;
  /** null: nobody moves key ranges. */
  readonly ranges: RangeWorld | null;
  /** null: nobody takes backups. */
  readonly backups: BackupRun | null;
  /** null: nobody waits for locks. */
  readonly waits: WaitWorld | null;
  /** null: nobody watches. */
  readonly watches: WatchWorld | null;
  starts = 0;
  private admitted = 0;
  samples = 0;
  private readonly checks: Observer;

  constructor(
    readonly plan: Plan,
    options: RunOptions,
  ) {
    this.world = new World(plan.seed, options.linesMax ?? 0);
    this.checks = options.checks ?? {};
    const electionMs = plan.host.electionMs ?? 1000;
    const isRepeating = plan.ranges?.aims.includes("late-copy") === true;
    const keepsFrames = isRepeating || plan.faults.includes("replay");
    const silenceMs = electionMs * 0.7;
    this.network = new SimNetwork(this.world, { ...plan.network, silenceMs, keepsFrames });
    for (let count = 1; count <= plan.nodes; count++) this.build();
    this.atlas = new Atlas(this.servers, plan.nodes, this.checks);
    this.faults = new Faults(this.world, plan, this.servers, this.network, this.atlas, () => {
      this.checks.replicas?.removedByForce();
    });
    this.operator = this.makeOperator();
    this.upgrades = this.makeUpgrades();
    for (const server of this.servers) this.upgrades?.built(server);
    this.placer = this.makePlacer();
    this.keeper = this.makeKeeper();
    this.ranges = this.makeRanges();
    this.backups = this.makeBackups();
    for (const server of this.servers) this.backups?.built(server);
    this.waits = this.makeWaits();
    this.watches = this.makeWatches();
    for (let number = 1; number <= plan.clients; number++) {
      const { world, servers, history, counts, shared } = this;
      this.clients.push(new Client(world, plan, number, servers, history, counts, shared));
    }
    this.world.onRun = (life) => {
      if (this.backups?.ran(life) === true) return;
      this.observe(life.node);
      this.observeReads(life);
    };
  }

  /** A machine with the next node id. */
  private build(): Server {
    const nodeId = this.servers.length + 1;
    const server = new Server(this.world, this.plan, nodeId, this.network, {
      violation: (text) => this.violate(text),
      recovered: (...recovered) => this.checks.recovered?.(...recovered),
      sent: (...frame) => this.checks.sent?.(...frame),
      started: (server) => this.started(server),
      wiped: (server) => {
        this.checks.wiped?.(server.nodeId);
        this.checks.replicas?.gone(server.nodeId, this.world.nowMs);
      },
      entry: (node, ...entry) => this.entry(node, ...entry),
      admitted: (server, level) => {
        this.checks.admittedAt?.(server.nodeId, server.runs.levels.max, level);
        this.admitted++;
        this.checks.admitted?.(server.nodeId);
      },
      ...(this.plan.placer === null && this.plan.ranges === null
        ? {}
        : { heard: (heard: Heard): void => this.checks.heard?.(heard) }),
      dropped: (...dropped) => this.checks.dropped?.(...dropped),
      founded: (server, founders) => this.checks.founded?.(server.nodeId, founders),
      rolledBack: (server) => this.checks.rolledBack?.(server.nodeId),
      written: (server, group, entry) => this.written(server, group, entry),
      unsupported: (server, hasWritten) => {
        if (hasWritten) this.checks.wroteBefore?.(server.nodeId);
        return this.upgrades?.isRefusal(server) === true;
      },
      ...(this.plan.backups === null
        ? {}
        : { appended: (...entry) => this.backups?.appended(...entry) }),
      ended: (server, why, kind) => {
        this.backups?.ended(server, kind === "power-loss");
        this.checks.ended?.(server.nodeId, server.lifeNumber, this.world.nowMs, why);
        this.checks.replicas?.gone(server.nodeId, this.world.nowMs);
        this.faults.restartLater(server);
      },
    });
    this.servers.push(server);
    // The founders are there before it.
    (this.upgrades as Upgrades | null | undefined)?.built(server);
    return server;
  }

  private makeOperator(): Operator | null {
    const { world, plan, servers, faults, atlas } = this;
    const { members } = plan;
    if (members === null) return null;
    const build = (): Server => this.build();
    const { replicas } = this.checks;
    return new Operator(world, plan, members, servers, faults, atlas, build, replicas);
  }

  private makePlacer(): Placer | null {
    const { world, plan, servers, checks } = this;
    const hand = plan.placer?.hand ?? null;
    if (hand === null) return null;
    const nobody = { orderedByHand: () => undefined, orderDone: () => undefined };
    return new Placer(world, hand, servers, checks.replicas ?? nobody);
  }

  private makeKeeper(): Keeper | null {
    const { world, plan, servers, faults, atlas, checks } = this;
    const keeper = plan.placer?.keeper ?? null;
    if (keeper === null) return null;
    const refused = (): void => checks.replicas?.removalRefused();
    return new Keeper(world, plan, keeper, servers, faults, atlas, refused);
  }

  private makeRanges(): RangeWorld | null {
    const { world, plan, servers, network, faults, history, checks } = this;
    const { ranges } = checks;
    if (plan.ranges === null || ranges === undefined || ranges === null) return null;
    return new RangeWorld(world, plan, plan.ranges, servers, network, faults, history, ranges);
  }

  private makeBackups(): BackupRun | null {
    const { world, plan, servers, network, history, checks, atlas } = this;
    const { backups, leaderships } = checks;
    if (plan.backups === null || backups === undefined || leaderships === undefined) return null;
    return new BackupRun({
      ...{ world, plan, backups: plan.backups, servers, network, history, leaderships },
      checks: backups,
      violate: (text) => this.violate(text),
      mayLose: (server) => atlas.mayLose(server),
    });
  }

  private makeWaits(): WaitWorld | null {
    const { world, network, plan, servers, history, shared, counts: calls } = this;
    const { waits } = plan;
    if (waits === null) return null;
    const parts = { world, network, plan, waits, servers, history, shared, calls };
    return new WaitWorld(parts, CLOCK_DRIFT);
  }

  private makeWatches(): WatchWorld | null {
    const { world, network, plan, servers } = this;
    const { watches } = plan;
    return watches === null ? null : new WatchWorld({ world, network, plan, watches, servers });
  }

  private makeUpgrades(): Upgrades | null {
    const { world, plan, servers, faults, checks } = this;
    const { upgrades } = plan;
    if (upgrades === null) return null;
    const violate = (text: string): void => this.violate(text);
    return new Upgrades(world, plan, upgrades, servers, faults, checks, violate);
  }

  private written(server: Server, group: number, entry: LogEntry): void {
    this.waits?.written(group, entry);
    const seen = seenEntry(group, entry);
    const { nodeId, runs, storedLevel } = server;
    if (seen !== null) this.checks.written?.(nodeId, runs.levels.max, storedLevel, seen);
  }

  private started(server: Server): void {
    this.starts++;
    const { nodeId, runs, storedLevel } = server;
    this.checks.openedLevel?.(nodeId, runs.levels.max, storedLevel);
    this.checks.started?.(server.nodeId, server.lifeNumber, this.world.nowMs);
    if (!server.isDamaged) this.checks.replicas?.back(server.nodeId);
    this.checks.replicas?.began(server.nodeId, this.world.nowMs);
    this.ranges?.opened(server);
    this.waits?.opened(server);
    this.watches?.opened(server);
    this.backups?.opened(server);
  }

  private entry(node: number, ...entry: Parameters<EntryHook>): void {
    const [group, index, term, previousTerm, digest, isConfig] = entry;
    this.checks.entry?.(node, group, index, term, previousTerm, digest);
    this.ranges?.tap.entry(group, index, term);
    if (isConfig) this.checks.replicas?.configWritten(group, index, term, this.world.nowMs);
  }

  violate(text: string): void {
    this.world.say(0, `VIOLATION: ${text}`);
    this.violations.push(text);
    this.world.end();
  }

  private observe(node: number): void {
    const running = this.servers[node - 1]?.running ?? null;
    if (running === null) return;
    running.watch.look(running.node, this.world.nowMs, this.tell);
  }

  /** What the reads of many keys did in the turn that just ended. */
  private observeReads(life: Life): void {
    const { reads } = this;
    const { node } = life;
    const waiting = this.servers[node - 1]?.running?.operations["serving"].sliced.reads ?? 0;
    if (reads.visits === 0 && waiting === 0) return;
    const { visits, largest, dead } = reads;
    reads.clear();
    if (this.plan.visitMs > 0) life.worked(visits * this.plan.visitMs);
    this.checks.readTurn?.(node, this.world.nowMs, { visits, largest, dead, waiting });
  }

  private readonly tell = (sample: GroupSample): void => {
    this.samples++;
    const { trace } = this.world;
    trace.mix(sample.partition);
    trace.mix(sample.term);
    trace.mix(sample.appliedIndex);
    trace.mix(parseInt(sample.chainDigest.slice(0, 8), 16));
    if (trace.hasWords) {
      const role = sample.serving
        ? "serves"
        : sample.leading
          ? "leads"
          : `follows ${sample.leaderNode}`;
      const { partition, term, appliedIndex, commitIndex, chainDigest } = sample;
      const at = `term ${term}, applied ${appliedIndex}/${commitIndex} ${chainDigest.slice(0, 6)}`;
      this.world.say(sample.node, `partition ${partition}: ${role}, ${at}`);
    }
    const node = this.servers[sample.node - 1]?.running?.node;
    if (node !== undefined) this.atlas.look(node, sample);
    this.backups?.sample(sample);
    this.checks.sample?.(sample);
  };

  /** Runs everything; a bug of the production code becomes a violation. */
  go(): void {
    try {
      for (const server of this.servers) server.start();
      this.startJoiners();
      for (const client of this.clients) client.start();
      this.faults.start();
      this.operator?.start();
      this.upgrades?.start();
      this.placer?.start();
      this.keeper?.start();
      this.ranges?.start();
      this.backups?.start();
      this.waits?.start();
      this.watches?.start();
      this.measure();
      this.world.run(this.plan.ticks);
      this.peace();
    } catch (error) {
      const text = error instanceof Error ? String(error.stack ?? error.message) : String(error);
      this.violate(text);
    }
  }

  /** Those that the plan has beyond the founders, one after the other. */
  private startJoiners(): void {
    const seeds = this.servers.map(({ nodeId }) => nodeId);
    for (let number = 1; number <= this.plan.joiners; number++) {
      this.world.schedule(number * JOIN_EVERY_MS, () => {
        const server = this.build();
        server.seeds = () => seeds;
        server.start();
      });
    }
  }

  /** Sizes, and who runs. */
  private measure(): void {
    this.world.schedule(lookEveryMs(this.plan), () => {
      const committed = this.committed();
      for (const server of this.servers) {
        const { running, nodeId, disk, rows } = server;
        if (running === null) continue;
        const { nowMs } = this.world;
        const isHung = Math.max(disk.hungUntilMs, rows.hungUntilMs) > nowMs;
        const isTroubled = isHung || disk.isFull || rows.isFull || disk.slowness > 1;
        const { inflight, forwardedInFlight } = running.operations;
        const requests = inflight + forwardedInFlight;
        const facts = { ...running.node.facts(), requests, isTroubled, atMs: nowMs };
        this.checks.size?.(nodeId, facts);
        const { life, node } = running;
        for (const { node: peer, linked, program, protocol } of node.links.facts()) {
          if (linked) this.checks.spoken?.(nodeId, server.runs, peer, program, protocol);
        }
        if (!life.isPaused) this.checks.ran?.(nodeId, life.number, nowMs);
        this.checks.refusedBy?.(nodeId, life.number, node.links.takenForLost);
        const snapshots = server.snapshotsInstalled + facts.snapshotsInstalled;
        this.checks.caughtUp?.(nodeId, snapshots, this.lagOf(server, committed));
      }
      if (this.checks.replicas !== undefined && this.plan.placer !== null) {
        lookAtPlacement(this.servers, this.network, this.checks.replicas, this.world.nowMs);
      }
      this.measure();
    });
  }

  /**
   * Entries that leaders have committed and `server` has not applied, of the group where most are
   * missing.
   */
  private lagOf({ running }: Server, committed: ReadonlyMap<PartitionId, number>): number {
    let lag = 0;
    for (const [partition, index] of committed) {
      const own = running?.node.group(partition) ?? null;
      // Who has no replica of a placed partition lacks nothing.
      if (own === null && this.plan.placer !== null) continue;
      lag = Math.max(lag, index - (own?.machine.appliedIndex ?? 0));
    }
    return lag;
  }

  /** How far whoever serves each partition has committed. */
  private committed(): ReadonlyMap<PartitionId, number> {
    const committed = new Map<PartitionId, number>();
    for (const { running } of this.servers) {
      for (const group of running?.node.groups() ?? []) {
        if (!group.isServing()) continue;
        const { partition } = group;
        const index = Math.max(committed.get(partition) ?? 0, group.facts().commitIndex);
        committed.set(partition, index);
      }
    }
    return committed;
  }

  private peace(): void {
    const { world } = this;
    if (world.hasEnded) return;
    world.say(0, "all faults end");
    this.operator?.settle();
    this.placer?.settle();
    this.keeper?.settle();
    this.ranges?.settle();
    this.backups?.settle();
    this.waits?.settle();
    this.watches?.settle();
    this.faults.healAll();
    this.upgrades?.settle();
    const isFixed =
      this.operator === null &&
      this.ranges === null &&
      // Who asks for a pass waits for the lease of one who died, behind another turn.
      this.backups === null &&
      this.plan.joiners === 0 &&
      this.replaced === 0;
    const changesMs = isFixed ? PEACE_MS : MEMBERS_PEACE_MS;
    const peaceMs = this.plan.placer === null ? changesMs : PLACED_PEACE_MS;
    const startMs = world.nowMs;
    const bound = new PeaceBound(startMs, peaceMs);
    world.run(startMs + LAST_CALLS_MS);
    for (const client of this.clients) client.stop();
    this.backups?.stopClients();
    this.waits?.stop();
    this.watches?.stop();
    while (world.nowMs < bound.endMs(world.nowMs, this.isHeldUp()) && !world.hasEnded) {
      world.run(world.nowMs + 500);
      const leastMs = LAST_CALLS_MS + (this.isLost ? LOST_PEACE_MS : 3000);
      if (world.nowMs >= startMs + leastMs && this.unsettled() === null) return this.rest();
    }
    const reason = this.unsettled();
    if (reason !== null && !world.hasEnded) {
      const triedMs = Math.round(world.nowMs - startMs);
      this.violate(`the healed cluster does not come to rest in ${triedMs} ms: ${reason}`);
    }
  }

  private isHeldUp(): boolean {
    const { placer, host } = this.plan;
    const meta = placer === null ? null : newestMeta(this.servers);
    if (meta === null) return false;
    const gone = this.servers.filter((server) => !isOwing(server)).map(({ nodeId }) => nodeId);
    return waitsForTheGone(meta.partitions(), new Set(gone), host.deadMemberMs);
  }

  /** Replicas are where they belong: they stay there. */
  private rest(): void {
    const { world, servers, plan } = this;
    this.ranges?.rest();
    this.backups?.rest();
    this.waits?.rest();
    this.watches?.rest();
    const { replicas } = this.checks;
    if (plan.placer === null || replicas === undefined) return;
    replicas.settled(peaceOf(servers, plan));
    for (const server of servers) replicas.strays(server.strays);
    const before = versionsOf(servers);
    const passes = passesOf(servers);
    const endMs = world.nowMs + QUIET_PASSES * (plan.host.placementPassEveryMs ?? 0) + 1000;
    world.run(endMs);
    replicas.rested(before, versionsOf(servers), passesOf(servers) - passes);
  }

  /** Nodes that somebody removed and took in again, or is about to. */
  get replaced(): number {
    const { repairs } = this.faults;
    return repairs.counts["nodes replaced"] + (repairs.unfinished() === null ? 0 : 1);
  }

  /** The disks of a majority are gone. */
  private get isLost(): boolean {
    return this.lostAtMs !== null;
  }

  private get lostAtMs(): number | null {
    return this.faults.disaster?.lostAtMs ?? null;
  }

  /** Why the cluster is not whole; null when it is. */
  private unsettled(): string | null {
    const reason = this.isLost ? unsettledLoss(this) : unsettled(this);
    if (reason !== null) return reason;
    const others = this.upgrades?.unfinished() ?? this.ranges?.unsettled() ?? null;
    const open = others ?? this.backups?.unsettled() ?? this.watches?.unsettled() ?? null;
    if (open !== null) return open;
    if (this.waits?.isWaiting === true) return "somebody waits for a lock";
    return this.clients.some((client) => client.isWaiting) ? "a client still waits" : null;
  }

  result(): RunResult {
    const { world, servers } = this;
    const effects: Record<string, number> = {};
    const add = (name: string, count: number): void => {
      effects[name] = (effects[name] ?? 0) + count;
    };
    for (const [name, count] of Object.entries(this.operator?.counts ?? {})) {
      add(`members ${name}`, count);
    }
    for (const [name, count] of Object.entries(this.upgrades?.counts ?? {})) {
      add(`upgrades ${name}`, count);
    }
    for (const [name, count] of Object.entries(this.placer?.counts ?? {})) {
      add(`replicas ${name}`, count);
    }
    for (const [name, count] of Object.entries(this.keeper?.counts ?? {})) {
      add(`placement ${name}`, count);
    }
    for (const [name, count] of Object.entries(this.ranges?.ranger.counts ?? {})) {
      add(`ranges ${name}`, count);
    }
    for (const [name, count] of Object.entries(this.backups?.counts ?? {})) {
      add(`backups ${name}`, count);
    }
    for (const [name, count] of Object.entries(this.faults.repairs.counts)) {
      add(`losses ${name}`, count);
    }
    add("losses majorities", this.isLost ? 1 : 0);
    add("members admitted", this.admitted);
    add("work large values", this.shared.large);
    for (const server of servers) {
      const { disk, rows } = server;
      add("snapshots installed", snapshotsOf(server));
      for (const [name, count] of Object.entries(disk.counts)) add(`disk ${name}`, count);
      for (const [name, count] of Object.entries(rows.counts)) add(`store ${name}`, count);
    }
    for (const [name, count] of Object.entries(this.network.counts)) add(`network ${name}`, count);
    return {
      plan: this.plan,
      violations: this.violations,
      traceHash: world.trace.hash(),
      events: world.events,
      simulatedMs: world.nowMs,
      clients: this.counts,
      faults: this.faults.seen,
      starts: this.starts,
      faultsDrawn: this.faults.count,
      history: this.history.history(world.nowMs),
      samples: this.samples,
      lostAtMs: this.lostAtMs,
      fenced: this.shared.store.verdict(),
      words: world.trace.words(),
      effects,
      backups: this.backups,
      waits: this.waits,
      watches: this.watches,
    };
  }
}

/** Snapshots that a machine installed in all its lives. */
function snapshotsOf({ snapshotsInstalled, running }: Server): number {
  return snapshotsInstalled + (running?.node.facts().snapshotsInstalled ?? 0);
}

/** How often whoever runs is looked at (ms): once a second; in a long run less often. */
export function lookEveryMs({ ticks }: Pick<Plan, "ticks">): number {
  return Math.max(1000, ticks / 10_000);
}

/** Runs the world of `plan` to its end. */
export function runPlan(plan: Plan, options: RunOptions = {}): RunResult {
  const run = new Run(plan, options);
  options.prepare?.(run.world, run.servers);
  options.onViolate?.((text) => run.violate(text));
  guarded(() => metered(run.reads, () => run.go()));
  return run.result();
}
