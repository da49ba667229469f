/**
 * Fenced lease locks.
 *
 * Owns the live handles and the acquires under way of a client, so that closing it can release
 * them. Invariants: 1. A handle is made from a grant, or says that there is none. 2. Closing ends
 * every acquire at once, and waits for the release of what they bring.
 */
import { randomBytes } from "node:crypto";
import {
  bytesOf,
  checkFunction,
  checkSignal,
  durabilityOf,
  flagOf,
  membersOf,
  optionsOf,
  textOf,
} from "../values/arguments.js";
import { ClosedError, InvalidInputError, LockNotAcquiredError } from "../values/errors.js";
import { Acquisition } from "./lock-acquisition.js";
import { forceUnlock, listAudit, listLocks, type Paged } from "./lock-admin.js";
import { LockHandle } from "./lock-handle.js";
import {
  getLock,
  newWait,
  tryExtend,
  tryLock,
  unlock,
  type LockRequest,
} from "./lock-operations.js";
import {
  noteOf,
  type AcquireOptions,
  type ForceStep,
  type ForcedRelease,
  type ListedLock,
  type LockAuditOptions,
  type LockAuditRecord,
  type LockCallOptions,
  type LockExtension,
  type LockGrant,
  type LockInfo,
  type LockInfoOptions,
  type LockListOptions,
  type UnlockAnswer,
} from "./lock-shapes.js";
import { acquirePermit } from "./permits.js";
import type { Watches } from "../watching/watches.js";
import { watchLossOf } from "./loss-watch.js";
import type { Caller, Operation } from "../call/operation.js";
import {
  checkDeadline,
  durationMs,
  type CallOptions,
  type MonotonicClock,
} from "../values/options.js";
import { pause } from "../time/pause.js";
import { int32Of, int64Of, type Int64Input } from "../values/numbers.js";

const OWNER_BYTES = 16;
const RETRY_DEFAULT_MS = 100;
const QUIET_RELEASE_MIN_MS = 1000;

/** Owner and lease of the one-step calls. */
export interface LockStep extends LockCallOptions {
  readonly owner: string | Uint8Array;
  readonly leaseMs: number;
}

/** A single change of a lease. */
export interface ExtendStep extends LockStep {
  /**
   * Of the one grant that is meant; another one of the same owner is refused as another owner's. A
   * service that has not been upgraded to know of it refuses with NotAtLevelError.
   */
  readonly fencingToken?: Int64Input | undefined;
  /** Takes the place of the note that the grant has. */
  readonly note?: string | Uint8Array | undefined;
}

/** A single try, which may wait. */
export interface TryStep extends LockStep {
  /** What others are shown of the grant, at most 1024 bytes (default: nothing). */
  readonly note?: string | Uint8Array | undefined;
  /**
   * How long it waits at the service while another owner holds the lock, a minute at most (ms,
   * default 0). A service that does not know waiting says at once that it is held.
   */
  readonly waitMs?: number | undefined;
}

function tokenOf(token: Int64Input | undefined): bigint | undefined {
  return token === undefined ? undefined : int64Of("fencingToken", token);
}

function ownerBytes(owner: string | Uint8Array): Uint8Array {
  // A copy: the caller may change its own while the lock is renewed.
  const bytes = Uint8Array.from(bytesOf("owner", owner));
  if (bytes.length === 0) throw new InvalidInputError("an owner is not empty");
  return bytes;
}

/** @internal What `Locks` needs beside the engine. */
export interface LocksFacts {
  readonly caller: Caller;
  readonly clock: MonotonicClock;
  /** null: no lock is watched. */
  readonly watches: Watches | null;
}

/**
 * Locks with leases and fencing tokens.
 *
 * @example
 * const report = await client.locks.withLock("nightly", { leaseMs: 30_000 }, async (signal, token)
 * => {   return buildReport({ signal, fencingToken: token });
 * });
 */
export class Locks {
  private readonly facts: LocksFacts;
  private readonly handles = new Set<LockHandle>();
  private readonly background = new Set<Promise<unknown>>();
  private readonly acquiring = new Map<Acquisition, Promise<unknown>>();
  private closed = false;

