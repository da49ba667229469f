/**
 * The planned move of one group's leadership to another node, so that callers see a pause and no
 * refusal (contract C12), and what only the leader has goes along (C13).
 *
 * Step by step: the heir is asked; the group pauses (what arrives is queued) until all that was
 * begun has ended; the final commands are committed: blocks handed back (S9), and the lease clock
 * (T1), while the heir is told who waits here (Q11); the ephemeral table, frozen, is copied to the
 * heir; the core is told to transfer. What is queued goes to the new leader when the leadership
 * ends, or is carried out here when the move comes to nothing.
 *
 * Invariants: 1. From the freeze on the table answers nobody. After an order that named the copy it
 * does so again only when an entry of this term was committed behind the order: then no heir can
 * have taken the copy over, nor ever will. 2. Every step is bounded in time, and ends in the order
 * or in a group that serves as before. 3. One move of a group at a time. 4. With `mustCarry`
 * leadership is not moved without its ephemeral data.
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import type { Command } from "../../machine/commands/command.js";
import type { ByteKey } from "../../machine/store/keys.js";
import type { RaftCore } from "../../raft/core.js";
import type { Waiter } from "../requests/batcher.js";
import type { Leadership } from "./leadership.js";
import { type MoveAnswer, type MoveFrame, encodeMoveFrame } from "../replication/move-frames.js";
import type { Proposals } from "../requests/proposals.js";
import type { Reads } from "../requests/reads.js";
import type { MoveHook, ProposalResult, StopHook } from "../requests/results.js";
import type { TransferReason, TransferTally } from "../requests/transfer-tally.js";

/** What a planned move carries at most (contract, section 11). */
const CARRIED_BYTES_MAX = 8 << 20;
/** Rows in one frame (bytes). */
const ROWS_BYTES = 256 << 10;
/** The heir answers within this (ms). */
const ASK_MS = 300;
/** Time for the copy of a table (ms). */
const COPY_MS = 3000;
/** An heir that refused is left alone for this (ms). */
const REFUSED_MS = 1000;
const RETRY_MS = 50;
const ADVANCE: Command = { kind: "advance-clock" };
const ADVANCE_BYTES = 2;

export interface MoveOrder {
  readonly to: number;
  /** Rather stay than lose ephemeral data. */
  readonly mustCarry: boolean;
  /** What it is for. */
  readonly reason: TransferReason;
}

/** The parts of the group. */
export interface MoveGroup {
  readonly partition: PartitionId;
  readonly core: RaftCore;
  readonly leadership: Leadership;
  readonly reads: Reads;
  readonly proposals: Proposals;
  readonly stopHooks: readonly StopHook[];
  readonly moveHooks: readonly MoveHook[];
  /** Shortest election timeout (ms). */
  readonly electionMs: number;
  /** Proposes at once, before everything that is queued. */
  proposeFinals(finals: readonly Waiter[], nowMs: number): void;
  /** False: it did not leave. */
  send(lane: "control" | "bulk", to: number, bytes: Uint8Array): boolean;
  nowMs(): number;
  /** The group wants a turn. */
  wake(): void;
}

type Phase = "idle" | "asking" | "draining" | "finishing" | "copying" | "ordered" | "voiding";

export class Move {
  private phase: Phase = "idle";
  private order: MoveOrder = { to: 0, mustCarry: false, reason: "balance" };
  private term = 0;
  private token = 0;
  private untilMs = Infinity;
  private answer: MoveAnswer | null = null;
  private wasDrained = false;
  private finalsOpen = 0;
  /** What the heir is told beside the table, as far as it has not answered. */
  private tellingOpen = 0;
  /** The table goes along, as far as is known. */
  private carries = false;
  private framesSent = 0;
  private copiedTo: ByteKey | null = null;
  private isCopied = false;
  private voided: "no" | "asked" | "yes" = "no";
  private refusedBy = 0;
  private refusedUntilMs = 0;

  constructor(
    private readonly group: MoveGroup,
    private readonly tally: TransferTally,
  ) {}

  get isIdle(): boolean {
    return this.phase === "idle";
  }

  /** What arrives is queued and nothing of it begun. */
  get isPausing(): boolean {
    return this.phase !== "idle" && this.phase !== "asking";
  }

