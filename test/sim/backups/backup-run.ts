/**
 * The part of a run that is about backups: who takes them, who restores, what becomes of the clusters
 * that come of it, and what is looked at meanwhile.
 *
 * Invariants: 1. Looking changes nothing. 2. Backups are taken, collected and restored by what ships,
 * through the operations of the nodes. 3. In peace everything that was begun ends.
 */
import { assert } from "../../../src/base/assert.js";
import { HOLD_LAPSES_MS } from "../../../src/base/limits.js";
import type {
  BackupRequest,
  BackupTaken,
  SubstitutionReason,
} from "../../../src/host/backups/backup-taking.js";
import type { Node } from "../../../src/host/node.js";
import type { BackupWorld } from "../../../src/operations/api/backup-world.js";
import type { LogEntry } from "../../../src/ports.js";
import { catalogueName } from "../../../src/backup/names.js";
import { falseSignatures } from "../../doubles/backup/false-archive.js";
import type { HistoryRecorder } from "../../judge/history.js";
import type { Leaderships } from "../../judge/checkers/clients/leaderships.js";
import type { Prng } from "../../../src/base/prng.js";
import type { SimNetwork } from "../net/network.js";
import { type Plan, nodeAt } from "../plan/plan.js";
import type { GroupSample } from "../world/observe.js";
import type { LogMirror } from "../world/logmirror.js";
import type { Life } from "../world/process.js";
import { type Running, type Server, homeOf } from "../world/server.js";
import type { World } from "../world/world.js";
import { Asker } from "./asker.js";
import type { BackupChecks } from "./backup-checks.js";
import type { BackupPlan } from "../plan/backup-plan.js";
import { backupPortsOf } from "./backup-ports.js";
import { ChainReader } from "./chain-reader.js";
import { ChainWriter } from "./chain-writer.js";
import { DirectoryFaults } from "./directory-faults.js";
import { LastBackups } from "./last-backups.js";
import { KnownCluster } from "./known-clusters.js";
import { PauseLook } from "./pause-look.js";
import { Catalogued, type Published } from "./published.js";
import { RestoreRoot } from "./restore-root.js";
import { Restorer } from "./restorer.js";
import { SharedDirectory } from "./shared-directory.js";
import { Truth } from "./truth.js";

/** How often, and how far apart (ms), leases are looked at until there is none. */
const LEASE_LOOKS = 100;
const LEASE_LOOK_MS = 97;

/** A key range is on its way, as far as they know. */
function isMoving(servers: readonly Server[]): boolean {
  return servers.some(({ running }) => {
    if (running === null || running.node.closing) return false;
    return running.node.metaGroup().machine.meta.moves().length > 0;
  });
}

function holdsOf(running: Running | null): number {
  return running?.node.facts().backupLog.holds ?? 0;
}

/** A backup that a node is taking. */
interface Taking {
  readonly request: BackupRequest;
  readonly sinceMs: number;
  readonly leaderChanges: number;
  /** A key range was on its way when it began. */
  readonly isBesideMove: boolean;
  phase: string;
}

/** An incremental backup that was asked for. */
export interface AskedIncrement {
  readonly parentId: string;
  /** Every replica had the log from the end of the parent on, all the time. */
  readonly hasAllLogs: boolean;
  /** Why a Full was taken instead; undefined: nobody was told what came of it. */
  readonly substitution: SubstitutionReason | null | undefined;
}

export interface BackupRunParts {
  readonly world: World;
  readonly plan: Plan;
  readonly backups: BackupPlan;
  readonly servers: readonly Server[];
  readonly network: SimNetwork;
  readonly history: HistoryRecorder;
  readonly leaderships: Leaderships;
  readonly checks: BackupChecks;
  readonly violate: (text: string) => void;
  /** Whether the data of a machine may be lost for good. */
  readonly mayLose: (server: Server) => boolean;
}

export class BackupRun {
  readonly directory: SharedDirectory;
  readonly catalogued: Catalogued;
  readonly root: RestoreRoot;
  readonly restorer: Restorer;
  readonly first: KnownCluster;
  readonly faults: DirectoryFaults;
  /** By id of what was taken as an incremental backup. */
  readonly increments = new Map<string, AskedIncrement>();
  private readonly truth: Truth;
  private readonly asker: Asker;
  private readonly writers: ChainWriter[] = [];
  private readonly takings = new Map<number, Taking>();
  private readonly last: LastBackups;
  private readonly crashes: Prng;
  private readonly whom: Prng;
  private isPeace = false;
  private readonly pauses: PauseLook;
  private readonly signatures: ReturnType<typeof falseSignatures>;
  /** The newest term of each group that anybody led in. */
  private readonly terms = new Map<number, number>();
  private leaderChanges = 0;
  private changes = 0;
  private dryRun: { readonly ids: readonly string[]; readonly changes: number } | null = null;

