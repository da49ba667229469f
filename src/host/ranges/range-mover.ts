/**
 * One move of a key range, from the leader of its source: from the first copy to the cut.
 *
 * It claims an attempt of the meta partition, fills the target by imports while the source serves,
 * freezes the interval for the length of a few commits, brings the rest over, has the target
 * compare count and digest, and has the meta partition cut. What follows is for `rangeDuties`, on
 * both sides. Driven by answers and by `tick`; has no timers.
 *
 * Invariants: 1. Only who claimed an attempt, in this leadership, copies for it: two copies never
 * mix (P-101). 2. Nothing is frozen while the meta partition does not answer. 3. What was frozen
 * for an attempt, or may yet be, is opened only after the next one was claimed. 4. A frozen
 * interval of an attempt that the target has closed is never copied again: it is cut, by whichever
 * leader comes. 5. A step that fails is taken again, within bounds: then the next attempt, and at
 * their end the move is aborted. 6. It ends once, with the leadership at the latest, and holds
 * nothing afterwards.
 */
import { present } from "../../base/assert.js";
import { type Attempt, attempt as attemptOf, partitionId } from "../../base/ids.js";
import { RANGE_FREEZE_MS } from "../../base/limits.js";
import type {
  MoveEnd,
  RangeCommand,
  RangeMove,
  RangeOutcome,
} from "../../machine/commands/command.js";
import type { CopyBounds, CopySlice, CopySource } from "../../machine/ranges/copy-source.js";
import type { IntervalCount } from "../../machine/ranges/interval-count.js";
import type { LoggerPort } from "../../ports.js";
import type { MetaProposal, MetaResult } from "../cluster/meta-proposals.js";
import type { ProposeOnMeta } from "../cluster/meta-proposer.js";
import type { ProposalResult } from "../requests/results.js";
import type { CopyPace } from "./copy-pace.js";
import type { ProposeRange, RangeResult } from "./range-proposer.js";
import type { RangeTally } from "../requests/range-tally.js";
import type { SourceGroup } from "./source-group.js";

/** A step that was not decided is taken again after this (ms). */
const AGAIN_MS = 100;
/** The same, of what is over soon. */
const SOON_MS = 20;
/** A command is waited for so long (ms). */
const PATIENCE_MS = 5000;
/** Passes over what changed meanwhile, at most. */
const PASSES_MAX = 8;
/** What is left when the interval is frozen: so many keys at most, unless passes are used up. */
const LAST_KEYS_MAX = 100;
/**
 * One import, and what is looked at in one go: a few milliseconds, on each node that applies it.
 * Whatever else these nodes are asked for waits as long.
 */
const BOUNDS: CopyBounds = { maxBytes: 64 << 10, maxVisits: 500 };
/** None has this number. */
const NO_ATTEMPT = attemptOf(0);

export interface RangeMoverDeps {
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  /** A turn is wanted then. */
  wakeAt(atMs: number): void;
  readonly logger: LoggerPort;
  readonly pace: CopyPace;
  readonly tally: RangeTally;
  readonly proposeOnMeta: ProposeOnMeta;
  readonly proposeRange: ProposeRange;
}

/** What the mover is at, for people. */
export type MoverStep =
  "claim" | "open" | "copy" | "catch-up" | "verify" | "freeze" | "close" | "cut" | "abort";

export class RangeMover {
  private copy: CopySource | null = null;
  private count: IntervalCount | null = null;
  /** Made, and not known to have been taken. */
  private part: CopySlice | null = null;
  /** Everything was given once: what follows is what changed. */
  private hasRead = false;
  /** The part that was made last is the last one of its pass. */
  private endsPass = false;
  private claimed: Attempt | null = null;
  /** The latest attempt that is known of. */
  private known: Attempt;
  private importNumber = 1;
  private passes = 0;
  private isPending = false;
  /** Answers to what was asked before the attempt was given up are nobody's. */
  private epoch = 0;
  private notBeforeMs = -Infinity;
  private frozenAtMs = Infinity;
  /** A freeze was asked for, and may be applied later than anybody waited for it. */
  private mayBeFrozen = false;
  private copyBeganMs = 0;
  private abortFor: MoveEnd = "transfer-failed";
  private readonly term: number;
  step: MoverStep = "claim";
  private stepSinceMs: number;
  isOver = false;

  constructor(
    private readonly deps: RangeMoverDeps,
    private readonly group: SourceGroup,
    private move: RangeMove,
  ) {
    this.term = group.term();
    this.known = move.attempt;
    this.stepSinceMs = deps.nowMs();
  }

