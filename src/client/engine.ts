/**
 * Runs calls: chooses targets, keeps deadlines, ends everything at close.
 *
 * Owns the targets and the calls under way. Invariants: 1. Every call settles. 2. A hint is
 * followed only to a target whose connection stands; everything else goes to a configured endpoint.
 * 3. After close nothing is left.
 */
import { Call } from "./call/call.js";
import { Deadlines, type Expiring } from "./time/deadlines.js";
import { ClosedError, InvalidInputError, localFailure, type SvcError } from "./values/errors.js";
import { GrpcNode } from "./transport/grpc-node.js";
import { MetadataRefresh } from "./metadata/metadata-refresh.js";
import type { Calling, Caller, Operation } from "./call/operation.js";
import type { WatchHost, WatchTarget } from "./call/watch-host.js";
import type { WatchListener } from "./call/watch-link.js";
import { callOptions, type ClientSettings, type MonotonicClock } from "./values/options.js";
import { onAbort, pause } from "./time/pause.js";
import type { ClientPlatform } from "./time/platform.js";
import { Targets } from "./call/endpoints.js";
import { RestNode } from "./transport/rest-node.js";
import { RouteCache } from "./metadata/route-cache.js";
import { Provenance, type RouteHint } from "./call/route-hint.js";
import { CALL_OPERATIONS } from "./metadata/calls.js";
import type { CallHost, Try, Target } from "./call/try.js";

const METADATA_DEADLINE_MS = 5000;

export class Engine implements Caller, CallHost, WatchHost {
  readonly platform: ClientPlatform;
  readonly deadlineMs: number;
  readonly failWhenRefused: boolean;
  private readonly targets: Targets;
  private readonly routes: RouteCache<Target> | null;
  private readonly metadata: MetadataRefresh;
  private readonly deadlines: Deadlines;
  /** Waits under way: closing ends them. */
  private readonly pauses = new Set<AbortController>();
  private readonly clock: MonotonicClock;
  readonly watches = new Set<{ close(): void }>();
  private underWay = 0;
  private whenIdle: (() => void) | null = null;
  private closed = false;

  constructor(platform: ClientPlatform, settings: ClientSettings, clock: MonotonicClock) {
    this.platform = platform;
    this.deadlines = new Deadlines(platform);
    this.deadlineMs = settings.deadlineMs;
    this.failWhenRefused = settings.failWhenRefused;
    this.clock = clock;
    const rest = settings.transport === "rest";
    this.targets = new Targets(
      platform,
      settings.endpoints,
      (endpoint, failed) =>
        rest
          ? new RestNode(platform, endpoint, settings, failed)
          : new GrpcNode(platform, endpoint, settings, failed),
      // What nodes advertise in clear text is where they speak gRPC.
      !rest,
      settings.startAt === "first" ? 0 : platform.random(),
      settings.token !== null,
    );
    this.routes = settings.followRoutes ? new RouteCache() : null;
    const asking = { deadlineMs: METADATA_DEADLINE_MS };
    this.metadata = new MetadataRefresh(
      platform,
      () => this.call(CALL_OPERATIONS["cluster.routing"], { keySpace: "" }, asking),
      (metadata) => {
        const from = this.targets.configured[0] as Target;
        const targetOf = (name: string): Target | null => this.targets.named(name, from);
        this.routes?.take(metadata, targetOf, platform.nowMs());
      },
    );
  }

  call<Request, Answer, Result>(
    operation: Operation<Request, Answer, Result>,
    request: Request,
    calling?: Calling,
  ): Promise<Result> {
    return new Promise<Result>((resolve, reject: (error: SvcError) => void) => {
      if (this.closed) return reject(new ClosedError());
      const ill = illFormed(request);
      if (ill !== null) return reject(new InvalidInputError(`${ill} is not well-formed Unicode`));
      let durationMs = this.deadlineMs;
      try {
        durationMs = callOptions(calling).deadlineMs ?? durationMs;
      } catch (error) {
        return reject(localFailure(error));
      }
      // A call hands the request only to its own operation and gives what that one settles with.
      const erased = operation as unknown as Operation<unknown, unknown, unknown>;
      const settle = resolve as (value: unknown) => void;
      const call = new Call(this, erased, request, calling, durationMs, settle, reject);
      this.underWay += 1;
      call.begin();
    });
  }

  /** Resolves when no call is under way, after `limitMs` at the latest. */
  async idle(limitMs: number): Promise<void> {
    if (this.underWay === 0 || limitMs === 0) return;
    await new Promise<void>((resolve) => {
      const limit = this.platform.after(limitMs, resolve);
      this.whenIdle = () => {
        limit.cancel();
        resolve();
      };
    });
    this.whenIdle = null;
  }

