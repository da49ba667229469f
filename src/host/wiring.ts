/**
 * Makes the parts of a node and joins them: who wakes whom, who is asked what.
 *
 * Invariants: 1. Every part is made once and lives as long as the node. 2. Nothing happens in here:
 * parts only learn of each other.
 */
import { META_PARTITION, partitionId } from "../base/ids.js";
import { Prng } from "../base/prng.js";
import { levelRaisedBy } from "../machine/commands/codec.js";
import type { MetaReads } from "../machine/meta/meta-reads.js";
import type { Result } from "../base/result.js";
import type { LogFields, PeerBoot } from "../ports.js";
import type { StartRefusal } from "./storage/recovery.js";
import { Completions } from "./requests/completions.js";
import { AppendBudget } from "./replication/append-budget.js";
import { Backups } from "./keeping/backups.js";
import { Balancer, type ReportedLeads } from "./leaders/balancer.js";
import { Budget } from "./requests/batcher.js";
import type { ReplicaDeps } from "./group/replica.js";
import { ClusterChanges } from "./cluster/cluster-changes.js";
import { LogOutbox } from "./group/effects.js";
import { CacheBudget } from "./replication/entry-cache.js";
import { Failover } from "./leaders/failover.js";
import { Flusher } from "./storage/flusher.js";
import { LevelMark } from "./storage/level-mark.js";
import { LeadershipTransfers } from "./leaders/leadership-transfers.js";
import { Heirs } from "./leaders/heirs.js";
import { GroupRegistry } from "./cluster/group-registry.js";
import { PeerAdmission } from "./cluster/peer-admission.js";
import { Turn, type TurnParts } from "./turn.js";
import { NodeClocks } from "./node-clocks.js";
import type { PartitionWait } from "./reports/node-report.js";
import type { NodeReports } from "./reports/node-reports.js";
import { wireReports } from "./reports/wiring.js";
import type { Ranges } from "./ranges/ranges.js";
import { wireRanges } from "./ranges/wiring.js";
import { PeerOutbox } from "./replication/peer-outbox.js";
import { Ticker } from "./ticker.js";
import type { HealthFacts } from "./requests/results.js";
import type { HostPorts, HostSettings } from "./settings.js";
import { Snapshots } from "./snapshots/snapshots.js";
import { Stopping } from "./stopping.js";
import { DiskStallTransfers } from "./leaders/disk-stall.js";
import { ActiveGroups } from "./group/active-groups.js";
import { TransferTally } from "./requests/transfer-tally.js";
import { TurnScheduler } from "./turn-scheduler.js";

export class NodeParts implements TurnParts {
  readonly log;
  readonly scheduler: TurnScheduler;
  readonly completions: Completions;
  readonly budget: Budget;
  readonly appendBudget: AppendBudget;
  readonly outbox: LogOutbox;
  readonly activeGroups = new ActiveGroups();
  readonly transferTally = new TransferTally();
  readonly peers: PeerOutbox;
  readonly registry: GroupRegistry;
  readonly flusher: Flusher;
  readonly ticker: Ticker;
  readonly stopping: Stopping;
  readonly links: PeerAdmission;
  readonly failover: Failover;
  readonly snapshots: Snapshots;
  readonly diskStalls: DiskStallTransfers;
  readonly changes: ClusterChanges;
  readonly ranges: Ranges;
  readonly clocks: NodeClocks;
  readonly heirs: Heirs;
  readonly levelMark: LevelMark;
  readonly reports: NodeReports;
  readonly backups: Backups;
  private readonly turn: Turn;

