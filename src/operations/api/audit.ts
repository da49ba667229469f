/**
 * What is kept of who did what (contract 10.7): the lines that the front ends hand to whoever
 * writes them down.
 *
 * Types only. Invariants: 1. No token and no stored data is in an entry.
 */

/** One call of somebody, and how it ended. */
export interface AuditEntry {
  /** Path of the call. */
  readonly operation: string;
  /** Name of the caller; "" when it showed nothing that names one. */
  readonly caller: string;
  readonly role: string;
  readonly address: string;
  readonly requestId: string;
  /** HTTP status or gRPC status, as text. */
  readonly outcome: string;
}

export interface AuditPort {
  /** A call that needs the role admin was answered. */
  administered(entry: AuditEntry): void;
  /** A call was refused for who made it. */
  denied(entry: AuditEntry): void;
}
