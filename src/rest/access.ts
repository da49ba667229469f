/**
 * Who may call what (contract 10.1), checked before a body is read.
 *
 * May call node:tls types. Invariants: 1. Without an authenticator every caller is admin. 2. A
 * higher role may do all that a lower one may. 3. A certificate counts only when the TLS layer
 * verified it.
 */
import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Access } from "./route.js";

export type Role = "reader" | "writer" | "admin";

export interface Caller {
  readonly role: Role;
  readonly name: string;
}

/** What is passed on of a verified client certificate. */
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
const certificates = new WeakMap<TLSSocket, ClientCertificate>();

/** The verified certificate of the connection below `raw`, or null. */
function certificateOf(raw: IncomingMessage): ClientCertificate | null {
  const socket = raw.socket as Partial<TLSSocket>;
  if (socket.authorized !== true) return null;
  const known = certificates.get(socket as TLSSocket);
  if (known !== undefined) return known;
  // The declared types leave out that a peer without certificate has an empty object, and that a
  // name can be a list.
  const subject = socket.getPeerCertificate?.().subject as
    { readonly CN?: string | string[]; readonly OU?: string | string[] } | undefined;
  if (subject === undefined) return null;
  const list = (value: string | string[] | undefined): string[] =>
    value === undefined ? [] : typeof value === "string" ? [value] : value;
  const certificate = {
    commonName: list(subject.CN)[0] ?? "",
    organizationalUnits: list(subject.OU),
  };
  certificates.set(socket as TLSSocket, certificate);
  return certificate;
}

export type Verdict = "permitted" | "unauthenticated" | "forbidden";

/** Whether the caller of `raw` may use a path that needs `access`. */
export function checkAccess(
  raw: IncomingMessage,
  access: Access,
  authenticator: Authenticator | null,
): Verdict {
  if (access === "nobody" || authenticator === null) return "permitted";
  const caller = authenticator.authenticate(raw.headers.authorization ?? null, certificateOf(raw));
  if (caller === null) return "unauthenticated";
  return RANKS[caller.role] >= RANKS[access] ? "permitted" : "forbidden";
}
