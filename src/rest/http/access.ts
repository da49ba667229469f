/**
 * Who may call what (contract 10.1), checked before a body is read.
 *
 * Invariants: 1. Without an authenticator every caller is admin. 2. A higher role may do all that a
 * lower one may. 3. A certificate counts only when the TLS layer verified it.
 */
import type { IncomingMessage } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";

/** What a caller must be; "nobody" = no credentials needed. */
export type Access = "nobody" | "reader" | "writer" | "admin";

export type Role = "reader" | "writer" | "admin";

export interface Caller {
  readonly role: Role;
  readonly name: string;
  /** Requests per second of its own, 0 = no limit. */
  readonly rate?: number;
}

/** What a front end passes on of a TLS client certificate that was verified. */
export interface ClientCertificate {
  readonly commonName: string;
  readonly organizationalUnits: readonly string[];
}

/** Tells who a caller is; null = no or wrong credentials. */
export interface Authenticator {
  authenticate(authorization: string | null, certificate: ClientCertificate | null): Caller | null;
}

const RANKS: Readonly<Record<Access, number>> = { nobody: 0, reader: 1, writer: 2, admin: 3 };

/** Certificates by connection: reading one out of OpenSSL costs more than a whole request. */
const certificates = new WeakMap<object, ClientCertificate>();

/**
 * The facts of the verified client certificate of a TLS connection; null without one, or on a
 * cleartext socket.
 */
export function certificateOf(socket: Partial<TLSSocket>): ClientCertificate | null {
  if (socket.authorized !== true || socket.getPeerCertificate === undefined) return null;
  const known = certificates.get(socket);
  if (known !== undefined) return known;
  // The declared types leave out that a peer without certificate has an empty object, and that a
  // name may occur several times and then is a list.
  const subject = socket.getPeerCertificate().subject as
    { readonly CN?: string | string[]; readonly OU?: string | string[] } | undefined;
  if (subject === undefined) return null;
  const list = (value: string | string[] | undefined): string[] =>
    value === undefined ? [] : typeof value === "string" ? [value] : value;
  const certificate = {
    commonName: list(subject.CN)[0] ?? "",
    organizationalUnits: list(subject.OU),
  };
  certificates.set(socket, certificate);
  return certificate;
}

/**
 * The connection below a request. An HTTP/2 request shows a stand-in of its own for it, by which
 * nothing could be found again; its session has one for all.
 */
export function connectionOf(raw: IncomingMessage): Partial<TLSSocket> {
  const { stream } = raw as { readonly stream?: Partial<ServerHttp2Stream> };
  return (stream?.session?.socket ?? raw.socket) as Partial<TLSSocket>;
}

export interface Verdict {
  readonly verdict: "permitted" | "unauthenticated" | "forbidden";
  /** Null when nobody was asked who it is, or it could not tell. */
  readonly caller: Caller | null;
}

/** Address that a request comes from. */
export function addressOf(raw: IncomingMessage): string {
  return connectionOf(raw).remoteAddress ?? "";
}

/** Whether the caller of `raw` may use a path that needs `access`. */
export function checkAccess(
  raw: IncomingMessage,
  access: Access,
  authenticator: Authenticator | null,
): Verdict {
  if (access === "nobody" || authenticator === null) return { verdict: "permitted", caller: null };
  const certificate = certificateOf(connectionOf(raw));
  const caller = authenticator.authenticate(raw.headers.authorization ?? null, certificate);
  if (caller === null) return { verdict: "unauthenticated", caller };
  const isHigh = RANKS[caller.role] >= RANKS[access];
  return { verdict: isHigh ? "permitted" : "forbidden", caller };
}