  /** @internal */
  constructor(facts: LocksFacts) {
    this.facts = facts;
  }

  /**
   * Acquires a lock, waiting up to `waitMs` while another owner holds it. Gives a handle whose
   * `acquired` says whether it was got. Rejects with TimeoutError (the service could not be reached
   * or asked to retry until the deadline: `waitMs` plus the client's deadline), CancelledError,
   * InvalidInputError; what may have been granted then is released in the background. With an
   * `owner` of your own a grant is confirmed by one extend, because the lock may be held under that
   * name already, with an older lease.
   *
   * @example
   * await using lock = await client.locks.acquire("nightly", { leaseMs: 30_000, waitMs: 10_000 });
   * if (!lock.acquired) return;
   * await work(lock.signal);
   */
  async acquire(resource: string, options: AcquireOptions): Promise<LockHandle> {
    const { owner, waitMs = 0, retryMs = RETRY_DEFAULT_MS } = membersOf("options", options);
    const renew = flagOf("renew", options.renew, true);
    const watchLoss = flagOf("watchLoss", options.watchLoss, false);
    const request: LockRequest = {
      resource: textOf("resource", resource),
      owner: ownerBytes(owner === undefined ? randomBytes(OWNER_BYTES).toString("hex") : owner),
      expiresMs: durationMs("leaseMs", options.leaseMs, 1),
      durability: durabilityOf(options.durability),
      note: noteOf(options.note),
    };
    checkSignal(options.signal);
    if (waitMs !== Number.POSITIVE_INFINITY) durationMs("waitMs", waitMs, 0);
    const { caller, clock } = this.facts;
    const wish = {
      request,
      ownOwner: owner !== undefined,
      waitMs,
      retryMs: durationMs("retryMs", retryMs, 1),
      deadlineMs:
        options.deadlineMs === undefined
          ? waitMs + caller.deadlineMs
          : checkDeadline(options.deadlineMs),
      signal: options.signal,
    };
    if (this.closed) throw new ClosedError();
    const acquisition = new Acquisition(caller, clock, wish, (work) => this.inBackground(work));
    const running = acquisition.run();
    this.acquiring.set(acquisition, running);
    try {
      const grant = await running;
      const facts = this.handleFacts({ ...request, note: undefined });
      if (grant === null) return new LockHandle({ ...facts, renew: false }, 0n, null);
      const { fencingToken, isNamed, waiters, sentMs, leaseMs } = grant;
      const held = isNamed ? { ...facts.request, fencingToken } : facts.request;
      const ours = { ...facts, request: held, renew, waiters };
      const handle = new LockHandle(ours, fencingToken, sentMs, leaseMs);
      this.handles.add(handle);
      const { watches } = this.facts;
      const isWatched = watchLoss && handle.durability === "persistent";
      if (isWatched && watches !== null) watchLossOf(handle, watches);
      if (!this.closed) return handle;
      // Closed in the very turn in which the grant came: closing releases all handles.
      throw new ClosedError({ outcome: "unknown" });
    } finally {
      this.acquiring.delete(acquisition);
    }
  }

  /**
   * Runs `work` under a lock and releases it afterwards. Rejects with LockNotAcquiredError when the
   * lock was not got within `waitMs`, with what `work` rejects with, and with LockLostError when
   * the lock was lost before `work` ended. A release that fails is not reported: the lease ends by
   * itself.
   *
   * @example
   * await client.locks.withLock("nightly", { leaseMs: 30_000 }, async (signal, fencingToken) => {
   *   await copyRows({ signal, fencingToken });
   * });
   */
  async withLock<Value>(
    resource: string,
    options: AcquireOptions,
    work: (signal: AbortSignal, fencingToken: bigint) => Promise<Value>,
  ): Promise<Value> {
    checkFunction("work", work);
    const handle = await this.acquire(resource, options);
    if (!handle.acquired) throw new LockNotAcquiredError(resource);
    try {
      const value = await work(handle.signal, handle.fencingToken);
      handle.assertHeld();
      return value;
    } finally {
      const quiet = { deadlineMs: Math.max(QUIET_RELEASE_MIN_MS, options.leaseMs) };
      await handle.release(quiet).catch(() => undefined);
    }
  }

