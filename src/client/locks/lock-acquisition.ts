/**
 * One acquire of a lock: its tries and waits, and what becomes of a grant for which nobody waits.
 *
 * Owns its waits. Invariants: 1. Only an answer "locked" is a grant. 2. A lease is counted as the
 * service says what is left of it, else from the first try that may have begun it, or from an
 * extend that was answered. 3. What may have been granted and is not handed out is released in the
 * background; while its try is under way, only after that: nothing orders a release behind a grant
 * that is still on its way.
 */
import { onAbort } from "../time/pause.js";
import { CancelledError, ClosedError, TimeoutError } from "../values/errors.js";
import {
  changeGrant,
  newWait,
  tryExtend,
  tryLock,
  unlock,
  type LockRequest,
  type TryLockRequest,
} from "./lock-operations.js";
import type { LockExtension, LockGrant } from "./lock-shapes.js";
import { newTrace, type Caller, type Calling } from "../call/operation.js";
import type { MonotonicClock } from "../values/options.js";
import { INT32_MAX } from "../../base/int64.js";

/** A grant asked for so long ago (share of the lease) is confirmed by an extend first. */
const CONFIRM_SHARE = 1 / 3;
/** How much less than the service's clock this one may have counted of a wait (share). */
const WAIT_DRIFT_SHARE = 0.001;
const QUIET_RELEASE_MIN_MS = 1000;
const QUIET_RELEASE_MAX_MS = 30_000;

/** What an acquire is told. */
export interface Wish {
  readonly request: LockRequest;
  /** The owner is the caller's own: the lock may be held under that name already. */
  readonly ownOwner: boolean;
  readonly waitMs: number;
  readonly retryMs: number;
  /** Of the whole acquire. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A grant: its token, when the lease began at the earliest, and how long it is from then on. */
export interface Grant {
  readonly fencingToken: bigint;
  /** The service knows which grant is meant when it is told the token. */
  readonly isNamed: boolean;
  /** Owners who wait for the lock. */
  readonly waiters: number;
  readonly sentMs: number;
  readonly leaseMs: number;
}

export class Acquisition {
  private readonly caller: Caller;
  private readonly clock: MonotonicClock;
  private readonly wish: Wish;
  private readonly inBackground: (work: Promise<unknown>) => void;
  private readonly trace = newTrace();
  private readonly ending = new AbortController();
  /** The call that was under way when the acquire was ended. */
  private abandoned: Promise<unknown> | null = null;
  private closed = false;

  /** `inBackground`: takes work that the client waits for when it closes. */
  constructor(
    caller: Caller,
    clock: MonotonicClock,
    wish: Wish,
    inBackground: (work: Promise<unknown>) => void,
  ) {
    this.caller = caller;
    this.clock = clock;
    this.wish = wish;
    this.inBackground = inBackground;
  }

  /** The client closes: the acquire rejects at once. */
  close(): void {
    this.closed = true;
    this.ending.abort();
  }

  /** The grant, or null when somebody else held the lock to the end of the wait. */
  async run(): Promise<Grant | null> {
    const { signal } = this.wish;
    const cancel = (): void => this.ending.abort();
    if (signal?.aborted === true) cancel();
    const unlisten = signal === undefined ? null : onAbort(signal, cancel);
    try {
      const grant = await this.wait();
      if (grant !== null) this.checkEnded();
      // A try that got lost may still arrive when the lock is free.
      else if (this.trace.doubtfulSentMs >= 0) this.releaseQuietly();
      return grant;
    } catch (error) {
      this.cleanUp();
      throw this.ending.signal.aborted ? this.reason() : error;
    } finally {
      unlisten?.();
    }
  }

  private async wait(): Promise<Grant | null> {
    const { clock, trace } = this;
    const { request, waitMs, retryMs, deadlineMs } = this.wish;
    const startMs = clock.nowMs();
    const leftMs = (): number => startMs + waitMs - clock.nowMs();
    let tried: TryLockRequest = request;
    if (waitMs > 0) tried = { ...request, ...newWait(leftMs) };
    for (;;) {
      const calling = this.calling(startMs + deadlineMs, { trace });
      const askedMs = clock.nowMs();
      const answer = await this.abandonable(() => this.caller.call(tryLock, tried, calling));
      if (answer.acquired) {
        const grant = await this.confirmed(answer, startMs + deadlineMs);
        if (grant !== null) return grant;
      }
      const leftToWaitMs = leftMs();
      if (leftToWaitMs <= 0) return null;
      if (tried.nextTry !== undefined) tried = { ...tried, tryNumber: tried.nextTry() };
      // It waited at the service, and keeps its place there for a moment.
      if (answer.waitedMs !== null && clock.nowMs() - askedMs >= retryMs) continue;
      const jitteredMs = retryMs * (0.5 + this.caller.platform.random());
      await this.caller.pause(Math.min(jitteredMs, leftToWaitMs), this.ending.signal);
    }
  }

