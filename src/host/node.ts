/**
 * One node: all its groups, the turn that they share, start and stop.
 *
 * A turn: ends what is due, runs the groups that have something to do, hands all their log writes
 * over together, looks after flush and stop, and at its very end answers. May call: base, raft,
 * machine, ports, this folder.
 * Invariants: 1. One turn at a time; nothing re-enters it. 2. A partition is hosted at most once.
 * 3. Groups without anything to do cost nothing in a turn. 4. A stop answers what was accepted.
 */
import { present } from "../base/assert.js";
import { META_PARTITION, type PartitionId, partitionId } from "../base/ids.js";
import { Prng } from "../base/prng.js";
import { type Result, ok } from "../base/result.js";
import type { LogFields } from "../ports.js";
import { Answers } from "./answers.js";
import type { ApplySlice } from "./applier.js";
import { Budget } from "./batcher.js";
import type { DriverShared, GroupDriver } from "./driver.js";
import { LogOutbox } from "./effects.js";
import { Flusher } from "./flusher.js";
import { CacheBudget } from "./entry-cache.js";
import { Failover } from "./failover.js";
import type { Group } from "./group.js";
import { groupFacts } from "./group-facts.js";
import { type HealthInput, healthFacts, readyChecks } from "./health.js";
import { Hosting } from "./hosting.js";
import { Links } from "./links.js";
import { PeerOutbox } from "./peer-outbox.js";
import { Pulse } from "./pulse.js";
import type { StartRefusal } from "./recovery.js";
import type { HealthFacts, NodeFacts, ReadyCheck } from "./results.js";
import { partitionOf } from "./router.js";
import { type HostPorts, type HostSettings, assertSettings } from "./settings.js";
import { Stopping } from "./stopping.js";
import { Turns } from "./turns.js";

export type { StartRefusal } from "./recovery.js";

export class Node {
  private readonly turns: Turns;
  private readonly answers: Answers;
  private readonly budget: Budget;
  private readonly outbox = new LogOutbox();
  private readonly flusher: Flusher;
  private readonly hosting: Hosting;
  private readonly stopping: Stopping;
  private readonly pulse: Pulse;
  private readonly peers: PeerOutbox;
  private readonly failover: Failover;
  /** The other nodes: who is linked, calls to them. */
  readonly links: Links;
  private awake: GroupDriver[] = [];
  /** How many of them only have the rest of a slice left to do. */
  private sliced = 0;
  private dueMs = Infinity;
  private fault: string | null = null;
  private readonly slice: ApplySlice = { endMs: 0, commands: 0 };

  private constructor(
    private readonly settings: HostSettings,
    private readonly ports: HostPorts,
  ) {
    this.turns = new Turns(ports.clock, ports.timer, (nowMs) => this.turn(nowMs));
    this.answers = new Answers(() => {
      if (!this.turns.isRunning) this.turns.request();
    });
    this.budget = new Budget(settings.nodeQueuedBytesMax);
    this.peers = new PeerOutbox(ports.peers ?? null, (group, to) => {
      this.hosting.find(partitionId(group))?.driver.core.reportUnreachable(to);
    });
    const shared = this.makeShared();
    this.hosting = new Hosting(shared);
    this.links = this.makeLinks(shared);
    this.failover = new Failover(
      new Prng(ports.entropy.uint32()),
      () => this.hosting.all.map(({ driver }) => driver),
      shared.wakeAt,
      shared.wake,
    );
    this.links.listen({
      linkUp: (node) => this.failover.linkUp(node),
      linkDown: (node) => this.failover.linkDown(node, this.nowMs()),
    });
    const wake = (): void => this.wakeQueued();
    this.flusher = new Flusher(this.hosting.overlay, ports, settings, wake, wake);
    this.pulse = new Pulse(shared, this.hosting, this.flusher, wake);
    this.stopping = new Stopping({
      log: ports.log,
      store: ports.store,
      flusher: this.flusher,
      groups: () => this.hosting.all,
      hasAnswers: () => !this.answers.isEmpty,
      request: () => this.turns.request(),
      ended: () => this.turns.close(),
    });
  }

