/**
 * The leader's sequence blocks of one group: keyless next and reserve from memory, and the commands
 * that end a block.
 *
 * Owns everybody who waits for a round or a deadline; `BlockServing` owns the blocks. May call its
 * group, ports, base.
 *
 * Invariants: 1. A value is handed out only in the turn of a round that began after its request
 * arrived, or of a command proposed after that, and only from a block that this leadership
 * reserved. 2. Blocks die with the leadership, with a replaced state, and with every write of their
 * record. 3. One reservation per sequence is in flight; requests that find no room gather for the
 * next. 4. Every waiter ends once, at its deadline at the latest.
 */
import { assert } from "../../base/assert.js";
import { textSizeBytes } from "../../base/bytes.js";
import { INT32_MAX, Int64 } from "../../base/int64.js";
import {
  SequenceType,
  type SequenceRecord,
  type UpdateSequenceCommand,
} from "../../machine/commands/command.js";
import {
  type BlockDone,
  type BlockGroup,
  type BlockKernels,
  type BlockPorts,
  type BlockSettings,
  type Waiter,
  endAborted,
  endMoved,
  endWaiter,
} from "./block.js";
import { DeadlineSweep } from "../requests/deadline-sweep.js";
import type { SequenceEntry } from "./block-entry.js";
import { BlockServing, COMMAND_BYTES, latestDeadlineMs } from "./block-serve.js";
import type {
  FinalPropose,
  ProposalDone,
  ProposalResult,
  ReadResult,
} from "../requests/results.js";

export type { BlockDone, BlockGroup, BlockKernels, BlockPorts, BlockSettings } from "./block.js";

/** "busy": an update of the sequence is under way, and nothing was done. */
export type SequenceDone = (result: ProposalResult | "busy") => void;

export class SequenceBlocks {
  private readonly serving: BlockServing;
  private readonly sweep: DeadlineSweep;
  private arrivals: Waiter[] = [];
  private readonly rounds = new Set<readonly Waiter[]>();
  private gathering = false;

  /** `blocksMax`: sequences with a block in memory; beyond it an idle one is handed back. */
  constructor(
    private readonly group: BlockGroup,
    settings: BlockSettings,
    private readonly ports: BlockPorts,
    kernels: BlockKernels,
    blocksMax?: number,
  ) {
    const requeue = (waiters: readonly Waiter[]): void => this.arrive(waiters);
    this.serving = new BlockServing(group, settings, ports, kernels, requeue, blocksMax);
    this.sweep = new DeadlineSweep(ports, (nowMs) => this.expire(nowMs));
  }

  /** Sequences with a block, somebody waiting or a command in flight, for tests and metrics. */
  get size(): number {
    return this.serving.entries.size;
  }

  /** Keyless next (`count` 1) or reserve. */
  allocate(name: string, count: number, deadlineMs: number, done: BlockDone): void {
    assert(count >= 1 && count <= INT32_MAX, "a count is 1 to 2^31 - 1");
    // A retry may be said without proof: it tells nothing about the state (S13).
    const entry = this.serving.entries.get(name);
    if (entry !== undefined && entry.update !== null) {
      const { mustRetry } = SequenceType;
      return this.ports.timer.soon(() => done(mustRetry, Int64.ZERO, Int64.ZERO, 0, null));
    }
    this.sweep.expectBy(deadlineMs);
    this.arrivals.push({ name, count, deadlineMs, done, ended: false, attempts: 0 });
    this.gather();
  }

  /** Keyed next or reserve: durable by itself, ends the open block. */
  allocateKeyed(
    name: string,
    count: number,
    key: string,
    deadlineMs: number,
    done: SequenceDone,
  ): void {
    const { serving } = this;
    const entry = serving.entry(name);
    if (entry.update !== null) return this.ports.timer.soon(() => done("busy"));
    const { keysRetainedMax, keysRetainedMs } = serving.settings;
    const pinned = entry.pin();
    const cursor = entry.cursor();
    const sizeBytes = COMMAND_BYTES + textSizeBytes(name) + textSizeBytes(key);
    this.group.propose(
      { kind: "allocate", name, count, key, cursor, keysRetainedMax, keysRetainedMs },
      sizeBytes,
      deadlineMs,
      (result) => {
        serving.landed(entry, pinned, result);
        done(result);
      },
    );
  }

  /**
   * An update. Its cursor is filled in here; next and reserve are sent back while it is under way.
   */
  update(command: UpdateSequenceCommand, deadlineMs: number, done: SequenceDone): void {
    const entry = this.serving.entry(command.name);
    if (entry.update !== null) return this.ports.timer.soon(() => done("busy"));
    const sizeBytes = COMMAND_BYTES + textSizeBytes(command.name);
    this.sweep.expectBy(deadlineMs);
    entry.update = { command, sizeBytes, deadlineMs, done, proposed: false };
    this.serving.startUpdate(entry);
  }