  /**
   * Acquires one of the locks `name#0` to `name#(count - 1)`, so that at most `count` hold one: all
   * are tried in random order, then one is waited for. Fair for each lock, not over all. Options,
   * handle and rejections are those of `acquire`; `resource` of the handle says which it is.
   *
   * @example
   * await using permit = await client.locks.permit("imports", 3, { leaseMs: 30_000, waitMs: 60_000 });
   * if (permit.acquired) await load({ signal: permit.signal });
   */
  async permit(name: string, count: number, options: AcquireOptions): Promise<LockHandle> {
    membersOf("options", options);
    const { platform } = this.facts.caller;
    const acquire = (resource: string, asked: AcquireOptions): Promise<LockHandle> =>
      this.acquire(resource, asked);
    return acquirePermit(acquire, () => platform.random(), textOf("name", name), count, options);
  }

  /**
   * One try to lock, without renewal or handle. A repeat by the same owner says acquired
   * with the same token and leaves the lease as it was.
   *
   * @example
   * const grant = await client.locks.tryLock("nightly", { owner: "me", leaseMs: 30_000 });
   */
  async tryLock(resource: string, step: TryStep): Promise<LockGrant> {
    const { waitMs = 0, note } = membersOf("step", step);
    const request = { ...stepRequest(resource, step), note: noteOf(note) };
    if (waitMs === 0) return this.facts.caller.call(tryLock, request, step);
    const { clock } = this.facts;
    const untilMs = clock.nowMs() + durationMs("waitMs", waitMs, 0);
    const leftMs = (): number => untilMs - clock.nowMs();
    const deadlineMs = (step.deadlineMs ?? this.facts.caller.deadlineMs) + waitMs;
    const waiting = { ...request, ...newWait(leftMs) };
    return this.facts.caller.call(tryLock, waiting, { ...step, deadlineMs });
  }

  /**
   * Sets the lease of a held lock to `leaseMs` from now.
   *
   * @example
   * const { extended } = await client.locks.tryExtend("nightly", { owner: "me", leaseMs: 30_000 });
   */
  async tryExtend(resource: string, step: ExtendStep): Promise<LockExtension> {
    const { fencingToken, note } = membersOf("step", step);
    const token = tokenOf(fencingToken);
    const request = { ...stepRequest(resource, step), fencingToken: token, note: noteOf(note) };
    return this.facts.caller.call(tryExtend, request, step);
  }

  /**
   * Releases a lock by its owner.
   *
   * @example
   * const { unlocked } = await client.locks.unlock("nightly", { owner: "me" });
   */
  async unlock(
    resource: string,
    step: LockCallOptions & Pick<ExtendStep, "owner" | "fencingToken">,
  ): Promise<UnlockAnswer> {
    const asked = stepRequest(resource, { ...membersOf("step", step), leaseMs: 1 });
    const request = { ...asked, fencingToken: tokenOf(step.fencingToken) };
    return this.facts.caller.call(unlock, request, step);
  }

  /**
   * Who holds a lock; null when nobody does.
   *
   * @example
   * const info = await client.locks.info("nightly");
   */
  async info(resource: string, options: LockInfoOptions = {}): Promise<LockInfo | null> {
    const { durability, owner } = optionsOf(options);
    const request = {
      resource: textOf("resource", resource),
      durability: durabilityOf(durability),
      owner: owner === undefined ? undefined : ownerBytes(owner),
    };
    return this.facts.caller.call(getLock, request, options);
  }

  /**
   * The locks of the cluster, in the order of their resources: an iterable that reads page by page.
   * A lock that stays as it is comes once.
   *
   * @example
   * for await (const { resource, ownerText } of client.locks.list({ heldOnly: true }))
   *   console.log(resource, ownerText);
   */
  async *list(options: LockListOptions = {}): AsyncGenerator<ListedLock, void, undefined> {
    const { prefix = "", heldOnly, limit = 0, durability } = optionsOf(options);
    const request = {
      prefix: textOf("prefix", prefix),
      durability: durabilityOf(durability),
      heldOnly: flagOf("heldOnly", heldOnly, false),
      limit: int32Of("limit", limit, 0),
      cursor: null,
    };
    yield* this.pages(listLocks, request, options);
  }

