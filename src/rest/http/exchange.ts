/**
 * One request and its one answer.
 *
 * Owns the response object from the moment the request was routed. Invariants: 1. Exactly one
 * answer is written, or the exchange is abandoned because the client went away. 2. The server's
 * count of requests in progress goes up when an exchange is made and down when it ends, on every
 * path. 3. Headers are written in one call together with the body, so that a short answer is one
 * packet.
 */
import type { IncomingMessage } from "node:http";
import { assert } from "../../base/assert.js";
import type { UnsentBytes } from "../../base/unsent.js";
import type { CallerName, Refusal, RequestContext } from "../../operations/api/requests.js";
import { traceOf } from "../../operations/api/tracing.js";
import { type BrowserRules, sharingHeaders } from "./browsers.js";
import { type Access, type Authenticator, checkAccess } from "./access.js";
import { LastingResponse, type LastingOwner, type PieceSink } from "./lasting.js";
import type { UnsentAnswers } from "./unsent.js";
import { type Clash, type ProblemCode, problemText } from "./problems.js";

/** The part of a response that HTTP/1 and HTTP/2 have in common. */
export interface ResponseSink extends PieceSink {
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): unknown;
  end(text?: string | Buffer): unknown;
  destroy(): unknown;
}

/** Told about every answer of this front end. */
export interface RestObserver {
  /** `path`: the path of the route; "" when there is none. */
  answered(path: string, status: number, durationMs: number): void;
  /** No or wrong credentials. */
  unauthenticated(isSecure: boolean): void;
}

/** What all exchanges of a server share. */
export interface ServerState {
  readonly monotonicMs: () => number;
  readonly requestTimeoutMs: number;
  readonly observer: RestObserver | null;
  readonly unsent: UnsentAnswers;
  readonly browsers: BrowserRules;
  /** null = every caller is admin. */
  readonly authenticator: Authenticator | null;
  /** What is to end when the server drains, although nothing asked it to. */
  readonly lasting: Set<() => void>;
  /** Shutting down: answers ask the client to close the connection. */
  draining: boolean;
  /** Exchanges without an answer. */
  inFlight: number;
  /** Of these, requests whose body has not arrived: nothing was begun for them. */
  readonly receiving: Set<Exchange>;
  /** Called when the last exchange in progress ended. */
  onIdle: (() => void) | null;
}

export type ExtraHeaders = Readonly<Record<string, string>>;

const NOBODY: CallerName = { name: "", rate: null };
const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";
export const EVENT_STREAM_TYPE = "text/event-stream";
export const TEXT_TYPE = "text/plain; charset=utf-8";
const RETRY_AFTER_SECONDS = "1";
const HOPS = /^[0-9]{1,9}$/;

const REFUSAL_DETAILS: Readonly<Record<Refusal, string>> = {
  overloaded: "too many requests are in progress; the request had no effect, repeat it later",
  "not-initialized": "the node does not know its cluster yet; the request had no effect",
  "shutting-down": "the node is stopping; the request had no effect, repeat it at another node",
  "not-available-at-level":
    "the cluster is at a lower level than this needs; the request had no effect: finalize the upgrade first",
};

export class Exchange {
  readonly raw: IncomingMessage;
  readonly requestId: string;
  /** Path of the route, "" when there is none. */
  readonly path: string;
  /** The variable part of the path, on routes that have one. */
  pathId = "";
  /** Told the status of the answer; 499 when the client went away. */
  whenEnded: ((status: number) => void) | null = null;
  /** Who sent it, once that is known. */
  caller: CallerName = NOBODY;
  /** When the request had arrived whole; until then, when it was routed. */
  private startedMs: number;
  private readonly sink: ResponseSink;
  private readonly state: ServerState;
  private ended = false;
  private arrived = false;

  constructor(
    raw: IncomingMessage,
    sink: ResponseSink,
    path: string,
    requestId: string,
    state: ServerState,
  ) {
    this.raw = raw;
    this.sink = sink;
    this.path = path;
    this.requestId = requestId;
    this.state = state;
    this.startedMs = state.monotonicMs();
    state.inFlight++;
    state.receiving.add(this);
  }

  get isHttp2(): boolean {
    return this.raw.httpVersionMajor >= 2;
  }

  get hasEnded(): boolean {
    return this.ended;
  }

  /** The body is here: from now on it is the server that takes time. */
  received(): void {
    this.startedMs = this.state.monotonicMs();
    this.arrive();
  }

  /** True when so many answers wait for their clients that nothing new is to be begun. */
  get isOverloaded(): boolean {
    return this.state.unsent.isFull;
  }

  /** Counts what waits for clients, over all front ends. */
  get unsent(): UnsentBytes {
    return this.state.unsent.count;
  }

  /** False when so large an answer would be one too many that waits for its client. */
  admits(characters: number): boolean {
    return this.state.unsent.admits(characters);
  }

  /** Milliseconds of handling, as an int32. */
  elapsedMs(): number {
    return Math.max(0, Math.round(this.state.monotonicMs() - this.startedMs));
  }