  constructor(readonly parts: BackupRunParts) {
    const { world, plan, backups, servers, history, checks } = parts;
    this.truth = new Truth(() => world.nowMs);
    this.signatures = falseSignatures(backups.key);
    this.directory = new SharedDirectory(world, "backups", backups.callMs);
    this.directory.watch = (call, path) => this.changed(call, path);
    const reader = new ChainReader(this.directory, this.signatures);
    this.catalogued = new Catalogued(this.directory, reader, checks);
    const commitMs = plan.disk.writeMs;
    const { directory, signatures } = this;
    this.root = new RestoreRoot(world, directory, signatures, backups.callMs, commitMs);
    this.root.directory.watch = (_call, path) => checks.targets.changed(path, this.root.targets);
    const { founders, clusterId } = homeOf(plan);
    const partitions = plan.host.initialPartitions ?? 1;
    this.first = new KnownCluster(
      ...(["the first cluster", clusterId, servers, this.truth, history] as const),
      ...([parts.leaderships, founders, partitions, null] as const),
    );
    const left = (): readonly Server[] => this.restorer.forced?.servers ?? servers;
    this.asker = new Asker(world, backups, () => this.anyCluster(left()), this.view());
    this.crashes = world.prng("crashes of keepers");
    this.whom = world.prng("whose backups");
    this.faults = new DirectoryFaults(world, backups, directory, this.catalogued);
    this.pauses = new PauseLook(world, () => this.allServers(), checks.pauses);
    const { requestTimeoutMs } = plan;
    const { chainThinkMs } = backups;
    for (let number = 1; number <= backups.chainWriters; number++) {
      this.writers.push(
        new ChainWriter(
          ...([world, number, partitions, requestTimeoutMs, chainThinkMs] as const),
          ...([servers, history] as const),
        ),
      );
    }
    this.restorer = new Restorer(this);
    this.last = new LastBackups(this, left);
    parts.network.met = (from, to, isLetIn) => checks.strangers.met(from, to, isLetIn);
  }

  private view(): ConstructorParameters<typeof Asker>[3] {
    const { checks } = this.parts;
    return {
      published: () => this.catalogued.ids,
      answered: (_server, kind, said) => checks.went.count(`${kind}: ${said}`),
      collected: (isDry, ids, changes) => {
        const before = this.dryRun;
        this.dryRun = isDry ? { ids, changes } : null;
        if (isDry || before === null) return;
        // Only where nothing at all happened between the two.
        if (before.changes === changes) checks.collection.dryRun(before.ids, ids);
      },
      changes: () => this.changes,
    };
  }

  /** Mostly the one that is there all the time; now and then one that was restored. */
  private anyCluster(left: readonly Server[]): readonly Server[] {
    const { clusters } = this.restorer;
    const other = clusters[this.whom.below(Math.max(1, clusters.length))];
    return other !== undefined && this.whom.chance(1, 4) ? other.servers : left;
  }

  /** The machine of a keeper may go down in any phase. */
  private crashKeeper(node: number): void {
    const { backups, world } = this.parts;
    if (this.isPeace || !this.crashes.chance(backups.keeperCrashPercent, 100)) return;
    const kind = this.crashes.chance(1, 2) ? "kill" : "power-loss";
    world.schedule(this.crashes.below(20), () => {
      if (this.isPeace || !this.takings.has(node)) return;
      const server = this.allServers().find(({ nodeId, isUp }) => nodeId === node && isUp);
      server?.end(kind, "it goes down while it takes a backup");
    });
  }

  /** Of all clusters. */
  allServers(): readonly Server[] {
    return [...this.parts.servers, ...this.restorer.clusters.flatMap(({ servers }) => servers)];
  }

  /** A machine of any cluster was built. */
  built(server: Server): void {
    server.backupsOf = (life, node) => this.portsOf(server, life, node);
  }

