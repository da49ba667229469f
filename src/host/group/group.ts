/**
 * One Raft group on this node: what operations see of it.
 *
 * Invariants: 1. No callback is called in the turn of the call that took it, and each exactly once.
 * 2. `machine` may be read only inside a confirmed read or apply callback: the callbacks of a turn
 * run after all of its effects, with nothing applied between them. 3. Nothing is decided from state
 * before the own-term entry is applied. 4. What is refused here was never queued and has no effect.
 * 5. Whatever is accepted is answered by its deadline: the group's wake time covers it (contract
 * C9). 6. Not-leading refuses at once; leading without serving lets commands and reads wait
 * (P-014).
 */
import { assert } from "../../base/assert.js";
import { COUNTER_MAX, type Hlc } from "../../base/hlc.js";
import type { PartitionId } from "../../base/ids.js";
import { commandSizeBytes } from "../../machine/commands/codec.js";
import type { Command, EntryStamp, MarkCommand } from "../../machine/commands/command.js";
import type { EphemeralTable } from "../../machine/ephemeral.js";
import type { EntryPosition, Machine } from "../../machine/machine.js";
import type { Membership } from "../../raft/state/types.js";
import type { LogHold } from "../storage/backup-floors.js";
import { LogStretch, type StretchRefusal, stretchRefusal } from "../storage/log-stretch.js";
import type { ReplicaDeps, Replica } from "./replica.js";
import type { CutEpoch } from "../pauses/cut-pause.js";
import { groupFacts } from "./group-facts.js";
import { ClockAdvances } from "../requests/clockadvance.js";
import type {
  GroupFacts,
  JoinedCommand,
  MoveHook,
  ProposalDone,
  ProposalMarks,
  ReadDone,
  RefusalReason,
  ResetHook,
  StopHook,
} from "../requests/results.js";

export type {
  GroupFacts,
  ProposalDone,
  ProposalResult,
  ReadDone,
  ReadResult,
  ResetHook,
  StopHook,
} from "../requests/results.js";

/** What a group says that is to pause for a cut. */
export type CutAnswer = "closing" | "stale" | "passed" | "refused" | "not-serving";

export class Group {
  readonly partition: PartitionId;
  private changesAccepted = 0;
  private readonly advances: ClockAdvances;

  constructor(
    private readonly shared: ReplicaDeps,
    private readonly replica: Replica,
  ) {
    this.partition = replica.partition;
    this.advances = new ClockAdvances(shared.completions, (command, sizeBytes, deadlineMs, done) =>
      this.proposeFinal(command, sizeBytes, deadlineMs, done),
    );
  }

  /** Reads are legal only inside a confirmed read or apply callback. */
  get machine(): Machine {
    return this.replica.machine;
  }

  /** Who belongs to the group, as last applied here; before the first change, who founded it. */
  get membership(): Membership {
    return this.replica.members.membership;
  }

  /** This leadership's ephemeral locks and keys; null while not serving. */
  get ephemeral(): EphemeralTable | null {
    return this.replica.leadership.ephemeral;
  }

  /** The node stops, and nobody else leads the group: what is new is turned away. */
  private get isEnding(): boolean {
    return this.shared.isStopping() && this.isLeader();
  }

  /**
   * Queues `command`. `sizeBytes`: its encoded size or an upper bound of it, for the byte budgets.
   * `deadlineMs`: on the monotonic clock; a command still queued then is "aborted", a proposed one
   * "unknown". `joined`: is decided right behind it, in the same entry, or is refused as it is.
   * `marks`: is filled in on the way. Returns false where it is refused at once: `done` hears of
   * that as well.
   */
  propose(
    command: Command,
    sizeBytes: number,
    deadlineMs: number,
    done: ProposalDone,
    joined: JoinedCommand | null = null,
    marks: ProposalMarks | null = null,
  ): boolean {
    if (!this.isEnding) {
      return this.proposeFinal(command, sizeBytes, deadlineMs, done, joined, marks);
    }
    return this.refuse(done, "shutting-down", joined);
  }

  /**
   * As `propose`, also while the node stops: for stop hooks, and for what the host itself proposes.
   */
  proposeFinal(
    command: Command,
    sizeBytes: number,
    deadlineMs: number,
    done: ProposalDone,
    joined: JoinedCommand | null = null,
    marks: ProposalMarks | null = null,
  ): boolean {
    const { replica, shared } = this;
    if (!replica.leadership.isLeading) return this.refuse(done, "not-leader", joined);
    if (!shared.admits()) return this.refuse(done, "overloaded", joined);
    const nowMs = shared.ports.clock.monotonicMs();
    replica.peers.unquiesce(nowMs);
    if (marks !== null) marks.queuedMs = nowMs;
    const waiter = { command, sizeBytes, deadlineMs, done, marks };
    if (!replica.batcher.enqueue(waiter, nowMs)) return this.refuse(done, "overloaded", joined);
    if (joined !== null) replica.batcher.enqueueJoined({ ...joined, isJoined: true });
    if (command.kind !== "collect" && command.kind !== "advance-clock") this.changesAccepted++;
    if (replica.wantsCut(nowMs)) shared.wake(replica);
    shared.wakeAt(replica.wakeAtMs);
    return true;
  }