  /**
   * The context that goes down with a request; `timeoutMs` defaults to the bound of data requests.
   */
  context(timeoutMs: number = this.state.requestTimeoutMs): RequestContext {
    const { "svc-forwarded": forwarded, traceparent } = this.raw.headers;
    return {
      deadlineMs: this.startedMs + timeoutMs,
      forwardHops:
        typeof forwarded === "string" && HOPS.test(forwarded) ? Number.parseInt(forwarded, 10) : 0,
      requestId: this.requestId,
      caller: this.caller,
      trace: traceOf(traceparent as string | undefined),
    };
  }

  /** Whether the caller may still do what `access` is needed for: credentials can be taken back. */
  isStillPermitted(access: Access): boolean {
    const { authenticator } = this.state;
    return checkAccess(this.raw, access, authenticator).verdict === "permitted";
  }

  /** Has `end` called when the server drains, unless the returned function was called before. */
  whenDraining(end: () => void): () => void {
    const { lasting } = this.state;
    lasting.add(end);
    return () => void lasting.delete(end);
  }

  /** Begins an answer that goes on; over with `lasted`. */
  last(type: string, owner: LastingOwner): LastingResponse {
    assert(!this.ended, "a request is answered once");
    const headers: Record<string, string | number> = {
      "content-type": type,
      "cache-control": "no-store",
      // Proxies that gather answers would keep it for ever.
      "x-accel-buffering": "no",
      "x-request-id": this.requestId,
    };
    const { raw, state, sink } = this;
    if (raw.headers.origin !== undefined) {
      Object.assign(headers, sharingHeaders(raw, state.browsers));
    }
    sink.writeHead(200, headers);
    return new LastingResponse(sink, state.unsent.count, owner);
  }

  /** An answer that went on is over. */
  lasted(): void {
    if (!this.ended) this.finish(200);
  }

  /** Has `callback` called if the client goes away before its answer. */
  whenGone(callback: () => void): void {
    this.sink.once("close", () => {
      if (!this.ended) callback();
    });
  }

  private arrive(): void {
    if (!this.arrived) this.state.receiving.delete(this);
    this.arrived = true;
  }

  private finish(status: number): void {
    this.whenEnded?.(status);
    this.arrive();
    const state = this.state;
    this.ended = true;
    state.inFlight--;
    state.observer?.answered(this.path, status, state.monotonicMs() - this.startedMs);
    if (state.inFlight === state.receiving.size) state.onIdle?.();
  }

  private head(
    status: number,
    type: string,
    text: string | Buffer,
    extra: ExtraHeaders | null,
    close: boolean,
  ): void {
    assert(!this.ended, "a request is answered once");
    const headers: Record<string, string | number> = {
      "content-type": type,
      "content-length": Buffer.byteLength(text),
      "x-request-id": this.requestId,
    };
    const { raw, state } = this;
    if (raw.headers.origin !== undefined) {
      Object.assign(headers, sharingHeaders(raw, state.browsers));
    }
    if (extra !== null) Object.assign(headers, extra);
    if (close && !this.isHttp2) headers["connection"] = "close";
    this.sink.writeHead(status, headers);
  }

  /** Answers with `text`. */
  send(
    status: number,
    type: string,
    text: string | Buffer,
    extra: ExtraHeaders | null = null,
  ): void {
    this.head(status, type, text, extra, this.state.draining);
    this.state.unsent.track(this.sink, text.length);
    if (this.raw.method === "HEAD") this.sink.end();
    else this.sink.end(text);
    this.finish(status);
  }

  /** Answers without a body. */
  empty(status: number, extra: ExtraHeaders): void {
    assert(!this.ended, "a request is answered once");
    this.sink.writeHead(status, { "x-request-id": this.requestId, ...extra });
    this.sink.end();
    this.finish(status);
  }

  json(status: number, text: string | Buffer): void {
    this.send(status, JSON_TYPE, text);
  }

  problem(
    status: number,
    code: ProblemCode,
    detail: string,
    extra: ExtraHeaders | null = null,
    own: string | null = null,
    clash: Clash = "none",
  ): void {
    this.send(status, PROBLEM_TYPE, problemText(status, code, detail, own, clash), extra);
  }

  /** For a request that was turned away before anything was done. */
  refusal(refusal: Refusal, own: string | null, clash: Clash): void {
    const detail = REFUSAL_DETAILS[refusal];
    if (refusal === "not-available-at-level") {
      return this.problem(409, refusal, detail, null, own, clash);
    }
    this.problem(503, refusal, detail, { "retry-after": RETRY_AFTER_SECONDS }, own, clash);
  }

  /**
   * Answers a request whose body will not be read to its end. The answer goes out at once, but the
   * connection is only closed when `ready` calls back: closing it on a client that still sends
   * would destroy the answer on its way.
   */
  refuseBody(
    status: number,
    code: ProblemCode,
    detail: string,
    ready: (close: () => void) => void,
  ): void {
    const text = problemText(status, code, detail);
    this.head(status, PROBLEM_TYPE, text, null, true);
    this.sink.write(text);
    ready(() => this.sink.end());
    this.finish(status);
  }

  /** How long the handling of a request takes that may wait so long (ms). */
  boundMs(waitMs: number): number {
    return this.state.requestTimeoutMs + waitMs;
  }

  /** The client went away before it had sent its request. */
  abandon(): void {
    if (!this.ended) this.finish(499);
  }
}