  async pause(ms: number, signal?: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const cancelled = (): void => stop.abort(signal?.reason);
    if (this.closed) stop.abort(new ClosedError());
    if (signal?.aborted === true) cancelled();
    const unlisten = signal === undefined ? null : onAbort(signal, cancelled);
    this.pauses.add(stop);
    try {
      await pause(this.platform, ms, stop.signal);
    } finally {
      this.pauses.delete(stop);
      unlisten?.();
    }
  }

  get targetCount(): number {
    return this.targets.count;
  }

  dispatch(attempt: Try, last: Target | null, stay: boolean): Target {
    // The first try begins in the turn in which its deadline was set.
    const nowMs = last === null ? this.deadlines.addedMs : this.platform.nowMs();
    const target = this.hinted(attempt, last, nowMs) ?? this.targets.next(last, stay, nowMs);
    target.node.send(attempt);
    return target;
  }

  get isClosed(): boolean {
    return this.closed;
  }

  openWatch(
    first: Uint8Array,
    last: WatchTarget | null,
    route: string | null,
    listener: WatchListener,
  ): WatchTarget | null {
    const nowMs = this.platform.nowMs();
    const from = last?.target ?? null;
    const target = this.routedFrom(from, route, nowMs) ?? this.targets.next(from, false, nowMs);
    const link = target.node.watch(first, listener);
    return link === null ? null : { target, link };
  }

  /** The node that `from` named, if that is another one and can be asked right now. */
  private routedFrom(from: Target | null, route: string | null, nowMs: number): Target | null {
    if (from === null || route === null || this.routes === null) return null;
    const target = this.targets.forwarded(from, route);
    return target === null || target === from || target.coolUntilMs > nowMs ? null : target;
  }

  watchWorked({ target }: WatchTarget): void {
    this.targets.worked(target);
  }

  watchFailed({ target }: WatchTarget): void {
    this.failed(target);
  }

  /** Where the object of this try is served, if that can be asked right now. */
  private hinted({ operation, request }: Try, last: Target | null, nowMs: number): Target | null {
    const { route } = operation;
    if (this.routes === null || route === undefined || this.targets.count < 2) return null;
    const target = this.routes.find(route.space, route.name(request), nowMs);
    if (target === null || target === last || target.coolUntilMs > nowMs) return null;
    if (target.node.ready) return target;
    target.node.warm();
    return null;
  }

  answered(target: Target, { operation, request }: Try, hint: RouteHint | null): void {
    this.targets.worked(target);
    if (hint === null || this.routes === null || operation.route === undefined) return;
    let serving: Target | null = null;
    if (hint.provenance === Provenance.executed) {
      serving = this.targets.executed(target, hint.endpoint);
    } else if (hint.provenance === Provenance.forwarded) {
      serving = this.targets.forwarded(target, hint.endpoint);
      this.metadata.wanted(this.deadlines.addedMs);
    }
    if (serving === null || hint.partitionId < 1 || this.targets.count < 2) return;
    const { space, name } = operation.route;
    this.routes.learn(space, name(request), hint, serving, this.deadlines.addedMs);
  }

  refused(target: Target, attempt: Try): void {
    this.targets.worked(target);
    this.unanswered(attempt);
  }

  unanswered({ operation, request }: Try): void {
    if (operation.route !== undefined) {
      this.routes?.forget(operation.route.space, operation.route.name(request));
    }
  }

  failed(target: Target): void {
    this.targets.failed(target);
    this.routes?.forgetTarget(target);
  }

  suspect(target: Target, attempt: Try): void {
    target.node.suspect(attempt);
  }

  watch(call: Expiring, durationMs: number): void {
    this.deadlines.remove(call);
    call.durationMs = durationMs;
    this.deadlines.add(call);
  }

  ended(call: Expiring): void {
    this.deadlines.remove(call);
    this.underWay -= 1;
    if (this.underWay === 0) this.whenIdle?.();
  }

  nowMs(): number {
    return this.clock.nowMs();
  }

  /** Ends everything; calls under way reject with ClosedError. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const watch of [...this.watches]) watch.close();
    for (const stop of this.pauses) stop.abort(new ClosedError());
    this.deadlines.close();
    await this.targets.close();
  }
}

/** The name of a member whose text cannot be sent as it is, or null. */
function illFormed(request: unknown): string | null {
  if (Array.isArray(request)) {
    for (const item of request as readonly unknown[]) {
      const name = illFormed(item);
      if (name !== null) return name;
    }
    return null;
  }
  const members = request as Readonly<Record<string, unknown>>;
  for (const name in members) {
    const value = members[name];
    if (typeof value === "string" && !value.isWellFormed()) return name;
  }
  return null;
}
