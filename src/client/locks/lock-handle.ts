/**
 * One acquired lock in the hands of its holder: renewal, loss, release.
 *
 * Owns the renewal timer and the watch over its lease. Invariants: 1. Extends of one handle run one
 * after the other. 2. The lease is counted from before the answered request was sent; an extend
 * whose outcome is unknown never lengthens it. 3. After loss or release the handle is never held
 * again.
 */
import { decodeText } from "../../base/bytes.js";
import { localFailure, SvcError, UnknownOutcomeError } from "../values/errors.js";
import type { Timer } from "../time/platform.js";
import { LeaseWatch } from "./lease.js";
import { changeGrant, getLock, tryExtend, unlock, type LockRequest } from "./lock-operations.js";
import { noteOf, type ExtendOptions, type LockInfo, type UnlockAnswer } from "./lock-shapes.js";
import { toSafeNumber } from "../values/numbers.js";
import { newTrace, type Caller, type Calling } from "../call/operation.js";
import {
  callOptions,
  durationMs,
  type CallOptions,
  type Durability,
  type MonotonicClock,
} from "../values/options.js";

/** Renewal begins when this share of the lease is over. */
const RENEW_SHARE = 1 / 3;
/** A renewal's try without answer is given up after this share of the lease. */
const ATTEMPT_SHARE = 1 / 6;
const ATTEMPT_MIN_MS = 50;
/** Pause after a renewal that failed for good, as share of the lease. */
const FAILED_SHARE = 1 / 20;
const RELEASE_MIN_MS = 1000;

/** @internal What a handle is made from. */
export interface HandleFacts {
  readonly caller: Caller;
  readonly clock: MonotonicClock;
  readonly request: LockRequest;
  readonly renew: boolean;
  /** Who waited for the lock when it was granted. */
  readonly waiters: number;
  /** Called when the handle needs no care any more. */
  readonly onEnd: (handle: LockHandle) => void;
}

/**
 * A lock, or the failure to get it (`acquired` false).
 *
 * `signal` aborts before the lease can have ended unrenewed. It also looks at the clock whenever
 * `aborted`, `reason` or `throwIfAborted` is asked: code that runs on after it blocked the event
 * loop for longer than the lease sees the loss in its next look, before any timer had a chance.
 * Give `fencingToken` to everything that the lock protects: only the resource itself can refuse a
 * late writer for certain.
 *
 * @example
 * await using lock = await client.locks.acquire("nightly", { leaseMs: 30_000, waitMs: 5000 });
 * if (lock.acquired) await work(lock.signal, lock.fencingToken);
 */
export class LockHandle {
  readonly resource: string;
  /** The owner's bytes, and as text (null when they are no UTF-8). */
  readonly owner: Uint8Array;
  readonly ownerText: string | null;
  readonly durability: Durability;
  /** True when the lock was acquired; stays true when it is lost or released later. */
  readonly acquired: boolean;
  /** Larger than every earlier token of this lock; 0n when not acquired. */
  readonly fencingToken: bigint;
  private readonly facts: HandleFacts;
  private readonly watch: LeaseWatch;
  private readonly renewals = new AbortController();
  private leaseMs: number;
  private shortestUnknownMs = Number.POSITIVE_INFINITY;
  private extending: Promise<unknown> = Promise.resolve();
  private renewTimer: Timer | null = null;
  private releasing: Promise<boolean> | null = null;
  private heldUntilReleased = false;
  private releaseDoubtful = false;
  private waitersTold: number;

  /**
   * @internal `sentMs`: when the lease began at the earliest; null = not acquired. `firstMs`: how
   * long it is from then on.
   */
  constructor(
    facts: HandleFacts,
    fencingToken: bigint,
    sentMs: number | null,
    firstMs: number = facts.request.expiresMs,
  ) {
    this.facts = facts;
    const { request } = facts;
    this.resource = request.resource;
    this.owner = request.owner;
    this.ownerText = decodeText(request.owner);
    this.durability = request.durability === 1 ? "persistent" : "ephemeral";
    this.acquired = sentMs !== null;
    this.fencingToken = fencingToken;
    this.leaseMs = request.expiresMs;
    this.waitersTold = facts.waiters;
    this.watch = new LeaseWatch(facts.caller.platform, facts.clock, request.resource, () =>
      this.stop(),
    );
    if (sentMs === null) {
      this.watch.end("lock-not-held", "was not acquired");
    } else {
      this.watch.granted(sentMs, firstMs);
      this.scheduleRenewal(sentMs + firstMs * RENEW_SHARE);
    }
  }

  /**
   * Aborts when the lock is lost or released, or can no longer be relied on; the reason is a
   * LockLostError (`lock-lost`, `lock-released`, or `lock-not-held` when it was never acquired).
   */
  get signal(): AbortSignal {
    return this.watch.signal;
  }

  /** True while the lock is certainly held. */
  get held(): boolean {
    return this.watch.held;
  }

  /** For how long it is certainly held from now without further contact (ms). */
  get remainingMs(): number {
    return this.watch.remainingMs;
  }

  /** How many owners waited for the lock when it was granted or extended last. */
  get waiters(): number {
    return this.waitersTold;
  }

  /** The token as a number; throws SvcRangeError beyond 2^53. */
  get fencingTokenNumber(): number {
    return toSafeNumber(this.fencingToken);
  }

  /** Throws LockLostError unless the lock is certainly held. Call it before each guarded step. */
  assertHeld(): void {
    this.watch.signal.throwIfAborted();
  }