  /** `setFatalFault`: readiness says so from then on. */
  constructor(
    readonly settings: HostSettings,
    private readonly ports: HostPorts,
    private readonly setFatalFault: (reason: string) => void,
    private readonly health: () => HealthFacts,
  ) {
    this.log = ports.log;
    const turn = new Turn(() => this);
    this.turn = turn;
    this.scheduler = new TurnScheduler(ports.clock, ports.timer, (nowMs) => turn.run(nowMs));
    const { scheduler } = this;
    this.completions = new Completions(() => {
      if (!scheduler.isRunning) scheduler.request();
    });
    this.budget = new Budget(settings.nodeQueuedBytesMax);
    this.appendBudget = new AppendBudget(settings.unwrittenBytesMax);
    this.outbox = new LogOutbox(this.appendBudget);
    this.peers = new PeerOutbox(ports.peers ?? null, (group, to) => {
      this.registry.find(partitionId(group))?.replica.core.reportUnreachable(to);
    });
    this.heirs = this.makeHeirs();
    const { entryLevel, program } = settings;
    const raised = (): void => this.request();
    this.levelMark = new LevelMark(this.ownPorts(), entryLevel, program, raised);
    const shared = this.makeShared();
    this.registry = new GroupRegistry(shared);
    const wakeQueued = (): void => turn.wakeQueued();
    // Snapshots first: groups would take all the room there is.
    const roomMade = (): void => {
      this.snapshots.tick(ports.clock.monotonicMs());
      wakeQueued();
    };
    const keepBytes = (): number => this.snapshots.logKeepBytes(settings.logKeepBytesMax);
    const { activeGroups } = this;
    const { memtable } = this.registry;
    this.flusher = new Flusher(memtable, ports, settings, roomMade, activeGroups, keepBytes);
    const transfers = new LeadershipTransfers(
      (node) => this.peers.isUp(node),
      () => ports.clock.monotonicMs(),
    );
    this.diskStalls = new DiskStallTransfers(
      transfers,
      settings.electionMs * 2,
      settings.electionMs,
    );
    const balancer = this.makeBalancer();
    const { own: ownReport, reports } = wireReports(this, ports, {
      metaReads: () => this.metaReads(),
      health: () => this.health(),
      waits: () => this.ownWaits(),
    });
    this.reports = reports;
    const atTick = (nowMs: number): boolean => {
      this.snapshots.ticked(nowMs, nowMs - this.ticker.nextTickMs);
      this.heirs.tick();
      const { isStopping } = this.stopping;
      if (!isStopping) {
        this.changes.tick(nowMs);
        this.ranges.tick(nowMs);
        this.backups.tick(nowMs);
        balancer.check(nowMs);
        if (ownReport.hasNews()) this.reports.changed();
        this.reports.tick(nowMs);
      }
      this.activeGroups.clear();
      if (isStopping || this.snapshots.hasWork || this.registry.hasWork) return true;
      return this.changes.hasWork || this.ranges.hasWork || this.backups.hasWork;
    };
    const { registry, flusher, diskStalls } = this;
    this.ticker = new Ticker(
      shared,
      registry,
      flusher,
      wakeQueued,
      diskStalls,
      activeGroups,
      atTick,
    );
    this.stopping = new Stopping({
      log: ports.log,
      store: ports.store,
      flusher: this.flusher,
      transfers,
      transferMs: 2 * settings.electionMs,
      groups: () => this.registry.all,
      hasCompletions: () => !this.completions.isEmpty,
      request: () => scheduler.request(),
      ended: () => scheduler.close(),
    });
    this.snapshots = this.makeSnapshots(shared);
    this.registry.onAdded((replica) => this.snapshots.added(replica));
    this.changes = this.makeChanges(shared);
    this.ranges = wireRanges(this, ports, {
      metaReads: () => this.metaReads(),
      wake: shared.wake,
      tickSoon: () => this.tickSoon(),
    });
    this.backups = this.makeBackups();
    this.registry.connectMembers(this.changes.metaAccess);
    this.clocks = new NodeClocks({
      linked: () => this.peers.linked(),
      hosted: () => this.registry.all,
      send: (to, bytes) => void ports.peers?.send(to, "control", bytes),
    });
    this.links = this.makeLinks();
    this.failover = this.makeFailover(shared);
    this.registry.setOwners([
      ...[turn, this.ticker, this.activeGroups, this.flusher, this.snapshots, this.failover],
      ...[
        transfers,
        this.diskStalls,
        this.heirs,
        this.changes.reconcile,
        this.ranges,
        this.backups,
      ],
    ]);
  }

  /** Takes up what log and store hold; see `GroupRegistry.recover`. */
  recover(identified: (boot: PeerBoot) => void): Result<null, StartRefusal> {
    return this.registry.recover(this.flusher, (done) => this.flushSoon(done), identified);
  }

  private makeShared(): ReplicaDeps {
    const { settings, completions, budget, outbox, turn } = this;
    return {
      settings,
      ports: this.ownPorts(),
      levelMark: this.levelMark,
      transferTally: this.transferTally,
      completions,
      budget,
      outbox,
      appendBudget: this.appendBudget,
      peers: this.peers,
      cacheBudget: new CacheBudget(settings.nodeCacheBytesMax),
      heirs: this.heirs,
      snapshots: {
        send: (replica, to) => this.snapshots.send(replica, to),
        install: (replica, meta, hardState, done) =>
          this.snapshots.install(replica, meta, hardState, done),
        keepFrom: (partition) => this.snapshots.keepFrom(partition),
      },
      admits: () => !this.flusher.storeFull && this.hasSpace,
      mayApply: (leads) => this.flusher.mayApply(leads),
      intakeOpen: () => this.flusher.intakeOpen && this.hasSpace,
      isStopping: () => this.stopping.isStopping,
      clockOf: (node) => this.clocks.of(node),
      commonWallMs: (ownWallMs, nowMs) => this.reports.commonWallMs(ownWallMs, nowMs),
      holdLog: (replica, fromIndex) => this.flusher.holdLog(replica, fromIndex),
      wake: (replica) => turn.wake(replica),
      wakeAt: (atMs) => turn.wakeAt(atMs),
    };
  }

