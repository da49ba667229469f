/**
 * One group on this node: joins the core, the effects, the batcher, the applier and the reads, one
 * `run` per turn in which the group has something to do.
 *
 * Invariants: 1. `run` first reports what became durable and applies it, then cuts what waited for
 * that, so that the next batch is as full as can be. 2. Batches are cut and rounds begun by a
 * serving leader only. 3. What `run` leaves undone is told by `hasWork`. 4. While a snapshot is put
 * in place, nothing is stepped or applied.
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import type { EphemeralTable } from "../../machine/ephemeral.js";
import type { Machine } from "../../machine/machine.js";
import type { HardState, LogEntry } from "../../ports.js";
import { RaftCore } from "../../raft/core.js";
import type { RestoredState, SnapshotMeta } from "../../raft/state/types.js";
import { Applier, type ApplierGroup, type ApplySlice } from "./applier.js";
import { Batcher, type Waiter } from "../requests/batcher.js";
import { Proposer } from "./proposer.js";
import type { GroupDeps } from "./group-deps.js";
import { EffectsExecutor } from "./effects.js";
import { Pauses } from "../pauses/pauses.js";
import { EntryCache } from "../replication/entry-cache.js";
import type { FlushableGroup } from "../storage/flusher.js";
import { GroupMembers } from "./group-members.js";
import { GroupPeers } from "./group-peers.js";
import type { PeerLives } from "../replication/peer-lives.js";
import { EffectHandlers, NOT_LEADER, RETRY, type TargetGroup } from "./effect-handlers.js";
import { Leadership } from "./leadership.js";
import { followersFrom } from "../storage/log-floors.js";
import { Move, type MoveOrder } from "./move.js";
import type { MoveAnswer } from "../replication/move-frames.js";
import { Proposals } from "../requests/proposals.js";
import type { RaftItem } from "../replication/raft-frames.js";
import { ReplicaDigests } from "../replication/replica-digests.js";
import { raftSettings } from "../settings.js";
import type { LastWords } from "../storage/replica-row.js";
import { Reads } from "../requests/reads.js";
import type { MoveHook, StopHook } from "../requests/results.js";

/** What all groups of a node share. */
export type ReplicaDeps = GroupDeps<Replica>;

export class Replica implements TargetGroup, ApplierGroup, FlushableGroup {
  readonly partition: PartitionId;
  readonly core: RaftCore;
  readonly batcher: Batcher;
  readonly proposals: Proposals;
  readonly reads: Reads;
  readonly leadership: Leadership;
  readonly members: GroupMembers;
  readonly peers: GroupPeers;
  readonly move: Move;
  /** May propose final commands before this node stops leading, as planned. */
  readonly stopHooks: StopHook[] = [];
  readonly moveHooks: MoveHook[] = [];
  readonly digests: ReplicaDigests;
  flushedIndex: number;
  /** Has once, in this life, applied everything that a leader had committed. */
  caughtUpOnce = false;
  private started = false;
  /** It left this node: nothing of it runs any more. */
  isRetired = false;
  readonly pauses = new Pauses();
  /** In the list of groups that the next turn runs. */
  isAwake = false;
  private floor: number;
  private readonly executor: EffectsExecutor;
  readonly applier: Applier;
  readonly cache: EntryCache;
  readonly proposer: Proposer;
  private readonly target: EffectHandlers;

