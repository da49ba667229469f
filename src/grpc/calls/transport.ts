/**
 * What is below gRPC on both ports: the cleartext listener with its own HTTP/2, and the streams
 * that the HTTPS port hands over; deadlines, liveness, the orderly end.
 *
 * Owns the cleartext listener, its connections and the set of open calls. It does not know what
 * calls mean. Invariants: 1. A connection that does not answer a probe in time is destroyed, so
 * that half-open ones do not stay. 2. A call is given up at its deadline, within DEADLINE_ROUND_MS;
 * one timer serves them all. 3. After `close` nothing of ours is open.
 */
import type { Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { ConnectionBudget } from "../../base/connections.js";
import type { Call, CallDesk } from "../h2/call.js";
import { Connection } from "../h2/connection.js";
import type { ConnectionOwner } from "../h2/owner.js";
import { Status } from "../h2/constants.js";
import { failureOf } from "../h2/failure.js";
import { type Http2Call, openHttp2Call } from "./http2-call.js";

export interface TransportOptions {
  readonly connections: ConnectionBudget;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
}

/** Receive window of a whole connection of the HTTPS port (bytes). */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
/** Open calls are looked at for their deadlines this often (ms). */
const DEADLINE_ROUND_MS = 50;
/** At the end, sockets get this long for their last bytes (ms). */
const LAST_BYTES_MS = 500;
/** At the end, calls that need no more are looked for this often (ms). */
const ANSWERED_POLL_MS = 20;

const EXPIRED = failureOf(Status.DEADLINE_EXCEEDED, "the deadline of the call has passed");
const STOPPING = failureOf(
  Status.UNAVAILABLE,
  "the node is stopping; the call had no effect, repeat it at another node",
);

interface Watched {
  probeSentMs: number;
  answered: boolean;
}

export class Transport implements ConnectionOwner {
  private server: Server | null = null;
  private readonly connections = new Set<Connection>();
  /** Accepted sockets: they may be open a while longer than their connections. */
  private readonly sockets = new Set<Socket>();
  /** Sessions of the HTTPS port on which a call came, and the calls on them. */
  private readonly sessions = new Map<Http2Session, Watched>();
  private readonly shared = new Set<Http2Call>();
  private timer: NodeJS.Timeout | null = null;
  private probedMs = 0;
  private idle: (() => void) | null = null;
  private closing = false;

  constructor(
    private readonly options: TransportOptions,
    private readonly desk: CallDesk,
  ) {}

  /** Opens the cleartext listener (h2c with prior knowledge). Resolves with the bound port. */
  listen(host: string, port: number): Promise<number> {
    const server = createServer((socket) => this.accept(socket));
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

  private accept(socket: Socket): void {
    const { connections } = this.options;
    if (this.closing || !connections.enter("grpc", socket)) {
      socket.destroy();
      return;
    }
    this.sockets.add(socket);
    socket.once("close", () => {
      this.sockets.delete(socket);
      connections.leave("grpc", socket);
    });
    this.connections.add(new Connection(socket, this.desk, this));
    this.startTimer();
  }

  endedForResets(): void {
    this.options.connections.endedForResets();
  }

  gone(connection: object): void {
    this.connections.delete(connection as Connection);
    this.rests();
  }

  rests(): void {
    if (this.idle !== null && !this.hasCalls()) this.idle();
  }

  private hasCalls(): boolean {
    if (this.shared.size > 0) return true;
    for (const connection of this.connections) if (connection.callCount > 0) return true;
    return false;
  }

  private *calls(): Iterable<Call> {
    for (const connection of this.connections) yield* connection.calls;
    yield* this.shared;
  }

  /**
   * Takes a stream of the owner of the HTTPS port when it is a gRPC call; its connection is then
   * watched. False: it is not, and was not touched.
   */
  handleStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
    const type = headers["content-type"];
    if (typeof type !== "string" || !type.startsWith("application/grpc")) return false;
    const { session } = stream;
    if (session === undefined) return true;
    if (!this.sessions.has(session)) this.watch(session);
    const call = openHttp2Call(stream, headers, this.desk);
    if (call === null) return true;
    this.shared.add(call);
    call.whenGone(() => {
      this.shared.delete(call);
      this.rests();
    });
    return true;
  }

  private watch(session: Http2Session): void {
    if (session.destroyed) return;
    this.sessions.set(session, { probeSentMs: this.desk.nowMs(), answered: true });
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on("error", () => undefined);
    session.once("close", () => this.sessions.delete(session));
    this.startTimer();
  }

  private startTimer(): void {
    const { keepaliveIntervalMs, keepaliveTimeoutMs } = this.options;
    const probeMs = Math.max(10, Math.min(keepaliveIntervalMs, keepaliveTimeoutMs) / 4);
    const roundMs = Math.min(DEADLINE_ROUND_MS, probeMs);
    this.timer ??= setInterval(() => this.round(probeMs), roundMs).unref();
  }

  private round(probeMs: number): void {
    const nowMs = this.desk.nowMs();
    for (const call of this.calls()) if (call.deadlineMs <= nowMs) call.expire(EXPIRED);
    if (nowMs - this.probedMs < probeMs) return;
    this.probedMs = nowMs;
    this.probeAll(nowMs);
  }

  /** Sends the probes that are due and destroys connections whose answer is overdue. */
  private probeAll(nowMs: number): void {
    const { keepaliveIntervalMs, keepaliveTimeoutMs } = this.options;
    for (const connection of this.connections) {
      connection.probe(nowMs, keepaliveIntervalMs, keepaliveTimeoutMs);
    }
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
    for (const connection of this.connections) connection.drain();
    // What was never received whole was never accepted: the client may repeat it elsewhere.
    for (const call of [...this.calls()]) call.refuseHalfSent(STOPPING);
    await this.callsDone(graceMs);
    for (const call of [...this.calls()]) call.cut();
    for (const connection of [...this.connections]) connection.end();
    if (this.timer !== null) clearInterval(this.timer);
    for (const socket of this.sockets) socket.destroySoon();
    const cut = setTimeout(() => {
      for (const socket of this.sockets) socket.destroy();
    }, LAST_BYTES_MS);
    await listenerClosed;
    clearTimeout(cut);
  }

  /** Ends the calls that were answered to the end, whether or not their clients ever end them. */
  private closeAnswered(): void {
    for (const call of [...this.shared]) if (call.isAnswered) call.close();
  }

  private async callsDone(graceMs: number): Promise<void> {
    if (!this.hasCalls()) return;
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
