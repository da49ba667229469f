/**
 * One Raft group on this node: what operations see of it.
 *
 * Invariants: 1. No callback is called in the turn of the call that took it, and each exactly once.
 * 2. `machine` may be read only inside a confirmed read or apply callback: the callbacks of a turn
 * run after all of its effects, with nothing applied between them. 3. Nothing is decided from state
 * before the own-term entry is applied.
 */
import type { PartitionId } from "../../base/ids.js";
import type { Command, EntryStamp } from "../../machine/commands/command.js";
import type { EphemeralTable } from "../../machine/ephemeral.js";
import type { Machine } from "../../machine/machine.js";
import type { DriverShared, GroupDriver } from "./driver.js";
import { groupFacts } from "./group-facts.js";
import type { Intake } from "./intake.js";
import type {
  GroupFacts,
  ProposalDone,
  ReadDone,
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

export class Group {
  readonly partition: PartitionId;
  constructor(
    private readonly shared: DriverShared,
    private readonly driver: GroupDriver,
    private readonly intake: Intake,
  ) {
    this.partition = driver.partition;
  }

  /** Reads are legal only inside a confirmed read or apply callback. */
  get machine(): Machine {
    return this.driver.machine;
  }

  /** This leadership's ephemeral locks and keys; null while not serving. */
  get ephemeral(): EphemeralTable | null {
    return this.driver.leadership.ephemeral;
  }

  /** The node stops, and nobody else leads the group: what is new is turned away. */
  private get isEnding(): boolean {
    return this.shared.isStopping() && this.isLeader();
  }

  /**
   * Queues `command`. `sizeBytes`: its encoded size or an upper bound of it, for the byte budgets.
   * `deadlineMs`: on the monotonic clock; a command still queued then is "aborted", a proposed one
   * "unknown".
   */
  propose(command: Command, sizeBytes: number, deadlineMs: number, done: ProposalDone): void {
    if (this.isEnding) {
      this.shared.answers.proposal(done, { status: "refused", reason: "shutting-down" });
      return;
    }
    this.intake.propose(command, sizeBytes, deadlineMs, done);
  }

  /**
   * Confirms leadership with a round that begins after this call; one round confirms everybody who
   * waits for it.
   */
  read(deadlineMs: number, done: ReadDone): void {
    if (this.isEnding) {
      this.shared.answers.read(done, { status: "aborted" });
      return;
    }
    this.intake.read(deadlineMs, done);
  }

  /**
   * Makes the committed lease clock reach `leaseTimeMs` (lease time, at most `leaseNowMs()`), by a
   * clock entry that all who ask at once share. Ends as a proposal does.
   */
  advanceClock(leaseTimeMs: number, deadlineMs: number, done: ProposalDone): void {
    if (this.isEnding) {
      this.shared.answers.proposal(done, { status: "refused", reason: "shutting-down" });
      return;
    }
    this.intake.advanceClock(leaseTimeMs, deadlineMs, done);
  }

  /** The leader's estimate of the lease clock now (ms); the committed value while not serving. */
  leaseNowMs(): number {
    return this.driver.leadership.leaseNowMs(this.shared.ports.clock.monotonicMs());
  }

  /** The committed lease clock (ms): what apply saw last. */
  committedLeaseMs(): number {
    return this.driver.machine.leaseMs;
  }

  /**
   * The stamp of a decision in this leadership's memory (ephemeral data), in order with those of
   * log entries. Only while serving.
   */
  nextStamp(): EntryStamp {
    return this.driver.leadership.nextEntryStamp(this.shared.ports.clock.monotonicMs());
  }

  /** Leads, and has applied its own-term entry. */
  isServing(): boolean {
    return this.driver.leadership.isServing;
  }

  isLeader(): boolean {
    return this.driver.leadership.isLeading;
  }

  term(): number {
    return this.driver.core.term;
  }

  /** The leader's node id; 0 = unknown. */
  leaderNode(): number {
    return this.driver.leadership.leader;
  }

  /** `hook` is called at every end of a leadership and every replacement of the state. */
  addReset(hook: ResetHook): void {
    this.driver.leadership.addReset(hook);
  }

  /**
   * `hook` may propose final commands when this node stops leading as planned, by a move or its own
   * stop (hand back the rest of a block).
   */
  addStopHook(hook: StopHook): void {
    this.driver.stopHooks.push(hook);
  }

  /** For the host: runs the stop hooks, if this group serves. */
  runStopHooks(deadlineMs: number): void {
    if (!this.isServing()) return;
    for (const hook of this.driver.stopHooks) {
      hook((command, sizeBytes, done) => this.intake.propose(command, sizeBytes, deadlineMs, done));
    }
  }

  facts(): GroupFacts {
    return groupFacts(this.driver);
  }
}