  /**
   * Recovers every group and begins to elect and replay; a new data directory founds a cluster.
   * Serving begins by itself, some turns later (`health`). A failure names the group, the index and
   * the remedy, and leaves the ports to the caller.
   */
  static open(settings: HostSettings, ports: HostPorts): Result<Node, StartRefusal> {
    assertSettings(settings);
    const node = new Node(settings, ports);
    const recovered = node.hosting.recover(node.flusher);
    if (!recovered.ok) {
      node.turns.close();
      return recovered;
    }
    node.links.start();
    node.turns.wakeAt(ports.clock.monotonicMs());
    return ok(node);
  }

  /** The group that `hashText` is placed in (contract 6.1); null until the cluster is founded. */
  route(hashText: string): Group | null {
    const poolSize = this.hosting.dataPartitions;
    return poolSize === 0 ? null : this.group(partitionOf(hashText, poolSize));
  }

  /** The group of `partition`; null when this node does not host it. */
  group(partition: PartitionId): Group | null {
    return this.hosting.find(partition)?.group ?? null;
  }

  /** The partition that `hashText` is placed in; null until the cluster is founded. */
  partitionOf(hashText: string): PartitionId | null {
    const poolSize = this.hosting.dataPartitions;
    return poolSize === 0 ? null : partitionOf(hashText, poolSize);
  }

  metaGroup(): Group {
    return present(this.group(META_PARTITION), "every node hosts the meta group");
  }

  /** Meta first, then by partition id. */
  groups(): readonly Group[] {
    return this.hosting.all.map((hosted) => hosted.group);
  }

  /** The roster and the partition map are applied here. */
  get initialized(): boolean {
    return this.hosting.dataPartitions > 0;
  }

  get shuttingDown(): boolean {
    return this.stopping.isStopping;
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
    return {
      queuedBytes: this.budget.usedBytes,
      unflushedBytes: this.flusher.unflushedBytes,
      logBytes: log.sizeBytes(),
      logFull: log.space() === "full",
      storeBytes: store.sizeBytes(),
      storeFull: this.flusher.storeFull,
      turns: this.turns.count,
      lateTicks: this.pulse.lateCount,
      flushes: this.flusher.count,
    };
  }

  /** `hook` runs once for every group: for those that exist, and for those to come. */
  onGroup(hook: (group: Group) => void): void {
    this.hosting.onGroup(hook);
  }

  /**
   * Graceful stop: ends intake, lets stop hooks propose, answers what was accepted (at `deadlineMs`
   * at the latest), flushes, closes log and store. Calls `done` once.
   */
  stop(deadlineMs: number, done: () => void): void {
    this.stopping.begin(deadlineMs, done);
  }

  private makeShared(): DriverShared {
    const { settings, answers, budget, outbox, turns } = this;
    const fatal = (reason: string, fields?: LogFields): void => {
      this.setFatalFault(reason);
      this.ports.fatal.fatal(reason, fields);
    };
    const ports = { ...this.ports, fatal: { fatal } };
    return {
      settings,
      ports,
      answers,
      budget,
      outbox,
      peers: this.peers,
      cacheBudget: new CacheBudget(settings.nodeCacheBytesMax),
      images: {
        send: (driver, to) => driver.core.reportSnapshot(to, false),
        install: () => {
          throw new Error("no images yet");
        },
      },
      admits: () => !this.flusher.storeFull && ports.log.space() === "available",
      intakeOpen: () => this.flusher.intakeOpen && ports.log.space() === "available",
      isStopping: () => this.stopping.isStopping,
      wake: (driver) => {
        if (!driver.isAwake) {
          driver.isAwake = true;
          this.awake.push(driver);
        }
        if (!turns.isRunning) turns.request();
      },
      wakeAt: (atMs) => {
        if (atMs >= this.dueMs) return;
        this.dueMs = atMs;
        turns.wakeAt(atMs);
      },
    };
  }

