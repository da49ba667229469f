/**
 * One call with all its tries: what is repeated, where, and what is known at the end.
 *
 * Owns its promise, its deadline and its wait between tries. Invariants: 1. A call settles once. 2.
 * A try that may have taken effect is followed by another only if the operation allows that. 3. At
 * the end the outcome is "none" only when no try can have taken effect, or the operation has none. 4. When there is another
 * target to ask, one silent node costs a share of the deadline, not all of it.
 */
import { onAbort } from "../time/pause.js";
import { Backoff } from "../time/backoff.js";
import type { Expiring } from "../time/deadlines.js";
import type { Timer } from "../time/platform.js";
import {
  CancelledError,
  ClosedError,
  doubted,
  effectless,
  ServerError,
  SvcError,
  TimeoutError,
  UnavailableError,
} from "../values/errors.js";
import type { Calling, Operation } from "./operation.js";
import type { Target } from "./try.js";
import type { RouteHint } from "./route-hint.js";
import type { CallHost, Try } from "./try.js";

/** Whatever a server asks for, a call looks after itself at least so often (ms). */
const WAIT_MAX_MS = 60_000;
/** A try gets this share of the deadline, and within these bounds (ms), when there are others. */
const ATTEMPT_SHARE = 1 / 3;
const ATTEMPT_MIN_MS = 1000;
const ATTEMPT_MAX_MS = 10_000;
/** Refusals in a row after which another target is asked. */
const REFUSALS_PER_TARGET = 3;

/** Failures after which the same target is asked again at first. */
const STAYS: ReadonlySet<string> = new Set(["must-retry", "overloaded"]);
/** Failures that say nothing against the target. */
const DECIDED: ReadonlySet<string> = new Set([...STAYS, "aborted"]);

class CallTry implements Try {
  left = false;
  alone = false;
  ended = false;
  abandon: (() => void) | null = null;
  cancelWait: (() => void) | null = null;
  sentMs = 0;
  readonly operation: Operation<unknown, unknown, unknown>;
  readonly request: unknown;
  private readonly call: Call;

  constructor(call: Call, operation: Operation<unknown, unknown, unknown>, request: unknown) {
    this.call = call;
    this.operation = operation;
    this.request = request;
  }

  answered(answer: unknown, hint: RouteHint | null): void {
    if (this.ended) return;
    this.ended = true;
    this.call.tryAnswered(this, answer, hint);
  }

  failed(error: SvcError): void {
    if (this.ended) return;
    this.ended = true;
    this.call.tryLost(this, error);
  }
}

export class Call implements Expiring {
  durationMs: number;
  expireAtMs = 0;
  listed = false;
  previous: Expiring | null = null;
  next: Expiring | null = null;
  private readonly host: CallHost;
  private readonly operation: Operation<unknown, unknown, unknown>;
  private request: unknown;
  private readonly resolve: (value: unknown) => void;
  private readonly reject: (error: SvcError) => void;
  private readonly calling: Calling;
  private readonly totalMs: number;
  private endAtMs = 0;
  private tryEndAtMs = 0;
  private current: CallTry | null = null;
  private target: Target | null = null;
  private alone = false;
  private doubtful = false;
  private refusals = 0;
  private aborts = 0;
  private lastError: SvcError | null = null;
  private backoff: Backoff | null = null;
  private waiting: Timer | null = null;
  private unlisten: (() => void) | null = null;

  constructor(
    host: CallHost,
    operation: Operation<unknown, unknown, unknown>,
    request: unknown,
    calling: Calling | undefined,
    durationMs: number,
    resolve: (value: unknown) => void,
    reject: (error: SvcError) => void,
  ) {
    this.host = host;
    this.operation = operation;
    this.request = request;
    this.totalMs = durationMs;
    this.durationMs = durationMs;
    this.resolve = resolve;
    this.reject = reject;
    this.calling = calling ?? NOTHING;
  }