  constructor(
    private readonly shared: ReplicaDeps,
    readonly machine: Machine,
    restored: RestoredState,
    readonly lives: PeerLives,
  ) {
    const { settings, ports, completions, budget } = shared;
    this.partition = machine.group;
    this.flushedIndex = machine.appliedIndex;
    this.floor = restored.floorIndex;
    this.core = new RaftCore(raftSettings(settings, ports.entropy.uint32()), restored);
    this.batcher = new Batcher(settings, budget, completions);
    this.proposals = new Proposals(budget, completions);
    this.reads = new Reads(completions, settings.waitingReadsMax, ports.meter);
    const { nodeId, ephemeralBytesMax } = settings;
    const inherited = (term: number, token: number): EphemeralTable | null =>
      shared.heirs.take(this.partition, term, token);
    const { commonWallMs } = shared;
    const clocks = { ...ports, commonWallMs };
    this.leadership = new Leadership(nodeId, machine, clocks, ephemeralBytesMax, inherited);
    this.leadership.addReset(() => this.pauses.cut.drop());
    this.members = new GroupMembers(settings.nodeId, this.core, machine, this.proposals);
    this.cache = new EntryCache(shared.cacheBudget, settings.entryCacheBytesMax);
    this.digests = new ReplicaDigests((index) => this.differs(index));
    this.peers = this.makePeers();
    this.proposer = new Proposer(shared, this);
    this.move = new Move(this, shared.transferTally);
    this.applier = new Applier(machine, this.proposals, ports, this, settings.digestEveryEntries);
    this.target = new EffectHandlers(this, ports);
    this.executor = new EffectsExecutor(
      this.partition,
      settings.nodeId,
      this.core,
      this.target,
      shared.outbox,
      () => shared.wake(this),
      restored.hardState,
    );
  }

  private makePeers(): GroupPeers {
    const { settings, ports, peers: outbox } = this.shared;
    return new GroupPeers({
      partition: this.partition,
      core: this.core,
      lives: this.lives,
      cache: this.cache,
      leadership: this.leadership,
      digests: this.digests,
      settings,
      outbox,
      log: ports.log,
      appendBudget: this.shared.appendBudget,
      clock: ports.clock,
      wake: () => this.shared.wake(this),
      clockOf: (node) => this.shared.clockOf(node),
      isQuiet: () => this.isQuiet && this.reads.waitingCount === 0,
    });
  }

  /** What is applied was written: the directory says so, unless the program is a wrong one. */
  onLevel(level: number): void {
    this.shared.levelMark.covers(level);
  }

  mayApply(): boolean {
    return this.shared.mayApply(this.leadership.isLeading);
  }

  /** A group whose only voter is this node elects itself at once: nobody else could. */
  start(): void {
    this.started = true;
    if (this.members.isAlone) this.core.campaign();
    this.shared.wake(this);
  }

  /** The cluster is known to count on this very data directory: it may lead. */
  mayLead(): void {
    this.core.setPassive(false);
    if (this.started) this.start();
  }

  /** Queues a message of another node's core for the next turn. */
  receive(item: RaftItem): void {
    if (this.started && !this.isRetired) this.peers.receive(item);
  }

  /** Steps what other nodes sent; before ticks, so that no election starts over a full inbox. */
  stepInbox(): void {
    if (this.executor.isInstalling || this.isRetired) return;
    this.peers.stepInbox(this.execute);
  }

  /** One turn of this group. */
  run(nowMs: number, slice: ApplySlice): void {
    if (this.isRetired) return;
    this.pauses.pass(nowMs);
    this.executor.run();
    this.stepInbox();
    this.apply(nowMs, slice);
    if (this.leadership.isServing) {
      if (!this.isPaused) {
        if (!this.pauses.isOn(nowMs)) this.proposer.cut(nowMs);
        this.peers.announceCommit(nowMs);
        if (this.reads.wantsRound) this.reads.begin(this.core);
      }
      this.executor.run();
      this.apply(nowMs, slice);
    }
    if (this.leadership.isServing) {
      this.reads.settle(this.machine.appliedIndex, this.machine.leaseMs);
    }
    if (!this.move.isIdle && !this.executor.isInstalling) {
      this.move.step(nowMs);
      this.executor.run();
    }
    if (!this.caughtUpOnce && this.leadership.leader !== 0) {
      this.caughtUpOnce = this.machine.appliedIndex >= this.core.commitIndex;
    }
  }

  /** Whether a turn would cut a batch now. */
  wantsCut(nowMs: number): boolean {
    if (!this.leadership.isServing || this.isPaused || this.pauses.isOn(nowMs)) return false;
    return this.batcher.isDue(nowMs, this.proposals.entryCount);
  }