  private makeLinks(shared: DriverShared): Links {
    return new Links({
      settings: this.settings,
      logger: this.ports.logger,
      fatal: shared.ports.fatal,
      outbox: this.peers,
      port: this.ports.peers ?? null,
      driver: (partition) => this.hosting.find(partition)?.driver ?? null,
      roster: () => this.hosting.find(META_PARTITION)?.driver.machine.meta ?? null,
      bulk: () => undefined,
      joinAsked: (_request, answer) => answer({ status: "retry", reason: "not yet" }),
    });
  }

  private turn(nowMs: number): void {
    if (!this.stopping.isClosing) {
      if (nowMs >= this.dueMs) this.expire(nowMs);
      if (nowMs >= this.pulse.nextBeatMs) {
        // Whoever was heard of in the meantime is heard before time passes (P-009).
        for (const driver of this.awake) driver.stepInbox();
        this.pulse.beat(nowMs);
      }
      this.failover.check(nowMs);
      this.runAwake(nowMs);
      this.peers.flush();
      this.outbox.submit(this.ports.log);
      this.flusher.check(nowMs, false);
    }
    this.answers.run();
    this.stopping.advance(nowMs);
    // Whoever was woken or answered after its place in this turn (by an answer that asks again, by
    // the stop) wants the next turn at once; what was cut into slices lets input in before.
    const closing = this.stopping.isClosing;
    const woken = !closing && this.awake.length > this.sliced;
    if (woken || !this.answers.isEmpty) this.turns.request();
    if (closing) return;
    if (this.sliced > 0) this.turns.requestLater();
    this.turns.wakeAt(Math.min(this.dueMs, this.stopping.wakeAtMs));
    this.turns.wakeAt(Math.min(this.pulse.nextBeatMs, this.flusher.nextCheckMs));
    this.turns.wakeAt(this.failover.wakeAtMs);
  }

  private expire(nowMs: number): void {
    this.dueMs = Infinity;
    for (const { driver, intake } of this.hosting.all) {
      if (intake.wakeAtMs <= nowMs) {
        intake.expire(nowMs);
        this.hosting.shared.wake(driver);
      }
      this.dueMs = Math.min(this.dueMs, intake.wakeAtMs);
    }
  }

  private runAwake(nowMs: number): void {
    const { awake, slice } = this;
    this.sliced = 0;
    if (awake.length === 0) return;
    this.awake = [];
    slice.endMs = nowMs + this.settings.applySliceMs;
    slice.commands = this.settings.applySliceCommands;
    for (const driver of awake) {
      driver.isAwake = false;
      driver.run(nowMs, slice);
    }
    for (const driver of awake) {
      if (driver.hasWork) this.hosting.shared.wake(driver);
      this.hosting.shared.wakeAt(driver.wakeAtMs);
    }
    this.sliced = this.awake.length;
    this.hosting.refresh();
    this.links.refresh();
  }

  /** Intake may have opened again: whoever has commands queued gets a turn. */
  private wakeQueued(): void {
    for (const { driver } of this.hosting.all) {
      if (driver.batcher.queuedCommands > 0) this.hosting.shared.wake(driver);
    }
    this.turns.request();
  }

  private healthInput(): HealthInput {
    const nowMs = this.nowMs();
    const groups = this.hosting.all;
    let oldestEntryMs = 0;
    for (const { driver } of groups) {
      oldestEntryMs = Math.max(oldestEntryMs, driver.proposals.oldestAgeMs(nowMs));
    }
    return {
      fatalFault: this.fault,
      stopping: this.stopping.isStopping,
      initialized: this.initialized,
      role: this.hosting.ownRole(),
      groups: groups.map(({ driver }) => groupFacts(driver)),
      logFull: this.ports.log.space() === "full",
      storeFull: this.flusher.storeFull,
      oldestEntryMs,
      stuckAfterMs: this.settings.electionMs * 2,
    };
  }
}
