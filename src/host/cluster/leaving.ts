/**
 * Takes this node out of the cluster, as its operator asks (contract 5.3).
 *
 * Its role becomes leaving; the leaders of all groups make it a learner there, handing over what it
 * leads; then the leader of the meta partition removes it from the member list. All of that goes by
 * committed records (Reconcile, ClusterMembers), so that it goes on whoever dies; what is here only
 * begins it, watches, and gives the role back when the time is over.
 *
 * Invariants: 1. "Committed" is told only when the removal is committed: until then the process
 * must not end. 2. One call at a time, the others after it; each ends by its deadline. 3.
 * Repeating is safe: every step is a no-op when it was done (P-094). 4. A drain that takes too
 * long ends with the former role, unless the removal won (P-096), and then with no replica on its
 * way in place of this node's: when the call ended before that was committed, it is gone on with,
 * or left to the next call.
 */
import { decideDrain, isDrained } from "../../control/drain.js";
import { type LeaveDecision, type LeaveFacts, decideLeave } from "../../control/membership.js";
import type { PlacementView } from "../../control/placement-view.js";
import type { MemberRole } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import { isListed } from "../../machine/meta/replica-list.js";
import type { Membership } from "../../raft/state/types.js";
import { CalledIn } from "./called-in.js";
import type { MetaResult } from "./meta-proposals.js";
import type { ProposeOnMeta } from "./meta-proposer.js";

export type LeaveOutcome =
  | "Committed"
  | "NotAMember"
  | "RefusedInsufficientVoters"
  | "NotInitialized"
  | "NoLeader"
  | "RefusedDrainInProgress"
  | "Timeout"
  | "DrainTimedOut"
  /** Of the removal of another member only. */
  | "RefusedStillAlive";

/** `drained`: replicas of placed partitions were here, and have gone to others. */
export type LeaveDone = (outcome: LeaveOutcome, drained?: boolean) => void;

export interface LeavingDeps {
  readonly nodeId: number;
  nowMs(): number;
  soon(callback: () => void): void;
  metaReads(): MetaReads | null;
  /** Who leads the meta partition, as far as is known here; 0 = unknown. */
  metaLeader(): number;
  /** Memberships of the groups hosted here that follow the member list. */
  memberships(): readonly Membership[];
  /** Placed partitions as seen here; null while there are none. */
  placement(nowMs: number): PlacementView | null;
  /** Replicas are moved, as the leader of meta says; false: they only go; null: not known. */
  rebalances(): boolean | null;
  isLive(node: number): boolean;
  readonly proposeOnMeta: ProposeOnMeta;
}

/** Pause between two looks or tries (ms). */
const PAUSE_MS = 250;
/** One proposal is waited for so long. */
const PATIENCE_MS = 5000;
/** What is kept back of the deadline for giving the role back. */
const RESERVE_MS = 5000;
const WAITING_MAX = 64;
/** An election is waited for so long before "NoLeader" (ms). */
const ELECTION_PATIENCE_MS = 3000;

interface Call {
  readonly deadlineMs: number;
  readonly drainMs: number;
  readonly done: LeaveDone;
}

/** Longest pause between tries to take the leave back after the call (ms), and their number. */
const OWED_PAUSE_MAX_MS = 10_000;
const OWED_TRIES_MAX = 1000;

type Phase = "deciding" | "marking" | "draining" | "restoring" | "cancelling";

export class Leaving {
  private calls: Call[] = [];
  private phase: Phase = "deciding";
  private drainEndMs = 0;
  private nextMs = 0;
  /** When the call that is served looked first; Infinity before. */
  private lookedMs = Infinity;
  private onItsWay = false;
  /** A record named this node when the call looked first, and replicas have been moved since. */
  private isDrain = false;
  private formerRole: MemberRole = "voter";
  /** The leave is to be taken back although no call waits for it: tries left. */
  private owedTries = 0;
  /** The role is back: what else is to be taken back. */
  private calledIn: CalledIn | null = null;
  /** Another node refused this one's data directory as that of a former member. */
  isRemoved = false;
  /** What the call ends with when the former role is back. */
  private refusal: "DrainTimedOut" | "RefusedInsufficientVoters" = "DrainTimedOut";

  constructor(private readonly deps: LeavingDeps) {}