  /** The record as it is applied now. */
  learn(move: RangeMove): void {
    this.move = move;
    if (move.attempt > this.known) this.known = move.attempt;
    // Somebody else may have taken the next attempt: a later leader, of which this one has not
    // heard.
    const isPassed = this.step !== "claim" && this.claimed !== null && this.known > this.claimed;
    if (move.phase === "cut") this.wasCut();
    if (move.phase !== "copying" || isPassed) this.end();
  }

  /** Told by the answer or by the record, whichever comes first. */
  private wasCut(): void {
    if (this.frozenAtMs === Infinity) return;
    this.deps.tally.frozen(this.deps.nowMs() - this.frozenAtMs);
    this.frozenAtMs = Infinity;
  }

  end(): void {
    if (!this.isOver) this.tallyStep();
    this.isOver = true;
    this.drop();
  }

  private tallyStep(): void {
    const nowMs = this.deps.nowMs();
    this.deps.tally.phaseTook(this.step, nowMs - this.stepSinceMs);
    this.stepSinceMs = nowMs;
  }

  /** A step that follows itself goes on. */
  private change(step: MoverStep): void {
    if (step !== this.step) this.tallyStep();
    this.step = step;
  }

  private drop(): void {
    this.copy?.close();
    this.count?.close();
    this.copy = null;
    this.count = null;
    this.part = null;
    this.hasRead = false;
    this.endsPass = false;
  }

  /** Goes on, if nothing is waited for; once per tick and after each answer. */
  tick(nowMs: number): void {
    if (this.isOver) return;
    if (!this.group.isServing() || this.group.term() !== this.term) return this.end();
    const isFrozen = this.step === "freeze" || this.step === "close";
    if (isFrozen && nowMs - this.frozenAtMs > RANGE_FREEZE_MS) this.anew("quiesce-failed");
    if (this.isPending || nowMs < this.notBeforeMs) return;
    this.steps[this.step](nowMs);
  }

  private readonly steps: Readonly<Record<MoverStep, (nowMs: number) => void>> = {
    claim: (nowMs) => this.claim(nowMs),
    open: (nowMs) => this.open(nowMs),
    copy: (nowMs) => this.fill(nowMs),
    "catch-up": () => this.catchUp(),
    verify: (nowMs) => this.verify(nowMs),
    freeze: (nowMs) => this.freeze(nowMs),
    close: (nowMs) => this.bringRest(nowMs),
    cut: (nowMs) => this.cut(nowMs),
    abort: (nowMs) => this.abort(nowMs),
  };

  /** The next attempt, from the beginning: what was copied is worth nothing. */
  private anew(reason: MoveEnd): void {
    this.deps.tally.attemptEnded(reason);
    this.drop();
    this.epoch++;
    this.isPending = false;
    this.abortFor = reason;
    this.frozenAtMs = Infinity;
    this.goOn("claim");
  }

  /** The next step, in a turn of its own: each is bounded. */
  private goOn(step: MoverStep): void {
    this.change(step);
    this.deps.soon(() => this.tick(this.deps.nowMs()));
  }

  /** The next step, at once. */
  private goOnNow(step: MoverStep): void {
    this.change(step);
    this.tick(this.deps.nowMs());
  }

  private later(waitMs = AGAIN_MS): void {
    this.notBeforeMs = this.deps.nowMs() + waitMs;
    this.deps.wakeAt(this.notBeforeMs);
  }

  /** When it goes on by itself; Infinity while it waits for an answer. */
  get wakeAtMs(): number {
    return this.isOver || this.isPending ? Infinity : this.notBeforeMs;
  }

  /** `then`, for the answer to what is asked now. */
  private answer<Result>(then: (result: Result) => void): (result: Result) => void {
    const { epoch } = this;
    this.isPending = true;
    return (result) => {
      if (this.isOver || epoch !== this.epoch) return;
      this.isPending = false;
      then(result);
    };
  }

  private get of(): Pick<RangeMove, "keySpace" | "moveId" | "attempt"> {
    const { keySpace, moveId } = this.move;
    return { keySpace, moveId, attempt: this.claimed ?? this.known };
  }

  private onMeta(command: MetaProposal, nowMs: number, then: (result: MetaResult) => void): void {
    this.deps.proposeOnMeta(command, nowMs + PATIENCE_MS, this.answer(then));
  }