  /** When a step is due although nothing happens. */
  get wakeAtMs(): number {
    return this.phase === "idle" ? Infinity : this.untilMs;
  }

  /** `node` said lately that it would not lead this group. */
  isRefusedBy(node: number, nowMs: number): boolean {
    return node === this.refusedBy && nowMs < this.refusedUntilMs;
  }

  /** Begins a move; false: one is under way, or it may not be. */
  begin(order: MoveOrder, nowMs: number): boolean {
    const { core, leadership } = this.group;
    if (this.phase !== "idle" || !leadership.isLeading) return false;
    if (this.isRefusedBy(order.to, nowMs)) return false;
    const table = leadership.ephemeral;
    if (table === null) {
      // It leads and serves nothing yet: nobody has anything to lose.
      core.transferLeadership(order.to);
      return true;
    }
    const sizeBytes = table.rows === 0 ? 0 : table.sizeBytes;
    if (order.mustCarry && sizeBytes > CARRIED_BYTES_MAX) return false;
    this.order = order;
    this.term = core.term;
    this.token++;
    this.carries = sizeBytes > 0 && sizeBytes <= CARRIED_BYTES_MAX;
    this.answer = null;
    const asked = { kind: "ask", ...this.name, sizeBytes: this.carries ? sizeBytes : 0 } as const;
    if (!this.send("control", asked)) return false;
    this.enter("asking", nowMs + ASK_MS);
    return true;
  }

  /** The heir answered; outside of any turn. */
  answered(from: number, answer: MoveAnswer): void {
    const isIts = from === this.order.to && answer.term === this.term;
    if (this.phase === "idle" || !isIts || answer.token !== this.token) return;
    this.answer = answer;
    this.group.wake();
  }

  /** The leadership ended. Returns whether that was ordered here. */
  leadershipEnded(): boolean {
    const wasOrdered = this.phase === "ordered";
    if (!this.isIdle) this.tally.count(this.order.reason, wasOrdered ? "moved" : "failed");
    this.phase = "idle";
    return wasOrdered;
  }

  /** Takes the steps that are due; at the end of each turn of the group. */
  step(nowMs: number): void {
    switch (this.phase) {
      case "idle":
        return;
      case "asking":
        return this.ask(nowMs);
      case "draining":
        return this.drain(nowMs);
      case "finishing":
        return this.finish(nowMs);
      case "copying":
        return this.copy(nowMs);
      case "ordered":
        return this.watch(nowMs);
      case "voiding":
        return this.makeVoid(nowMs);
    }
  }

  private get name() {
    return { group: this.group.partition, term: this.term, token: this.token };
  }

  private send(lane: "control" | "bulk", frame: MoveFrame): boolean {
    return this.group.send(lane, this.order.to, encodeMoveFrame(frame));
  }

  private enter(phase: Phase, untilMs: number): void {
    this.phase = phase;
    this.untilMs = untilMs;
    this.group.wake();
  }

  private ask(nowMs: number): void {
    const { answer } = this;
    if (answer === null) {
      if (nowMs >= this.untilMs) this.refused(nowMs);
      return;
    }
    if (!answer.accepted) return this.refused(nowMs);
    this.wasDrained = false;
    this.enter("draining", nowMs + this.group.electionMs / 2);
  }

  private refused(nowMs: number): void {
    this.refusedBy = this.order.to;
    this.refusedUntilMs = nowMs + REFUSED_MS;
    this.resume();
  }

  /** Waits until all that was begun has ended and been answered. */
  private drain(nowMs: number): void {
    const { reads, proposals } = this.group;
    if (!reads.isRoundOpen && proposals.waitingCount === 0) {
      // Their callers are answered at the end of this turn, and may act on what they hear.
      if (this.wasDrained) return this.propose(nowMs);
      this.wasDrained = true;
      return this.group.wake();
    }
    this.wasDrained = false;
    if (nowMs < this.untilMs) return;
    if (this.order.mustCarry) return this.resume();
    // The disk hangs: nothing that is proposed would come to its end.
    this.startCopy(nowMs);
  }

