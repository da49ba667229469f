/**
 * One node as the floors above see it: its groups, its links, start and stop.
 *
 * Invariants: 1. A partition is hosted at most once. 2. A stop answers what was accepted.
 */
import { present } from "../base/assert.js";
import { META_PARTITION, type PartitionId, partitionId } from "../base/ids.js";
import { type Result, ok } from "../base/result.js";
import { hashPartition } from "../base/routing.js";
import type { MemberRole } from "../machine/commands/command.js";
import type { PeerStanding } from "../ports.js";
import type { Group } from "./group/group.js";
import { groupHealth } from "./group/group-facts.js";
import { type HealthInput, healthFacts, readyChecks } from "./health.js";
import type { BackupCatalogue, BackupTaking } from "./backups/backup-taking.js";
import type { GroupRegistry } from "./cluster/group-registry.js";
import type { FinalizeDone } from "./cluster/finalizing.js";
import type { LeaveDone } from "./cluster/leaving.js";
import type { PeerAdmission } from "./cluster/peer-admission.js";
import { NodeParts } from "./wiring.js";
import type { PartitionWait } from "./reports/node-report.js";
import type { HeardReport, NodeReports } from "./reports/node-reports.js";
import type { StartRefusal } from "./storage/recovery.js";
import type { HealthFacts, LevelFacts, NodeFacts, ReadyCheck } from "./requests/results.js";
import type { SizeDone, SizedRange } from "./ranges/range-sizes.js";
import { type HostPorts, type HostSettings, assertSettings } from "./settings.js";

export type { StartRefusal } from "./storage/recovery.js";

export class Node {
  private readonly parts: NodeParts;
  private readonly registry: GroupRegistry;
  private fault: string | null = null;
  /** As the member list said last; its rows are closed in the end. */
  private lastRole: MemberRole | null = null;

  private constructor(
    private readonly settings: HostSettings,
    private readonly ports: HostPorts,
  ) {
    const fault = (reason: string): void => this.setFatalFault(reason);
    this.parts = new NodeParts(settings, ports, fault, () => this.health());
    this.registry = this.parts.registry;
  }

  /**
   * Recovers every group and begins to elect and replay; a new data directory founds a cluster.
   * Serving begins by itself, some turns later (`health`). A failure names the group, the index and
   * the remedy, and leaves the ports to the caller.
   */
  static open(settings: HostSettings, ports: HostPorts): Result<Node, StartRefusal> {
    assertSettings(settings);
    const node = new Node(settings, ports);
    const { scheduler, links } = node.parts;
    const recovered = node.parts.recover((boot) => links.start(boot));
    if (!recovered.ok) {
      scheduler.close();
      return recovered;
    }
    scheduler.wakeAt(ports.clock.monotonicMs());
    return ok(node);
  }

  /** The group that `hashText` is placed in (contract 6.1); null until the cluster is founded. */
  route(hashText: string): Group | null {
    const poolSize = this.registry.dataPartitions;
    return poolSize === 0 ? null : this.group(partitionId(hashPartition(hashText, poolSize)));
  }

  /** The group of `partition`; null when this node does not host it. */
  group(partition: PartitionId): Group | null {
    return this.registry.find(partition)?.group ?? null;
  }

  /** The partition that `hashText` is placed in; null until the cluster is founded. */
  partitionOf(hashText: string): PartitionId | null {
    const poolSize = this.registry.dataPartitions;
    return poolSize === 0 ? null : partitionId(hashPartition(hashText, poolSize));
  }

  metaGroup(): Group {
    return present(this.group(META_PARTITION), "every node hosts the meta group");
  }

  /** Meta first, then by partition id. */
  groups(): readonly Group[] {
    return this.registry.all.map((hosted) => hosted.group);
  }

  /** The member list and the partition map are applied here. */
  get initialized(): boolean {
    return this.registry.dataPartitions > 0;
  }

  /** The member list that is known does not list this node: it left, or is about to join. */
  get isOutside(): boolean {
    return this.parts.links.isOutside || this.parts.changes.isRemoved;
  }

  get shuttingDown(): boolean {
    return this.parts.stopping.isStopping;
  }

  /** Log and store are being closed, or are closed: no row is to be read any more. */
  get closing(): boolean {
    return this.parts.stopping.isClosing;
  }

