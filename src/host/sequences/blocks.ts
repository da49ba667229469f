/**
 * The leader's sequence blocks of one group: keyless next and reserve from memory, and the commands
 * that end a block.
 *
 * Owns whoever waits for a deadline; waiters go through `Rounds` to `Reservations`.
 *
 * Invariants: 1. A value is handed out only in the turn of a round that began after its request
 * arrived, or of a command proposed after that, and only from a block that this leadership
 * reserved. 2. Blocks die with the leadership, with a replaced state, and with every write of their
 * record. 3. Every waiter ends once, at its deadline at the latest.
 */
import { assert } from "../../base/assert.js";
import { textSizeBytes } from "../../base/bytes.js";
import { INT32_MAX, Int64 } from "../../base/int64.js";
import {
  SequenceType,
  type SequenceRecord,
  type UpdateSequenceCommand,
} from "../../machine/commands/command.js";
import { DeadlineSweep } from "../requests/deadline-sweep.js";
import type {
  FinalPropose,
  ProposalDone,
  ProposalMarks,
  ProposalResult,
} from "../requests/results.js";
import {
  type BlockDone,
  type BlockGroup,
  type BlockKernels,
  type BlockPorts,
  type BlockSettings,
  type Waiter,
  endWaiter,
} from "./block.js";
import { COMMAND_BYTES, Reservations } from "./reservations.js";
import { Rounds } from "./rounds.js";
import { SequenceEntries } from "./sequence-entry.js";

export type { BlockDone, BlockGroup, BlockKernels, BlockPorts, BlockSettings } from "./block.js";

/** "busy": an update of the sequence is under way, and nothing was done. */
export type SequenceDone = (result: ProposalResult | "busy") => void;

export class SequenceBlocks {
  private readonly entries: SequenceEntries;
  private readonly rounds: Rounds;
  private readonly reservations: Reservations;
  private readonly sweep: DeadlineSweep;

  /** `blocksMax`: sequences with a block in memory; beyond it an idle one is handed back. */
  constructor(
    private readonly group: BlockGroup,
    private readonly settings: BlockSettings,
    private readonly ports: BlockPorts,
    kernels: BlockKernels,
    blocksMax?: number,
  ) {
    this.entries = new SequenceEntries(group);
    this.reservations = new Reservations(
      this.entries,
      group,
      settings,
      ports,
      kernels,
      (waiters) => this.rounds.arriveAgain(waiters),
      blocksMax,
    );
    const confirmed = (waiters: readonly Waiter[]): void => this.reservations.serveRound(waiters);
    this.rounds = new Rounds(group, ports.timer, confirmed);
    this.sweep = new DeadlineSweep(ports, (nowMs) => this.expire(nowMs));
  }

  /** Sequences with a block, somebody waiting or a command in flight, for tests and metrics. */
  get size(): number {
    return this.entries.size;
  }

  /** Keyless next (`count` 1) or reserve. */
  allocate(name: string, count: number, deadlineMs: number, done: BlockDone): void {
    assert(count >= 1 && count <= INT32_MAX, "a count is 1 to 2^31 - 1");
    // A retry may be said without proof: it tells nothing about the state (S13).
    const entry = this.entries.find(name);
    if (entry !== undefined && entry.update !== null) {
      const { mustRetry } = SequenceType;
      return this.ports.timer.soon(() => done(mustRetry, Int64.ZERO, Int64.ZERO, 0, null));
    }
    this.sweep.expectBy(deadlineMs);
    this.rounds.arrive({ name, count, deadlineMs, done, ended: false, attempts: 0 });
  }

  /** Keyed next or reserve: durable by itself, ends the open block. */
  allocateKeyed(
    name: string,
    count: number,
    key: string,
    deadlineMs: number,
    done: SequenceDone,
    marks: ProposalMarks | null = null,
  ): void {
    const entry = this.entries.of(name);
    if (entry.update !== null) return this.ports.timer.soon(() => done("busy"));
    const { keysRetainedMax, keysRetainedMs } = this.settings;
    const pinned = entry.pin();
    const cursor = entry.cursor();
    const sizeBytes = COMMAND_BYTES + textSizeBytes(name) + textSizeBytes(key);
    this.group.propose(
      { kind: "allocate", name, count, key, cursor, keysRetainedMax, keysRetainedMs },
      sizeBytes,
      deadlineMs,
      (result) => {
        this.entries.landed(entry, pinned, result);
        done(result);
      },
      null,
      marks,
    );
  }

