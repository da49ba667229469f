/**
 * Turns queued commands into proposed entries: cuts a batch, stamps and encodes it, and gives it to
 * the core.
 *
 * Invariants: 1. Lease time and stamp are set here and nowhere else, when the batch is cut (P-062).
 * 2. Commands are encoded once; the very same ones are applied later. 3. What the core refuses is
 * certainly without effect and is told so.
 */
import { assert } from "../../base/assert.js";
import { encodeEntry } from "../../machine/commands/codec.js";
import type { RaftCore } from "../../raft/core.js";
import type { Completions } from "../requests/completions.js";
import type { Batcher, Budget, Waiter } from "../requests/batcher.js";
import { EntryKindCode } from "../replication/config-entries.js";
import type { Leadership } from "./leadership.js";
import type { Proposals } from "../requests/proposals.js";
import type { ProposalResult } from "../requests/results.js";

/** What the groups of a node share, as far as cutting needs it. */
export interface CutterShared {
  readonly settings: { readonly batchEntriesMax: number; readonly batchBytesMax: number };
  readonly ports: { readonly meter: { batchEntries(commands: number): void } };
  readonly completions: Completions;
  readonly budget: Budget;
  intakeOpen(): boolean;
}

/** The parts of one group. */
export interface CutterGroup {
  readonly core: RaftCore;
  readonly batcher: Batcher;
  readonly proposals: Proposals;
  readonly leadership: Leadership;
}

const NOT_LEADER: ProposalResult = { status: "refused", reason: "not-leader" };
const OVERLOADED: ProposalResult = { status: "refused", reason: "overloaded" };

export class Proposer {
  constructor(
    private readonly shared: CutterShared,
    private readonly group: CutterGroup,
  ) {}

  /** Cuts and proposes every batch that is due. Only while serving. */
  cut(nowMs: number): void {
    const { batcher, proposals } = this.group;
    while (batcher.isDue(nowMs, proposals.entryCount) && this.shared.intakeOpen()) {
      const waiters = batcher.cut(nowMs);
      if (waiters.length > 0 && !this.propose(waiters, nowMs)) return;
    }
  }

  /** Proposes `waiters` before everything that is queued: the last commands before a move. */
  cutFinals(waiters: readonly Waiter[], nowMs: number): void {
    const { batchEntriesMax, batchBytesMax } = this.shared.settings;
    let batch: Waiter[] = [];
    let sizeBytes = 0;
    for (const waiter of waiters) {
      if (!this.shared.budget.take(waiter.sizeBytes)) {
        this.refuse([waiter], 0, true);
        continue;
      }
      batch.push(waiter);
      sizeBytes += waiter.sizeBytes;
      if (batch.length < batchEntriesMax && sizeBytes < batchBytesMax) continue;
      this.propose(batch, nowMs);
      batch = [];
      sizeBytes = 0;
    }
    if (batch.length > 0) this.propose(batch, nowMs);
  }

  private propose(waiters: readonly Waiter[], nowMs: number): boolean {
    const { core, leadership, proposals } = this.group;
    let sizeBytes = 0;
    for (const waiter of waiters) sizeBytes += waiter.sizeBytes;
    const commands = waiters.map((waiter) => waiter.command);
    const stamp = leadership.nextEntryStamp(nowMs);
    const payload = encodeEntry(stamp, commands);
    const result = core.propose([payload.length]);
    if (!result.ok) {
      this.refuse(waiters, sizeBytes, result.reason === "uncommitted-limit");
      return false;
    }
    assert(result.kind === "appended", "a leader appends what is proposed to it");
    const { firstIndex: index, term } = result;
    const proposedAtMs = nowMs;
    const kind = EntryKindCode.normal;
    const entry = { index, term, kind, payload, stamp, commands, waiters, sizeBytes, proposedAtMs };
    proposals.add(entry);
    this.shared.ports.meter.batchEntries(commands.length);
    return true;
  }

  private refuse(waiters: readonly Waiter[], sizeBytes: number, isFull: boolean): void {
    this.shared.budget.give(sizeBytes);
    for (const waiter of waiters) {
      if (waiter.done === null) continue;
      this.shared.completions.proposal(waiter.done, isFull ? OVERLOADED : NOT_LEADER);
      waiter.done = null;
    }
  }
}
