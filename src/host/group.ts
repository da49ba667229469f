/**
 * One Raft group on this node: what operations see of it. Signature only for the moment; the bodies follow.
 *
 * May call: base, raft, machine, ports, this folder.
 * Invariants: 1. No callback is called in the turn of the call that took it, and each exactly once. 2. `machine` may be
 * read only inside a confirmed read or apply callback: callbacks of one turn run after every effect of that turn, with
 * nothing applied between them. 3. Nothing is decided from state before the own-term entry is applied.
 */
import { AssertionError } from "../base/assert.js";
import type { PartitionId } from "../base/ids.js";
import type { Command } from "../machine/command.js";
import type { EphemeralTable } from "../machine/ephemeral.js";
import type { Machine } from "../machine/machine.js";
import type { GroupFacts, ProposalDone, ReadDone, ResetHook, StopHook } from "./results.js";

export type {
  FinalPropose,
  GroupFacts,
  ProposalDone,
  ProposalResult,
  ReadDone,
  ReadResult,
  RefusalReason,
  ResetHook,
  StopHook,
} from "./results.js";

function pending(): never {
  throw new AssertionError("not written yet");
}

/* eslint-disable @typescript-eslint/no-unused-vars */
export abstract class Group {
  abstract readonly partition: PartitionId;
  /** Reads are legal only inside a confirmed read or apply callback. */
  abstract readonly machine: Machine;
  /** This leadership's ephemeral locks and keys; null when not leading or the own-term entry is not applied. */
  abstract readonly ephemeral: EphemeralTable | null;
  /**
   * Queues `command`. `sizeBytes`: its encoded size or an upper bound of it, for the byte budgets. `deadlineMs`: on the
   * monotonic clock; a command still queued then is "aborted", a proposed one "unknown".
   */
  propose(_command: Command, _sizeBytes: number, _deadlineMs: number, _done: ProposalDone): void {
    pending();
  }
  /** Confirms leadership with a round that begins after this call; one round confirms everybody who waits for it. */
  read(_deadlineMs: number, _done: ReadDone): void {
    pending();
  }
  /**
   * Makes the committed lease clock reach `leaseTimeMs`, in lease time, by proposing a clock entry (shared by all who
   * ask at once). Ends as the proposal does; the outcome of success is "done".
   */
  advanceClock(_leaseTimeMs: number, _deadlineMs: number, _done: ProposalDone): void {
    pending();
  }
  /** The leader's estimate of the lease clock now (ms, lease time); the committed value when not serving. */
  leaseNowMs(): number {
    pending();
  }
  /** The committed lease clock: what apply saw last. */
  committedLeaseMs(): number {
    pending();
  }
  /** Leads, and has applied its own-term entry. */
  isServing(): boolean {
    pending();
  }
  isLeader(): boolean {
    pending();
  }
  term(): number {
    pending();
  }
  /** The leader's node id; 0 = unknown. */
  leaderNode(): number {
    pending();
  }
  /** `hook` is called at every end of a leadership and every replacement of the state. */
  addReset(_hook: ResetHook): void {
    pending();
  }
  /** `hook` may propose final commands when the node stops (hand back the rest of a block). */
  addStopHook(_hook: StopHook): void {
    pending();
  }
  facts(): GroupFacts {
    pending();
  }
}