  /** Something is left to do that no event will announce. */
  get hasWork(): boolean {
    return this.applier.hasWork && !this.executor.isInstalling && !this.isRetired;
  }

  /** This node may vote and lead in this group. */
  get isVoter(): boolean {
    const { voters, votersOutgoing } = this.members.membership;
    const { nodeId } = this.shared.settings;
    return voters.includes(nodeId) || votersOutgoing.includes(nodeId);
  }

  /** Whether raft time matters to this group: a member that is alone and leads needs none. */
  get needsTicks(): boolean {
    return this.started && !(this.leadership.isLeading && this.members.isAlone);
  }

  tick(count: number, nowMs: number): void {
    const wasPaused = this.isPaused;
    this.peers.tick(count, nowMs);
    const mayGoOn = wasPaused || !this.move.isIdle;
    if (this.core.hasEffects() || mayGoOn) this.shared.wake(this);
  }

  /** Ends whoever has waited until its deadline. */
  expire(nowMs: number): void {
    this.batcher.expire(nowMs);
    this.proposals.expire(nowMs);
    this.reads.expire(nowMs);
  }

  /** When this group wants a turn although nothing happens. */
  get wakeAtMs(): number {
    const heldUntilMs = this.pauses.wakeAtMs;
    const deadlineMs = Math.min(
      this.batcher.earliestDeadlineMs,
      this.proposals.earliestDeadlineMs,
      this.reads.earliestDeadlineMs,
      this.move.wakeAtMs,
      heldUntilMs,
    );
    // While entries are held back nothing lingers: the end of that is waited for.
    const isHeld = this.isPaused || heldUntilMs < Infinity;
    const lingers = this.leadership.isServing && !isHeld && this.proposals.entryCount === 0;
    if (!lingers || !this.shared.intakeOpen()) return deadlineMs;
    return Math.min(deadlineMs, this.batcher.dueMs);
  }

  /** Leadership is on its way: what arrives waits, here or for the next leader. */
  get isPaused(): boolean {
    return this.move.isPausing || this.core.isTransferring;
  }

  /** Somebody waits for an answer of this group. */
  get hasWaiters(): boolean {
    const { batcher, proposals, reads } = this;
    return batcher.queuedCommands + proposals.waitingCount + reads.waitingCount > 0;
  }

  /** This node serves the group, and leases may run in it. */
  get hasLeases(): boolean {
    const { leadership, applier } = this;
    if (applier.leasesUntilMs === 0 || !leadership.isServing) return false;
    return leadership.leaseNowMs(this.shared.ports.clock.monotonicMs()) < applier.leasesUntilMs;
  }

  /** Nothing of this group is queued, on its way to the disk or unapplied. */
  get isQuiet(): boolean {
    if (!this.move.isIdle) return false;
    if (this.batcher.queuedCommands > 0 || this.proposals.entryCount > 0) return false;
    return this.executor.openCount === 0 && this.applier.backlog === 0;
  }

  get appliedIndex(): number {
    return this.machine.appliedIndex;
  }

  /** The oldest write that is not durable yet, as an object to know it again by. */
  get oldestWrite(): object | null {
    return this.executor.oldestWrite;
  }

  /** Payload bytes applied in this life. */
  get appliedBytes(): number {
    return this.applier.appliedBytes;
  }

  /** Entries above this are wanted by somebody who installs a snapshot. */
  get keepFrom(): number {
    return this.shared.snapshots.keepFrom(this.partition);
  }

  get followersFrom(): number {
    return followersFrom(this.core, (node) => this.shared.peers.isUp(node));
  }

  payloadBytes(first: number, last: number): number {
    return this.core.payloadBytes(first, last);
  }

  get floorIndex(): number {
    return this.floor;
  }

  compact(index: number): void {
    assert(
      index > this.floor && index <= this.flushedIndex,
      "a floor rises, up to what is flushed",
    );
    const term = this.termAt(index);
    this.shared.ports.log.raiseFloor(this.partition, { term, index });
    this.core.compacted(index);
    this.cache.dropThrough(index);
    this.floor = index;
  }

  sendSnapshot(to: number): void {
    this.shared.snapshots.send(this, to);
  }

