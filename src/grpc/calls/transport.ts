/**
 * HTTP/2 below gRPC: the cleartext listener, the gate that every call passes, liveness of
 * connections, the orderly end.
 *
 * Owns the cleartext server, the connections it watches and the set of open calls. It does not know
 * what calls mean. Invariants: 1. A caller's credentials are checked before the body is read. 2. A
 * connection that does not answer a probe in time is destroyed, so that half-open ones do not stay.
 * 3. A unary call cannot stay open longer than its bound: a missing or larger client deadline is
 * replaced by it. 4. After `close` nothing of ours is open.
 */
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type Http2Session,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { type Metadata, status } from "@grpc/grpc-js";
import type { ConnectionBudget } from "../../base/connections.js";
import { HEADERS_MAX_BYTES, STREAMS_PER_CONNECTION_MAX } from "../../base/limits.js";
import { limitResets } from "../../base/resets.js";
import type { AuditPort } from "../../operations/api/audit.js";
import { allows, type Authenticator, type Caller, type Role } from "./access.js";
import { boundDeadline } from "./deadline.js";
import type { CallObserver } from "./call-observer.js";
import type { CallStreams } from "./large-answers.js";
import { CALLER_ADDRESS_HEADER, CALLER_NAME_HEADER, givenRequestId } from "./runtime.js";
import { refuseCall, refuseOther } from "./refusals.js";

/** Settings of every HTTP/2 listener that serves gRPC; the HTTPS listener uses them too. */
const HTTP2_SETTINGS = {
  maxConcurrentStreams: STREAMS_PER_CONNECTION_MAX,
  initialWindowSize: 1024 * 1024,
  maxHeaderListSize: HEADERS_MAX_BYTES,
} as const;

/**
 * Receive window of a whole connection (bytes): several streams' worth, so that one does not starve
 * the others.
 */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
/** Memory that one connection may hold for headers and queued data (megabytes). */
const CONNECTION_MEMORY_MB = 64;

/** Carries the caller's role from the gate to the handlers, inside the process only. */
export const CALLER_ROLE_HEADER = "svc-caller-role";
/** Carries the number of the call, by which handlers find its stream; so too. */
const CALL_NUMBER_HEADER = "svc-call-number";

/** What a path needs. */
export interface PathRule {
  /** null: nobody needs a role. */
  readonly role: Role | null;
  /** Longest duration of a call (ms); null for streams, which may live long. */
  readonly boundMs: number | null;
  /**
   * Its handler ends the call in good order when the front end closes, although the client has not
   * said its last word. Other calls whose request never came to its end are not waited for.
   */
  readonly drains: boolean;
}

export interface TransportOptions {
  readonly authenticator: Authenticator | null;
  /** Told of refusals for who called; null = nobody is. */
  readonly audit: AuditPort | null;
  /** null = nobody is told. */
  readonly observer: CallObserver | null;
  readonly rules: ReadonlyMap<string, PathRule>;
  readonly connections: ConnectionBudget;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  /** Takes a call that passed the gate. */
  readonly handle: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
}

/** At the end, sockets get this long for their last bytes (ms). */
const LAST_BYTES_MS = 500;
/** At the end, calls that need no more are looked for this often (ms). */
const ANSWERED_POLL_MS = 20;

interface OpenCall {
  readonly stream: ServerHttp2Stream;
  readonly path: string;
  /** A call of a method that exists and has no bound. */
  readonly isLong: boolean;
}

interface Watched {
  probeSentMs: number;
  answered: boolean;
}

export class Transport implements CallStreams {
  private readonly options: TransportOptions;
  private server: Http2Server | null = null;
  private readonly sessions = new Map<Http2Session, Watched>();
  private readonly ownSessions = new Set<Http2Session>();
  /**
   * Accepted sockets: a session that has ended leaves its socket open until the peer ends it too.
   */
  private readonly sockets = new Set<Socket>();
  /** The open calls, by their numbers. */
  private readonly calls = new Map<string, OpenCall>();
  private lastCall = 0;
  private longCalls = 0;
  private timer: NodeJS.Timeout | null = null;
  private idle: (() => void) | null = null;
  private closing = false;

  constructor(options: TransportOptions) {
    this.options = options;
  }

