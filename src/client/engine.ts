/**
 * Runs calls: chooses endpoints, keeps deadlines, ends everything at close.
 *
 * Owns the endpoints' transports and the calls under way. Invariants: 1. Every call settles. 2. An
 * endpoint that cannot be reached is left alone for a growing while when there is another. 3. After
 * close nothing is left.
 */
import { Call, type CallHost, type Try } from "./call.js";
import { Deadlines, type Expiring } from "./deadlines.js";
import { ClosedError, InvalidInputError, type SvcError } from "./errors.js";
import { GrpcNode } from "./grpc-node.js";
import type { Calling, Caller, Operation } from "./operation.js";
import { checkDeadline, type ClientSettings, type MonotonicClock } from "./options.js";
import { pause } from "./pause.js";
import { RestNode } from "./rest-node.js";

/** One endpoint as the engine uses it. */
export interface TransportNode {
  send(attempt: Try): void;
  /** A try got no answer in its time: look after the connection that it went to. */
  suspect(attempt: Try): void;
  /** Resolves when its connections are gone; never rejects. */
  close(): Promise<void>;
}

const COOLING_FIRST_MS = 10;
const COOLING_LAST_MS = 1000;

interface Place {
  readonly node: TransportNode;
  failures: number;
  coolUntilMs: number;
}

export class Engine implements Caller, CallHost {
  private readonly places: Place[];
  private readonly deadlines = new Deadlines();
  readonly deadlineMs: number;
  /** Waits under way: closing ends them. */
  private readonly pauses = new Set<AbortController>();
  private readonly clock: MonotonicClock;
  private preferred = 0;
  private closed = false;

  constructor(settings: ClientSettings, clock: MonotonicClock) {
    this.deadlineMs = settings.deadlineMs;
    this.clock = clock;
    this.places = settings.endpoints.map((endpoint, at) => {
      const unreachable = (): void => this.unreachable(at);
      const node =
        settings.transport === "rest"
          ? new RestNode(endpoint, settings, unreachable)
          : new GrpcNode(endpoint, settings, unreachable);
      return { node, failures: 0, coolUntilMs: 0 };
    });
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
      const given = calling?.deadlineMs;
      const durationMs = given === undefined ? this.deadlineMs : checkDeadline(given);
      // A call hands the request only to its own operation and gives what that one settles with.
      const erased = operation as unknown as Operation<unknown, unknown, unknown>;
      const settle = resolve as (value: unknown) => void;
      const call = new Call(this, erased, request, calling, durationMs, settle, reject);
      this.deadlines.add(call);
      call.begin();
    });
  }

  async pause(ms: number, signal?: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const cancelled = (): void => stop.abort(signal?.reason);
    if (this.closed) stop.abort(new ClosedError());
    if (signal?.aborted === true) cancelled();
    signal?.addEventListener("abort", cancelled);
    this.pauses.add(stop);
    try {
      await pause(ms, stop.signal);
    } finally {
      this.pauses.delete(stop);
      signal?.removeEventListener("abort", cancelled);
    }
  }

  dispatch(attempt: Try, avoid: number): number {
    const at = this.choose(avoid);
    (this.places[at] as Place).node.send(attempt);
    return at;
  }

  /** The preferred endpoint, or the next one after `avoid`; cooling ones only when all are. */
  private choose(avoid: number): number {
    const { places } = this;
    if (places.length === 1) return 0;
    const first = avoid < 0 ? this.preferred : avoid + 1;
    const nowMs = performance.now();
    let best = first % places.length;
    for (let step = 0; step < places.length; step++) {
      const at = (first + step) % places.length;
      const place = places[at] as Place;
      if (place.coolUntilMs <= nowMs) return at;
      if (place.coolUntilMs < (places[best] as Place).coolUntilMs) best = at;
    }
    return best;
  }

  worked(endpoint: number): void {
    const place = this.places[endpoint] as Place;
    if (place.failures === 0) return;
    place.failures = 0;
    place.coolUntilMs = 0;
  }

  private unreachable(at: number): void {
    const place = this.places[at] as Place;
    const ceilingMs = Math.min(COOLING_LAST_MS, COOLING_FIRST_MS * 2 ** place.failures);
    place.failures = Math.min(place.failures + 1, 16);
    place.coolUntilMs = performance.now() + ceilingMs * (0.5 + Math.random() / 2);
    if (this.preferred === at) this.preferred = (at + 1) % this.places.length;
  }

  suspect(endpoint: number, attempt: Try): void {
    (this.places[endpoint] as Place).node.suspect(attempt);
  }

  ended(call: Expiring): void {
    this.deadlines.remove(call);
  }

  nowMs(): number {
    return this.clock.nowMs();
  }

  /** Ends everything; calls under way reject with ClosedError. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const stop of this.pauses) stop.abort(new ClosedError());
    this.deadlines.close();
    await Promise.all(this.places.map(({ node }) => node.close()));
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