  /** The grant, or null when its lease is over already. */
  private async confirmed(
    { fencingToken, leaseLeftMs, waitedMs, waiters }: LockGrant,
    endMs: number,
  ): Promise<Grant | null> {
    const { clock, trace } = this;
    const { request, ownOwner } = this.wish;
    if (leaseLeftMs !== null && waitedMs !== null) {
      // Counted so nobody believes longer than the service, whichever try began the lease (Q6).
      // After an hour of waiting clocks may be apart by more than the margin of a short lease.
      const nowMs = clock.nowMs();
      const beganMs = Math.min(nowMs, trace.sentMs + waitedMs * (1 - WAIT_DRIFT_SHARE));
      const leftMs = beganMs + leaseLeftMs - nowMs;
      if (trace.doubtfulSentMs < 0) trace.doubtfulSentMs = trace.sentMs;
      if (leftMs > request.expiresMs * (1 - CONFIRM_SHARE)) {
        const told = { fencingToken, isNamed: true, waiters };
        return { ...told, sentMs: beganMs, leaseMs: leaseLeftMs };
      }
      return this.extended(endMs, fencingToken);
    }
    const sentMs = trace.doubtfulSentMs >= 0 ? trace.doubtfulSentMs : trace.sentMs;
    // From here on something is held: whatever fails must release it.
    if (trace.doubtfulSentMs < 0) trace.doubtfulSentMs = sentMs;
    const old = clock.nowMs() - sentMs > request.expiresMs * CONFIRM_SHARE;
    const leaseMs = request.expiresMs;
    if (!ownOwner && !old) return { fencingToken, isNamed: false, waiters, sentMs, leaseMs };
    return this.extended(endMs);
  }

  /**
   * The grant with a new lease, or null when the lock is not ours any more. `named`: its token,
   * where the service knows what to do with it.
   */
  private async extended(endMs: number, named?: bigint): Promise<Grant | null> {
    const { caller } = this;
    const request = { ...this.wish.request, fencingToken: named };
    const inner = newTrace();
    const calling = this.calling(endMs, { trace: inner });
    const extend = (): Promise<LockExtension> => changeGrant(caller, tryExtend, request, calling);
    const { extended, fencingToken, waiters } = await this.abandonable(extend);
    if (!extended) return null;
    const isNamed = named !== undefined;
    return { fencingToken, isNamed, waiters, sentMs: inner.sentMs, leaseMs: request.expiresMs };
  }

  /** For a call that ends with the acquire, at `endMs` of the clock; throws TimeoutError then. */
  private calling(endMs: number, more: Calling): Calling {
    const leftMs = endMs - this.clock.nowMs();
    if (leftMs <= 0) {
      const outcome = this.trace.doubtfulSentMs >= 0 ? "unknown" : "none";
      const message = `no lock "${this.wish.request.resource}" before the deadline`;
      throw new TimeoutError(message, { outcome });
    }
    const finite = leftMs === Number.POSITIVE_INFINITY || leftMs <= INT32_MAX;
    return { ...more, deadlineMs: finite ? leftMs : INT32_MAX, lastTry: this.ending.signal };
  }

  /** Waits for a call unless the acquire is ended first; the call then goes on without a repeat. */
  private abandonable<Result>(begin: () => Promise<Result>): Promise<Result> {
    const { signal } = this.ending;
    this.checkEnded();
    return new Promise((resolve, reject) => {
      const call = begin();
      const abandon = (): void => {
        this.abandoned = call;
        reject(this.reason());
      };
      signal.addEventListener("abort", abandon, { once: true });
      const settled = (): void => signal.removeEventListener("abort", abandon);
      call.finally(settled).then(resolve, reject);
    });
  }

  private checkEnded(): void {
    if (this.ending.signal.aborted) throw this.reason();
  }

  private reason(): CancelledError | ClosedError {
    const doubtful = this.abandoned !== null || this.trace.doubtfulSentMs >= 0;
    const outcome = doubtful ? "unknown" : "none";
    if (this.closed) return new ClosedError({ outcome });
    const cause: unknown = this.wish.signal?.reason;
    return new CancelledError("the acquire was cancelled", { outcome, cause });
  }

  /** Releases what was or may have been granted, as soon as that is settled. */
  private cleanUp(): void {
    const settle = (): void => {
      if (this.trace.doubtfulSentMs >= 0) this.releaseQuietly();
    };
    if (this.abandoned === null) return settle();
    const late = this.abandoned.then(
      (answer) => {
        const granted = (answer as { readonly acquired?: boolean }).acquired === true;
        if (granted) this.trace.doubtfulSentMs = Math.max(0, this.trace.sentMs);
        settle();
      },
      () => settle(),
    );
    this.inBackground(late);
  }

  private releaseQuietly(): void {
    const { request } = this.wish;
    const deadlineMs = Math.min(
      QUIET_RELEASE_MAX_MS,
      Math.max(QUIET_RELEASE_MIN_MS, request.expiresMs),
    );
    this.inBackground(this.caller.call(unlock, request, { deadlineMs }));
  }
}
