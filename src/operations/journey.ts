/**
 * The way of one request that the node which took it in does not carry out at once: to the node
 * that leads its partition, and when its keys move meanwhile, to the partition that has them then.
 *
 * Invariants: 1. It goes on only while it is certain that nothing was done, or when it changes
 * nothing. 2. Each step is one hop from here (P-109): whoever is asked asks nobody else. 3. A move
 * of a key range is waited for until the deadline of the request, and by nothing shorter (C12); a
 * leader that is missing by what the forwarder allows, counted anew after each such wait. 4. A
 * journey ends once. 5. Of a wait, whoever is asked next gets a higher try: what an earlier one was
 * told, nobody hears (Q14).
 */
import { META_PARTITION, type PartitionId } from "../base/ids.js";
import { Int64 } from "../base/int64.js";
import type { DataAnswer, Refusal } from "./api/answers.js";
import type { GroupAccess } from "./api/host-view.js";
import type { Leaving } from "../host/waiting/queue.js";
import type { RequestContext, SingleRequest, WaitHolder } from "./api/requests.js";
import { NOWHERE, endAnswer } from "./api/shapes.js";
import type { Trace } from "./api/tracing.js";
import { forwarded, isAnswerTo, isReading } from "./forwarding/forwarded.js";
import { type ForwardProgress, type ForwardTask, Forwarder } from "./forwarding/forwarder.js";
import { MovePauses } from "./serving/move-waits.js";
import type { Serving } from "./serving/serving.js";
import type { CallAnswer } from "./wire/calls.js";

/**
 * Told that nothing was done here: the node does not lead `partition`, or with `isUnowned` that
 * partition does not own the keys.
 */
export type Elsewhere = (partition: PartitionId, isUnowned: boolean) => void;

/** It is its own task for whoever passes it on: an object made for each costs each call. */
export class Journey implements ForwardTask, WaitHolder {
  /** Made when they are needed: few requests meet a move. */
  private pauses: MovePauses | null = null;
  private progress: ForwardProgress = { tries: 0, giveUpMs: 0 };
  /** Version of the map by which the request was placed last. */
  private usedVersion: number;
  private askedMs = 0;
  /** How often it was asked of somebody behind the first time. */
  private steps = 0;
  /** Of the call by which another node was asked last. */
  private callId = 0;
  /** That it is passed on to the leader of. */
  partition: PartitionId = META_PARTITION;

  /** `carryOut`: places the request by the present map and carries it out if that is led here. */
  constructor(
    private readonly serving: Serving,
    private readonly given: SingleRequest,
    private readonly context: RequestContext,
    private readonly finish: (answer: DataAnswer) => void,
    private readonly carryOut: (request: SingleRequest, elsewhere: Elsewhere) => void,
  ) {
    this.usedVersion = serving.placement.mapVersion;
  }

  /** Goes on from where nothing was done. */
  goOn(partition: PartitionId, isUnowned: boolean): void {
    if (this.hasLeft) return this.giveUp();
    if (isUnowned) this.unowned();
    else this.forward(partition);
  }

  private forward(partition: PartitionId): void {
    this.usedVersion = this.serving.placement.mapVersion;
    this.partition = partition;
    new Forwarder(this.serving, this, this.progress).go();
  }

  get requestId(): string {
    return this.context.requestId;
  }

  get deadlineMs(): number {
    return this.context.deadlineMs;
  }

  get trace(): Trace | undefined {
    return this.context.trace;
  }

  get reading(): boolean {
    return isReading(this.given.kind);
  }

  get waits(): boolean {
    return this.context.wait !== undefined;
  }

  began(id: number): void {
    const { serving } = this;
    const { wait } = this.context;
    if (wait === undefined) return;
    this.askedMs = serving.ports.clock.monotonicMs();
    this.callId = id;
    wait.heldBy(this);
  }

  leave(how: Leaving): boolean {
    return this.serving.calls.cancelWait(this.callId, how === "left");
  }

  here(_group: GroupAccess, moved: () => void): void {
    const { partition } = this;
    this.carryOut(this.request, (next, isUnowned) => {
      if (!isUnowned && next === partition) moved();
      else this.goOn(next, isUnowned);
    });
  }

  answered(answer: CallAnswer): void {
    if (!isAnswerTo(this.given, answer)) return this.mustRetry(null);
    const { wait } = this.context;
    const hinted = forwarded(answer, this.serving.settings.routingHints);
    this.finish(wait === undefined ? hinted : waitedHere(hinted, this.askedMs - wait.sinceMs));
  }

  unowned(): void {
    const again = (): void => {
      this.progress = { tries: 0, giveUpMs: 0 };
      this.usedVersion = this.serving.placement.mapVersion;
      this.carryOut(this.request, (partition, isUnowned) => this.goOn(partition, isUnowned));
    };
    this.pauses ??= new MovePauses(this.serving.moveWaits, this.context.deadlineMs);
    this.pauses.next(this.usedVersion, again, (refusal) => this.mustRetry(refusal));
  }

  isElsewhere(): boolean {
    const route = this.serving.placement.routeOf(this.given);
    return route !== null && route.partition !== this.partition;
  }

  failed(refusal: Refusal | null): void {
    this.mustRetry(refusal);
  }

  /** The request as it is asked next: of its wait, what is left, as a higher try (Q14). */
  get request(): SingleRequest {
    const request = this.given;
    const { wait } = this.context;
    if (wait === undefined || request.kind !== "try-lock") return request;
    const leftMs = Math.ceil(wait.waitUntilMs - this.serving.ports.clock.monotonicMs());
    const tryNumber = (request.tryNumber ?? Int64.ZERO).plus(++this.steps);
    return { ...request, waitMs: Math.max(1, leftMs), tryNumber };
  }

  private get hasLeft(): boolean {
    return (this.context.wait?.leaving ?? null) !== null;
  }

  /** Nobody waits any more, and nothing was done. */
  private giveUp(): void {
    const { timer } = this.serving.ports;
    timer.soon(() => this.finish(endAnswer(this.given.kind, "aborted", NOWHERE, null)));
  }

  /** With a refusal nothing is said of where to go. */
  private mustRetry(refusal: Refusal | null): void {
    const { placement, origins } = this.serving;
    const route = refusal === null ? placement.routeOf(this.given) : null;
    this.finish(endAnswer(this.given.kind, "mustRetry", origins.elsewhere(route), refusal));
  }
}

/** The answer to a wait that began here `beforeMs` before the node was asked that decided. */
function waitedHere(answer: DataAnswer, beforeMs: number): DataAnswer {
  if (answer.kind !== "lock" || answer.waitedMs === null) return answer;
  return { ...answer, waitedMs: answer.waitedMs + Math.max(0, Math.floor(beforeMs)) };
}
