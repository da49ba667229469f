/**
 * Turns queued commands into proposed entries: cuts a batch, stamps and encodes it, and gives it to
 * the core.
 *
 * Invariants: 1. Lease time and stamp are set here and nowhere else, when the batch is cut (P-062).
 * 2. Commands are encoded once; the very same ones are applied later. 3. What the core refuses is
 * certainly without effect and is told so. 4. No command is proposed before the group is at the
 * level that permits it (P-030); one that raises a level is alone in its entry, so that a receiver
 * can tell by its first bytes. 5. A mark is alone in its entry, whose stamp is the last one of its
 * millisecond, or the one that is asked for: nothing shares it (P-134). 6. Every entry breaks the
 * pause of a cut: who cuts one asks before.
 */
import { assert, present } from "../../base/assert.js";
import { type Hlc, compareHlc } from "../../base/hlc.js";
import type { Permits } from "../../base/levels.js";
import { encodeEntry, isAlone } from "../../machine/commands/codec.js";
import type { EntryStamp } from "../../machine/commands/command.js";
import type { Machine } from "../../machine/machine.js";
import type { RaftCore } from "../../raft/core.js";
import type { Completions } from "../requests/completions.js";
import type { Batcher, Budget, Waiter } from "../requests/batcher.js";
import { EntryKindCode } from "../replication/config-entries.js";
import type { Leadership } from "./leadership.js";
import type { Pauses } from "../pauses/pauses.js";
import type { Proposals } from "../requests/proposals.js";
import type { ProposalResult } from "../requests/results.js";

/** What the groups of a node share, as far as cutting needs it. */
export interface CutterShared {
  readonly settings: {
    readonly batchEntriesMax: number;
    readonly batchBytesMax: number;
    readonly permits: Permits;
  };
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
  readonly pauses: Pauses;
  readonly machine: Pick<Machine, "level">;
}

const NOT_LEADER: ProposalResult = { status: "refused", reason: "not-leader" };
const OVERLOADED: ProposalResult = { status: "refused", reason: "overloaded" };
const NOT_AT_LEVEL: ProposalResult = { status: "refused", reason: "not-available-at-level" };

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
        this.answer(waiter, OVERLOADED);
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

  private propose(queued: readonly Waiter[], nowMs: number): boolean {
    const waiters = this.permitted(queued);
    if (waiters.length === 0) return true;
    const at = waiters.length === 1 ? -1 : waiters.findIndex((one) => isAlone(one.command));
    if (at < 0) return this.proposeEntry(waiters, nowMs);
    const parts = [waiters.slice(0, at), waiters.slice(at, at + 1), waiters.slice(at + 1)];
    let isTaken = true;
    for (const part of parts) isTaken = this.propose(part, nowMs) && isTaken;
    return isTaken;
  }

  /** Those whose commands the level of the group permits; the others are refused. */
  private permitted(waiters: readonly Waiter[]): readonly Waiter[] {
    const { commands, commandsFrom } = this.shared.settings.permits;
    const { level } = this.group.machine;
    if (level >= commandsFrom) return waiters;
    const isEarly = (waiter: Waiter): boolean => (commands[waiter.command.kind] ?? 0) > level;
    if (!waiters.some(isEarly)) return waiters;
    for (const waiter of waiters) if (isEarly(waiter)) this.refuse([waiter], NOT_AT_LEVEL);
    return waiters.filter((waiter) => !isEarly(waiter));
  }

  /**
   * Proposes a mark stamped exactly `at`, before everything that is queued. "passed": a stamp at or
   * above `at` was given already, and nothing was done. Only while serving.
   */
  proposeMark(waiter: Waiter, at: Hlc, nowMs: number): "proposed" | "refused" | "passed" {
    const { leadership } = this.group;
    if (compareHlc(at, leadership.lastStamp) <= 0) return "passed";
    if (!this.shared.budget.take(waiter.sizeBytes)) {
      this.answer(waiter, OVERLOADED);
      return "refused";
    }
    const waiters = this.permitted([waiter]);
    if (waiters.length === 0) return "refused";
    const stamp = present(leadership.entryStampAt(at, nowMs), "no stamp was given meanwhile");
    return this.append(waiters, stamp, nowMs) ? "proposed" : "refused";
  }

  private proposeEntry(waiters: readonly Waiter[], nowMs: number): boolean {
    const closes = waiters[0]?.command.kind === "mark";
    return this.append(waiters, this.group.leadership.nextEntryStamp(nowMs, closes), nowMs);
  }

  private append(waiters: readonly Waiter[], stamp: EntryStamp, nowMs: number): boolean {
    const { core, proposals } = this.group;
    let sizeBytes = 0;
    for (const waiter of waiters) sizeBytes += waiter.sizeBytes;
    const commands = waiters.map((waiter) => waiter.command);
    const payload = encodeEntry(stamp, commands);
    const result = core.propose([payload.length]);
    if (!result.ok) {
      this.refuse(waiters, result.reason === "uncommitted-limit" ? OVERLOADED : NOT_LEADER);
      return false;
    }
    assert(result.kind === "appended", "a leader appends what is proposed to it");
    this.group.pauses.cut.drop();
    const { firstIndex: index, term } = result;
    const proposedAtMs = nowMs;
    const kind = EntryKindCode.normal;
    const entry = { index, term, kind, payload, stamp, commands, waiters, sizeBytes, proposedAtMs };
    proposals.add(entry);
    this.shared.ports.meter.batchEntries(commands.length);
    return true;
  }

  private refuse(waiters: readonly Waiter[], result: ProposalResult): void {
    for (const waiter of waiters) {
      this.shared.budget.give(waiter.sizeBytes);
      this.answer(waiter, result);
    }
  }

  private answer(waiter: Waiter, result: ProposalResult): void {
    if (waiter.done === null) return;
    this.shared.completions.proposal(waiter.done, result);
    waiter.done = null;
  }
}
