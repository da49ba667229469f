/**
 * What somebody who holds locks, and somebody who ends grants by force, asked of a cluster and was
 * told: what the checkers of forced releases look at.
 *
 * Types only. Invariants: 1. `atMs` null: nobody knows how it ended. 2. A token is of one grant of
 * one lock.
 */

/** One lock: the ephemeral and the persistent one of a resource are two. */
export interface LockId {
  readonly resource: string;
  readonly durability: number;
}

interface Asked extends LockId {
  readonly sentMs: number;
  /** When the answer came. */
  readonly atMs: number | null;
}

export interface Grant extends Asked {
  readonly kind: "grant";
  readonly owner: string;
  readonly token: bigint;
}

/** An extend or unlock that named its grant. */
export interface Change extends Asked {
  readonly kind: "change";
  readonly token: bigint;
  /** It had its effect, as the answer says. */
  readonly isDone: boolean;
}

export interface Forced extends Asked {
  readonly kind: "forced";
  readonly token: bigint;
  /** No two asks have the same. */
  readonly reason: string;
  /** "refused": certainly without effect and without a row. */
  readonly end: "unlocked" | "refused" | "unknown";
  /** Of the answer "unlocked". */
  readonly owner: string | null;
  readonly auditId: number;
}

export type LockEvent = Grant | Change | Forced;

/** A row of the audit. */
export interface AuditRow extends LockId {
  readonly auditId: number;
  readonly partitionId: number;
  readonly owner: string;
  readonly token: bigint;
  readonly reason: string;
  readonly stampMs: number;
}

export function nameOf({ resource, durability }: LockId): string {
  return `${durability === 0 ? "ephemeral" : "persistent"} ${resource}`;
}
