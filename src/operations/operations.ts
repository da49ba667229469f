/**
 * The door of this floor: admits requests, hands each to its operation, and sees to exactly one
 * answer each.
 *
 * Owns the admission count. May call base, machine, control, host and this folder. Invariants: 1.
 * Every accepted request gets exactly one answer, never in the turn of the call. 2. Checks of the
 * input come before everything else. 3. A refusal (overloaded, not initialised, shutting down) had
 * no effect.
 */
import { assert, unreachable } from "../base/assert.js";
import type { BlockKernels } from "../host/blocks.js";
import type { NodeAccess } from "./access.js";
import type * as Admin from "./administration.js";
import type { AnswerOf, DataAnswer, Refusal } from "./answers.js";
import { refuseBackup } from "./backups.js";
import { Cluster } from "./cluster.js";
import { isAcceptable } from "./input.js";
import { KeyRanges } from "./key-ranges.js";
import { type KvChangeRequest, changeKey, readKey } from "./kv.js";
import { readBucket } from "./kv-bucket.js";
import { executeMany } from "./kv-many.js";
import { readRange } from "./kv-pages.js";
import { scan } from "./kv-scan.js";
import { executeLock } from "./locks.js";
import type { OperationsPort } from "./port.js";
import { RangeMoves } from "./range-moves.js";
import type {
  DataRequest,
  DataRequestKind,
  KvBucketRequest,
  KvGetRequest,
  KvRangeRequest,
  RequestContext,
  SequenceRequest,
} from "./requests.js";
import { executeAllocation, executeSequence } from "./sequences.js";
import { type Fail, type KeyPlace, type OperationsPorts, Serving } from "./serving.js";
import type { OperationsSettings } from "./settings.js";
import { NOWHERE, endAnswer, unexecuted } from "./shapes.js";
import { KIND_LABELS, KIND_NUMBERS, type RequestObserver } from "./tally.js";

export type { OperationsPorts } from "./serving.js";

type Finish = (answer: DataAnswer) => void;

export class Operations implements OperationsPort {
  private readonly serving: Serving;
  private readonly keyRanges: KeyRanges;
  private readonly rangeMoves: RangeMoves;
  private readonly cluster: Cluster;
  private inProgress = 0;
  /** A call is being taken in; no answer may be given meanwhile. */
  private taking = false;
  private fault: string | null = null;

  /**
   * `kernels`: `createKernels(...)` of wasm fits. Attaches itself to every group of `node`, now and
   * later.
   */
  constructor(
    private readonly node: NodeAccess,
    private readonly settings: OperationsSettings,
    private readonly ports: OperationsPorts,
    kernels: BlockKernels,
    private readonly observer: RequestObserver,
  ) {
    this.serving = new Serving(node, settings, ports, kernels);
    this.keyRanges = new KeyRanges(this.serving);
    this.rangeMoves = new RangeMoves(this.serving);
    this.cluster = new Cluster(this.serving, this.keyRanges);
  }

  /** Data requests in progress, for `svc_inflight_requests`. */
  get inflight(): number {
    return this.inProgress;
  }

  execute<R extends DataRequest>(
    request: R,
    context: RequestContext,
    done: (answer: AnswerOf<R>) => void,
  ): void {
    const nested = this.taking;
    this.taking = true;
    const startMs = this.ports.clock.monotonicMs();
    const kind = KIND_NUMBERS[request.kind];
    let ended = false;
    const finish: Finish = (answer) => {
      assert(!this.taking, "an answer is never given in the turn of a call");
      assert(!ended, "a request is answered once");
      ended = true;
      this.inProgress--;
      const durationMs = this.ports.clock.monotonicMs() - startMs;
      this.observer.finished(kind, answer.type, answer.refusal !== null, durationMs);
      // Each operation gives the answer that belongs to its request; the compiler cannot follow
      // that through a union.
      done(answer as AnswerOf<R>);
    };
    const refusal = this.admit();
    this.inProgress++;
    if (!isAcceptable(request, this.settings)) {
      this.ports.timer.soon(() => finish(unexecuted(request, "invalidInput", null)));
    } else if (refusal !== null) {
      this.ports.timer.soon(() => finish(unexecuted(request, "mustRetry", refusal)));
    } else {
      const deadlineMs = Math.min(context.deadlineMs, startMs + this.settings.requestTimeoutMs);
      this.dispatch(request, deadlineMs, finish);
    }
    this.taking = nested;
  }

  private admit(): Refusal | null {
    if (this.node.shuttingDown) return "shutting-down";
    if (!this.node.initialized) return "not-initialized";
    return this.inProgress >= this.settings.inflightMax ? "overloaded" : null;
  }

