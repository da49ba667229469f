/**
 * Whoever restores backups, and starts clusters on what comes of it: in the middle of everything, the
 * same backup twice, to its end or to a time in it.
 *
 * Invariants: 1. A restore is asked for like everything else, through the operations of a node. 2. A
 * cluster is started on what a restore left, and on nothing else.
 */
import { COUNTER_MAX } from "../../../src/base/hlc.js";
import { uuidOf } from "../../../src/backup/names.js";
import type { Prng } from "../../../src/base/prng.js";
import { IDENTITY_KEY } from "../../../src/host/storage/identity.js";
import type { ByteKey } from "../../../src/machine/store/keys.js";
import { call } from "../../doubles/operations/administration.js";
import type { SimRows } from "../disk/store.js";
import type { Server } from "../world/server.js";
import { wordsOf } from "./asker.js";
import type { BackupRun } from "./backup-run.js";
import { Forcing, type ForcedEnds } from "./forcing.js";
import { KnownCluster } from "./known-clusters.js";
import type { Published } from "./published.js";
import { RESTORE_ROOT } from "./restore-root.js";
import { SecondCluster } from "./second-cluster.js";
import type { Beginning } from "./shadow.js";

const BOUND_MS = 60_000;
const AGAIN_MS = 400;
/** Faults that a restore may end in although its backup is whole: something was in the way. */
const IN_THE_WAY = new Set(["IoError", "Cancelled", "TargetConflict"]);

/** A state that a restore made, or an act that made a new cluster. */
export interface MadeState {
  readonly name: string;
  readonly rows: Beginning;
  /** What it comes from. */
  readonly from: KnownCluster;
  /** The backup, and the time in it (0 = the end); null: it was forced, and ends there. */
  readonly leaf: Published | null;
  readonly targetTimeMs: number;
  readonly ends: ForcedEnds;
  /** The cluster that began with it; null: it was looked at only. */
  readonly known: KnownCluster | null;
  readonly beganMs: number;
}

export class Restorer {
  readonly clusters: SecondCluster[] = [];
  /** The same, as backups know them. */
  readonly known: KnownCluster[] = [];
  readonly made: MadeState[] = [];
  /** The cluster that was forced out of what was left of the first one. */
  forced: SecondCluster | null = null;
  private isForcing = false;
  private readonly prng: Prng;
  private isSettled = false;
  private asked = 0;
  private open: { readonly server: Server; readonly target: string } | null = null;
  private last: Published | null = null;

  constructor(private readonly run: BackupRun) {
    this.prng = run.parts.world.prng("restorer");
  }

  start(): void {
    const { world, plan } = this.run.parts;
    world.schedule(plan.ticks * (0.25 + this.prng.below(20) / 100), () => this.act());
    if (!this.run.parts.backups.isForced) return;
    world.schedule(plan.ticks * (0.6 + this.prng.below(20) / 100), () => this.force());
  }

  settle(): void {
    this.isSettled = true;
    for (const cluster of this.clusters) cluster.settle();
  }

  unsettled(): string | null {
    if (this.open !== null) return "a restore is under way";
    if (this.isForcing && this.forced === null) return "a cluster is being forced";
    for (const cluster of this.clusters) {
      const reason = cluster.unsettled();
      if (reason !== null) return reason;
    }
    return null;
  }

  private later(afterMs: number): void {
    this.run.parts.world.schedule(afterMs, () => this.act());
  }

  private act(): void {
    const { backups, plan } = this.run.parts;
    if (this.isSettled || this.clusters.length >= backups.restores) return;
    const leaf = this.leaf();
    if (leaf === null) return this.later(AGAIN_MS);
    this.restore(leaf, () => {
      const isMade = this.clusters.length > 0;
      this.later(isMade ? this.prng.below(plan.ticks / 4) : AGAIN_MS);
    });
  }

  /** The one of last time, or any. */
  private leaf(): Published | null {
    const { catalogued } = this.run;
    const { ids } = catalogued;
    if (this.last !== null && ids.includes(this.last.id) && this.prng.chance(1, 2)) {
      return this.last;
    }
    const id = ids[this.prng.below(Math.max(1, ids.length))];
    return id === undefined ? null : (catalogued.published.get(id) ?? null);
  }