  installSnapshot(meta: SnapshotMeta, hardState: HardState, done: () => void): void {
    this.shared.snapshots.install(this, meta, hardState, done);
  }

  /** A snapshot took the place of state and log, up to `index`. Its callers end first. */
  replaced(index: number): void {
    if (this.leadership.isLeading) this.target.endLeadership("state replaced");
    this.proposals.dropAll();
    this.peers.replication.reset();
    this.digests.reset();
    this.cache.clear();
    this.applier.reset(index);
    this.flushedIndex = index;
    this.floor = index;
  }

  /** Moves the leadership to another node as planned. False: not now. */
  moveTo(order: MoveOrder): boolean {
    this.peers.unquiesce();
    this.shared.wake(this);
    return this.move.begin(order, this.nowMs());
  }

  proposeFinals(finals: readonly Waiter[], nowMs: number): void {
    this.proposer.cutFinals(finals, nowMs);
  }

  send(lane: "control" | "bulk", to: number, bytes: Uint8Array): boolean {
    return this.shared.ports.peers?.send(to, lane, bytes) ?? false;
  }

  emptyTable(term: number): EphemeralTable {
    return this.leadership.emptyTable(term);
  }

  answered(from: number, answer: MoveAnswer): void {
    this.move.answered(from, answer);
  }

  get isInstalling(): boolean {
    return this.executor.isInstalling;
  }

  get electionMs(): number {
    return this.shared.settings.electionMs;
  }

  nowMs(): number {
    return this.shared.ports.clock.monotonicMs();
  }

  wake(): void {
    this.shared.wake(this);
  }

  cached(index: number, term: number): LogEntry | null {
    return this.cache.at(index, term);
  }

  applyMembership(entry: LogEntry): boolean {
    return this.members.apply(entry);
  }

  onLoaded(): void {
    this.shared.wake(this);
  }

  onFixedIndex(): void {
    const { low, high } = this.machine.chainHalves;
    this.digests.reached({ index: this.machine.appliedIndex, low, high });
  }

  /** Whatever it would answer from here on may be wrong (C14). */
  private differs(index: number): void {
    const { fatal, meter } = this.shared.ports;
    meter.replicaDigestMismatch(this.partition, index);
    const where = `partition ${this.partition} at index ${index}`;
    fatal.fatal(`a replica differs from its leader's: ${where}`, {
      leader: this.leadership.leader,
    });
  }

  /**
   * It leaves this node: whoever waits is told to try again, what is derived from it goes (P-042).
   * Writes on their way end, and lead to nothing.
   */
  retire(): LastWords {
    assert(!this.isRetired, "a replica leaves once");
    this.isRetired = true;
    if (this.leadership.isLeading) this.target.endLeadership("the replica leaves this node");
    this.leadership.setLeader(0);
    this.reads.endAll(RETRY);
    this.batcher.endAll(NOT_LEADER);
    this.proposals.dropAll();
    this.peers.replication.close();
    this.cache.clear();
    this.machine.close();
    const { term, vote } = this.core;
    const { lastGeneration } = this.machine.record();
    return { incarnation: this.lives.own, term, vote, lastGeneration };
  }

  /** Ends everybody who still waits, because the node stops. */
  endAll(): void {
    this.reads.endAll({ status: "aborted" });
    this.batcher.endAll({ status: "aborted" });
    this.proposals.endAll();
  }

  private readonly execute = (): boolean => {
    this.executor.run();
    return !this.executor.isInstalling;
  };

  private apply(nowMs: number, slice: ApplySlice): void {
    if (this.executor.isInstalling) return;
    while (this.applier.run(slice, nowMs) > 0) {
      this.core.applied(this.machine.appliedIndex);
      this.leadership.noteApplied();
      this.executor.run();
      if (slice.commands <= 0 || this.shared.ports.clock.monotonicMs() >= slice.endMs) return;
    }
  }

  termAt(index: number): number {
    const found = this.core.termAt(index);
    assert(found.kind === "known", `the core knows the term of entry ${index}`);
    return found.term;
  }
}