  /**
   * Proposes a mark stamped exactly `at`, before everything that is queued, also while no batch is
   * cut. "passed": a stamp at or above `at` was given already, and `done` does not come. Only while
   * serving.
   */
  proposeMark(
    mark: MarkCommand,
    at: Hlc,
    deadlineMs: number,
    done: ProposalDone,
  ): "proposed" | "refused" | "passed" {
    const { replica, shared } = this;
    const nowMs = shared.ports.clock.monotonicMs();
    replica.peers.unquiesce(nowMs);
    const waiter = { command: mark, sizeBytes: commandSizeBytes(mark), deadlineMs, done };
    const result = replica.proposer.proposeMark(waiter, at, nowMs);
    shared.wake(replica);
    shared.wakeAt(replica.wakeAtMs);
    return result;
  }

  /**
   * Pauses the group for the cut of `epoch`: behind what is in flight comes the mark, stamped
   * exactly `at`, and then no entry until the pause ends, by itself or by `releaseCutPause`. `done`
   * hears of the mark where that is "closing" or "refused"; else nothing was done. "passed": as
   * `proposeMark`. "stale": the epoch is not above those seen, or the group has stood still for as
   * long as it may.
   */
  closeForCut(
    epoch: CutEpoch,
    mark: MarkCommand,
    at: Hlc,
    deadlineMs: number,
    done: ProposalDone,
  ): CutAnswer {
    assert(at.c === COUNTER_MAX, "the stamp of a cut is the last one of its millisecond");
    const { leadership, pauses } = this.replica;
    const nowMs = this.shared.ports.clock.monotonicMs();
    if (!leadership.isServing || this.isEnding) return "not-serving";
    if (pauses.cut.isStale(epoch, nowMs)) return "stale";
    const result = this.proposeMark(mark, at, deadlineMs, done);
    if (result !== "proposed") return result;
    pauses.cut.begin(epoch, leadership.term, nowMs);
    this.shared.wakeAt(this.replica.wakeAtMs);
    return "closing";
  }

  /**
   * `done` hears whether this node led the group at a moment after this call, by a round begun
   * since, and whether the pause of `epoch` has lasted until then without a break.
   */
  proveCutPause(epoch: CutEpoch, deadlineMs: number, done: (isProved: boolean) => void): void {
    const { leadership, pauses } = this.replica;
    this.read(deadlineMs, ({ status }) => {
      const nowMs = this.shared.ports.clock.monotonicMs();
      done(status === "confirmed" && pauses.cut.lasts(epoch, leadership.term, nowMs));
    });
  }

  /** The cut of `epoch` is made, or comes to nothing: what waits goes on. */
  releaseCutPause(epoch: CutEpoch): void {
    this.replica.pauses.cut.release(epoch);
    this.shared.wake(this.replica);
  }

  /**
   * Keeps what the log of this replica has above `fromIndex`, for a backup that reads it: look at
   * its state. null: some of that is gone.
   */
  holdLog(fromIndex: number): LogHold | null {
    return this.shared.holdLog(this.replica, fromIndex);
  }

  /**
   * The log of this replica behind `after` up to `last`, which it has applied, to be read in
   * slices; or why it cannot be had here.
   */
  logStretch(after: EntryPosition, last: EntryPosition): LogStretch | StretchRefusal {
    const { partition, replica, shared } = this;
    const refusal = stretchRefusal(replica.core, replica.appliedIndex, after, last);
    return refusal ?? new LogStretch(shared.ports.log, partition, after, last);
  }

  /** The last stamp that was given or seen here. */
  get lastStamp(): Hlc {
    return this.replica.leadership.lastStamp;
  }

  /**
   * Confirms leadership with a round that begins after this call; one round confirms everybody who
   * waits for it.
   */
  read(deadlineMs: number, done: ReadDone): void {
    const { replica, shared } = this;
    if (this.isEnding) return shared.completions.read(done, { status: "aborted" });
    const { isLeading, isServing } = replica.leadership;
    if (!isLeading || !replica.reads.add(deadlineMs, done)) {
      return shared.completions.read(done, { status: "retry" });
    }
    replica.peers.unquiesce();
    if (isServing) shared.wake(replica);
    shared.wakeAt(deadlineMs);
  }

