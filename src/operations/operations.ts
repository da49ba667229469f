/**
 * The door of this floor: admits requests, hands each to its operation, and sees to exactly one
 * answer each.
 *
 * Invariants: 1. Every accepted request gets exactly one answer, never in the turn of the call. 2.
 * Checks of the input come before everything else. 3. A refusal (overloaded, not initialised,
 * shutting down) had no effect.
 */
import { assert } from "../base/assert.js";
import { LOCK_WAIT_MARGIN_MS } from "../base/limits.js";
import type { BlockKernels } from "../host/sequences/blocks.js";
import type { WaitTally } from "../host/waiting/wait-tally.js";
import type { Joints } from "../host/joint-watching/joints.js";
import { ToldParts } from "../host/joint-watching/told-parts.js";
import type { WatchHub } from "../host/watching/hub.js";
import type { NodeAccess } from "./api/host-view.js";
import type * as Admin from "./api/administration.js";
import { Admission } from "./admission/admission.js";
import { CallerLimits } from "./admission/caller-limits.js";
import { CallTally } from "./admission/call-tally.js";
import type { DataAnswer, Refusal } from "./api/answers.js";
import type { Backups } from "./backups/backups.js";
import { administrationOf } from "./cluster/administration.js";
import type { KeyRanges } from "./cluster/key-ranges.js";
import type { Cluster } from "./cluster/cluster.js";
import type { Replicas } from "./cluster/replicas.js";
import type { ReplicationFacts } from "../control/placement.js";
import { Dispatch, type Finish } from "./dispatch.js";
import { Executions } from "./executions.js";
import { isAborted } from "./forwarding/forwarded.js";
import { isAcceptable } from "./admission/input.js";
import type { OperationsPort } from "./api/port.js";
import {
  type AnswerOf,
  type DataRequest,
  type DataRequestKind,
  type RequestContext,
  type Watches,
  WaitContext,
  WaitControl,
  isWaiting,
  withDeadline,
} from "./api/requests.js";
import { type OperationsPorts, Serving } from "./serving/serving.js";
import type { OperationsSettings } from "./api/settings.js";
import { NOWHERE, endAnswer, unexecuted } from "./api/shapes.js";
import type { RequestSpan, Trace } from "./api/tracing.js";
import { SlowRequests } from "./admission/slow-requests.js";
import { KIND_NUMBERS, type RequestObserver } from "./admission/tally.js";
import { TurnClock } from "./admission/turn-clock.js";
import { jointsOf, watchHubOf, watchesOf } from "./watches.js";
import { Inbox } from "./wire/frames.js";

export type { OperationsPorts } from "./serving/serving.js";

/** Beyond twice the largest response: keys, stamps and names of items without values (bytes). */
const PARTS_ROOM_BYTES = 8 * 1024 * 1024;

/** A node that stops waits so long for answers of other nodes (ms). */
const LAST_CALLS_MS = 1000;
const LAST_LOOK_MS = 10;

export class Operations implements OperationsPort {
  readonly administration: Admin.Administration;
  readonly watches: Watches;
  /** Administrative calls that ended, for metrics. */
  readonly callTally: CallTally;
  private readonly serving: Serving;
  private readonly cluster: Cluster;
  private readonly replicas: Replicas;
  private readonly keyRanges: KeyRanges;
  private readonly backups: Backups;
  private readonly admission: Admission;
  private readonly slow: SlowRequests;
  private readonly limits: CallerLimits;
  private readonly dispatch: Dispatch;
  private readonly executions: Executions;
  private readonly watchHub: WatchHub;
  private readonly joints: Joints;
  private readonly inboxes = new Map<number, Inbox>();
  /** No call of another node is taken any more. */
  private isDone = false;
  /** A call is being taken in; no answer may be given meanwhile. */
  private taking = false;
  private fault: string | null = null;
  /** Requests that are taken in in one turn share one time; so do answers, which leave together. */
  private readonly starts: TurnClock;
  private readonly answers: TurnClock;

  /**
   * `kernels`: `createKernels(...)` of wasm fits. Attaches itself to every group of `node`, now and
   * later.
   */
  constructor(
    node: NodeAccess,
    private readonly settings: OperationsSettings,
    private readonly ports: OperationsPorts,
    kernels: BlockKernels,
    private readonly observer: RequestObserver,
  ) {
    this.serving = new Serving(node, settings, ports, kernels);
    const parts = administrationOf(this.serving);
    const { administration, cluster, replicas, keyRanges } = parts;
    this.callTally = new CallTally(() => ports.clock.monotonicMs());
    this.administration = this.callTally.counted(administration);
    this.watchHub = watchHubOf(this.serving);
    this.limits = new CallerLimits(settings.callerRateLimit);
    const told = new ToldParts(this.watchHub, ports);
    this.joints = jointsOf(this.watchHub, told, this.serving);
    this.watches = watchesOf(this.joints, this.serving, this.limits);
    this.backups = parts.backups;
    this.cluster = cluster;
    this.replicas = replicas;
    this.keyRanges = keyRanges;
    this.admission = new Admission(node, settings.inflightMax);
    this.slow = new SlowRequests(ports.logger, settings.slowRequestMs);
    this.starts = new TurnClock(ports.clock, ports.timer);
    this.answers = new TurnClock(ports.clock, ports.timer);
    this.dispatch = new Dispatch(this.serving);
    this.executions = new Executions(this.serving, this.dispatch, this.admission, {
      wishClock: (partition, leaseMs) => this.watchHub.wishedClock(partition, leaseMs),
      pull: (owner, pull, done) => told.pull(owner, pull, done),
    });
  }