  /** On the target; what is not decided is left to the next tick. */
  private onTarget(
    command: RangeCommand,
    nowMs: number,
    then: (outcome: RangeOutcome) => void,
  ): void {
    const isFrozen = this.step === "close";
    const deadlineMs = isFrozen ? this.frozenAtMs + RANGE_FREEZE_MS : nowMs + PATIENCE_MS;
    const done = this.answer((result: RangeResult) => {
      if (result.status === "applied") then(result.outcome);
      else this.later(isFrozen || this.step === "open" ? SOON_MS : AGAIN_MS);
    });
    this.deps.proposeRange(partitionId(this.move.target), command, deadlineMs, done);
  }

  private claim(nowMs: number): void {
    const { move } = this;
    const isFrozen = this.group.frozenFor(move) === move.attempt;
    if (this.claimed === null && isFrozen) return this.askWhetherClosed(nowMs);
    const { keySpace, moveId } = move;
    const command = { kind: "retry-move", keySpace, moveId, attempt: this.known } as const;
    this.onMeta(command, nowMs, (result) => {
      if (result.status !== "applied") return this.later();
      const { outcome, version } = result;
      if (version > this.known) this.known = attemptOf(version);
      if (outcome === "done") {
        this.claimed = attemptOf(version);
        return this.goOn("open");
      }
      if (outcome === "too-many-attempts") return this.goOn("abort");
      // Who took that attempt is not known: it may have been an ask of this one. The next is
      // claimed.
      this.later();
    });
  }

  /** The leader before froze the interval: what the target says decides whether it is to be cut. */
  private askWhetherClosed(nowMs: number): void {
    const { attempt } = this.move;
    this.onTarget(this.openCommand(attempt), nowMs, ({ status }) => {
      this.claimed = attempt;
      // The leader before may have asked for the next attempt, and been heard meanwhile: what was
      // closed is of one that is over, and a cut for that one would give keys to nobody.
      const isDue = status === "closed" && this.known === attempt;
      this.goOn(isDue ? "cut" : "claim");
    });
  }

  private openCommand(attempt: Attempt): RangeCommand {
    const { keySpace, moveId, startKey, endKey, generation } = this.move;
    return { kind: "range-open", keySpace, moveId, attempt, startKey, endKey, generation };
  }

  private open(nowMs: number): void {
    const isFrozen = this.mayBeFrozen || this.group.frozenFor(this.move) !== null;
    if (isFrozen) return this.unfreeze(nowMs);
    this.onTarget(this.openCommand(this.of.attempt), nowMs, ({ status }) => {
      if (status === "unsettled") return this.later(SOON_MS);
      if (status !== "done" && status !== "unchanged") return this.later();
      this.drop();
      this.copy = this.group.openCopy(this.move);
      this.importNumber = 1;
      this.passes = 0;
      this.copyBeganMs = this.deps.nowMs();
      this.goOn("copy");
    });
  }

  /** Of an attempt that is over. Whatever was to freeze it stands before this in the log. */
  private unfreeze(nowMs: number): void {
    const command = { kind: "range-unfreeze", ...this.of } as const;
    const done = this.answer((result: ProposalResult) => {
      if (result.status !== "applied") return this.later();
      this.mayBeFrozen = false;
      this.goOn("open");
    });
    this.group.propose(command, nowMs + PATIENCE_MS, done);
  }

  private fill(nowMs: number): void {
    if (this.part !== null) return this.send(this.part, nowMs);
    const waitMs = this.deps.pace.waitMs(nowMs);
    if (waitMs > 0) return this.later(waitMs);
    const { copy } = this;
    const next = this.hasRead ? copy?.nextNoted(BOUNDS) : copy?.next(BOUNDS);
    if (next === undefined || next === "overrun") return this.anew("transfer-failed");
    this.endsPass = next.isEnd;
    if (next.items.length > 0) this.send(next, nowMs);
    else this.goOn(next.isEnd ? "catch-up" : "copy");
  }

  private catchUp(): void {
    const { copy } = this;
    this.hasRead = true;
    if (copy?.overrun !== false) return this.anew("transfer-failed");
    this.goOn(this.takesPass(copy) ? "copy" : "verify");
  }

  /** Too much changed to freeze the interval for it: it is brought along first. */
  private takesPass({ notedKeys }: CopySource): boolean {
    if (notedKeys <= LAST_KEYS_MAX || this.passes >= PASSES_MAX) return false;
    this.passes++;
    return true;
  }