  /** Deletes the sequence; its block dies with it. */
  remove(name: string, deadlineMs: number, done: ProposalDone): void {
    const entry = this.serving.entry(name);
    entry.deletes++;
    entry.reservationDies = true;
    const pinned = entry.pin();
    const sizeBytes = COMMAND_BYTES + textSizeBytes(name);
    this.group.propose({ kind: "delete-sequence", name }, sizeBytes, deadlineMs, (result) => {
      entry.deletes--;
      // Even a sequence created anew with the same numbers must not be served from the old one's
      // block.
      if (result.status === "applied" || result.status === "unknown") entry.block = null;
      this.serving.landed(entry, pinned, result);
      done(result);
    });
  }

  /**
   * What get-sequence shows as current value of `record`, read in this turn: the last value handed
   * out while the same leader answers (S9). "unsettled": a reservation in flight may just have been
   * applied; ask again after `settle`.
   */
  currentValue(record: SequenceRecord): bigint | "unsettled" {
    const entry = this.serving.entries.get(record.name);
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
    this.serving.entry(name).settling.push({ deadlineMs, resume });
  }

  /**
   * Leadership or state ended: every block and everything gathered is dropped. For
   * `Group.addReset`.
   */
  reset(): void {
    this.serving.epoch++;
    const dropped = [...this.serving.entries.values()];
    this.serving.entries.clear();
    for (const entry of dropped) {
      entry.block = null;
      for (const waiter of entry.ready.splice(0)) endMoved(waiter);
      endUpdate(entry, { status: "refused", reason: "not-leader" });
      for (const waiting of entry.settling.splice(0)) waiting.resume();
    }
  }

  /**
   * Hands the unused rest of every block back. For `Group.addStopHook`, and before a transfer of
   * leadership.
   */
  handBack(propose: FinalPropose): void {
    for (const entry of this.serving.entries.values()) {
      if (entry.block !== null && entry.block.remaining > 0) {
        this.serving.returnBlock(entry, propose);
      }
    }
  }

  private arrive(waiters: readonly Waiter[]): void {
    for (const waiter of waiters) this.arrivals.push(waiter);
    if (waiters.length > 0) this.gather();
  }

  /** One round for all that arrived in this turn. */
  private gather(): void {
    if (this.gathering) return;
    this.gathering = true;
    this.ports.timer.soon(() => {
      this.gathering = false;
      const batch = this.arrivals;
      this.arrivals = [];
      if (batch.length === 0) return;
      this.rounds.add(batch);
      const { epoch } = this.serving;
      this.group.read(latestDeadlineMs(batch), (result) => {
        this.rounds.delete(batch);
        this.confirmed(batch, epoch, result);
      });
    });
  }

  private confirmed(batch: readonly Waiter[], epoch: number, result: ReadResult): void {
    if (result.status !== "confirmed" || epoch !== this.serving.epoch) {
      const end = result.status === "aborted" ? endAborted : endMoved;
      for (const waiter of batch) end(waiter);
      return;
    }
    const touched: SequenceEntry[] = [];
    let entry: SequenceEntry | null = null;
    for (const waiter of batch) {
      if (waiter.ended) continue;
      if (entry === null || entry.name !== waiter.name) entry = this.serving.entry(waiter.name);
      if (!entry.touched) {
        entry.touched = true;
        touched.push(entry);
      }
      entry.ready.push(waiter);
    }
    for (const served of touched) {
      served.touched = false;
      this.serving.serve(served);
      this.serving.forget(served);
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
    sweep(this.arrivals, SequenceType.aborted);
    for (const batch of this.rounds) sweep(batch, SequenceType.mustRetry);
    for (const entry of this.serving.entries.values()) {
      // Most have a block and nobody who waits: tens of thousands must cost next to nothing.
      if (entry.isQuiet()) continue;
      sweep(entry.ready, SequenceType.aborted);
      entry.ready = entry.ready.filter((waiter) => !waiter.ended);
      if (entry.reserving !== null) sweep(entry.reserving, SequenceType.mustRetry);
      if (entry.update?.proposed === false && due(entry.update.deadlineMs)) {
        endUpdate(entry, { status: "aborted" });
      }
      const settling = entry.settling.filter((waiting) => !due(waiting.deadlineMs));
      const late = entry.settling.filter((waiting) => waiting.deadlineMs <= nowMs);
      entry.settling = settling;
      for (const waiting of late) waiting.resume();
      this.serving.forget(entry);
    }
    this.arrivals = this.arrivals.filter((waiter) => !waiter.ended);
    return nextMs;
  }
}

/** Ends an update that was not proposed yet. */
function endUpdate(entry: SequenceEntry, result: ProposalResult): void {
  const { update } = entry;
  if (update === null || update.proposed) return;
  entry.update = null;
  update.done(result);
}