  /** Begins the first try. */
  begin(): void {
    const firstMs = Math.min(this.totalMs, this.attemptMs());
    this.host.watch(this, firstMs);
    this.tryEndAtMs = this.expireAtMs;
    const endless = this.totalMs === Number.POSITIVE_INFINITY;
    this.endAtMs = endless ? this.totalMs : this.expireAtMs - firstMs + this.totalMs;
    const { signal, lastTry } = this.calling;
    if (signal !== undefined) {
      if (signal.aborted) return this.cancelled();
      this.unlisten = onAbort(signal, () => this.cancelled());
    } else if (lastTry !== undefined && this.waits) {
      this.unlisten = onAbort(lastTry, () => this.current?.cancelWait?.());
    }
    this.startTry();
  }

  /** How long one try is waited for. */
  private attemptMs(): number {
    const given = this.calling.attemptMs;
    if (given !== undefined) return given;
    // The server keeps it for as long as was asked; a connection that died is noticed otherwise.
    if (this.waits) return Number.POSITIVE_INFINITY;
    const { host, operation, totalMs } = this;
    if (host.targetCount < 2 || !operation.repeat(this.request)) return Number.POSITIVE_INFINITY;
    // What may take as long as it likes is no request for data, unless it has an object.
    if (totalMs === Number.POSITIVE_INFINITY) return operation.route ? ATTEMPT_MAX_MS : totalMs;
    return Math.min(ATTEMPT_MAX_MS, Math.max(ATTEMPT_MIN_MS, totalMs * ATTEMPT_SHARE));
  }

  private get waits(): boolean {
    return this.operation.waits?.(this.request) === true;
  }

  private repeatTry(): void {
    this.tryEndAtMs = this.host.platform.nowMs() + this.attemptMs();
    this.watchOn();
    this.startTry();
  }

  private startTry(): void {
    const attempt = new CallTry(this, this.operation, this.request);
    attempt.alone = this.alone;
    this.current = attempt;
    if (this.calling.trace !== undefined) attempt.sentMs = this.host.nowMs();
    const code = this.lastError?.code ?? "";
    const stay = STAYS.has(code) && this.refusals % REFUSALS_PER_TARGET !== 0;
    const last = this.target;
    // A transport that fails at once does so before its target is known: `last` is not to blame.
    this.target = null;
    this.target = this.host.dispatch(attempt, last, stay);
  }

  tryAnswered(attempt: CallTry, answer: unknown, hint: RouteHint | null): void {
    const { trace } = this.calling;
    const target = this.target as Target;
    if (trace !== undefined) trace.sentMs = attempt.sentMs;
    let result: unknown;
    try {
      result = this.operation.settle(answer, this.request, this.doubtful);
    } catch (error) {
      const failure = asSvcError(error);
      if (failure instanceof UnavailableError) this.host.refused(target, attempt);
      else this.host.answered(target, attempt, hint);
      this.tryFailed(attempt, failure);
      return;
    }
    this.host.answered(target, attempt, hint);
    this.end();
    this.resolve(result);
  }

  /** The try ended without an answer of the operation. */
  tryLost(attempt: CallTry, error: SvcError): void {
    if (this.target !== null && error instanceof UnavailableError) {
      const hurried = error.code === "no-answer" && this.calling.attemptMs !== undefined;
      if (DECIDED.has(error.code)) this.host.refused(this.target, attempt);
      else if (hurried) this.host.unanswered(attempt);
      else this.host.failed(this.target);
    }
    this.tryFailed(attempt, error);
  }

