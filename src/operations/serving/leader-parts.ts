/**
 * Something that is put together of parts, each from the node that leads its partitions: who is
 * asked for what, and what becomes of a part that went nowhere.
 *
 * Invariants: 1. A part that went nowhere is asked for again, with all others, a bounded number of
 * times: whoever reads so changes nothing. 2. Every part is handed on or closed. 3. A node that
 * closes its store knows neither map nor level: it plans nothing more.
 */
import { type PartitionId, partitionId } from "../../base/ids.js";
import type { GroupAccess } from "../api/host-view.js";
import type { Refusal } from "../api/answers.js";
import { type RequestContext, mayForward } from "../api/requests.js";
import type { CallResult } from "../forwarding/call.js";
import type { CallAnswer, CallRequest } from "../wire/calls.js";
import type { Serving } from "./serving.js";

/** Times that parts are asked for anew; the wait for leaders bounds it, too. */
export const TRIES_MAX = 32;
/** A node that sent a part back, or lost it, is left alone so long (ms). */
const AVOID_MS = 50;

export interface PartsFailed {
  readonly kind: "failed";
  readonly end: "mustRetry" | "aborted";
  readonly refusal: Refusal | null;
}

export type PartsEnd<Part> =
  { readonly kind: "parts"; readonly parts: readonly Part[] } | PartsFailed;

export type PartOrAgain<Part> =
  { readonly kind: "part"; readonly part: Part } | "again" | PartsFailed;

/** What is read, and how. `Question`: what is asked of all nodes alike. */
export interface PartSource<Part, Question> {
  /** The partitions that have a part, by the present map. */
  partitions(): readonly PartitionId[];
  /** Of partitions that this node leads; `ended` is never called in the turn of the call. */
  here(
    groups: readonly GroupAccess[],
    question: Question,
    ended: (part: PartOrAgain<Part>) => void,
  ): void;
  requestFor(partitions: readonly number[], question: Question): CallRequest;
  /** Null: it is no answer to such a request. */
  partOf(
    to: number,
    partitions: readonly number[],
    answer: CallAnswer,
  ): { readonly kind: "part"; readonly part: Part } | PartsFailed | null;
  /** Of a part that nobody takes. */
  close(part: Part): void;
}

/** Who reads which partitions. */
interface Plan {
  readonly here: readonly GroupAccess[];
  readonly there: ReadonlyMap<number, readonly number[]>;
}

export class LeaderParts<Part, Question> {
  private tries = 0;
  private giveUpMs = 0;
  private readonly avoided = new Map<number, number>();

  constructor(
    private readonly serving: Serving,
    private readonly context: RequestContext,
    private readonly source: PartSource<Part, Question>,
  ) {}

  /** Reads a part from every node concerned; the end never comes in the turn of the first call. */
  read(question: Question, then: (end: PartsEnd<Part>) => void): void {
    const { node, ports } = this.serving;
    if (node.closing) {
      const end = { end: "mustRetry", refusal: "shutting-down" } as const;
      return ports.timer.soon(() => then({ kind: "failed", ...end }));
    }
    const nowMs = ports.clock.monotonicMs();
    const plan = this.plan(nowMs);
    if (plan === null) return this.wait(question, nowMs, then);
    let open = plan.there.size;
    const isHere = plan.here.length > 0 || plan.there.size === 0;
    if (isHere) open++;
    const ends: PartOrAgain<Part>[] = [];
    const ended = (part: PartOrAgain<Part>): void => {
      ends.push(part);
      open--;
      if (open === 0) this.gathered(question, ends, then);
    };
    if (isHere) this.source.here(plan.here, question, ended);
    for (const [to, partitions] of plan.there) {
      this.ask(to, partitions, question, (result) => ended(this.partOf(to, partitions, result)));
    }
  }

  private gathered(
    question: Question,
    ends: readonly PartOrAgain<Part>[],
    then: (end: PartsEnd<Part>) => void,
  ): void {
    const parts: Part[] = [];
    let failure: PartsFailed | null = null;
    for (const end of ends) {
      if (end === "again") continue;
      if (end.kind === "failed") failure ??= end;
      else parts.push(end.part);
    }
    if (failure === null && parts.length === ends.length) {
      // Who reads again, or on, waits for a leader anew (C12).
      this.tries = 0;
      this.giveUpMs = 0;
      return then({ kind: "parts", parts });
    }
    for (const part of parts) this.source.close(part);
    if (failure !== null) return then(failure);
    this.wait(question, this.serving.ports.clock.monotonicMs(), then);
  }

  /** Null when a partition has no leader that could be asked now. */
  private plan(nowMs: number): Plan | null {
    const { node, leaders, calls } = this.serving;
    const here: GroupAccess[] = [];
    const there = new Map<number, number[]>();
    const isReachable = (to: number): boolean => calls.isReachable(to, nowMs);
    for (const partition of this.source.partitions()) {
      const group = node.group(partition);
      if (group?.isLeader() === true) {
        here.push(group);
        continue;
      }
      const to = leaders.other(partition, isReachable);
      if (to === 0 || (this.avoided.get(to) ?? 0) > nowMs || !isReachable(to)) return null;
      const partitions = there.get(to);
      if (partitions === undefined) there.set(to, [partition]);
      else partitions.push(partition);
    }
    if (there.size > 0 && !mayForward(this.context)) return null;
    return { here, there };
  }

  private ask(
    to: number,
    partitions: readonly number[],
    question: Question,
    then: (result: CallResult) => void,
  ): void {
    const { requestId, deadlineMs, trace } = this.context;
    const partition = partitionId(partitions[0] ?? 0);
    const request = this.source.requestFor(partitions, question);
    const asking = { to, partition, request, requestId, deadlineMs, trace };
    this.serving.calls.ask(asking, then);
  }

  private partOf(to: number, partitions: readonly number[], result: CallResult): PartOrAgain<Part> {
    if (result.status === "overloaded") {
      return { kind: "failed", end: "mustRetry", refusal: "overloaded" };
    }
    const answer = result.status === "answered" ? result.answer : null;
    const part = answer === null ? null : this.source.partOf(to, partitions, answer);
    // Whoever stops sends nothing back that another node could not be asked for.
    const refusal = part?.kind === "failed" ? part.refusal : null;
    if (part !== null && (refusal === null || refusal === "overloaded")) return part;
    this.avoided.set(to, this.serving.ports.clock.monotonicMs() + AVOID_MS);
    return "again";
  }

  private wait(question: Question, nowMs: number, then: (end: PartsEnd<Part>) => void): void {
    const { serving, context, source } = this;
    const { ports, leaders, node, settings } = serving;
    const failed = (refusal: Refusal | null): void => {
      then({ kind: "failed", end: "mustRetry", refusal });
    };
    const retry = (): void => failed(node.shuttingDown ? "shutting-down" : null);
    if (this.giveUpMs === 0) this.giveUpMs = nowMs + settings.leaderWaitMs;
    const untilMs = Math.min(this.giveUpMs, context.deadlineMs);
    const given = source.partitions().some((id) => leaders.isGivenUp(id));
    if (given || !mayForward(context) || ++this.tries > TRIES_MAX) return ports.timer.soon(retry);
    const taken = leaders.wait({
      untilMs,
      isOver: (thenMs) => this.plan(thenMs) !== null,
      resume: (came) => {
        // Somebody to ask is found at any time; whether there still is time is another matter.
        if (came && ports.clock.monotonicMs() < context.deadlineMs) this.read(question, then);
        else retry();
      },
    });
    if (!taken) ports.timer.soon(() => failed("overloaded"));
  }
}
