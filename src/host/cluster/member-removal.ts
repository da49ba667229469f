/**
 * Takes a member whose process or disk is gone out of the cluster, as an operator asks (contract
 * 5.3 rule 3). Runs where the meta partition is led.
 *
 * As with a leave, its role becomes leaving, the leaders of all groups take its vote and then its
 * place, and the leader of the meta partition removes it from the member list: all by committed
 * records, so that it goes on whoever dies, this call included. What is here asks first whether the
 * member is really gone, begins it, and watches.
 *
 * Invariants: 1. A member that this node, or a voter that answers, heard lately is never removed
 * (P-095). 2. "Committed" is told only when the removal is committed and applied here. 3. One call
 * at a time, the others after it; each ends by its deadline, exactly once and in no turn. 4.
 * Nothing is taken back: after "Timeout" the removal goes on.
 */
import { decideEviction, groupsAtRisk, partitionsAtRisk } from "../../control/silence.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { Membership } from "../../raft/state/types.js";
import type { Hearing } from "./hearing.js";
import type { LeaveDone, LeaveOutcome } from "./leaving.js";
import type { MetaProposal, MetaResult } from "./meta-proposals.js";
import type { ProposeOnMeta } from "./meta-proposer.js";

export interface MemberRemovalDeps {
  readonly nodeId: number;
  nowMs(): number;
  soon(callback: () => void): void;
  metaReads(): MetaReads | null;
  /** This node leads the meta partition, and has applied its own-term entry. */
  servesMeta(): boolean;
  /** Memberships of the groups hosted here that follow the member list. */
  memberships(): readonly Membership[];
  isLinked(node: number): boolean;
  /** Since which level of the cluster a removal by force is told from a leave. */
  readonly evictsFromLevel: number;
  readonly hearing: Pick<Hearing, "isHeard" | "ask">;
  readonly proposeOnMeta: ProposeOnMeta;
}

/** Pause between two looks or tries (ms). */
const PAUSE_MS = 250;
/** One proposal is waited for so long. */
const PATIENCE_MS = 5000;
const WAITING_MAX = 64;

interface Call {
  readonly member: number;
  readonly deadlineMs: number;
  readonly done: LeaveDone;
}

type Phase = "asking" | "marking" | "watching";

export class MemberRemoval {
  private calls: Call[] = [];
  private phase: Phase = "asking";
  private nextMs = 0;
  private onItsWay = false;

  constructor(private readonly deps: MemberRemovalDeps) {}

  /** Removes `member`; `deadlineMs`: of the call, on the monotonic clock. */
  remove(member: number, deadlineMs: number, done: LeaveDone): void {
    if (this.calls.length >= WAITING_MAX) return this.deps.soon(() => done("Timeout"));
    this.calls.push({ member, deadlineMs, done });
    if (this.calls.length === 1) this.begin();
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.calls.length > 0;
  }

  /** Once per tick. */
  tick(nowMs: number): void {
    this.expireWaiting(nowMs);
    const call = this.calls[0];
    if (call === undefined) return;
    if (nowMs >= call.deadlineMs) return this.end("Timeout");
    if (this.onItsWay || nowMs < this.nextMs) return;
    this.nextMs = nowMs + PAUSE_MS;
    if (this.phase === "watching") return this.watch(call);
    const decision = this.decide(call.member);
    if (decision !== "remove") return this.end(decision);
    if (this.phase === "asking") this.askOthers(call);
    else this.mark(call, nowMs);
  }

  /** The node stops: what is committed goes on elsewhere. */
  stop(): void {
    const { calls } = this;
    this.calls = [];
    for (const { done } of calls) this.deps.soon(() => done("Timeout"));
  }

  private begin(): void {
    this.phase = "asking";
    this.nextMs = 0;
    this.onItsWay = false;
  }

  private expireWaiting(nowMs: number): void {
    const late = this.calls.filter((call, at) => at > 0 && nowMs >= call.deadlineMs);
    if (late.length === 0) return;
    this.calls = this.calls.filter((call) => !late.includes(call));
    for (const { done } of late) this.deps.soon(() => done("Timeout"));
  }

  private decide(member: number): LeaveOutcome | "remove" {
    const { deps } = this;
    const metaReads = deps.metaReads();
    const founded = metaReads !== null && metaReads.cluster() !== null;
    const members = founded ? metaReads.members() : null;
    const isAlive = member === deps.nodeId || deps.hearing.isHeard(member);
    const isLive = (node: number): boolean => this.isLive(node);
    const atRisk = [
      ...partitionsAtRisk(metaReads?.partitions() ?? [], member, isLive),
      ...groupsAtRisk(deps.memberships(), member, isLive),
    ];
    return decideEviction({
      members,
      nodeId: member,
      servesMeta: deps.servesMeta(),
      heardBy: isAlive ? [deps.nodeId] : [],
      isNeeded: atRisk.length > 0,
    });
  }

  private isLive(node: number): boolean {
    return node === this.deps.nodeId || this.deps.isLinked(node);
  }

  private askOthers(call: Call): void {
    const { deps } = this;
    const members = deps.metaReads()?.members() ?? [];
    const voters = members.filter(({ role }) => role === "voter").map(({ nodeId }) => nodeId);
    const others = voters.filter((node) => node !== deps.nodeId && deps.isLinked(node));
    this.onItsWay = true;
    deps.hearing.ask(call.member, others, (isHeard) => {
      if (call !== this.calls[0]) return;
      this.onItsWay = false;
      if (isHeard) this.end("RefusedStillAlive");
      else this.phase = "marking";
    });
  }

  /** Makes it leave, for good: from then on the removal goes on by itself. */
  private mark(call: Call, nowMs: number): void {
    const { member: nodeId } = call;
    this.onItsWay = true;
    const command: MetaProposal = this.mayEvict()
      ? { kind: "evict-member", nodeId }
      : { kind: "set-member-role", nodeId, role: "leaving" };
    this.deps.proposeOnMeta(command, nowMs + PATIENCE_MS, (result) => {
      if (call !== this.calls[0]) return;
      this.onItsWay = false;
      this.marked(result);
    });
  }

  private marked(result: MetaResult): void {
    if (result.status !== "applied") return;
    switch (result.outcome) {
      case "not-a-member":
        return this.end("NotAMember");
      case "last-voter":
        return this.end("RefusedInsufficientVoters");
      case "drain-in-progress":
        return this.end("RefusedDrainInProgress");
      default:
        this.phase = "watching";
    }
  }

  private mayEvict(): boolean {
    return (this.deps.metaReads()?.cluster()?.level ?? 0) >= this.deps.evictsFromLevel;
  }

  private watch(call: Call): void {
    const metaReads = this.deps.metaReads();
    if (metaReads === null || metaReads.cluster() === null) return;
    const member = metaReads.member(call.member);
    if (member === null) this.end("Committed");
    // At level 1 it may come back and take its role back: everything is to be asked again.
    else if (member.role !== "leaving") this.phase = "asking";
  }

  private end(outcome: LeaveOutcome): void {
    const call = this.calls.shift();
    if (call !== undefined) this.deps.soon(() => call.done(outcome));
    this.begin();
  }
}