  /** What the source has is counted once more by itself, while it serves. */
  private verify(nowMs: number): void {
    const { copy } = this;
    this.count ??= this.group.openCount(this.move);
    if (copy?.overrun !== false || this.count.overrun) return this.anew("transfer-failed");
    if (!this.count.next(BOUNDS.maxVisits)) return this.goOn("verify");
    // Of a large range the count takes long, and what changes goes on changing.
    if (this.takesPass(copy)) return this.goOn("copy");
    // Nothing is frozen for a meta partition that does not answer: one that does says "stale".
    const { keySpace, moveId } = this.move;
    const question = { kind: "retry-move", keySpace, moveId, attempt: NO_ATTEMPT } as const;
    this.onMeta(question, nowMs, (result) => {
      if (result.status === "applied" && result.version === this.claimed) this.goOn("freeze");
      else this.later();
    });
  }

  private freeze(nowMs: number): void {
    this.frozenAtMs = Math.min(this.frozenAtMs, nowMs);
    this.mayBeFrozen = true;
    const { startKey, endKey, generation } = this.move;
    const command = { kind: "range-freeze", ...this.of, startKey, endKey, generation } as const;
    const done = this.answer((result: ProposalResult) => {
      const outcome = result.status === "applied" ? result.outcome : null;
      const status = outcome?.kind === "range" ? outcome.status : null;
      if (status !== "done" && status !== "unchanged") return this.later(SOON_MS);
      this.endsPass = false;
      this.goOnNow("close");
    });
    this.group.propose(command, this.frozenAtMs + RANGE_FREEZE_MS, done);
  }

  /** Nothing changes any more: the rest, and then the end of the copy. */
  private bringRest(nowMs: number): void {
    if (this.part !== null) return this.send(this.part, nowMs);
    if (this.endsPass) return this.close(nowMs);
    const next = this.copy?.nextNoted(BOUNDS) ?? "overrun";
    if (next === "overrun") return this.anew("transfer-failed");
    this.endsPass = next.isEnd;
    if (next.items.length > 0) this.send(next, nowMs);
    else if (next.isEnd) this.close(nowMs);
    else this.goOn("close");
  }

  private close(nowMs: number): void {
    const { keys, digestLow, digestHigh } = present(this.count, "it was counted").counted;
    const number = this.importNumber;
    const total = { number, keys, digestLow, digestHigh };
    const command = { kind: "range-close", ...this.of, ...total } as const;
    this.onTarget(command, nowMs, ({ status }) => {
      if (status === "closed" || status === "done" || status === "unchanged") {
        return this.goOnNow("cut");
      }
      if (status !== "mismatch") return this.later(SOON_MS);
      const { keySpace, source, target } = this.move;
      const fields = { keySpace, source, target };
      this.deps.logger.log("error", "A moved range is not what it was copied from.", fields);
      this.deps.tally.verifyFailures++;
      this.abortFor = "mismatch";
      this.goOn("abort");
    });
  }

  private cut(nowMs: number): void {
    this.onMeta({ kind: "cut-range", ...this.of }, nowMs, (result) => {
      if (result.status !== "applied") return this.later(SOON_MS);
      const { outcome, version } = result;
      if (outcome === "done" || outcome === "unchanged") {
        this.wasCut();
        return this.end();
      }
      // The record is as it was, and the ranges are not.
      const isImpossible = outcome === "invalid" || version === this.claimed;
      if (!isImpossible) return this.later();
      this.abortFor = "cutover-failed";
      this.goOn("abort");
    });
  }

  private abort(nowMs: number): void {
    const { keySpace, moveId } = this.move;
    const command = { kind: "abort-move", keySpace, moveId, reason: this.abortFor } as const;
    this.onMeta(command, nowMs, (result) => {
      if (result.status === "applied") this.end();
      else this.later();
    });
  }

  private send(part: CopySlice, nowMs: number): void {
    this.part = part;
    const { items, sizeBytes, leaseMs: sourceLeaseMs } = part;
    const number = this.importNumber;
    const copyAgeMs = Math.max(0, Math.ceil(nowMs - this.copyBeganMs));
    const times = { sourceLeaseMs, copyAgeMs };
    this.onTarget(
      { kind: "range-import", ...this.of, number, ...times, items },
      nowMs,
      (outcome) => {
        const { status } = outcome;
        if (status !== "done" && status !== "unchanged") return this.anew("transfer-failed");
        this.part = null;
        this.importNumber = number + 1;
        this.deps.pace.took(sizeBytes, this.deps.nowMs());
        this.deps.tally.moved(items.length, sizeBytes);
        if (this.step === "close") this.goOnNow("close");
        else this.goOn(this.endsPass ? "catch-up" : "copy");
      },
    );
  }
}