  /**
   * Sets the lease to `leaseMs` from now (default: its present length; later renewals use the new
   * one). True when it was extended; false when the lock is not ours any more. Rejects with
   * TimeoutError and others when the outcome is unknown; the lock then counts as held for the
   * shorter of both leases.
   *
   * @example
   * if (!(await lock.extend(60_000))) throw new Error("lost");
   */
  async extend(leaseMs: number = this.leaseMs, options?: ExtendOptions): Promise<boolean> {
    durationMs("leaseMs", leaseMs, 1);
    const calling = callOptions(options);
    const note = noteOf(options?.note);
    return this.inTurn(() => this.extendNow(leaseMs, calling, note));
  }

  /**
   * Who holds the lock at the service; null when nobody does.
   *
   * @example
   * const info = await lock.info();
   */
  info(options?: CallOptions): Promise<LockInfo | null> {
    const { resource, durability } = this.facts.request;
    return this.facts.caller.call(getLock, { resource, durability }, options);
  }

  /**
   * Releases the lock. True when it was ours until now; false when it was not (never acquired,
   * lost, released before). The signal aborts at once with `lock-released`. Rejects with
   * TimeoutError when the service cannot be reached in time: the lease then ends by itself. Rejects
   * with UnknownOutcomeError when an answer got lost and the lock, which was not known to be held
   * any more, is not ours now.
   *
   * @example
   * await lock.release();
   */
  release(options?: CallOptions): Promise<boolean> {
    try {
      callOptions(options);
    } catch (error) {
      return Promise.reject(localFailure(error));
    }
    if (!this.acquired) return Promise.resolve(false);
    this.heldUntilReleased ||= this.watch.held;
    this.watch.end("lock-released", "was released");
    this.stop();
    this.releasing ??= this.releaseNow(options).catch((error: unknown) => {
      this.releasing = null;
      throw error;
    });
    return this.releasing;
  }

  /** @internal Somebody saw that this grant is over. */
  seenLost(why: string): void {
    this.lose(why);
  }

  /** @internal The client closes without releasing: the lease ends by itself. */
  abandon(): void {
    this.lose("was left behind by a closed client");
  }

  /** As `release`, within one lease (at least a second). */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release({ deadlineMs: Math.max(RELEASE_MIN_MS, this.leaseMs) });
  }

  private async releaseNow(options: CallOptions | undefined): Promise<boolean> {
    const { caller, request } = this.facts;
    let answer: UnlockAnswer;
    try {
      answer = await changeGrant(caller, unlock, request, options);
    } catch (error) {
      if (error instanceof SvcError && error.outcome !== "none") this.releaseDoubtful = true;
      throw error;
    }
    if (answer.refusal === null) return true;
    if (!answer.doubtful && !this.releaseDoubtful) return false;
    // A lost try may have released it. Whoever held it when the release began had it until now.
    if (this.heldUntilReleased) return true;
    throw new UnknownOutcomeError(`whether "${this.resource}" was held until now is not known`);
  }

  private inTurn<Value>(step: () => Promise<Value>): Promise<Value> {
    const result = this.extending.then(step, step);
    this.extending = result.catch(() => undefined);
    return result;
  }

  private async extendNow(leaseMs: number, calling: Calling, note?: Uint8Array): Promise<boolean> {
    if (!this.watch.held) return false;
    const { caller, clock, request } = this.facts;
    this.watch.mayShorten(clock.nowMs(), leaseMs);
    const trace = newTrace();
    try {
      const wanted = { ...request, expiresMs: leaseMs, note };
      const answer = await changeGrant(caller, tryExtend, wanted, { ...calling, trace });
      this.waitersTold = answer.waiters;
      if (!answer.extended || answer.fencingToken !== this.fencingToken) {
        this.lose(answer.refusal === "not-held" ? "is held by nobody" : "has another holder");
        return false;
      }
    } catch (error) {
      if (!(error instanceof SvcError) || error.outcome !== "none" || trace.doubtfulSentMs >= 0) {
        this.shortestUnknownMs = Math.min(this.shortestUnknownMs, leaseMs);
      }
      throw error;
    }
    // A lost extend may still arrive and set its own length: never count on more than that. Lost
    // tries of this very call count too, although a later one was answered.
    if (trace.doubtfulSentMs >= 0) {
      this.shortestUnknownMs = Math.min(this.shortestUnknownMs, leaseMs);
    }
    this.watch.granted(trace.sentMs, Math.min(leaseMs, this.shortestUnknownMs));
    if (!this.watch.held) return false;
    this.leaseMs = leaseMs;
    this.scheduleRenewal(trace.sentMs + leaseMs * RENEW_SHARE);
    return true;
  }

  private lose(why: string): void {
    this.watch.end("lock-lost", why);
    this.stop();
  }

  /** No renewal any more. */
  private stop(): void {
    this.renewTimer?.cancel();
    this.renewTimer = null;
    if (!this.renewals.signal.aborted) this.renewals.abort();
    this.facts.onEnd(this);
  }

  private scheduleRenewal(atMs: number): void {
    if (!this.facts.renew || this.renewals.signal.aborted) return;
    this.renewTimer?.cancel();
    const waitMs = Math.max(1, atMs - this.facts.clock.nowMs());
    this.renewTimer = this.facts.caller.platform.after(waitMs, () => void this.renew());
  }

  /** One renewal. What it fails with is the watch's business: it never rejects. */
  private async renew(): Promise<void> {
    const calling: Calling = {
      signal: this.renewals.signal,
      deadlineMs: Math.max(1, this.watch.remainingMs),
      attemptMs: Math.max(ATTEMPT_MIN_MS, this.leaseMs * ATTEMPT_SHARE),
    };
    try {
      await this.inTurn(() => this.extendNow(this.leaseMs, calling));
    } catch {
      this.scheduleRenewal(this.facts.clock.nowMs() + this.leaseMs * FAILED_SHARE);
    }
  }
}
