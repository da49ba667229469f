/**
 * One listening socket: its connections, its bounds, and how it comes to an end.
 *
 * Owns the node server, its sockets and its HTTP/2 sessions. Invariants: 1. A connection beyond the
 * budget is closed at accept. 2. Headers, handshakes, idle connections and silent HTTP/2 peers all
 * run into a bound. 3. After `close` no new request is accepted, and at its deadline every
 * connection is destroyed.
 */
import type { IncomingMessage, Server as HttpServer, ServerResponse } from "node:http";
import { STATUS_CODES } from "node:http";
import { constants, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { ConnectionBudget, ListenerName } from "../../base/connections.js";
import {
  HTTP_HEADERS_TIMEOUT_MS,
  HTTP_KEEP_ALIVE_MS,
  HTTP_PING_TIMEOUT_MS,
  HTTP_REQUEST_TIMEOUT_MS,
  HTTP_SESSION_IDLE_MS,
  HTTP_SILENCE_MS,
} from "../../base/limits.js";
import { limitResets } from "../../base/resets.js";
import { type ProblemCode, problemText } from "./problems.js";

/** How long a client may take to send (ms). */
export interface SendingTimes {
  /** Request line and headers. */
  readonly headersMs: number;
  /** A whole request, body included. */
  readonly requestMs: number;
  /** How often the two are checked. */
  readonly checkMs: number;
  /** Nothing moves on a connection, and nothing is owed on it. */
  readonly silenceMs: number;
}
export const SENDING_TIMES: SendingTimes = {
  headersMs: HTTP_HEADERS_TIMEOUT_MS,
  requestMs: HTTP_REQUEST_TIMEOUT_MS,
  checkMs: 2000,
  silenceMs: HTTP_SILENCE_MS,
};
const FLUSH_POLL_MS = 20;

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The bounds that both kinds of server honour, though only one declares them. */
interface Bounds {
  headersTimeout: number;
  requestTimeout: number;
  keepAliveTimeout: number;
  timeout: number;
  connectionsCheckingInterval: number;
}

const LATE_CODES: ReadonlySet<string | undefined> = new Set([
  "ERR_HTTP_REQUEST_TIMEOUT",
  "ERR_TLS_HANDSHAKE_TIMEOUT",
]);

/** Answers what is not even HTTP, on the bare socket. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  let status = 400;
  let code: ProblemCode = "malformed-http";
  if (error.code === "HPE_HEADER_OVERFLOW") [status, code] = [431, "headers-too-large"];
  // A handshake that ended too late for this node has ended for its client, which reads this.
  if (LATE_CODES.has(error.code)) [status, code] = [408, "request-timeout"];
  const text = problemText(status, code, "the connection is closed");
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n` +
      `Content-Type: application/problem+json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  );
  // The peer may go on sending; reading nothing more, the socket ends when the answer is out.
  socket.destroySoon();
}

function peerOf(socket: Socket): string {
  return `${socket.remoteAddress ?? ""} ${socket.remotePort ?? 0}`;
}

export class Listener {
  private readonly server: HttpServer | Http2SecureServer;
  private readonly name: ListenerName;
  private readonly budget: ConnectionBudget;
  /** The sockets that HTTP is spoken on: TLS sockets on a TLS listener. */
  private readonly sockets = new Set<Socket>();
  /** The sockets that were accepted: below the former on a TLS listener, else the same. */
  private readonly accepted = new Set<Socket>();
  /** Sockets whose TLS handshake is not done, by the address of the peer. */
  private readonly greeting = new Map<string, Socket>();
  private readonly sessions = new Set<ServerHttp2Session>();
  /** Answers of HTTP/1 connections that are not sent. */
  private readonly owed = new WeakMap<Socket, Set<ServerResponse>>();
  private closing = false;

  constructor(
    server: HttpServer | Http2SecureServer,
    budget: ConnectionBudget,
    times: SendingTimes,
  ) {
    this.server = server;
    // A TLS server can change its certificate.
    this.name = "setSecureContext" in server ? "https" : "http";
    this.budget = budget;
    // Node honours these on its HTTP/2 server too, for the HTTP/1 connections that it accepts.
    const bounds = server as unknown as Bounds;
    bounds.headersTimeout = times.headersMs;
    bounds.requestTimeout = times.requestMs;
    bounds.keepAliveTimeout = HTTP_KEEP_ALIVE_MS;
    bounds.connectionsCheckingInterval = times.checkMs;
    bounds.timeout = times.silenceMs;
    server.on("connection", (socket: Socket) => this.accept(socket));
    server.on("secureConnection", (socket: TLSSocket) => this.track(socket));
    server.on("clientError", answerClientError);
    server.on("session", (session: ServerHttp2Session) => this.addSession(session));
    server.on("sessionError", () => undefined);
    // HTTP/2 sessions are reported here too; they have a rule of their own below.
    server.on("timeout", (subject: object) => {
      if (this.sockets.has(subject as Socket)) this.silent(subject as Socket, times.silenceMs);
    });
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      if (request.httpVersionMajor === 1) this.owe(request.socket, response);
    });
  }

  /** Starts listening; resolves to the port. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen({ host, port, backlog: 1024 }, () => {
        this.server.removeListener("error", reject);
        // A refused accept (no descriptors left) concerns one connection, not the listener.
        this.server.on("error", () => undefined);
        resolve((this.server.address() as AddressInfo).port);
      });
    });
  }

  private accept(socket: Socket): void {
    if (this.closing || !this.budget.enter(this.name, socket)) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    socket.setKeepAlive(true, HTTP_PING_TIMEOUT_MS);
    this.accepted.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      this.accepted.delete(socket);
      this.budget.leave(this.name, socket);
    });
    if (this.name === "http") this.track(socket);
    else {
      const peer = peerOf(socket);
      this.greeting.set(peer, socket);
      socket.once("close", () => this.greeting.delete(peer));
    }
  }

  /** Until it begins, an answer is owed on the connection. */
  private owe(socket: Socket, response: ServerResponse): void {
    const owed = this.owed.get(socket) ?? new Set();
    this.owed.set(socket, owed.add(response));
    response.once("close", () => owed.delete(response));
  }

  /** A call takes as long as it may: whether its caller is there, TCP finds out. */
  private silent(socket: Socket, silenceMs: number): void {
    const isOwed = [...(this.owed.get(socket) ?? [])].some(({ headersSent }) => !headersSent);
    if (isOwed) socket.setTimeout(silenceMs);
    else socket.destroy();
  }

  private track(socket: Socket): void {
    this.greeting.delete(peerOf(socket));
    this.sockets.add(socket);
    socket.once("close", () => this.sockets.delete(socket));
  }

  private addSession(session: ServerHttp2Session): void {
    let streams = 0;
    this.sessions.add(session);
    session.once("close", () => this.sessions.delete(session));
    session.on("error", () => session.destroy());
    const nowMs = (): number => performance.now();
    limitResets(session, nowMs, () => {
      this.budget.endedForResets();
      setImmediate(() => {
        if (session.destroyed) return;
        session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
        session.destroy();
      });
    });
    session.on("stream", (stream) => {
      streams++;
      stream.once("close", () => streams--);
    });
    const check = (): void => {
      if (session.destroyed) return;
      session.setTimeout(HTTP_SESSION_IDLE_MS, check);
      if (streams === 0) {
        session.close();
        return;
      }
      const timer = setTimeout(() => session.destroy(), HTTP_PING_TIMEOUT_MS);
      timer.unref();
      session.ping(() => clearTimeout(timer));
    };
    session.setTimeout(HTTP_SESSION_IDLE_MS, check);
  }

  /** Stops accepting and tells HTTP/2 peers to go; answers in progress still go out. */
  drain(): void {
    if (this.closing) return;
    this.closing = true;
    this.server.close();
    for (const session of this.sessions) if (!session.destroyed) session.close();
    if ("closeIdleConnections" in this.server) this.server.closeIdleConnections();
  }

  /**
   * After `drain`, when no request is in progress: ends the connections that have nothing to send
   * any more. Resolves when all are gone; destroys what is left after `graceMs`.
   */
  async close(graceMs: number): Promise<void> {
    this.drain();
    // Who has not even greeted has nothing to be answered.
    for (const socket of this.greeting.values()) socket.destroy();
    const started = performance.now();
    while (this.accepted.size > 0 && performance.now() - started < graceMs) {
      for (const socket of this.sockets) {
        // An HTTP/2 socket ends with its session, which ends with its last stream.
        if ((socket as Partial<TLSSocket>).alpnProtocol !== "h2") socket.destroySoon();
      }
      await new Promise((resolve) => setTimeout(resolve, FLUSH_POLL_MS));
    }
    for (const session of this.sessions) session.destroy();
    for (const socket of this.accepted) socket.destroy();
  }
}
