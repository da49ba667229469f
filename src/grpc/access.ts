/**
 * Who may call what: the roles of the contract and the check that every call passes before its body is read.
 *
 * Owns a cache of client certificates; credentials are judged by the injected authenticator. Invariants: 1. A path that is not listed needs
 * no role: it does not exist and is answered UNIMPLEMENTED, or it is open to everybody (health).
 */
import type { ServerHttp2Session } from "node:http2";
import type { TLSSocket } from "node:tls";

/** Each role may do what the ones before it may. */
export type Role = "reader" | "writer" | "admin";

/** What is passed on of a verified client certificate. */
export interface ClientCertificate {
  readonly commonName: string;
  readonly organizationalUnits: readonly string[];
}

/** Judges the credentials of a caller. */
export interface Authenticator {
  /**
   * The caller; null when the credentials are missing or wrong. `authorization`: the header as sent. `certificate`:
   * what the TLS layer verified, null on a cleartext connection or without one.
   */
  authenticate(
    authorization: string | null,
    certificate: ClientCertificate | null,
  ): { readonly role: Role } | null;
}

/** By connection: reading a certificate out of the TLS library costs more than a whole call. */
const certificates = new WeakMap<ServerHttp2Session, ClientCertificate>();

const listOf = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === "string" ? [value] : value;

/** The verified client certificate of a connection, or null. */
export function certificateOf(session: ServerHttp2Session): ClientCertificate | null {
  const known = certificates.get(session);
  if (known !== undefined) return known;
  const socket = session.socket as Partial<TLSSocket>;
  if (socket.authorized !== true) return null;
  // The declared types leave out that a peer without certificate has an empty object, and that a name can be a list.
  const subject = socket.getPeerCertificate?.().subject as
    { readonly CN?: string | string[]; readonly OU?: string | string[] } | undefined;
  if (subject === undefined) return null;
  const certificate = {
    commonName: listOf(subject.CN)[0] ?? "",
    organizationalUnits: listOf(subject.OU),
  };
  certificates.set(session, certificate);
  return certificate;
}

const RANK = { reader: 0, writer: 1, admin: 2 } as const;

/** True when a caller of role `held` may do what needs `needed`. */
export function allows(held: Role, needed: Role): boolean {
  return RANK[held] >= RANK[needed];
}