  /** The log can be written, and little is not free. */
  get hasSpace(): boolean {
    const { log, disk } = this.ports;
    return log.space() === "available" && disk?.isShort() !== true;
  }

  /** The ports of the node; a fatal fault is told to readiness too. */
  private ownPorts(): HostPorts {
    const fatal = (reason: string, fields?: LogFields): void => {
      this.setFatalFault(reason);
      this.ports.fatal.fatal(reason, fields);
    };
    return { ...this.ports, fatal: { fatal } };
  }

  private makeHeirs(): Heirs {
    const { ports } = this;
    return new Heirs({
      nowMs: () => ports.clock.monotonicMs(),
      group: (group) => this.registry.find(partitionId(group))?.replica ?? null,
      isWilling: () => !this.stopping.isWithdrawn && this.flusher.intakeOpen && this.hasSpace,
      sendControl: (to, bytes) => void ports.peers?.send(to, "control", bytes),
    });
  }

  private flushSoon(done: () => void): void {
    this.flusher.flushSoon(done);
    this.scheduler.request();
  }

  private makeSnapshots(shared: ReplicaDeps): Snapshots {
    const { settings, ports, registry, flusher } = this;
    return new Snapshots({
      settings: settings.snapshots,
      logger: ports.logger,
      log: ports.log,
      nodeId: settings.nodeId,
      sessionSeed: ports.entropy.uint32(),
      nowMs: () => ports.clock.monotonicMs(),
      sendBulk: (to, bytes) => ports.peers?.send(to, "bulk", bytes) ?? false,
      find: (partition) => registry.find(partition)?.replica ?? null,
      purposeOf: (partition, to) => this.changes.purposeOf(partition, to),
      mayHold: (level) => this.levelMark.covers(level),
      mayFill: () => flusher.intakeOpen && registry.memtable.rows < 2 * settings.flushRows,
      flushSoon: (done) => this.flushSoon(done),
      stray: (reason) => this.links.strays[reason]++,
      wake: (partition) => {
        const hosted = registry.find(partition);
        if (hosted !== null) shared.wake(hosted.replica);
      },
    });
  }

  /** null before there are records, and when their rows are closed. */
  private metaReads(): MetaReads | null {
    if (this.stopping.isClosing) return null;
    return this.registry.find(META_PARTITION)?.replica.machine.meta ?? null;
  }

  private makeLinks(): PeerAdmission {
    return new PeerAdmission({
      settings: this.settings,
      logger: this.ports.logger,
      outbox: this.peers,
      port: this.ports.peers ?? null,
      rows: {
        get: (key) => this.registry.memtable.get(key),
        put: (key, value) => this.registry.memtable.put(key, value),
        flushSoon: (done) => this.flushSoon(done),
      },
      founders: () => this.registry.founders,
      replica: (partition) => this.registry.find(partition)?.replica ?? null,
      metaReads: () => this.metaReads(),
      isClosing: () => this.stopping.isClosing,
      metaIndex: () => this.registry.find(META_PARTITION)?.replica.machine.appliedIndex ?? 0,
      request: () => this.scheduler.request(),
      mayHold: (entries) => {
        return entries.every(({ payload }) => this.levelMark.covers(levelRaisedBy(payload)));
      },
      bulk: (from, bytes) => {
        if (this.heirs.frame(from, bytes) || this.ranges.frame(from, bytes)) return;
        if (this.backups.frame(from, bytes)) return;
        this.snapshots.frame(from, bytes);
      },
      metaProposal: (from, bytes) =>
        this.clocks.frame(from, bytes) ||
        this.heirs.frame(from, bytes) ||
        this.reports.frame(from, bytes) ||
        this.ranges.frame(from, bytes) ||
        this.backups.frame(from, bytes) ||
        this.changes.frame(from, bytes),
      joinAsked: (request, answer) => this.changes.joinAsked(request, answer),
      refusedAsRemoved: () => this.changes.refusedAsRemoved(),
    });
  }

