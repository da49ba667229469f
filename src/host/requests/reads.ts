/**
 * Reads that wait for the proof that this node still leads (contract C2), in rounds.
 *
 * Invariants: 1. A round confirms exactly the reads that were waiting when it began; whoever comes
 * later takes the next one, and no result is used twice (P-048). 2. A read is confirmed when the
 * state has reached the index that its round captured, and the own-term entry is applied (P-047).
 * 3. Every read ends: confirmed, or "retry" on a dropped round, the end of leadership or its
 * deadline (P-049). 4. At most one round is open.
 */
import { assert } from "../../base/assert.js";
import type { MeterPort } from "../../ports.js";
import type { ReadRequestResult } from "../../raft/state/types.js";
import type { Completions } from "./completions.js";
import type { ReadDone, ReadResult } from "./results.js";

interface WaitingRead {
  readonly deadlineMs: number;
  done: ReadDone | null;
}

/** The part of the core that a round needs. */
export interface RoundSource {
  requestRead(context: number): ReadRequestResult;
}

const RETRY: ReadResult = { status: "retry" };

export class Reads {
  private waiting: WaitingRead[] = [];
  private round: WaitingRead[] = [];
  private roundContext = 0;
  /** The index that the open round captured; -1 until the core answered. */
  private roundIndex = -1;
  private lastContext = 0;
  private live = 0;
  private earliest = Infinity;

  constructor(
    private readonly completions: Completions,
    private readonly waitingMax: number,
    private readonly meter: Pick<MeterPort, "readRound">,
  ) {}

  get waitingCount(): number {
    return this.live;
  }

  get earliestDeadlineMs(): number {
    return this.earliest;
  }

  /** Whether a round is to be begun. */
  get wantsRound(): boolean {
    return this.waiting.length > 0 && this.roundContext === 0;
  }

  /** A round is open: its reads will be confirmed or end. */
  get isRoundOpen(): boolean {
    return this.roundContext !== 0;
  }

  /** Takes a read in, or returns false: too many wait. */
  add(deadlineMs: number, done: ReadDone): boolean {
    if (this.live >= this.waitingMax) return false;
    this.waiting.push({ deadlineMs, done });
    this.live++;
    if (deadlineMs < this.earliest) this.earliest = deadlineMs;
    return true;
  }

  /** Begins a round for everybody who waits now. */
  begin(core: RoundSource): void {
    assert(this.wantsRound, "a round is begun for somebody, and alone");
    this.meter.readRound(this.waiting.length);
    this.round = this.waiting;
    this.waiting = [];
    this.roundContext = ++this.lastContext;
    this.roundIndex = -1;
    if (core.requestRead(this.roundContext) !== "accepted") this.drop(this.roundContext);
  }

  /**
   * The core captured `index` for the round `context`. Answers of rounds given up before are
   * ignored.
   */
  captured(context: number, index: number): void {
    if (context === this.roundContext) this.roundIndex = index;
  }

  /** The round `context` will never be answered. */
  drop(context: number): void {
    if (context !== this.roundContext) return;
    this.endList(this.round, RETRY);
    this.closeRound();
  }

  /** Confirms the open round if the state has come far enough. */
  settle(appliedIndex: number, leaseMs: number): void {
    if (this.roundIndex < 0 || appliedIndex < this.roundIndex) return;
    this.endList(this.round, { status: "confirmed", leaseMs });
    this.closeRound();
  }

  /** Ends the reads whose deadline has passed, and the open round when nobody is left in it. */
  expire(nowMs: number): void {
    if (nowMs < this.earliest) return;
    this.earliest = Infinity;
    const waiting = this.expireList(this.waiting, nowMs);
    const round = this.expireList(this.round, nowMs);
    this.waiting = waiting;
    this.round = round;
    if (round.length === 0 && this.roundContext !== 0) this.closeRound();
  }

  /** Ends all reads with `result`: leadership is lost, or the node stops. */
  endAll(result: ReadResult): void {
    this.endList(this.waiting, result);
    this.endList(this.round, result);
    this.waiting = [];
    this.closeRound();
    this.earliest = Infinity;
    assert(this.live === 0, "no read waits any more");
  }

  private expireList(list: WaitingRead[], nowMs: number): WaitingRead[] {
    const kept: WaitingRead[] = [];
    const ended: WaitingRead[] = [];
    for (const read of list) {
      if (read.deadlineMs <= nowMs) ended.push(read);
      else {
        kept.push(read);
        if (read.deadlineMs < this.earliest) this.earliest = read.deadlineMs;
      }
    }
    this.endList(ended, RETRY);
    return kept;
  }

  private endList(list: readonly WaitingRead[], result: ReadResult): void {
    for (const read of list) {
      assert(read.done !== null, "a read ends once");
      this.completions.read(read.done, result);
      read.done = null;
      this.live--;
    }
  }

  private closeRound(): void {
    this.round = [];
    this.roundContext = 0;
    this.roundIndex = -1;
  }
}