  /** What the nodes of the cluster report of themselves. */
  get reports(): NodeReports {
    return this.parts.reports;
  }

  /** The other node that said lately that it leads `partition`; 0 = none did. */
  reportedLeader(partition: PartitionId): number {
    return this.parts.reports.leaderOf(partition);
  }

  /** The level of the cluster, what all members support, and since when that is more. */
  levels(): LevelFacts {
    return this.parts.changes.levelFacts(this.nowMs());
  }

  /** What a node, this one included, said of itself last; null: nothing in this life. */
  lastReport(node: number): HeardReport | null {
    return this.parts.reports.latest(node);
  }

  /** What partitions that are not as their records want them wait for, as far as nodes tell. */
  partitionWaits(): readonly PartitionWait[] {
    return this.parts.reports.waits();
  }

  /** `done` hears how many live keys a range holds, wherever it is led; once, in no turn. */
  rangeSize(range: SizedRange, done: SizeDone): void {
    if (this.shuttingDown) return this.ports.timer.soon(() => done({ keys: null, middle: null }));
    this.parts.ranges.sizes.ask(range, done);
  }

  /** Live keys of a range that is led here, as they were counted last; null = not known. */
  knownRangeKeys(range: SizedRange): number | null {
    return this.parts.ranges.sizes.latest(range);
  }

  /** What the moves of ranges that are made from here are at, by key space. */
  rangeSteps(): ReadonlyMap<string, string> {
    return this.parts.ranges.steps();
  }

  /** Whether messages reach the other node, as far as is known. */
  isLinked(node: number): boolean {
    return this.parts.peers.isUp(node);
  }

  /** Takes backups into a catalogue. What other nodes ask for theirs is answered without it. */
  backupTaking(catalogue: BackupCatalogue): BackupTaking {
    return this.parts.backups.taking(catalogue);
  }

  /** The other nodes: who is linked, calls to them. */
  get links(): PeerAdmission {
    return this.parts.links;
  }

  /** Takes this node out of the cluster (contract 5.3); `done` is called once, in no turn. */
  leave(deadlineMs: number, drainMs: number, done: LeaveDone): void {
    if (this.shuttingDown) return this.ports.timer.soon(() => done("Timeout"));
    this.parts.changes.leave(deadlineMs, drainMs, done);
  }

  /**
   * Takes a member whose process or disk is gone out of the cluster; ends with "NoLeader" where the
   * meta partition is not led. `done` is called once, in no turn.
   */
  removeMember(member: number, deadlineMs: number, done: LeaveDone): void {
    if (this.shuttingDown) return this.ports.timer.soon(() => done("Timeout"));
    this.parts.changes.removeMember(member, deadlineMs, done);
  }

  /**
   * Raises the level of the cluster where the meta partition is led here; 0 = by one. `done` is
   * called once, in no turn.
   */
  finalize(level: number, deadlineMs: number, done: FinalizeDone): void {
    if (this.shuttingDown) return this.ports.timer.soon(() => done("moved"));
    this.parts.changes.finalize(level, deadlineMs, done);
  }

  /** How far this node is with belonging to a cluster; null when it cannot be told any more. */
  standing(): PeerStanding | null {
    return this.closing ? null : this.registry.standing();
  }

  /** Base URL under which clients reach another node; "" while unknown. */
  clientEndpointOf(node: number): string {
    return this.parts.links.clientEndpointOf(node);
  }

  get nodeId(): number {
    return this.settings.nodeId;
  }

  /** Monotonic ms, for deadlines. */
  nowMs(): number {
    return this.ports.clock.monotonicMs();
  }

  /** A fatal fault outside the host: readiness says so from now on. */
  setFatalFault(reason: string): void {
    this.fault ??= reason;
  }

  health(): HealthFacts {
    return healthFacts(this.healthInput());
  }

  checks(): readonly ReadyCheck[] {
    return readyChecks(this.healthInput());
  }