  private propose(nowMs: number): void {
    const deadlineMs = nowMs + this.group.electionMs / 2;
    const finals: Waiter[] = [];
    const add = (
      command: Command,
      sizeBytes: number,
      done: (result: ProposalResult) => void,
    ): void => {
      this.finalsOpen++;
      const ended = (result: ProposalResult): void => {
        this.finalsOpen--;
        done(result);
        this.group.wake();
      };
      finals.push({ command, sizeBytes, deadlineMs, done: ended });
    };
    this.finalsOpen = 0;
    for (const hook of this.group.stopHooks) hook(add);
    add(ADVANCE, ADVANCE_BYTES, () => undefined);
    this.tellHeir();
    this.enter("finishing", deadlineMs);
    this.group.proposeFinals(finals, nowMs);
  }

  private tellHeir(): void {
    const { token } = this;
    const { moveHooks } = this.group;
    this.tellingOpen = moveHooks.length;
    const done = (): void => {
      if (token !== this.token) return;
      this.tellingOpen--;
      this.group.wake();
    };
    for (const hook of moveHooks) hook(this.order.to, done);
  }

  private finish(nowMs: number): void {
    const isOver = this.finalsOpen === 0 && this.tellingOpen === 0;
    if (isOver || nowMs >= this.untilMs) this.startCopy(nowMs);
  }

  private startCopy(nowMs: number): void {
    const { leadership } = this.group;
    const table = leadership.freeze();
    const fits = table.sizeBytes <= CARRIED_BYTES_MAX;
    if (this.carries && !fits && this.order.mustCarry) return this.resume();
    // Rows that came since the heir was asked have no place there.
    const isNew = !this.carries && table.rows > 0 && fits;
    if (isNew && this.order.mustCarry) return this.resume();
    this.carries &&= fits;
    this.framesSent = 0;
    this.copiedTo = null;
    this.isCopied = false;
    this.enter("copying", nowMs + COPY_MS);
  }

  private copy(nowMs: number): void {
    const { answer } = this;
    if (!this.carries) return this.transfer(nowMs, 0);
    if (answer === null || !answer.accepted || nowMs >= this.untilMs) {
      return this.order.mustCarry ? this.resume() : this.transfer(nowMs, 0);
    }
    if (answer.frames < this.framesSent) return;
    if (this.isCopied) return this.transfer(nowMs, this.token);
    const table = this.group.leadership.frozenTable;
    const { rows, next } = table.rowsAfter(this.copiedTo, ROWS_BYTES);
    this.isCopied = next === null;
    this.copiedTo = next;
    const sequence = this.framesSent++;
    const { head } = table;
    const isLast = this.isCopied;
    if (!this.send("bulk", { kind: "rows", ...this.name, sequence, isLast, head, rows })) {
      this.answer = null;
      this.group.wake();
    }
  }

  private transfer(nowMs: number, token: number): void {
    const { core, electionMs } = this.group;
    this.voided = token === 0 ? "yes" : "no";
    core.transferLeadership(this.order.to, token);
    this.enter("ordered", nowMs + 2 * electionMs);
  }

  /** The core gives up by itself, after an election timeout. */
  private watch(nowMs: number): void {
    if (this.group.core.isTransferring) {
      if (nowMs >= this.untilMs) this.untilMs = nowMs + this.group.electionMs;
      return;
    }
    this.enter("voiding", nowMs);
    this.makeVoid(nowMs);
  }

  /** The copy loses its worth with any entry behind the order. */
  private makeVoid(nowMs: number): void {
    if (this.voided === "yes") return this.resume();
    if (this.voided === "asked" || nowMs < this.untilMs) return;
    this.voided = "asked";
    this.untilMs = Infinity;
    const deadlineMs = nowMs + this.group.electionMs;
    const { term, token } = this;
    const done = (result: ProposalResult): void => {
      if (this.phase !== "voiding" || this.token !== token) return;
      const isCommitted = result.status === "applied" && result.term === term;
      this.voided = isCommitted ? "yes" : "no";
      this.untilMs = this.group.nowMs() + RETRY_MS;
      this.group.wake();
    };
    const final = { command: ADVANCE, sizeBytes: ADVANCE_BYTES, deadlineMs, done };
    this.group.proposeFinals([final], nowMs);
  }

  /** The group serves as before. */
  private resume(): void {
    assert(this.phase !== "idle", "a move ends once");
    this.tally.count(this.order.reason, this.phase === "asking" ? "refused" : "failed");
    this.phase = "idle";
    this.group.leadership.thaw();
    this.group.wake();
  }
}