  /** Which partitions have not the replicas that they should, as this node sees it. */
  replication(): ReplicationFacts {
    return this.replicas.facts();
  }

  /** Ranges of all key spaces, by the mode in which this node routes their key space. */
  rangesByMode(): Readonly<Record<"Hash" | "KeyRange", number>> {
    return this.keyRanges.countByMode();
  }

  /** Times that a request met a key range on its way, and was placed anew. */
  get refusedMoved(): number {
    return this.serving.moveWaits.refused;
  }

  /** For the stop: backups, restores and collections end, and none begins any more. */
  endBackups(): void {
    this.backups.stop();
  }

  /** Data requests that took long, for `svc_slow_requests_total`. */
  get slowRequests(): number {
    return this.slow.count;
  }

  /** Requests that were more than their callers may make, for `svc_rate_limited_total`. */
  get rateLimited(): number {
    return this.limits.refused;
  }

  changeSlowThreshold(thresholdMs: number): void {
    this.slow.change(thresholdMs);
  }

  changeCallerRateLimit(perSecond: number): void {
    this.limits.change(perSecond);
  }

  /** Data requests in progress, for `svc_inflight_requests`. */
  get inflight(): number {
    return this.admission.inProgress;
  }

  /**
   * For the stop, after the node's groups are closed and before its links are: calls `done` when
   * nobody waits for other nodes any more. Whoever still does at `deadlineMs`, or after a moment,
   * is told that the end is unknown.
   */
  finish(deadlineMs: number, done: () => void): void {
    const { clock, timer } = this.ports;
    const untilMs = Math.min(deadlineMs, clock.monotonicMs() + LAST_CALLS_MS);
    const look = (): void => {
      const waits = this.inflight + this.serving.calls.inFlight > 0;
      if (waits && clock.monotonicMs() < untilMs) {
        timer.after(LAST_LOOK_MS, look);
        return;
      }
      this.serving.calls.endAll();
      this.isDone = true;
      // Behind the answers that were given in this very turn.
      timer.soon(() => {
        if (this.inflight === 0) this.serving.calls.farewell();
        timer.soon(done);
      });
    };
    look();
  }

  execute<R extends DataRequest>(
    request: R,
    given: RequestContext,
    done: (answer: AnswerOf<R>) => void,
  ): WaitControl | null {
    const nested = this.taking;
    this.taking = true;
    const waitMs = this.waitMsOf(request);
    const longestMs = this.settings.requestTimeoutMs + waitMs;
    let startMs = this.starts.nowMs();
    let context = given;
    if (given.deadlineMs > startMs + longestMs) {
      // Front ends bound it; nobody waits for longer because one of them was mistaken.
      startMs = this.starts.look();
      const latestMs = startMs + longestMs;
      if (given.deadlineMs > latestMs) context = withDeadline(given, latestMs);
    }
    const span = given.trace === undefined ? null : this.record(request.kind, given, given.trace);
    const kind = KIND_NUMBERS[request.kind];
    const wait = waitMs === 0 ? null : waitBy(startMs, waitMs, context);
    if (wait !== null) context = new WaitContext(context, wait);
    let ended = false;
    const finish: Finish = (came) => {
      const answer = wait === null ? came : this.waitEnd(request, came);
      assert(!this.taking, "an answer is never given in the turn of a call");
      assert(!ended, "a request is answered once");
      ended = true;
      if (wait === null) this.admission.leave();
      else this.serving.waits.leave(wait);
      const nowMs = this.answers.nowMs();
      const waitedMs = wait === null || answer.kind !== "lock" ? 0 : (answer.waitedMs ?? 0);
      const durationMs = Math.max(0, nowMs - startMs - waitedMs);
      this.observer.finished(kind, answer.type, answer.refusal !== null, durationMs);
      this.slow.answered(request.kind, answer.type, given, durationMs, nowMs);
      span?.ended(answer.type, answer.refusal);
      // Each operation gives the answer that belongs to its request; the compiler cannot follow
      // that through a union.
      done(answer as AnswerOf<R>);
    };
    const refusal = wait === null ? this.admission.enter() : this.enterWait(wait);
    if (!isAcceptable(request, this.settings)) {
      this.ports.timer.soon(() => finish(unexecuted(request, "invalidInput", null)));
    } else if (refusal !== null || !this.limits.admits(given, startMs)) {
      const why = refusal ?? "overloaded";
      this.ports.timer.soon(() => finish(unexecuted(request, "mustRetry", why)));
    } else {
      this.dispatch.execute(request, context, finish);
    }
    this.taking = nested;
    return wait;
  }