  /** Opens the cleartext listener (h2c with prior knowledge). Resolves with the bound port. */
  listen(host: string, port: number): Promise<number> {
    const server = createServer({
      settings: HTTP2_SETTINGS,
      maxSessionMemory: CONNECTION_MEMORY_MB,
    });
    // Before the library makes a session of it.
    server.prependListener("connection", (socket: Socket) => this.admit(socket));
    server.on("session", (session) => {
      if (this.closing) {
        session.destroy();
        return;
      }
      const { connections } = this.options;
      const nowMs = (): number => performance.now();
      limitResets(session, nowMs, () => {
        connections.endedForResets();
        setImmediate(() => {
          if (session.destroyed) return;
          session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
          session.destroy();
        });
      });
      this.ownSessions.add(session);
      this.watch(session);
    });
    server.on("stream", (stream, headers) => {
      if (!this.handleStream(stream, headers)) refuseOther(stream);
    });
    // A peer that does not speak HTTP/2 makes its own session fail; there is nobody else to tell.
    server.on("sessionError", () => undefined);
    this.server = server;
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => {
        server.removeListener("error", reject);
        // A refused accept (no descriptors left) concerns one connection, not the listener.
        server.on("error", () => undefined);
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  private admit(socket: Socket): void {
    this.sockets.add(socket);
    socket.once("close", () => this.sockets.delete(socket));
    const { connections } = this.options;
    if (!connections.enter("grpc", socket)) socket.destroy();
    else socket.once("close", () => connections.leave("grpc", socket));
  }

  /**
   * Takes a stream, of this listener or of the owner of the HTTPS port, when it is a gRPC call; its
   * connection is then watched. False: it is not, and was not touched.
   */
  handleStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
    const type = headers["content-type"];
    if (typeof type !== "string" || !type.startsWith("application/grpc")) return false;
    const { session } = stream;
    if (session === undefined) return true;
    if (!this.sessions.has(session)) this.watch(session);
    const path = headers[":path"] ?? "";
    const number = (++this.lastCall).toString(36);
    // Set on every call, so that a caller cannot name the call of another.
    headers[CALL_NUMBER_HEADER] = number;
    const rule = this.options.rules.get(path);
    const call = { stream, path, isLong: rule?.boundMs === null };
    this.calls.set(number, call);
    if (call.isLong) this.options.observer?.streams(++this.longCalls);
    stream.once("close", () => this.forget(number, call));
    if (rule !== undefined) {
      const refusal = this.gate(rule, path, headers, session);
      if (refusal !== null) {
        refuseCall(stream, refusal);
        return true;
      }
    }
    this.options.handle(stream, headers);
    return true;
  }

  /** Null when the call may pass; its headers then carry what the handlers rely on. */
  private gate(
    rule: PathRule,
    path: string,
    headers: IncomingHttpHeaders,
    session: Http2Session,
  ): status | null {
    const { authenticator, audit } = this.options;
    const address = session.socket?.remoteAddress ?? "";
    let caller: Caller = { role: "admin", name: "anonymous" };
    if (authenticator !== null && rule.role !== null) {
      const known = authenticator.authenticate(headers.authorization, session.socket);
      const isKnown = known !== null;
      if (!isKnown || !allows(known.role, rule.role)) {
        const outcome = isKnown ? "PERMISSION_DENIED" : "UNAUTHENTICATED";
        const who = { caller: known?.name ?? "", role: known?.role ?? "", address };
        const requestId = givenRequestId(headers["x-request-id"]) ?? "";
        audit?.denied({ operation: path, ...who, requestId, outcome });
        if (!isKnown) this.options.observer?.unauthenticated(session.encrypted === true);
        return status[outcome];
      }
      caller = known;
    }
    // Set on every call, so that a caller cannot send a role or a name of its own.
    headers[CALLER_ROLE_HEADER] = caller.role;
    if (rule.role === "admin") {
      headers[CALLER_NAME_HEADER] = encodeURIComponent(caller.name);
      headers[CALLER_ADDRESS_HEADER] = encodeURIComponent(address);
    }
    if (rule.boundMs !== null) boundDeadline(headers, rule.boundMs);
    return null;
  }

  private streamOf(metadata: Metadata): ServerHttp2Stream | null {
    return this.calls.get(String(metadata.get(CALL_NUMBER_HEADER)[0]))?.stream ?? null;
  }

  whenClosed(metadata: Metadata, done: () => void): void {
    const stream = this.streamOf(metadata);
    if (stream === null) done();
    else stream.once("close", done);
  }

  cut(metadata: Metadata): void {
    this.streamOf(metadata)?.close(constants.NGHTTP2_CANCEL);
  }

  private forget(number: string, { stream, path, isLong }: OpenCall): void {
    this.calls.delete(number);
    const { observer, rules } = this.options;
    if (isLong) observer?.streams(--this.longCalls);
    // Paths that do not exist are no names of methods.
    if (observer !== null) observer.ended(rules.has(path) ? path : "", codeOf(stream));
    if (this.calls.size === 0) this.idle?.();
  }

  private watch(session: Http2Session): void {
    if (session.destroyed) return;
    const { keepaliveIntervalMs, keepaliveTimeoutMs } = this.options;
    this.sessions.set(session, { probeSentMs: performance.now(), answered: true });
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on("error", () => undefined);
    session.once("close", () => {
      this.sessions.delete(session);
      this.ownSessions.delete(session);
    });
    const roundMs = Math.max(10, Math.min(keepaliveIntervalMs, keepaliveTimeoutMs) / 4);
    this.timer ??= setInterval(() => this.probeAll(), roundMs).unref();
  }

  /** Sends the probes that are due and destroys connections whose answer is overdue. */
  private probeAll(): void {
    const nowMs = performance.now();
    const { keepaliveIntervalMs, keepaliveTimeoutMs } = this.options;
    for (const [session, watched] of this.sessions) {
      const sinceMs = nowMs - watched.probeSentMs;
      if (!watched.answered) {
        if (sinceMs >= keepaliveTimeoutMs) session.destroy();
      } else if (sinceMs >= keepaliveIntervalMs) {
        this.probe(session, watched, nowMs);
      }
    }
  }

  private probe(session: Http2Session, watched: Watched, nowMs: number): void {
    if (session.destroyed) return;
    watched.probeSentMs = nowMs;
    watched.answered = false;
    session.ping((error) => {
      if (error === null) watched.answered = true;
    });
  }

  /**
   * Accepts no connection and, on the cleartext port, no call any more, waits until the open calls
   * are done and after `graceMs` ends what is left. The HTTPS listener is closed by its owner.
   */
  async close(graceMs: number): Promise<void> {
    this.closing = true;
    const { server } = this;
    const listenerClosed = new Promise<void>((resolve) => {
      if (server === null) resolve();
      else server.close(() => resolve());
    });
    for (const session of this.ownSessions) session.close();
    this.refuseHalfSent();
    await this.callsDone(graceMs);
    for (const { stream } of this.calls.values()) stream.close();
    for (const session of this.ownSessions) session.destroy();
    if (this.timer !== null) clearInterval(this.timer);
    for (const socket of this.sockets) socket.destroySoon();
    const cut = setTimeout(() => {
      for (const socket of this.sockets) socket.destroy();
    }, LAST_BYTES_MS);
    await listenerClosed;
    clearTimeout(cut);
  }

  /** What was never received whole was never accepted: the client may repeat it elsewhere. */
  private refuseHalfSent(): void {
    for (const { stream, path } of this.calls.values()) {
      if (this.options.rules.get(path)?.drains === true) continue;
      if (stream.state.state !== constants.NGHTTP2_STREAM_STATE_OPEN) continue;
      // The library begins a call at the end of its request, and would take this for one.
      stream.removeAllListeners("end");
      if (!stream.headersSent) refuseCall(stream, status.UNAVAILABLE);
      stream.close(constants.NGHTTP2_NO_ERROR);
    }
  }

  /** Ends the calls that were answered to the end, whether or not their clients ever end them. */
  private closeAnswered(): void {
    for (const { stream } of this.calls.values()) {
      if (stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_LOCAL) {
        stream.close(constants.NGHTTP2_NO_ERROR);
      }
    }
  }

  private async callsDone(graceMs: number): Promise<void> {
    if (this.calls.size === 0) return;
    const poll = setInterval(() => this.closeAnswered(), ANSWERED_POLL_MS);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.idle = (): void => {
        clearTimeout(timer);
        resolve();
      };
    });
    clearInterval(poll);
  }
}

/** The status that a call ended with, as it was sent. */
function codeOf({ sentTrailers, sentHeaders }: ServerHttp2Stream): string {
  // Until something is sent there are no headers, whatever the declared types say.
  const trailers = sentTrailers as OutgoingHttpHeaders | undefined;
  const headers = sentHeaders as OutgoingHttpHeaders | undefined;
  const sent = trailers?.["grpc-status"] ?? headers?.["grpc-status"];
  return status[sent === undefined ? status.CANCELLED : Number(sent)] ?? "UNKNOWN";
}