  /**
   * An update. Its cursor is filled in here; next and reserve are sent back while it is under way.
   */
  update(
    command: UpdateSequenceCommand,
    deadlineMs: number,
    done: SequenceDone,
    marks: ProposalMarks | null = null,
  ): void {
    const entry = this.entries.of(command.name);
    if (entry.update !== null) return this.ports.timer.soon(() => done("busy"));
    const sizeBytes = COMMAND_BYTES + textSizeBytes(command.name);
    this.sweep.expectBy(deadlineMs);
    entry.update = { command, sizeBytes, deadlineMs, done, marks, proposed: false };
    this.entries.startUpdate(entry);
  }

  /** Deletes the sequence; its block dies with it. */
  remove(
    name: string,
    deadlineMs: number,
    done: ProposalDone,
    marks: ProposalMarks | null = null,
  ): void {
    const entry = this.entries.of(name);
    entry.deletes++;
    entry.reservationDies = true;
    const pinned = entry.pin();
    const sizeBytes = COMMAND_BYTES + textSizeBytes(name);
    const landed = (result: ProposalResult): void => {
      entry.deletes--;
      // Even a sequence created anew with the same numbers must not be served from the old one's
      // block.
      if (result.status === "applied" || result.status === "unknown") entry.block = null;
      this.entries.landed(entry, pinned, result);
      done(result);
    };
    const command = { kind: "delete-sequence", name } as const;
    this.group.propose(command, sizeBytes, deadlineMs, landed, null, marks);
  }

  /**
   * What get-sequence shows as current value of `record`, read in this turn: the last value handed
   * out while the same leader answers (S9). "unsettled": a reservation in flight may just have been
   * applied; ask again after `settle`.
   */
  currentValue(record: SequenceRecord): bigint | "unsettled" {
    const entry = this.entries.find(record.name);
    if (entry === undefined) return record.currentValue;
    if (entry.block !== null && entry.block.matches(record)) return entry.block.last;
    const from = entry.reserving === null ? null : entry.reservedFrom;
    if (from === null) return record.currentValue;
    const same = from.incarnation === record.incarnation && from.revision === record.revision;
    return same ? record.currentValue : "unsettled";
  }

  /** Calls `resume` when a command of the sequence or the leadership ended, or at `deadlineMs`. */
  settle(name: string, deadlineMs: number, resume: () => void): void {
    this.sweep.expectBy(deadlineMs);
    this.entries.of(name).settling.push({ deadlineMs, resume });
  }

  /**
   * Leadership or state ended: every block and everything gathered is dropped. For
   * `Group.addReset`.
   */
  reset(): void {
    this.rounds.reset();
    this.entries.reset();
  }

  /**
   * Hands the unused rest of every block back. For `Group.addStopHook`, and before a transfer of
   * leadership.
   */
  handBack(propose: FinalPropose): void {
    for (const entry of this.entries.all()) {
      if (entry.block !== null && entry.block.remaining > 0) {
        this.reservations.returnBlock(entry, propose);
      }
    }
  }

  /** Ends everything that is due; returns the earliest deadline left. */
  private expire(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    const due = (deadlineMs: number): boolean => {
      if (deadlineMs <= nowMs) return true;
      nextMs = Math.min(nextMs, deadlineMs);
      return false;
    };
    const sweep = (waiters: readonly Waiter[], type: number): void => {
      for (const waiter of waiters) {
        if (!waiter.ended && due(waiter.deadlineMs)) endWaiter(waiter, type, null);
      }
    };
    this.rounds.expire(sweep);
    for (const entry of this.entries.all()) {
      // Most have a block and nobody who waits: tens of thousands must cost next to nothing.
      if (entry.isQuiet()) continue;
      sweep(entry.ready, SequenceType.aborted);
      entry.ready = entry.ready.filter((waiter) => !waiter.ended);
      if (entry.reserving !== null) sweep(entry.reserving, SequenceType.mustRetry);
      if (entry.update?.proposed === false && due(entry.update.deadlineMs)) {
        entry.endUpdate({ status: "aborted" });
      }
      const settling = entry.settling.filter((waiting) => !due(waiting.deadlineMs));
      const late = entry.settling.filter((waiting) => waiting.deadlineMs <= nowMs);
      entry.settling = settling;
      for (const waiting of late) waiting.resume();
      this.entries.forget(entry);
    }
    return nextMs;
  }
}