  private restore(leaf: Published, done: () => void): void {
    const { parts } = this.run;
    const servers = this.run.allServers().filter(({ running }) => running !== null);
    const server = servers[this.prng.below(Math.max(1, servers.length))];
    if (server === undefined || server.running === null) return done();
    const { life, operations } = server.running;
    const target = `r${++this.asked}`;
    const targetTimeMs = this.targetTime(leaf);
    this.open = { server, target };
    // What is turned later may have been read before.
    const wasSpoilt = this.run.catalogued.spoilt.has(leaf.id);
    let isOpen = true;
    const ended = (): boolean => {
      if (!isOpen) return false;
      isOpen = false;
      this.open = null;
      server.closeCall(waiting);
      return true;
    };
    const waiting = {
      ended: () => {
        if (!ended()) return;
        parts.checks.went.count("crashes in a restore");
        done();
      },
      disturbed: () => undefined,
    };
    server.openCall(waiting);
    const request = {
      ...{ leafBackupId: uuidOf(leaf.id), targetDir: `${RESTORE_ROOT}/${target}` },
      ...{ targetTimeMs: BigInt(targetTimeMs), sequenceSkip: 0n },
    };
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + BOUND_MS;
      const context = { deadlineMs, forwardHops: 0, requestId: target };
      call(operations, "backups.restore", request, context, (end) => {
        if (!ended()) return;
        const isDone = "answer" in end;
        this.said(leaf, target, isDone, wordsOf(end));
        if (isDone && wasSpoilt) parts.checks.whole.spoilt(leaf.id, false);
        if (isDone) this.begin(leaf, target, targetTimeMs);
        done();
      });
    });
  }

  private said(leaf: Published, target: string, isDone: boolean, said: string): void {
    const { parts, root, catalogued, faults } = this.run;
    const { checks, world } = parts;
    checks.went.count(`restore: ${said}`);
    world.say(0, `restore of ${leaf.id} to ${target}: ${said}`);
    const hasNoise = root.directory.counts.failed > 0;
    if (isDone || !hasNoise) checks.targets.ended(target, isDone, root.isThere(target));
    if (isDone || IN_THE_WAY.has(said) || catalogued.spoilt.has(leaf.id)) return;
    if (faults.isTroubled || said === "overloaded" || said === "shutting-down") return;
    const isWhole = catalogued.ids.includes(leaf.id) && catalogued.reader.validate(leaf.id).ok;
    checks.whole.restored(leaf.id, isWhole ? said : null);
  }

  /** 0 = the end; else a time between the first and the last that the chain has. */
  private targetTime(leaf: Published): number {
    if (this.prng.chance(1, 2)) return 0;
    const [root = leaf] = this.run.catalogued.chainOf(leaf);
    const from = Math.max(...root.manifest.partitionRanges.map(({ fromStamp }) => fromStamp.l));
    const to = Math.min(...leaf.manifest.partitionRanges.map(({ toStamp }) => toStamp.l));
    if (to < from) return 0;
    const inside = this.sharedTimes(leaf).filter((atMs) => atMs >= from && atMs <= to);
    if (inside.length > 0 && this.prng.chance(2, 3)) {
      return inside[this.prng.below(inside.length)] as number;
    }
    return from + this.prng.below(to - from + 1);
  }

  /** Milliseconds with several entries of a partition: they are restored whole or not at all. */
  private sharedTimes({ cluster: { truth } }: Published): number[] {
    return truth.partitions.flatMap((partition) => {
      return truth.entries(partition).flatMap((entry) => {
        const { l = 0, c = 0 } = entry?.stamp ?? {};
        return c > 0 && c < COUNTER_MAX ? [l] : [];
      });
    });
  }

  private begin(leaf: Published, target: string, targetTimeMs: number): void {
    const { parts, root } = this.run;
    const { world, checks } = parts;
    const request = { leafId: leaf.id, targetDir: target, targetTimeMs, sequenceSkip: 0n };
    const restored = root.found(target, request);
    if (restored === null) return checks.targets.ended(target, true, false);
    checks.went.count("restores");
    if (this.made.some((one) => one.leaf === leaf))
      checks.went.count("second restores of a backup");
    if (this.made.length > 0) checks.went.count("second restores");
    this.last = leaf;
    const number = this.clusters.length + 1;
    const { mark, rows } = restored;
    const name = `restored cluster ${number}`;
    const { known } = this.found(rows, mark.clusterId, this.placeFor(number), name);
    this.made.push({
      ...{ name, leaf, targetTimeMs, known, rows: rowsOf(rows), from: leaf.cluster },
      ...{ ends: new Map(), beganMs: world.nowMs },
    });
  }

  /** Starts a cluster on rows that a restore left. */
  private found(
    stored: SimRows,
    clusterId: string,
    firstNode: number,
    name: string,
  ): { readonly cluster: SecondCluster; readonly known: KnownCluster } {
    const { parts } = this.run;
    const { world, plan, network, checks, backups } = parts;
    const number = this.clusters.length + 1;
    checks.strangers.began(clusterId, [
      parts.servers[0]?.home.clusterId ?? "",
      ...this.known.map((known) => known.clusterId),
    ]);
    const [copy, rows] = [stored.copy(), rowsOf(stored)];
    const cluster = new SecondCluster(world, plan, network, {
      ...{ number, name, clusterId, firstNode, rows, copy, grows: backups.grows },
      violate: parts.violate,
      built: (server) => this.run.built(server),
      ended: (server, isPowerLoss) => this.run.ended(server, isPowerLoss),
    });
    const partitions = plan.host.initialPartitions ?? 1;
    const known = new KnownCluster(
      ...([name, clusterId, cluster.servers, cluster.truth, cluster.history] as const),
      ...([cluster.checks.leaderships, [firstNode], partitions, rows] as const),
    );
    this.clusters.push(cluster);
    this.known.push(known);
    cluster.start();
    if (this.isSettled) cluster.settle();
    return { cluster, known };
  }

  /** A restore that no cluster is started on: it is compared all the same. */
  lookedAt(leafId: string, target: string): void {
    const { root, catalogued, parts } = this.run;
    const leaf = catalogued.published.get(leafId);
    const request = { leafId, targetDir: target, targetTimeMs: 0, sequenceSkip: 0n };
    const restored = root.found(target, request);
    if (restored === null) return parts.checks.targets.ended(target, true, false);
    if (leaf === undefined) return;
    parts.checks.went.count("restores");
    this.made.push({
      ...{ name: "the last restore", leaf, targetTimeMs: 0, known: null, from: leaf.cluster },
      ...{ rows: rowsOf(restored.rows), ends: new Map(), beganMs: parts.world.nowMs },
    });
  }

  /** All machines of the first cluster are gone but one, of which a new cluster is made. */
  private force(): void {
    const { parts, first } = this.run;
    const { world, servers, violate, checks } = parts;
    const isWhole = ({ isLost, isDamaged, isRetired, rows }: Server): boolean => {
      return !isLost && !isDamaged && !isRetired && rows.get(IDENTITY_KEY) !== undefined;
    };
    const left = servers.filter(isWhole);
    const survivor = left[this.prng.below(Math.max(1, left.length))];
    if (this.isSettled || survivor === undefined) return;
    this.isForcing = true;
    for (const server of servers) {
      server.isRetired = true;
      server.end(this.prng.chance(1, 2) ? "kill" : "power-loss", "its cluster is given up");
    }
    survivor.disk.hungUntilMs = 0;
    survivor.rows.hungUntilMs = 0;
    survivor.rows.isFull = false;
    survivor.disk.isFull = false;
    survivor.disk.failNext = false;
    const clusterId = this.prng.nextUint32().toString(16).padStart(32, "0");
    const done = (ends: ForcedEnds): void => {
      checks.went.count("forced clusters");
      const name = "forced cluster";
      const { rows, nodeId } = survivor;
      const { cluster, known } = this.found(rows, clusterId, nodeId, name);
      this.forced = cluster;
      this.made.push({
        ...{ name, leaf: null, targetTimeMs: 0, known, rows: rowsOf(rows), from: first, ends },
        beganMs: world.nowMs,
      });
    };
    const failed = (why: string): void => {
      // A node that never was of the cluster has none.
      checks.went.count(`forced in vain`);
      if (!/holds no cluster|can be forced from level/.test(why)) violate(`forcing: ${why}`);
      this.isForcing = false;
    };
    new Forcing(survivor, clusterId, this.prng, done, failed).begin();
  }

  /** An id of its own, or the place of a machine of the first cluster that is gone for good. */
  private placeFor(number: number): number {
    const { parts } = this.run;
    const gone = parts.servers.at(-1);
    const isFree = number === 1 && parts.backups.takesPlace && gone !== undefined;
    if (!isFree || gone.isLost || gone.isRetired || !parts.mayLose(gone)) return 10 * number + 1;
    gone.isRetired = true;
    gone.end("kill", "its machine was given to a restored cluster");
    parts.checks.went.count("restored nodes in the place of another");
    return gone.nodeId;
  }

  /** A life ended; whoever waits for it hears of that by itself. */
  lifeEnded(server: Server): void {
    if (this.open?.server === server) this.run.parts.checks.went.count("restores cut short");
  }
}

/** What is stored, without its checksums. */
function rowsOf(stored: SimRows): Beginning {
  const rows = new Map<ByteKey, Uint8Array>();
  for (const key of stored.copy().keys()) rows.set(key, stored.value(key) ?? new Uint8Array(0));
  return rows;
}