  /**
   * Ends one grant of a lock, whoever has it; who did it and why is kept (`audit`). The next who
   * waits is granted the lock. The holder learns of it at its next extend: what the lock protects
   * must check tokens.
   *
   * @example
   * const info = await client.locks.info("nightly");
   * if (info !== null)
   *   await client.locks.forceUnlock("nightly", { ...info, reason: "host-7 hangs" });
   */
  async forceUnlock(resource: string, step: ForceStep): Promise<ForcedRelease> {
    const { fencingToken, reason, dropWaiters, durability } = membersOf("step", step);
    const request = {
      resource: textOf("resource", resource),
      durability: durabilityOf(durability),
      fencingToken: int64Of("fencingToken", fencingToken),
      reason: textOf("reason", reason),
      dropWaiters: flagOf("dropWaiters", dropWaiters, false),
    };
    return this.facts.caller.call(forceUnlock, request, step);
  }

  /**
   * Who released locks by force, the newest first: an iterable that reads page by page.
   *
   * @example
   * for await (const { resource, actor, reason } of client.locks.audit())
   *   console.log(resource, actor, reason);
   */
  async *audit(options: LockAuditOptions = {}): AsyncGenerator<LockAuditRecord, void, undefined> {
    const { prefix = "", limit = 0 } = optionsOf(options);
    const asked = { prefix: textOf("prefix", prefix), limit: int32Of("limit", limit, 0) };
    yield* this.pages(listAudit, { ...asked, cursor: null }, options);
  }

  private async *pages<Request extends { readonly cursor: string | null }, Answer, Item>(
    operation: Operation<Request, Answer, Paged<Item>>,
    first: Request,
    options: CallOptions,
  ): AsyncGenerator<Item, void, undefined> {
    let request = first;
    for (;;) {
      const page = await this.facts.caller.call(operation, request, options);
      yield* page.items;
      if (page.nextCursor === null) return;
      request = { ...request, cursor: page.nextCursor };
    }
  }

  /** @internal Releases what is held and waits for releases, at most `waitMs`; never rejects. */
  async close(waitMs: number): Promise<void> {
    this.closed = true;
    const ended = [...this.acquiring.values()];
    for (const acquisition of this.acquiring.keys()) acquisition.close();
    await Promise.allSettled(ended);
    for (const handle of [...this.handles]) {
      if (waitMs === 0) handle.abandon();
      else this.inBackground(handle.release({ deadlineMs: waitMs }));
    }
    if (this.background.size === 0 || waitMs === 0) return;
    const enough = new AbortController();
    const { platform } = this.facts.caller;
    const limit = pause(platform, waitMs, enough.signal).catch(() => undefined);
    await Promise.race([this.allReleased(), limit]);
    enough.abort();
  }

  /** Late grants add releases while others are waited for. */
  private async allReleased(): Promise<void> {
    while (this.background.size > 0) await Promise.all(this.background);
  }

  private handleFacts(request: LockRequest) {
    const { caller, clock } = this.facts;
    return {
      caller,
      clock,
      request,
      waiters: 0,
      onEnd: (handle: LockHandle): void => void this.handles.delete(handle),
    };
  }

  private inBackground(work: Promise<unknown>): void {
    const quiet = work.then(
      () => undefined,
      () => undefined,
    );
    this.background.add(quiet);
    void quiet.then(() => this.background.delete(quiet));
  }
}

function stepRequest(resource: string, step: LockStep): LockRequest {
  const { owner, leaseMs, durability } = membersOf("step", step);
  return {
    resource: textOf("resource", resource),
    owner: ownerBytes(owner),
    expiresMs: durationMs("leaseMs", leaseMs, 1),
    durability: durabilityOf(durability),
  };
}