  private portsOf(server: Server, life: Life, node: Node): BackupWorld {
    const { backups } = this.parts;
    return backupPortsOf({
      ...{ life, node, plan: backups, backups: this.directory, signatures: this.signatures },
      restoring: this.root.restoring(life, server.logger()),
      watch: {
        phase: (id, request, phase) => this.phase(id, request, phase),
        taken: (id, end) => this.taken(id, end),
      },
    });
  }

  appended(group: number, entry: LogEntry): void {
    this.truth.appended(group, entry);
  }

  /** A life of the first cluster is open. */
  opened(server: Server): void {
    if (server.running !== null) this.truth.attach(server.running.node);
  }

  /** A life of any cluster ended. */
  ended(server: Server, isPowerLoss: boolean): void {
    const taking = this.takings.get(server.nodeId);
    this.takings.delete(server.nodeId);
    if (taking !== undefined) this.parts.checks.went.count(`crashes in phase ${taking.phase}`);
    this.restorer.lifeEnded(server);
    if (!isPowerLoss) return;
    this.directory.powerLost(server.nodeId);
    this.root.directory.powerLost(server.nodeId);
    this.catalogued.afterCrash((id) => this.published(id));
  }

  /** True when it is a life of a restored cluster. */
  ran(life: Life): boolean {
    return this.restorer.clusters.some((cluster) => cluster.ran(life));
  }

  /** A group of the first cluster looks other than before. */
  sample({ leading, partition, term }: GroupSample): void {
    if (!leading || term <= (this.terms.get(partition) ?? 0)) return;
    this.terms.set(partition, term);
    this.leaderChanges++;
  }

  private phase(node: number, request: BackupRequest, phase: string): void {
    const known = this.takings.get(node);
    if (phase !== "beginning" && known !== undefined) known.phase = phase;
    else if (known === undefined) {
      const { leaderChanges } = this;
      const { world, plan } = this.parts;
      const keepers = this.allServers().filter(({ nodeId }) => nodeId === node);
      const isBesideMove = plan.ranges !== null && isMoving(keepers);
      const taking = { request, sinceMs: world.nowMs, leaderChanges, isBesideMove, phase };
      this.takings.set(node, taking);
    }
    this.crashKeeper(node);
    if (request.kind === "coordinated" && phase === "marks") this.pauses.begin();
  }

  private taken(node: number, end: BackupTaken): void {
    this.takings.delete(node);
    if (!end.ok) {
      if (end.code === "TopologyChanged") this.parts.checks.went.count("ended by range changes");
      return;
    }
    const { backupId } = end.manifest;
    this.catalogued.acknowledged.add(backupId);
    const asked = this.increments.get(backupId);
    if (asked === undefined) return;
    this.increments.set(backupId, { ...asked, substitution: end.substitutionReason });
  }

  private changed(call: string, path: string): void {
    this.changes++;
    if (path.includes("/") || (call !== "rename" && call !== "remove")) return;
    this.catalogued.look((id) => this.published(id));
  }

  /** A cluster by the id that it gave itself. */
  private clusterNamed(lineage: string): KnownCluster {
    const all = [this.first, ...this.restorer.known];
    const found = all.find(({ clusterId }) => clusterId === lineage);
    assert(found !== undefined, `cluster ${lineage} is one of this world`);
    return found;
  }

  /** A manifest has its name. */
  private published(id: string): void {
    const { world, checks } = this.parts;
    let node = 0;
    const published = this.catalogued.take(id, (lineage, keeper) => {
      node = nodeAt(keeper);
      const askedMs = this.takings.get(node)?.sinceMs ?? -Infinity;
      return { cluster: this.clusterNamed(lineage), askedMs, atMs: world.nowMs };
    });
    if (published === null) return;
    const taking = this.takings.get(node);
    const { cluster } = published;
    if (taking?.request.kind === "incremental") this.increment(published, taking);
    const { went } = checks;
    const { type, clusterSnapshot } = published.manifest;
    const isCoordinated = clusterSnapshot !== null;
    went.count(isCoordinated ? "coordinated cuts" : type === "Full" ? "fulls" : "increments");
    world.say(node, `published ${id}: ${isCoordinated ? "coordinated" : type}`);
    if (taking?.isBesideMove === true) went.count("backups that waited for a range");
    if (!isCoordinated) return;
    if ((taking?.leaderChanges ?? this.leaderChanges) < this.leaderChanges) {
      went.count("coordinated cuts with a leader change inside");
    }
    const ahead = cluster.servers.map(({ clockError }) => clockError.wallOffsetMs);
    const apartMs = Math.max(...ahead) - Math.min(...ahead);
    if (apartMs > 1000) went.count("coordinated cuts with clocks apart");
  }