  /** Begins to record a request of a trace; null: nothing is recorded of it. */
  private record(
    kind: DataRequestKind,
    { requestId, forwardHops }: RequestContext,
    trace: Trace,
  ): RequestSpan | null {
    const { tracer } = this.ports;
    trace.span = tracer?.begin(trace.parent, kind, requestId, forwardHops) ?? null;
    return trace.span;
  }

  /** How long a request may wait for a lock (ms); 0 for all that do not. */
  private waitMsOf(request: DataRequest): number {
    if (!isWaiting(request) || !this.serving.knowsWaiting()) return 0;
    return Math.min(request.waitMs ?? 0, this.settings.lockMaxWaitMs);
  }

  /** Whoever waited here while the node began to stop asks another one, and keeps its place. */
  private waitEnd(request: DataRequest, answer: DataAnswer): DataAnswer {
    if (!this.serving.waits.isStopping || !isAborted(request, answer)) return answer;
    return unexecuted(request, "mustRetry", "shutting-down");
  }

  private enterWait(wait: WaitControl): Refusal | null {
    const { waits } = this.serving;
    const refusal = this.admission.refusal();
    if (waits.isStopping) return "shutting-down";
    return refusal ?? (waits.enter(wait) ? null : "overloaded");
  }

  /** The node begins to stop: nobody waits for a lock here any more, nor watches. */
  endWaits(): void {
    this.joints.stop();
    this.watchHub.stop();
    this.serving.waits.endAll();
  }

  /** What is counted of waits for locks. */
  get waitTally(): WaitTally {
    return this.serving.waitTally;
  }

  /** A frame of the lane "calls" came from another node, whose handshake was admitted. */
  callFrame(from: number, bytes: Uint8Array): void {
    let inbox = this.inboxes.get(from);
    if (inbox === undefined) {
      inbox = new Inbox(2 * this.settings.responseMaxBytes + PARTS_ROOM_BYTES);
      this.inboxes.set(from, inbox);
    }
    const frame = inbox.open(bytes);
    if (frame === null) {
      this.ports.logger.log("warn", "unreadable frame of calls", { from });
      this.serving.calls.unreadableCame(from);
    } else if (frame.direction === "answers") {
      this.serving.calls.answersCame(from, frame);
    } else if (frame.direction === "farewell") {
      this.serving.calls.farewellCame(from, frame);
    } else if (!this.isDone) {
      this.serving.calls.callsCame(from, frame);
      this.executions.take(from, frame);
    }
  }

  /** What is sent to `nodeId` from now on reaches it, as far as anybody can tell. */
  linkUp(nodeId: number): void {
    this.serving.calls.linkUp(nodeId);
  }

  /** The link to `nodeId` is gone: calls that are on their way end. */
  linkDown(nodeId: number): void {
    this.inboxes.delete(nodeId);
    this.executions.linkDown(nodeId);
    this.serving.calls.linkDown(nodeId);
  }

  /** Requests of this node that other nodes have not answered yet. */
  get forwardedInFlight(): number {
    return this.serving.calls.inFlight;
  }

  invalidInput(kind: DataRequestKind): DataAnswer {
    return endAnswer(kind, "invalidInput", NOWHERE, null);
  }

  mustRetry(kind: DataRequestKind, refusal: Refusal | null): DataAnswer {
    return endAnswer(kind, "mustRetry", NOWHERE, refusal);
  }

  health(): Admin.HealthAnswer {
    const answer = this.cluster.health();
    if (this.fault === null) return answer;
    return { ...answer, ready: false, reason: `fatal-fault: ${this.fault}` };
  }

  healthChecks(): readonly Admin.HealthCheck[] {
    const checks = this.cluster.healthChecks();
    if (this.fault === null) return checks;
    const failure = this.fault;
    return checks.map((check) => (check.name === "storage" ? { ...check, failure } : check));
  }

  isStopping(): boolean {
    return this.serving.node.shuttingDown;
  }

  fatalFault(): string | null {
    return this.fault;
  }

  /** Called by the server when the process met a fatal fault and is about to end. */
  setFatalFault(reason: string): void {
    this.fault ??= reason;
  }
}

/** The thread to a request that may wait so long, and ends before its caller gives it up (Q1). */
function waitBy(startMs: number, waitMs: number, { deadlineMs }: RequestContext): WaitControl {
  const untilMs = Math.min(startMs + waitMs, deadlineMs - LOCK_WAIT_MARGIN_MS);
  return new WaitControl(startMs, Math.max(startMs, untilMs));
}
