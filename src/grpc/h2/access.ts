/**
 * Who may call what: the roles of the contract and the check that every call passes before its body
 * is read.
 *
 * Credentials are judged by the injected authenticator.
 * Invariants: 1. A path that is not listed needs no role: it does not exist and is answered
 * UNIMPLEMENTED, or it is open to everybody (health).
 */

/** Each role may do what the ones before it may. */
export type Role = "reader" | "writer" | "admin";

export interface Caller {
  readonly role: Role;
  readonly name: string;
  /** Requests per second of its own, 0 = no limit. */
  readonly rate?: number;
}

/** Judges the credentials of a caller. */
export interface Authenticator {
  /**
   * The caller; null when the credentials are missing or wrong. `authorization`: the header
   * as sent. `socket`: the connection, for the client certificate of a TLS one.
   */
  authenticate(authorization: string | undefined, socket: unknown): Caller | null;
}

const RANK = { reader: 0, writer: 1, admin: 2 } as const;

/** True when a caller of role `held` may do what needs `needed`. */
export function allows(held: Role, needed: Role): boolean {
  return RANK[held] >= RANK[needed];
}