  private increment({ id, cluster }: Published, { request, sinceMs }: Taking): void {
    if (request.kind !== "incremental") return;
    const { parentId } = request;
    const parent = this.catalogued.published.get(parentId);
    // Floors only rise: what is there now was there all the time.
    const hasAllLogs =
      parent !== undefined &&
      cluster.servers.every(({ running, life }) => {
        if (running === null || life === null || life.beganMs > sinceMs) return false;
        const { log } = running.node["ports"];
        return parent.manifest.partitionRanges.every(({ partition, toIndex }) => {
          return (log as LogMirror).termAt(partition, toIndex) !== null;
        });
      });
    this.increments.set(id, { parentId, hasAllLogs, substitution: undefined });
  }

  /** What each client that writes in chains has written, in order. */
  chains(): readonly (readonly string[])[] {
    return this.writers.map(({ values }) => values);
  }

  start(): void {
    const { world, backups, servers } = this.parts;
    const prng = world.prng("clocks apart");
    for (const { clockError } of servers) {
      const { clocksApartMs } = backups;
      if (clocksApartMs > 0) clockError.wallOffsetMs += prng.below(clocksApartMs);
    }
    this.asker.start();
    for (const writer of this.writers) writer.start();
    this.faults.start();
    this.restorer.start();
  }

  settle(): void {
    this.isPeace = true;
    this.asker.stop();
    this.faults.heal();
    for (const writer of this.writers) writer.stop();
    this.restorer.settle();
    this.last.start();
  }

  stopClients(): void {
    for (const cluster of this.restorer.clusters) cluster.stopClients();
  }

  unsettled(): string | null {
    if (this.asker.isWaiting) return "somebody waits for a backup";
    if (this.takings.size > 0) return "a backup is being taken";
    if (this.writers.some((writer) => writer.isWaiting)) return "a chain waits for an answer";
    return this.restorer.unsettled() ?? this.last.unsettled();
  }

  /** Everything came to rest. */
  rest(): void {
    const { checks, world } = this.parts;
    const isHeld = (): boolean => this.allServers().some(({ running }) => holdsOf(running) > 0);
    // What a keeper that died had held ends by itself.
    if (isHeld()) world.run(world.nowMs + HOLD_LAPSES_MS * 1.1);
    for (const { nodeId, running, isLost, isRetired } of this.allServers()) {
      if (running === null || isLost || isRetired) continue;
      const { node } = running;
      const pauses = node
        .groups()
        .filter((group) => group["replica"].pauses.cut.isOn(node.nowMs()));
      const holds = holdsOf(running);
      checks.holds.node({ node: nodeId, holds, pauses: pauses.length, isWorking: false });
    }
    // Passes of the collection come again and again: each ends.
    for (let look = 0; look < LEASE_LOOKS && this.leases().length > 0; look++) {
      world.run(world.nowMs + LEASE_LOOK_MS);
    }
    checks.holds.common(this.leases(), []);
    this.catalogued.verifyAll("at the end");
  }

  /** Leases that somebody who lives has left, though nothing was in the way. */
  private leases(): string[] {
    if (this.directory.counts.failed > 0) return [];
    const left: string[] = [];
    for (const [name, { author }] of this.directory.root.names) {
      if (catalogueName(name).kind !== "lease") continue;
      const owner = this.allServers().find(({ nodeId }) => author === `node ${nodeId}`);
      const isOfThisLife = owner?.lifeNumber === 1 && owner.isUp;
      if (isOfThisLife) left.push(name);
    }
    return left;
  }

  get counts(): Readonly<Record<string, number>> {
    const { directory, faults, restorer } = this;
    const ofDirectory = Object.entries(directory.counts).map(
      ([name, count]) => [`directory ${name}`, count] as const,
    );
    const ofFaults = Object.entries(faults.counts).map(
      ([name, count]) => [`directory fault ${name}`, count] as const,
    );
    const calls = restorer.clusters.reduce((sum, { counts }) => sum + counts.ok, 0);
    const kills = restorer.clusters.reduce((sum, cluster) => sum + cluster.kills, 0);
    const ofClusters = { "restored calls": calls, "restored kills": kills };
    return { ...Object.fromEntries([...ofDirectory, ...ofFaults]), ...ofClusters };
  }
}
