/**
 * Whoever restores backups, and starts clusters on what comes of it: in the middle of everything, the
 * same backup twice, to its end or to a time in it.
 *
 * Invariants: 1. A restore is asked for like everything else, through the operations of a node. 2. A
 * cluster is started on what a restore left, and on nothing else.
 */
import { uuidOf } from "../../../src/backup/names.js";
import type { Prng } from "../../../src/base/prng.js";
import type { ByteKey } from "../../../src/machine/store/keys.js";
import { call } from "../../doubles/operations/administration.js";
import type { Server } from "../world/server.js";
import { wordsOf } from "./asker.js";
import type { BackupRun } from "./backup-run.js";
import { KnownCluster } from "./known-clusters.js";
import type { Published } from "./published.js";
import { RESTORE_ROOT, type Restored } from "./restore-root.js";
import { SecondCluster } from "./second-cluster.js";

const BOUND_MS = 60_000;
const AGAIN_MS = 400;
/** Faults that a restore may end in although its backup is whole: something was in the way. */
const IN_THE_WAY = new Set(["IoError", "Cancelled", "TargetConflict"]);

/** A restore that came to a cluster. */
export interface RestoredCluster {
  readonly cluster: SecondCluster;
  readonly known: KnownCluster;
  readonly restored: Restored;
  readonly leaf: Published;
  /** 0 = the end. */
  readonly targetTimeMs: number;
}

export class Restorer {
  readonly clusters: SecondCluster[] = [];
  /** The same, as backups know them. */
  readonly known: KnownCluster[] = [];
  readonly made: RestoredCluster[] = [];
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
  }

  settle(): void {
    this.isSettled = true;
    for (const cluster of this.clusters) cluster.settle();
  }

  unsettled(): string | null {
    if (this.open !== null) return "a restore is under way";
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
    return to < from ? 0 : from + this.prng.below(to - from + 1);
  }

  private begin(leaf: Published, target: string, targetTimeMs: number): void {
    const { parts, root, catalogued } = this.run;
    const { world, plan, network, checks, backups } = parts;
    const request = { leafId: leaf.id, targetDir: target, targetTimeMs, sequenceSkip: 0n };
    const restored = root.found(target, request);
    if (restored === null) return checks.targets.ended(target, true, false);
    checks.went.count("restores");
    if (catalogued.spoilt.has(leaf.id)) checks.whole.spoilt(leaf.id, false);
    if (this.made.some((one) => one.leaf === leaf))
      checks.went.count("second restores of a backup");
    if (this.made.length > 0) checks.went.count("second restores");
    this.last = leaf;
    const number = this.clusters.length + 1;
    const { clusterId } = restored.mark;
    checks.strangers.began(clusterId, [
      parts.servers[0]?.home.clusterId ?? "",
      ...this.known.map((known) => known.clusterId),
    ]);
    const copy = restored.rows.copy();
    const rows = new Map<ByteKey, Uint8Array>();
    for (const key of copy.keys()) rows.set(key, restored.rows.value(key) ?? new Uint8Array(0));
    const firstNode = this.placeFor(number);
    const name = `restored cluster ${number}`;
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
    this.made.push({ cluster, known, restored, leaf, targetTimeMs });
    cluster.start();
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
