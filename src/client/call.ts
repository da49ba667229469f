/**
 * One call with all its tries: what is repeated, where, and what is known at the end.
 *
 * Owns its promise, its deadline and its wait between tries. Invariants: 1. A call settles once. 2.
 * A try that may have taken effect is followed by another only if the operation allows that. 3. At
 * the end the outcome is "none" only when no try can have taken effect.
 */
import { Backoff } from "./backoff.js";
import type { Expiring } from "./deadlines.js";
import {
  CancelledError,
  ClosedError,
  doubted,
  ServerError,
  SvcError,
  TimeoutError,
  UnavailableError,
} from "./errors.js";
import type { CallTrace, Calling, Operation } from "./operation.js";

/** One try of a call, in the hands of a transport. */
export interface Try {
  readonly operation: Operation<unknown, unknown, unknown>;
  readonly request: unknown;
  /** Set by the transport just before the first byte may leave. */
  left: boolean;
  /**
   * Travels outside the batch streams. Set by a transport on a try that it fails: so will those
   * that follow.
   */
  alone: boolean;
  /** Nobody waits for this try any more. */
  ended: boolean;
  /** Set by transports that can: stops the try's work. */
  abandon: (() => void) | null;
  answered(answer: unknown): void;
  failed(error: SvcError): void;
}

/** What a call needs from the engine. */
export interface CallHost {
  /** Hands a try to an endpoint; `avoid`: the one that was tried last, -1 = none. Returns it. */
  dispatch(attempt: Try, avoid: number): number;
  /** The endpoint answered. */
  worked(endpoint: number): void;
  ended(call: Expiring): void;
  /** The clock of leases (ms). */
  nowMs(): number;
  /** The endpoint did not answer this try in time. */
  suspect(endpoint: number, attempt: Try): void;
}

/** Whatever a server asks for, a call looks after itself at least so often (ms). */
const WAIT_MAX_MS = 60_000;

class CallTry implements Try {
  left = false;
  alone = false;
  ended = false;
  abandon: (() => void) | null = null;
  sentMs = 0;
  timer: NodeJS.Timeout | null = null;
  readonly operation: Operation<unknown, unknown, unknown>;
  readonly request: unknown;
  private readonly call: Call;

  constructor(call: Call, operation: Operation<unknown, unknown, unknown>, request: unknown) {
    this.call = call;
    this.operation = operation;
    this.request = request;
  }

  answered(answer: unknown): void {
    if (this.ended) return;
    this.end();
    this.call.tryAnswered(this, answer);
  }

  failed(error: SvcError): void {
    if (this.ended) return;
    this.end();
    this.call.tryFailed(this, error);
  }

  end(): void {
    this.ended = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }
}

export class Call implements Expiring {
  readonly durationMs: number;
  expireAtMs = 0;
  listed = false;
  previous: Expiring | null = null;
  next: Expiring | null = null;
  private readonly host: CallHost;
  private readonly operation: Operation<unknown, unknown, unknown>;
  private request: unknown;
  private readonly resolve: (value: unknown) => void;
  private readonly reject: (error: SvcError) => void;
  private readonly signal: AbortSignal | undefined;
  private readonly attemptMs: number | undefined;
  private readonly trace: CallTrace | undefined;
  private readonly lastTry: AbortSignal | undefined;
  private current: CallTry | null = null;
  private endpoint = -1;
  private alone = false;
  private doubtful = false;
  private lastError: SvcError | null = null;
  private backoff: Backoff | null = null;
  private waiting: NodeJS.Timeout | null = null;
  private cancel: (() => void) | null = null;

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
    this.durationMs = durationMs;
    this.resolve = resolve;
    this.reject = reject;
    this.signal = calling?.signal;
    this.attemptMs = calling?.attemptMs;
    this.trace = calling?.trace;
    this.lastTry = calling?.lastTry;
  }

  /** Begins the first try. */
  begin(): void {
    const { signal } = this;
    if (signal !== undefined) {
      if (signal.aborted) return this.cancelled();
      this.cancel = (): void => this.cancelled();
      signal.addEventListener("abort", this.cancel, { once: true });
    }
    this.startTry();
  }

  private startTry(): void {
    const attempt = new CallTry(this, this.operation, this.request);
    attempt.alone = this.alone;
    this.current = attempt;
    if (this.trace !== undefined) attempt.sentMs = this.host.nowMs();
    this.endpoint = this.host.dispatch(attempt, this.endpoint);
    if (this.attemptMs === undefined || attempt.ended) return;
    attempt.timer = setTimeout(() => {
      this.host.suspect(this.endpoint, attempt);
      const message = `no answer within ${Math.round(this.attemptMs ?? 0)} ms`;
      attempt.abandon?.();
      attempt.failed(new UnavailableError("no-answer", message, { outcome: "unknown" }));
    }, this.attemptMs);
  }

  tryAnswered(attempt: CallTry, answer: unknown): void {
    if (this.trace !== undefined) this.trace.sentMs = attempt.sentMs;
    this.host.worked(this.endpoint);
    let result: unknown;
    try {
      result = this.operation.settle(answer, this.request, this.doubtful);
    } catch (error) {
      this.tryFailed(attempt, asSvcError(error));
      return;
    }
    this.end();
    this.resolve(result);
  }

  tryFailed(attempt: CallTry, error: SvcError): void {
    this.current = null;
    this.lastError = error;
    this.alone ||= attempt.alone;
    if (error.outcome !== "none" && attempt.left) this.noteDoubt(attempt);
    const last = this.lastTry?.aborted === true;
    const repeatable = error instanceof UnavailableError && error.code !== "aborted";
    if (!repeatable || last || (this.doubtful && !this.operation.repeat(this.request))) {
      return this.settleWith(this.doubtful ? doubted(error) : error);
    }
    if (this.doubtful && this.operation.again !== undefined) {
      this.request = this.operation.again(this.request);
    }
    this.backoff ??= new Backoff();
    this.waiting = setTimeout(
      () => {
        this.waiting = null;
        if (this.lastTry?.aborted !== true) this.startTry();
        else this.settleWith(this.doubtful ? doubted(error) : error);
      },
      Math.min(WAIT_MAX_MS, this.backoff.nextMs(error.retryAfterMs)),
    );
  }

  private noteDoubt(attempt: CallTry): void {
    this.doubtful = true;
    if (this.trace !== undefined && this.trace.doubtfulSentMs < 0) {
      this.trace.doubtfulSentMs = attempt.sentMs;
    }
  }

  /** The deadline passed. */
  expire(): void {
    const why = this.lastError === null ? "" : ` (${this.lastError.message})`;
    const waited = `no answer within ${Math.round(this.durationMs)} ms`;
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
    this.settleWith(new CancelledError(message, { outcome, cause: this.signal?.reason }));
  }

  private stopTry(): void {
    const attempt = this.current;
    this.current = null;
    if (attempt === null) return;
    attempt.end();
    if (attempt.left) this.noteDoubt(attempt);
    attempt.abandon?.();
  }

  private settleWith(error: SvcError): void {
    this.end();
    this.reject(error);
  }

  private end(): void {
    this.current = null;
    if (this.waiting !== null) clearTimeout(this.waiting);
    if (this.cancel !== null) this.signal?.removeEventListener("abort", this.cancel);
    this.host.ended(this);
  }
}

function asSvcError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new ServerError("the answer cannot be read", { cause: error }, "protocol");
}