  facts(): NodeFacts {
    const { log, store } = this.ports;
    const { snapshots, peers, links, diskStalls, appendBudget } = this.parts;
    return {
      queuedBytes: this.parts.budget.usedBytes,
      unflushedBytes: this.parts.flusher.unflushedBytes,
      logBytes: log.sizeBytes(),
      logFull: log.space() === "full",
      storeBytes: store.sizeBytes(),
      storeFull: this.parts.flusher.storeFull,
      heldGroups: this.heldGroups(),
      logCuts: this.parts.flusher.logCuts,
      backupLog: this.parts.flusher.backupLogFacts(),
      unwrittenBytes: appendBudget.usedBytes,
      refusedAppends: appendBudget.refusedCount,
      proposalEnds: this.parts.completions.proposalEnds,
      turns: this.parts.scheduler.count,
      lateTicks: this.parts.ticker.lateCount,
      flushes: this.parts.flusher.count,
      snapshotsInstalled: snapshots.installed,
      snapshotsDelivered: snapshots.delivered,
      snapshotsFailed: snapshots.failed,
      snapshotsAborted: snapshots.aborted,
      arrivalsFailed: snapshots.arrivalsFailed,
      arrivalsAborted: snapshots.arrivalsAborted,
      droppedFrames: peers.droppedFrames,
      oversizedMessages: peers.oversizedMessages,
      sentFrames: peers.sentFrames,
      sentFrameBytes: peers.sentBytes,
      badItems: links.badItems,
      strays: links.strays,
      replicaDrops: this.registry.drops,
      placement: this.parts.changes.placer.facts(this.nowMs()),
      leaderTransfers: this.parts.transferTally.all(),
      snapshotBytes: snapshots.bytesMoved(),
      ranges: this.parts.ranges.facts(),
      backups: this.parts.backups.facts(),
      plannedRates: snapshots.plannedRates(),
      diskStallTransfers: diskStalls.count,
      peers: links.facts(),
      levels: this.levels(),
      transfers: snapshots.facts(),
    };
  }

  /** `hook` runs once for every group: for those that exist, and for those to come. */
  onGroup(hook: (group: Group) => void): void {
    this.registry.onGroup(hook);
  }

  /** `hook` runs for every group that leaves this node: it is led here no more. */
  onGroupLeft(hook: (group: Group) => void): void {
    this.registry.onGroupLeft(hook);
  }

  /** `hook` is told after each turn which partitions it ran: nothing of the others changed. */
  onRun(hook: (partition: PartitionId) => void): void {
    this.parts.activeGroups.listen((replicas) => {
      for (const { partition } of replicas) hook(partition);
    });
  }

  /**
   * Not ready from now on: hands leaderships over, and serves on until `stop`. Others may still
   * send requests here, and they are answered.
   */
  withdraw(): void {
    this.parts.stopping.withdraw();
  }

  /** This node leads a group that another one could lead. */
  get hasHeirs(): boolean {
    return this.parts.stopping.hasHeirs;
  }

  /**
   * Graceful stop: ends intake, lets stop hooks propose, answers what was accepted (at `deadlineMs`
   * at the latest), flushes, closes log and store. Calls `done` once.
   */
  stop(deadlineMs: number, done: () => void): void {
    this.parts.changes.stop();
    this.parts.ranges.stop();
    this.parts.backups.stop();
    this.parts.stopping.begin(deadlineMs, done);
  }

  private heldGroups(): number {
    if (this.closing) return 0;
    return this.registry.all.filter(({ replica }) => replica.applier.isHeld).length;
  }

  private healthInput(): HealthInput {
    const nowMs = this.nowMs();
    const groups = this.registry.all;
    if (!this.closing) this.lastRole = this.registry.ownRole();
    let oldestEntryMs = 0;
    for (const { replica } of groups) {
      oldestEntryMs = Math.max(oldestEntryMs, replica.proposals.oldestAgeMs(nowMs));
    }
    return {
      fatalFault: this.fault,
      stopping: this.parts.stopping.isWithdrawn,
      initialized: this.initialized,
      role: this.parts.changes.isRemoved ? null : this.lastRole,
      groups: groups.map(({ replica }) => groupHealth(replica)),
      comingGroups: this.registry.comingCount,
      logFull: this.ports.log.space() === "full",
      storeFull: this.parts.flusher.storeFull,
      volumeShort: this.ports.disk?.isShort() === true,
      heldGroups: this.heldGroups(),
      oldestEntryMs,
      stuckAfterMs: this.settings.electionMs * 2,
    };
  }
}