  private dispatch(request: DataRequest, deadlineMs: number, finish: Finish): void {
    const { serving } = this;
    const fail: Fail = (end, refusal, executed) => {
      const origin = executed === null ? NOWHERE : serving.origin(executed);
      finish(endAnswer(request.kind, end, origin, refusal));
    };
    if (isSequenceRequest(request)) return this.dispatchSequence(request, deadlineMs, fail, finish);
    switch (request.kind) {
      case "try-lock":
      case "try-extend":
      case "try-unlock":
      case "get-lock": {
        const group = serving.lockGroup(request.resource);
        if (group === null) return this.notInitialized(fail);
        return executeLock(serving, group, request, deadlineMs, fail, finish);
      }
      case "kv-set-many":
      case "kv-delete-many":
      case "kv-get-many":
      case "kv-exists-many":
        return executeMany(serving, request, deadlineMs, finish);
      case "kv-scan-all":
      case "kv-scan-local":
        return scan(serving, request, deadlineMs, fail, finish);
      default:
        return this.dispatchKey(request, deadlineMs, fail, finish);
    }
  }

  private dispatchKey(
    request: KvChangeRequest | KvGetRequest | KvBucketRequest | KvRangeRequest,
    deadlineMs: number,
    fail: Fail,
    finish: Finish,
  ): void {
    const { serving } = this;
    const place = this.placeOf(request);
    if (place === null) return this.notInitialized(fail);
    switch (request.kind) {
      case "kv-set":
      case "kv-extend":
      case "kv-delete":
        return changeKey(serving, place, request, deadlineMs, fail, finish);
      case "kv-get":
      case "kv-exists":
        return readKey(serving, place, request, deadlineMs, fail, finish);
      case "kv-bucket":
        return readBucket(serving, place, request, deadlineMs, fail, finish);
      case "kv-range":
        return readRange(serving, place, request, deadlineMs, fail, finish);
      default:
        return unreachable(request);
    }
  }

  private placeOf(
    request: KvChangeRequest | KvGetRequest | KvBucketRequest | KvRangeRequest,
  ): KeyPlace | null {
    if (request.kind === "kv-bucket") return this.serving.bucketPlace(request.bucket);
    if (request.kind === "kv-range") return this.serving.bucketPlace(request.prefix);
    return this.serving.keyPlace(request.key);
  }

  private notInitialized(fail: Fail): void {
    this.ports.timer.soon(() => fail("mustRetry", "not-initialized", null));
  }

  private dispatchSequence(
    request: SequenceRequest,
    deadlineMs: number,
    fail: Fail,
    finish: Finish,
  ): void {
    const place = this.serving.sequencePlace(request.name);
    if (place === null) {
      this.notInitialized(fail);
    } else if (request.kind === "next-sequence" || request.kind === "reserve-sequence") {
      executeAllocation(this.serving, place, request, deadlineMs, fail, finish);
    } else {
      executeSequence(this.serving, place, request, deadlineMs, fail, finish);
    }
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

  fatalFault(): string | null {
    return this.fault;
  }

  /** Called by the server when the process met a fatal fault and is about to end. */
  setFatalFault(reason: string): void {
    this.fault ??= reason;
  }

  membership(): Admin.MembershipAnswer {
    return this.cluster.membership();
  }

  placement(): Admin.PlacementAnswer {
    return this.cluster.placement();
  }

  routing(keySpace: string): Admin.RoutingAnswer {
    return this.cluster.routing(keySpace);
  }

  ranges(keySpace: string): Admin.RangesAnswer {
    return this.keyRanges.list(keySpace);
  }

  leave(context: RequestContext, done: (answer: Admin.LeaveAnswer) => void): void {
    this.cluster.leave(context.deadlineMs, done);
  }

  setReplicationFactor(
    request: { readonly partitionId: number; readonly replicationFactor: number },
    context: RequestContext,
    done: (answer: Admin.ReplicationFactorAnswer) => void,
  ): void {
    this.cluster.setReplicationFactor(request, context.deadlineMs, done);
  }

  registerRange(
    keySpace: string,
    context: RequestContext,
    done: (answer: Admin.RegisterRangeAnswer) => void,
  ): void {
    this.keyRanges.register(keySpace, context.deadlineMs, done);
  }

  unregisterRange(
    keySpace: string,
    context: RequestContext,
    done: (answer: Admin.RegisterRangeAnswer) => void,
  ): void {
    this.keyRanges.unregister(keySpace, context.deadlineMs, done);
  }

  splitRange(
    request: { readonly keySpace: string; readonly splitKey: string },
    context: RequestContext,
    done: (answer: Admin.SplitRangeAnswer) => void,
  ): void {
    this.rangeMoves.split(request, context.deadlineMs, done);
  }

  mergeRanges(context: RequestContext, done: (answer: Admin.MergeRangesAnswer) => void): void {
    this.rangeMoves.merge(context.deadlineMs, done);
  }

  backup(
    request: Admin.BackupRequest,
    _context: RequestContext,
    done: (answer: Admin.BackupRefusal) => void,
  ): void {
    const { settings, ports } = this;
    const answer = refuseBackup(request, settings, ports.entropy, ports.logger);
    ports.timer.soon(() => done(answer));
  }
}

function isSequenceRequest(request: DataRequest): request is SequenceRequest {
  return KIND_LABELS[KIND_NUMBERS[request.kind]]?.api === "sequences";
}