  private makeBackups(): Backups {
    const { settings, ports, registry } = this;
    const { nodeId, endpoint, storage } = settings;
    return new Backups({
      ...{ nodeId, endpoint, storage, logger: ports.logger, load: ports.load ?? null },
      timer: ports.timer,
      uint32: () => ports.entropy.uint32(),
      nowMs: () => ports.clock.monotonicMs(),
      wallMs: () => ports.clock.wallMs(),
      metaReads: () => this.metaReads(),
      find: (partition) => registry.find(partition)?.group ?? null,
      reportedLeader: (partition) => this.reports.leaderOf(partition),
      programOf: (node) => this.links.programOf(node),
      clientEndpointOf: (node) => this.links.clientEndpointOf(node),
      send: (to, lane, bytes) => ports.peers?.send(to, lane, bytes) ?? false,
      proposeOnMeta: this.changes.metaAccess.proposeOnMeta,
      wakeAt: (atMs) => this.scheduler.wakeAt(atMs),
      tickSoon: () => this.tickSoon(),
    });
  }

  private makeChanges(shared: ReplicaDeps): ClusterChanges {
    const { settings, ports, registry } = this;
    return new ClusterChanges({
      settings,
      logger: ports.logger,
      registry,
      activeGroups: this.activeGroups,
      metaReads: () => this.metaReads(),
      nowMs: () => ports.clock.monotonicMs(),
      soon: (callback) => ports.timer.soon(callback),
      isLinked: (node) => this.peers.isUp(node),
      unlinkedMs: (node, nowMs) => this.peers.unlinkedMs(node, nowMs),
      reports: () => this.reports,
      programOf: (node) => this.links.programOf(node),
      levelMark: this.levelMark,
      sendControl: (to, bytes) => ports.peers?.send(to, "control", bytes) ?? false,
      wake: shared.wake,
      tickSoon: () => this.tickSoon(),
    });
  }

  /** Something waits for a tick that did not before: ticks come as usual. */
  private tickSoon(): void {
    this.ticker.unquiesce();
    this.request();
  }

  private request(): void {
    if (!this.scheduler.isRunning) this.scheduler.request();
  }

  private makeBalancer(): Balancer {
    const { settings, ports } = this;
    const { nodeId, leaderBalanceEveryMs: everyMs } = settings;
    return new Balancer(
      {
        nodeId,
        everyMs,
        replicas: () => this.registry.all.map(({ replica }) => replica),
        isUp: (node) => this.peers.isUp(node),
        reported: () => this.reportedLeads(),
        isChanging: (partition) => this.changes.reconcile.waitingFor(partition) !== null,
      },
      ports.clock.monotonicMs(),
    );
  }

  private reportedLeads(): ReportedLeads | null {
    if (this.changes.reconcile.placed.size === 0) return null;
    const leads = new Map<number, number>();
    let isLeaving = false;
    for (const { nodeId, role, evicted } of this.metaReads()?.members() ?? []) {
      const isOut = role === "leaving" || evicted;
      if (isOut && nodeId === this.settings.nodeId) isLeaving = true;
      const report = isOut ? null : (this.reports.of(nodeId)?.report ?? null);
      if (report?.isFull === false) leads.set(nodeId, report.leading.length);
    }
    return { leads, isLeaving };
  }

  private ownWaits(): readonly PartitionWait[] {
    return [...this.changes.reconcile.waits(), ...this.changes.placer.waits()];
  }

  private makeFailover(shared: ReplicaDeps): Failover {
    const failover = new Failover(
      new Prng(this.ports.entropy.uint32()),
      () => this.registry.all.map(({ replica }) => replica),
      shared.wakeAt,
      shared.wake,
    );
    // A group that another node leads does not care how two of its followers reach each other.
    const unquiesce = (node: number): void => {
      for (const { replica } of this.registry.all) {
        const { leader, isLeading } = replica.leadership;
        if (isLeading || leader === node || leader === 0) replica.peers.unquiesce();
      }
      this.ticker.unquiesceAll();
      this.request();
    };
    this.links.listen({
      linkUp: (node) => {
        unquiesce(node);
        this.snapshots.linkUp(node);
        failover.linkUp(node);
        this.changes.linkUp(node);
        this.reports.changed();
      },
      linkDown: (node) => {
        unquiesce(node);
        this.clocks.linkDown(node);
        this.changes.linkDown(node);
        this.ranges.linkDown(node);
        this.backups.linkDown(node);
        for (const { replica } of this.registry.all) replica.core.reportUnreachable(node);
        failover.linkDown(node, this.ports.clock.monotonicMs());
        this.reports.changed();
      },
    });
    return failover;
  }
}