  private tryFailed(attempt: CallTry, error: SvcError): void {
    this.current = null;
    this.lastError = error;
    this.alone ||= attempt.alone;
    if (error.outcome !== "none" && attempt.left) this.noteDoubt(attempt);
    if (STAYS.has(error.code)) this.refusals += 1;
    if (!this.repeatable(error)) {
      return this.settleWith(this.doubtful ? doubted(error) : error);
    }
    if (this.operation.again !== undefined) this.request = this.operation.again(this.request);
    this.backoff ??= new Backoff(this.host.platform);
    const waitMs = Math.min(WAIT_MAX_MS, this.backoff.nextMs(error.retryAfterMs));
    this.waiting = this.host.platform.after(waitMs, () => {
      this.waiting = null;
      if (this.calling.lastTry?.aborted !== true) this.repeatTry();
      else this.settleWith(this.doubtful ? doubted(error) : error);
    });
  }

  private repeatable(error: SvcError): error is UnavailableError {
    if (!(error instanceof UnavailableError) || this.calling.lastTry?.aborted === true)
      return false;
    if (error.refused && this.host.failWhenRefused && this.host.targetCount === 1) {
      if (!this.doubtful) return false;
    }
    if (error.code === "aborted") {
      // A node that stops says so, and had not begun: another one may serve. Alone it is raised.
      this.aborts += 1;
      if (this.aborts >= this.host.targetCount) return false;
    }
    return !this.doubtful || this.operation.repeat(this.request);
  }

  private noteDoubt(attempt: CallTry): void {
    const { trace } = this.calling;
    this.doubtful = true;
    if (trace !== undefined && trace.doubtfulSentMs < 0) trace.doubtfulSentMs = attempt.sentMs;
  }

  /** Watches on, until the try or the call ends, in steps of which there are few lengths. */
  private watchOn(): void {
    const leftMs = Math.min(this.endAtMs, this.tryEndAtMs) - this.host.platform.nowMs();
    if (leftMs === Number.POSITIVE_INFINITY) return this.host.watch(this, leftMs);
    this.host.watch(this, 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, leftMs)))));
  }

  /** The time that was watched is over. */
  expire(): void {
    const nowMs = this.host.platform.nowMs();
    if (nowMs >= this.endAtMs) return this.timedOut();
    const { current } = this;
    if (nowMs < this.tryEndAtMs) return this.watchOn();
    this.tryEndAtMs = Number.POSITIVE_INFINITY;
    this.watchOn();
    if (current === null) return;
    const { target } = this;
    if (target !== null) this.host.suspect(target, current);
    current.abandon?.();
    const message = `${target?.endpoint.url ?? ""}: no answer in the time of one try`;
    const outcome = current.left ? "unknown" : "none";
    current.failed(new UnavailableError("no-answer", message, { outcome }));
  }

  private timedOut(): void {
    const why = this.lastError === null ? "" : ` (${this.lastError.message})`;
    const waited = `no answer within ${Math.round(this.totalMs)} ms`;
    const message = `${this.operation.name}: ${waited}${why}`;
    this.stopTry();
    const outcome = this.doubtful ? "unknown" : "none";
    this.settleWith(new TimeoutError(message, { outcome, cause: this.lastError ?? undefined }));
  }

  /** The client was closed. */
  discard(): void {
    this.stopTry();
    this.settleWith(new ClosedError({ outcome: this.doubtful ? "unknown" : "none" }));
  }

  private cancelled(): void {
    this.stopTry();
    const message = `${this.operation.name} was cancelled`;
    const outcome = this.doubtful ? "unknown" : "none";
    const cause: unknown = this.calling.signal?.reason;
    this.settleWith(new CancelledError(message, { outcome, cause }));
  }

  private stopTry(): void {
    const attempt = this.current;
    this.current = null;
    if (attempt === null) return;
    attempt.ended = true;
    if (attempt.left) this.noteDoubt(attempt);
    attempt.abandon?.();
  }

  private settleWith(error: SvcError): void {
    this.end();
    this.reject(this.operation.reads === true ? effectless(error) : error);
  }

  private end(): void {
    this.current = null;
    this.waiting?.cancel();
    this.unlisten?.();
    this.host.ended(this);
  }
}

const NOTHING: Calling = {};

function asSvcError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new ServerError("the answer cannot be read", { cause: error }, "protocol");
}
