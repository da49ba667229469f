/**
 * Opens one connection to a node's peer endpoint: a socket for a lane, or one with HTTP/2 on it.
 *
 * Invariants: 1. Each call makes a connection of its own: nothing is pooled, so that lanes never
 * share a window (P-154). 2. No name is looked up but by `resolve`. 3. With credentials, the other
 * side's certificate must chain to the CA of the cluster's peers; its name is not compared with the
 * address: which node it is the handshake says, and `credentials` whether it may be that one. 4.
 * Destroying leaves no socket behind.
 */
import { connect as connectSession, type ClientHttp2Session } from "node:http2";
import { connect as connectPlain, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectSecure, type SecureContextOptions } from "node:tls";
import { HEADERS_MAX_BYTES, PEER_RECEIVE_MAX_BYTES } from "../base/limits.js";
import { type NameResolver, lookupBy } from "./resolve.js";
import type { PeerTls } from "./settings.js";

/** Paths of the two kinds of calls; see proto/peer.proto. */
export const LINK_PATH = "/svc.peer.v1.Peer/Link";
export const JOIN_PATH = "/svc.peer.v1.Peer/Join";
export const IDENTIFY_PATH = "/svc.peer.v1.Peer/Identify";
export const CHALLENGE_PATH = "/svc.peer.v1.Peer/Challenge";
export const GRPC_CONTENT_TYPE = "application/grpc";

/** Settings of both sides. A receiver always reads, so a window only has to cover the way. */
export const PEER_HTTP2_SETTINGS = {
  enablePush: false,
  initialWindowSize: PEER_RECEIVE_MAX_BYTES,
  maxConcurrentStreams: 4,
  maxHeaderListSize: HEADERS_MAX_BYTES,
} as const;
/** Receive window of a whole connection (bytes). */
export const CONNECTION_WINDOW_BYTES = PEER_RECEIVE_MAX_BYTES;
/** Memory that the HTTP/2 library may use for one connection (megabytes). */
export const CONNECTION_MEMORY_MB = 64;

/** Whom to call, and what is known of the way there. */
export interface DialTarget {
  readonly endpoint: string;
  /** Tries without success before this one: each begins with another of the addresses. */
  readonly attempt: number;
  /** Address that this very peer comes from; null when it is not there. */
  readonly source: string | null;
}

export interface DialOptions {
  readonly tls: PeerTls | null;
  readonly names: NameResolver;
  /** Time of the whole try; half of it is for finding the address (ms). */
  readonly withinMs: number;
}

export interface Dialled {
  readonly socket: Socket;
  /** The other side proved to be who was meant: where it was met is remembered. */
  proved(): void;
  /** Ends it at once, with all that is on it. */
  destroy(): void;
}

export interface Connection extends Dialled {
  readonly session: ClientHttp2Session;
}

/** Host and port of `host:port` or `[address]:port`; null when it is neither. */
function parseEndpoint(endpoint: string): { host: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]+)):(\d{1,5})$/.exec(endpoint);
  if (match === null) return null;
  const port = Number(match[3]);
  return port >= 1 && port <= 65_535 ? { host: match[1] ?? match[2] ?? "", port } : null;
}

/** One address after the other at each attempt; the rest of them come behind it. */
function lookupOf(target: DialTarget, { names, withinMs }: DialOptions): LookupFunction {
  return lookupBy((host, found) => {
    names.find(host, withinMs / 2, target.source, (addresses) => {
      const at = target.attempt % Math.max(1, addresses.length);
      found([...addresses.slice(at), ...addresses.slice(0, at)]);
    });
  });
}

/** What handshakes are made with, on either side. */
export function secretsOf({ certificate, key, ca }: PeerTls): SecureContextOptions {
  return { cert: certificate, key, ca, minVersion: "TLSv1.2" };
}

function openSocket(
  host: string,
  port: number,
  lookup: LookupFunction,
  tls: PeerTls | null,
): Socket {
  const way = { host, port, lookup, noDelay: true } as const;
  if (tls === null) return connectPlain(way);
  return connectSecure({
    ...way,
    ...secretsOf(tls),
    rejectUnauthorized: true,
    checkServerIdentity: () => undefined,
    ALPNProtocols: ["h2"],
    ...(isIP(host) === 0 ? { servername: host } : {}),
  });
}

/** Why a connection failed. When several addresses were tried the error itself has no text. */
function reasonOf(error: Error & { readonly code?: string; readonly errors?: Error[] }): string {
  if (error.message !== "") return error.message;
  const each = (error.errors ?? []).map((one) => one.message).join(", ");
  return each === "" ? (error.code ?? error.name) : each;
}

/**
 * Destroys these, in order, when the turn is over. It may have begun inside the HTTP/2 library,
 * which reads on behind a callback: with its session gone under it the whole process ends.
 */
function destroySoon(...ending: readonly { destroy(): void }[]): void {
  setImmediate(() => {
    for (const each of ending) each.destroy();
  });
}

/**
 * Begins to connect a socket; what is written waits until it stands. `failed` may be called more
 * than once, and not before this returned. Throws for an endpoint that cannot be one.
 */
export function dialSocket(
  target: DialTarget,
  options: DialOptions,
  failed: (reason: string) => void,
): Dialled {
  const { endpoint } = target;
  const { tls, names } = options;
  const place = parseEndpoint(endpoint);
  if (place === null) throw new Error(`${endpoint} is not of the form host:port`);
  const { host, port } = place;
  const socket: Socket = openSocket(host, port, lookupOf(target, options), tls);
  socket.on("error", (error) => failed(reasonOf(error)));
  socket.on("close", () => failed("the connection was closed"));
  const proved = (): void => {
    if (socket.remoteAddress !== undefined) names.worked(host, socket.remoteAddress);
  };
  return { socket, proved, destroy: () => void socket.destroy() };
}

/** `dialSocket`, with HTTP/2 on it: calls on the session wait until it stands. */
export function dial(
  target: DialTarget,
  options: DialOptions,
  failed: (reason: string) => void,
): Connection {
  // The session does not always tell the end of a socket that TLS refused.
  const { socket, proved } = dialSocket(target, options, failed);
  const scheme = options.tls === null ? "http" : "https";
  const session = connectSession(`${scheme}://${target.endpoint}`, {
    createConnection: () => socket,
    settings: { ...PEER_HTTP2_SETTINGS },
    maxSessionMemory: CONNECTION_MEMORY_MB,
  });
  session.on("error", (error) => failed(reasonOf(error)));
  session.on("close", () => failed("the connection was closed"));
  session.on("goaway", () => failed("the other side goes away"));
  session.on("connect", () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES));
  return { session, socket, proved, destroy: () => destroySoon(session, socket) };
}
