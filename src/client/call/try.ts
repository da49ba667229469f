/**
 * What a call, the engine and the transports say to each other. Types only.
 *
 * Invariants: 1. A try is answered or fails at most once; what comes later is ignored. 2. `left` is
 * set before the first byte may leave, never after.
 */
import type { Expiring } from "../time/deadlines.js";
import type { ClientPlatform } from "../time/platform.js";
import type { SvcError } from "../values/errors.js";
import type { Endpoint } from "../values/options.js";
import type { Operation } from "./operation.js";
import type { RouteHint } from "./route-hint.js";
import type { WatchLink, WatchListener } from "./watch-link.js";

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
  /** Set by transports that can: has the server end its wait. The try is answered all the same. */
  cancelWait: (() => void) | null;
  /** `hint`: what the answer says about the target of its object. */
  answered(answer: unknown, hint: RouteHint | null): void;
  failed(error: SvcError): void;
}

/** One endpoint as the engine uses it, whatever the wire. */
export interface TransportNode {
  /** Whether a request would leave at once. */
  readonly ready: boolean;
  /** Makes connections that do not stand yet. */
  warm(): void;
  send(attempt: Try): void;
  /** Asks for a watch with the message `first`; null: this wire has no such streams. */
  watch(first: Uint8Array, listener: WatchListener): WatchLink | null;
  /** A try got no answer in its time: look after the connection that it went to. */
  suspect(attempt: Try): void;
  /** Resolves when its connections are gone; never rejects. */
  close(): Promise<void>;
}

/** One endpoint. */
export interface Target {
  readonly endpoint: Endpoint;
  readonly node: TransportNode;
  readonly configured: boolean;
  failures: number;
  coolUntilMs: number;
  hinted: boolean;
  /** How the node behind it calls itself, once it executed something here. */
  name: string | null;
  /** Different nodes answer here (a balancer): nothing follows from what one of them says. */
  many: boolean;
}

/** What a call needs from the engine. */
export interface CallHost {
  readonly platform: ClientPlatform;
  /** How many targets could be asked. */
  readonly targetCount: number;
  /** Calls end when the only target refuses connections. */
  readonly failWhenRefused: boolean;
  /**
   * Hands a try to a target and returns it. `last`: the one that was tried last; `stay`: it may be
   * that one again.
   */
  dispatch(attempt: Try, last: Target | null, stay: boolean): Target;
  /** The target decided about the try. */
  answered(target: Target, attempt: Try, hint: RouteHint | null): void;
  /** The target asked to try again. */
  refused(target: Target, attempt: Try): void;
  /** Somebody in a hurry got no answer: that says little about the target. */
  unanswered(attempt: Try): void;
  /** The target could not be reached, or gave no answer. */
  failed(target: Target): void;
  /** The target did not answer this try in time. */
  suspect(target: Target, attempt: Try): void;
  /** Begins to watch the call for `durationMs`, instead of as before. */
  watch(call: Expiring, durationMs: number): void;
  ended(call: Expiring): void;
  /** The clock of leases (ms). */
  nowMs(): number;
}