  /**
   * For `forMs` from now, as long as this node leads, followers hear of a commit at once, not with
   * the next entries or heartbeat.
   */
  announceCommits(forMs: number): void {
    const { replica, shared } = this;
    replica.peers.announceUntil(shared.ports.clock.monotonicMs() + forMs);
  }

  /**
   * Makes the committed lease clock reach `leaseTimeMs` (lease time, at most `leaseNowMs()`), by a
   * clock entry that all who ask at once share. Ends as a proposal does.
   */
  advanceClock(leaseTimeMs: number, deadlineMs: number, done: ProposalDone): void {
    if (this.isEnding) return void this.refuse(done, "shutting-down");
    this.advances.add(leaseTimeMs, deadlineMs, done);
    this.shared.wakeAt(deadlineMs);
  }

  /** Cuts no entries for up to `forMs`, if the last such pause is long over. Proves nothing. */
  holdEntries(forMs: number): void {
    const { replica, shared } = this;
    replica.pauses.entry.begin(shared.ports.clock.monotonicMs(), forMs);
    shared.wakeAt(replica.wakeAtMs);
  }

  /** The leader's estimate of the lease clock now (ms); the committed value while not serving. */
  leaseNowMs(): number {
    return this.replica.leadership.leaseNowMs(this.shared.ports.clock.monotonicMs());
  }

  /** The committed lease clock (ms): what apply saw last. */
  committedLeaseMs(): number {
    return this.replica.machine.leaseMs;
  }

  /**
   * The stamp of a decision in this leadership's memory (ephemeral data), in order with those of
   * log entries. Only while serving.
   */
  nextStamp(): EntryStamp {
    return this.replica.leadership.nextEntryStamp(this.shared.ports.clock.monotonicMs());
  }

  /** Commands accepted so far that may leave rows behind: what retention goes by. */
  acceptedChanges(): number {
    return this.changesAccepted;
  }

  /** Of them, so many at least that the rows show, or that are over. */
  appliedChanges(): number {
    const { batcher, proposals } = this.replica;
    return this.changesAccepted - batcher.queuedCommands - proposals.commandCount;
  }

  /** Leads, and has applied its own-term entry. */
  isServing(): boolean {
    return this.replica.leadership.isServing;
  }

  isLeader(): boolean {
    return this.replica.leadership.isLeading;
  }

  term(): number {
    return this.replica.core.term;
  }

  /** Leadership is on its way to another node: what is proposed waits. */
  isHandingOver(): boolean {
    return this.replica.isPaused;
  }

  /** The leader's node id; 0 = unknown. */
  leaderNode(): number {
    return this.replica.leadership.leader;
  }

  /** When this node was level with the group's leader last, as far as is known (monotonic ms). */
  levelMs(nowMs: number): number {
    return this.replica.peers.levelMs(nowMs, this.membership);
  }

  /** `hook` is called at every end of a leadership and every replacement of the state. */
  addReset(hook: ResetHook): void {
    this.replica.leadership.addReset(hook);
  }

  /**
   * `hook` may propose final commands when this node stops leading as planned, by a move or its own
   * stop (hand back the rest of a block).
   */
  addStopHook(hook: StopHook): void {
    this.replica.stopHooks.push(hook);
  }

  /** `hook` may tell the next leader something, when a move is about to end in its order. */
  addMoveHook(hook: MoveHook): void {
    this.replica.moveHooks.push(hook);
  }

  /** For the host: runs the stop hooks, if this group serves. */
  runStopHooks(deadlineMs: number): void {
    if (!this.isServing()) return;
    for (const hook of this.replica.stopHooks) {
      hook((command, sizeBytes, done) => this.proposeFinal(command, sizeBytes, deadlineMs, done));
    }
  }

  /** For the host: ends what waits here and is due. */
  expire(nowMs: number): void {
    this.replica.expire(nowMs);
    this.advances.expire(nowMs);
  }

  /** For the host: when this group wants a turn although nothing happens. */
  get wakeAtMs(): number {
    return Math.min(this.replica.wakeAtMs, this.advances.earliestDeadlineMs);
  }

  facts(): GroupFacts {
    return groupFacts(this.replica);
  }

  private refuse(
    done: ProposalDone,
    reason: RefusalReason,
    joined: JoinedCommand | null = null,
  ): false {
    this.shared.completions.proposal(done, { status: "refused", reason });
    if (joined !== null)
      this.shared.completions.proposal(joined.done, { status: "refused", reason });
    return false;
  }
}