  /**
   * Leaves. `drainMs`: longest drain; `deadlineMs`: of the whole, on the monotonic clock. `done` is
   * called once, in no turn.
   */
  leave(deadlineMs: number, drainMs: number, done: LeaveDone): void {
    if (this.calls.length >= WAITING_MAX) return this.deps.soon(() => done("Timeout"));
    this.calls.push({ deadlineMs, drainMs, done });
    if (this.calls.length === 1) this.begin();
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.calls.length > 0 || this.owedTries > 0;
  }

  /** Once per tick. */
  tick(nowMs: number): void {
    const call = this.calls[0];
    if (call === undefined) return this.giveBack(nowMs);
    this.expireWaiting(nowMs);
    // After the mark the removal that was asked for is through; before it, an earlier one is.
    if (this.isRemoved) return this.end(this.phase === "deciding" ? "NotAMember" : "Committed");
    if (nowMs >= call.deadlineMs) return this.expire();
    if (this.onItsWay || nowMs < this.nextMs) return;
    this.nextMs = nowMs + PAUSE_MS;
    if (this.phase === "deciding") this.decide(call, nowMs);
    else if (this.phase === "restoring") this.restore(nowMs);
    else if (this.phase === "cancelling") this.cancel(nowMs);
    else if (nowMs >= this.drainEndMs) this.phase = "restoring";
    else if (this.isGone()) this.end("Committed");
    else {
      if (this.deps.rebalances() === false) this.isDrain = false;
      this.mark(nowMs);
    }
  }

  /**
   * Another node refuses this data directory as that of a former member: that is never taken back.
   * Whatever this node knows of the member list is old: nobody sends it anything any more.
   */
  refusedAsRemoved(): void {
    this.isRemoved = true;
  }

  /** The node stops: nothing is gone on with here, what is committed goes on elsewhere. */
  stop(): void {
    const { calls } = this;
    this.calls = [];
    for (const { done } of calls) this.deps.soon(() => done("Timeout"));
  }

  private begin(): void {
    this.phase = "deciding";
    this.nextMs = 0;
    this.lookedMs = Infinity;
    this.isDrain = false;
    this.refusal = "DrainTimedOut";
  }

  private expireWaiting(nowMs: number): void {
    const late = this.calls.filter((call, at) => at > 0 && nowMs >= call.deadlineMs);
    if (late.length === 0) return;
    this.calls = this.calls.filter((call) => !late.includes(call));
    for (const { done } of late) this.deps.soon(() => done("Timeout"));
  }

  private isGone(): boolean {
    const metaReads = this.deps.metaReads();
    return metaReads !== null && metaReads.cluster() !== null && this.ownRole() === null;
  }

  private ownRole(): MemberRole | null {
    return this.deps.metaReads()?.member(this.deps.nodeId)?.role ?? null;
  }

  private decide(call: Call, nowMs: number): void {
    const { deps } = this;
    const metaReads = deps.metaReads();
    const founded = metaReads !== null && metaReads.cluster() !== null;
    const others = deps.memberships().map(({ voters }) => {
      return voters.filter((node) => node !== deps.nodeId);
    });
    const view = deps.placement(nowMs);
    const decision = this.judge(view, {
      members: founded ? metaReads.members() : null,
      nodeId: deps.nodeId,
      metaLed: deps.metaLeader() !== 0,
      otherVoters: others.map((voters) => voters.length),
      liveOtherVoters: others.map((voters) => voters.filter((node) => deps.isLive(node)).length),
    });
    if (this.lookedMs === Infinity && view !== null) {
      const isNamed = view.partitions.some((record) => isListed(record, deps.nodeId));
      this.isDrain = isDrained(isNamed, view.isEnabled);
    }
    this.lookedMs = Math.min(this.lookedMs, nowMs);
    const isElecting = decision === "NoLeader" && nowMs - this.lookedMs < ELECTION_PATIENCE_MS;
    if (isElecting) return;
    const role = this.ownRole();
    if (decision === "RefusedInsufficientVoters" && role === "leaving") {
      // An earlier call marked it: whoever hears that the node stays must not see it removed.
      this.refusal = decision;
      this.phase = "restoring";
      return this.restore(nowMs);
    }
    if (decision !== "remove") return this.end(decision);
    if (role !== null && role !== "leaving") this.formerRole = role;
    this.drainEndMs = Math.min(nowMs + call.drainMs, call.deadlineMs - RESERVE_MS);
    this.phase = "marking";
    this.owedTries = 0;
    this.calledIn = null;
    this.mark(nowMs);
  }

