/**
 * The peer listener: accepts connections of other nodes and gives each lane and each call to who
 * answers it.
 *
 * Serves nothing but what is in proto/peer.proto. Invariants: 1. Connections, streams, headers
 * and the time until the handshake is through are bounded. 2. With credentials, nobody speaks here
 * without a certificate of the peers' CA, as it is at the handshake. 3. A newer lane of a node
 * replaces the older one of the same name. 4. After `close` nothing of ours is open.
 */
import {
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import {
  createServer as createPlainServer,
  type AddressInfo,
  type Server,
  type Socket,
} from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { EMPTY_BYTES } from "../base/bytes.js";
import { TLS_HANDSHAKE_TIMEOUT_MS } from "../base/limits.js";
import { failure, ok, type Result } from "../base/result.js";
import type { TimerHandle } from "../ports.js";
import type { PeerCredentials } from "./credentials.js";
import {
  CHALLENGE_PATH,
  CONNECTION_MEMORY_MB,
  CONNECTION_WINDOW_BYTES,
  GRPC_CONTENT_TYPE,
  IDENTIFY_PATH,
  JOIN_PATH,
  LINK_PATH,
  PEER_HTTP2_SETTINGS,
  secretsOf,
} from "./dial.js";
import { InboundLane, type InboundOwner } from "./inbound.js";
import type { PeerNetworkPorts, PeerNetworkSettings } from "./settings.js";
import { answerQuestion, type UnaryOwner } from "./unary.js";
import {
  LANE_OPENING,
  OpeningReader,
  type InboundWire,
  wireOfSocket,
  wireOfStream,
} from "./wire.js";

export interface ListenerOwner extends Omit<
  InboundOwner,
  "opened" | "ended" | "nowMs" | "credentials"
> {
  joinAsked: UnaryOwner["joinAsked"];
  identity: UnaryOwner["identity"];
  /** Who this node is can be told. */
  readonly isKnown: boolean;
  /** A lane of a node was admitted; `source` is the address that it comes from. */
  heardOf(nodeId: number, source: string | null, endpoint: string): void;
  /** The lane of a node on which it answers calls ended, or was replaced. */
  answersLost(nodeId: number): void;
}

const QUESTION_PATHS: readonly string[] = [CHALLENGE_PATH, JOIN_PATH, IDENTIFY_PATH];
const STATUS_UNIMPLEMENTED = "12";
/** A session ends after so many streams that were refused, or frames that were malformed. */
const TOLERATED_FAULTS = 16;

export class PeerListener implements InboundOwner {
  private readonly server: Server;
  /** Gets the connections that begin as HTTP/2 does. */
  private readonly http2: Http2Server;
  private readonly sockets = new Set<Socket>();
  private readonly lanes = new Set<InboundLane>();
  /** Connections without an admitted lane, with the time that they have left. */
  private readonly expected = new Map<Socket | ServerHttp2Session, TimerHandle>();
  private silenceTimer: TimerHandle | null = null;
  private isClosed = false;
  private readonly unary: UnaryOwner;

  constructor(
    private readonly settings: PeerNetworkSettings,
    private readonly ports: PeerNetworkPorts,
    private readonly owner: ListenerOwner,
  ) {
    this.http2 = this.makeHttp2();
    this.server = this.makeServer();
    this.unary = {
      credentials: ports.credentials,
      timer: ports.timer,
      joinWithinMs: settings.joinWithinMs,
      identity: () => owner.identity(),
      joinAsked: (request, answer) => owner.joinAsked(request, answer),
    };
  }

  /** `done` gets the bound port, or why there is none. */
  listen(done: (result: Result<number, "cannot-listen">) => void): void {
    const { server } = this;
    const { host, port } = this.settings;
    const refused = (error: Error): void => done(failure("cannot-listen", error.message));
    server.once("error", refused);
    server.listen({ port, host }, () => {
      server.removeListener("error", refused);
      server.on("error", (error: Error) => {
        this.ports.logger.log("error", "The peer listener failed.", { error: error.message });
      });
      this.silenceTimer = this.ports.timer.after(this.settings.inboundSilenceMs, this.endSilent);
      done(ok((server.address() as AddressInfo).port));
    });
  }

  /**
   * Handshakes from now on are made with what `settings.tls` says now. No session of before is
   * resumed: the keys of its tickets are gone.
   */
  renew(): void {
    const tls = this.settings.tls();
    if (tls !== null) (this.server as TlsServer).setSecureContext(secretsOf(tls));
  }

  /** Nodes with an admitted lane that began before `timeMs`. */
  heardBefore(timeMs: number): readonly number[] {
    return [...this.lanes].filter((lane) => lane.beganBefore(timeMs)).map((lane) => lane.nodeId);
  }

  /** Ends the lanes of a node; it may come again, and is judged again. */
  letGo(nodeId: number): void {
    for (const lane of [...this.lanes]) if (lane.nodeId === nodeId) lane.end();
  }

  close(done: () => void): void {
    this.isClosed = true;
    this.silenceTimer?.cancel();
    for (const lane of [...this.lanes]) lane.end();
    for (const socket of this.sockets) socket.destroy();
    if (this.server.listening) this.server.close(() => done());
    else this.ports.timer.soon(done);
  }

  get credentials(): PeerCredentials {
    return this.ports.credentials;
  }

  get isServing(): boolean {
    return this.owner.isServing;
  }

  hello(): ReturnType<InboundOwner["hello"]> {
    return this.owner.hello();
  }

  judge(hello: Parameters<InboundOwner["judge"]>[0]): ReturnType<InboundOwner["judge"]> {
    return this.owner.judge(hello);
  }

  admit(hello: Parameters<InboundOwner["admit"]>[0]): ReturnType<InboundOwner["admit"]> {
    return this.owner.admit(hello);
  }

  refused(...note: Parameters<InboundOwner["refused"]>): void {
    this.owner.refused(...note);
  }

  frame(...frame: Parameters<InboundOwner["frame"]>): void {
    this.owner.frame(...frame);
  }

  nowMs(): number {
    return this.ports.clock.monotonicMs();
  }

  opened(lane: InboundLane): void {
    const { connection } = lane.wire;
    if (connection !== undefined) this.expected.get(connection)?.cancel();
    for (const other of [...this.lanes]) {
      const isOlder = other !== lane && other.isOpen && other.lane === lane.lane;
      if (isOlder && other.nodeId === lane.nodeId) other.end();
    }
    this.owner.heardOf(lane.nodeId, lane.source, lane.endpoint);
  }

  ended(lane: InboundLane, wasOpen: boolean): void {
    this.lanes.delete(lane);
    if (wasOpen && lane.lane === "calls") this.owner.answersLost(lane.nodeId);
  }

  private makeHttp2(): Http2Server {
    const server = createHttp2Server({
      settings: { ...PEER_HTTP2_SETTINGS },
      maxSessionMemory: CONNECTION_MEMORY_MB,
      maxSessionInvalidFrames: TOLERATED_FAULTS,
      maxSessionRejectedStreams: TOLERATED_FAULTS,
    });
    server.on("session", (session) => this.watch(session));
    server.on("stream", (stream, headers) => this.takeStream(stream, headers));
    // Whoever does not speak HTTP/2 fails alone.
    server.on("sessionError", () => undefined);
    return server;
  }

  private makeServer(): Server {
    const tls = this.settings.tls();
    const server =
      tls === null
        ? createPlainServer((socket) => this.meet(socket))
        : createTlsServer(
            {
              ...secretsOf(tls),
              requestCert: true,
              rejectUnauthorized: true,
              ALPNProtocols: ["h2"],
              handshakeTimeout: Math.min(this.settings.handshakeWithinMs, TLS_HANDSHAKE_TIMEOUT_MS),
            },
            (socket) => this.meet(socket),
          );
    server.maxConnections = this.settings.connectionsMax;
    // Before anything is made of it.
    server.prependListener("connection", (socket: Socket) => this.accept(socket));
    // Whoever shows no certificate fails alone.
    server.on("tlsClientError", (error: Error) => {
      this.ports.logger.log("debug", "A TLS handshake failed.", { error: error.message });
    });
    return server;
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.once("close", () => this.sockets.delete(socket));
    if (this.isClosed || !this.owner.isKnown) socket.destroy();
  }

  /** A connection that may say something now: what that is tells who takes it. */
  private meet(socket: Socket): void {
    if (socket.destroyed) return;
    socket.on("error", () => undefined);
    socket.once("close", () => this.forget(socket));
    this.expect(socket, this.settings.handshakeWithinMs);
    const opening = new OpeningReader();
    const read = (piece: Buffer): void => {
      const opened = opening.push(piece);
      if (opened === "short") return;
      socket.off("data", read);
      if (opened === "lane") {
        socket.write(LANE_OPENING);
        return this.takeLane(wireOfSocket(socket), opening.rest);
      }
      if (opened === "broken") return void socket.destroy();
      socket.pause();
      this.forget(socket);
      socket.unshift(piece);
      this.http2.emit("connection", socket);
    };
    socket.on("data", read);
  }

  private takeLane(wire: InboundWire, first: Uint8Array = EMPTY_BYTES): void {
    const lane = new InboundLane(wire, this);
    this.lanes.add(lane);
    lane.read(first);
  }

  private watch(session: ServerHttp2Session): void {
    session.on("error", () => undefined);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    this.expect(session, this.settings.handshakeWithinMs);
    session.once("close", () => this.forget(session));
  }

  /** Ends a connection that is not admitted by then. */
  private expect(connection: Socket | ServerHttp2Session, withinMs: number): void {
    this.expected.get(connection)?.cancel();
    this.expected.set(
      connection,
      this.ports.timer.after(withinMs, () => connection.destroy()),
    );
  }

  private forget(connection: Socket | ServerHttp2Session): void {
    this.expected.get(connection)?.cancel();
    this.expected.delete(connection);
  }

  private takeStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on("error", () => undefined);
    const session = stream.session as ServerHttp2Session | undefined;
    if (stream.destroyed || session === undefined) return;
    const path = headers[":path"] ?? "";
    const type = headers["content-type"];
    const isGrpc = typeof type === "string" && type.startsWith(GRPC_CONTENT_TYPE);
    if (!isGrpc || headers[":method"] !== "POST") {
      stream.respond({ ":status": 415 }, { endStream: true });
    } else if (path === LINK_PATH) {
      this.takeLane(wireOfStream(stream));
    } else if (QUESTION_PATHS.includes(path)) {
      this.expect(session, this.settings.joinWithinMs + this.settings.handshakeWithinMs);
      answerQuestion(stream, path, this.unary);
    } else {
      const answer = { ":status": 200, "content-type": GRPC_CONTENT_TYPE };
      const reason = { "grpc-status": STATUS_UNIMPLEMENTED, "grpc-message": "unknown method" };
      stream.respond({ ...answer, ...reason }, { endStream: true });
    }
  }

  private readonly endSilent = (): void => {
    const { inboundSilenceMs } = this.settings;
    const nowMs = this.nowMs();
    for (const lane of [...this.lanes]) if (nowMs - lane.heardMs >= inboundSilenceMs) lane.end();
    this.silenceTimer = this.ports.timer.after(inboundSilenceMs / 3, this.endSilent);
  };
}