  private judge(view: PlacementView | null, facts: LeaveFacts): LeaveDecision {
    return view === null ? decideLeave(facts) : decideDrain(facts, view);
  }

  /** Makes the role leaving, and asks by the same command whether the removal is through. */
  private mark(nowMs: number): void {
    this.propose("leaving", nowMs, (result) => {
      if (result.status !== "applied") return;
      const wasMarked = this.phase === "draining";
      switch (result.outcome) {
        case "not-a-member":
          return this.end(wasMarked ? "Committed" : "NotAMember");
        case "last-voter":
          return this.end("RefusedInsufficientVoters");
        case "drain-in-progress":
          return this.end("RefusedDrainInProgress");
        default:
          if (this.phase === "marking") this.phase = "draining";
      }
    });
  }

  /** The drain took too long or must not go on: the former role comes back, if not removed yet. */
  private restore(nowMs: number): void {
    this.propose(this.formerRole, nowMs, (result) => {
      if (result.status !== "applied") return;
      if (result.outcome === "not-a-member") return this.end("Committed");
      // Whoever is removed by force leaves, whatever became of its own call.
      if (result.outcome === "invalid") return this.end("Timeout");
      if (result.outcome === "too-many-voters") return this.learnAgain();
      this.calledIn = new CalledIn(this.deps, result.version);
      this.phase = "cancelling";
      this.cancel(nowMs);
    });
  }

  /** Marked in an earlier life of the process, which alone knew the role: it was no voter's. */
  private learnAgain(): void {
    this.formerRole = "learner";
  }

  private cancel(nowMs: number): void {
    if (this.calledIn?.step(nowMs) === false) return;
    this.calledIn = null;
    this.end(this.refusal);
  }

  /** The call ends, done or not. */
  private expire(): void {
    this.end(this.phase === "cancelling" ? this.refusal : "Timeout");
  }

  /**
   * No call is served. The former role is proposed until it is committed, behind whatever was on
   * its way when the call ended, because that may be the mark; then the rest is taken back.
   */
  private giveBack(nowMs: number): void {
    if (this.owedTries === 0 || this.onItsWay || nowMs < this.nextMs) return;
    this.owedTries--;
    const pauseMs = PAUSE_MS * 2 ** Math.min(10, OWED_TRIES_MAX - this.owedTries);
    this.nextMs = nowMs + Math.min(OWED_PAUSE_MAX_MS, pauseMs);
    if (this.calledIn !== null) {
      if (this.calledIn.step(nowMs)) this.owedTries = 0;
      return;
    }
    this.propose(this.formerRole, nowMs, (result) => {
      if (result.status !== "applied") return;
      if (result.outcome === "too-many-voters") return this.learnAgain();
      const isBack = result.outcome === "done" || result.outcome === "unchanged";
      if (isBack) this.calledIn = new CalledIn(this.deps, result.version);
      else this.owedTries = 0;
    });
  }

  private propose(role: MemberRole, nowMs: number, then: (result: MetaResult) => void): void {
    const { deps } = this;
    const call = this.calls[0];
    this.onItsWay = true;
    const command = { kind: "set-member-role", nodeId: deps.nodeId, role } as const;
    deps.proposeOnMeta(command, nowMs + PATIENCE_MS, (result) => {
      this.onItsWay = false;
      // The call may have ended at its deadline meanwhile.
      if (call === this.calls[0]) then(result);
    });
  }

  private end(outcome: LeaveOutcome): void {
    // Until the former role is known to be committed, this node may be marked.
    const isOwed = outcome === "Timeout" || this.calledIn !== null;
    if (isOwed && this.phase !== "deciding") this.owedTries = OWED_TRIES_MAX;
    const call = this.calls.shift();
    const hasDrained = this.isDrain && outcome === "Committed";
    if (call !== undefined) this.deps.soon(() => call.done(outcome, hasDrained));
    this.begin();
  }
}
