/**
 * What goes into and comes out of lock calls.
 *
 * Invariants: 1. Tokens and other 64-bit numbers are bigint. 2. Owners are bytes on the wire; text
 * given by the caller is its UTF-8 form.
 */
import { bytesOf } from "../values/arguments.js";
import type { CallOptions, Durability } from "../values/options.js";
import type { Timestamp } from "../values/numbers.js";

/** @internal A copy: the caller may change its own while the lock is waited for. */
export function noteOf(note: string | Uint8Array | undefined): Uint8Array | undefined {
  return note === undefined ? undefined : Uint8Array.from(bytesOf("note", note));
}

export interface LockCallOptions extends CallOptions {
  /** Persistent (default): survives restarts of the service. */
  readonly durability?: Durability | undefined;
}

/** Options of `acquire` and `withLock`. */
export interface AcquireOptions extends LockCallOptions {
  /** Length of the lease in ms, 1 to the server's `--lock-max-lease`. */
  readonly leaseMs: number;
  /** How long to wait while another owner holds the lock (ms, default 0; `Infinity` = for ever). */
  readonly waitMs?: number | undefined;
  /**
   * Mean pause between tries while waiting (ms, default 100; jittered by half), where the service
   * does not let requests wait.
   */
  readonly retryMs?: number | undefined;
  /** Owner (default: 32 random hexadecimal characters). */
  readonly owner?: string | Uint8Array | undefined;
  /** Extend the lease at a third of it until released (default true). */
  readonly renew?: boolean | undefined;
  /** What others are shown of the grant, at most 1024 bytes (default: nothing). */
  readonly note?: string | Uint8Array | undefined;
  /**
   * Watch the lock while it is held, so that a forced release is seen at once and not at the next
   * extend (default false; of a persistent lock).
   */
  readonly watchLoss?: boolean | undefined;
}

/** Options of `extend` of a handle. */
export interface ExtendOptions extends CallOptions {
  /** Takes the place of the note that the grant has. */
  readonly note?: string | Uint8Array | undefined;
}

/** Answer of `tryLock`. Not acquired: another owner holds it now. */
export interface LockGrant {
  readonly acquired: boolean;
  /** Fencing token of the grant; 0n when not acquired. */
  readonly fencingToken: bigint;
  /**
   * True when the answer of an earlier try of this call was lost. Not acquired, that one may still
   * have taken the lock, or may yet: `unlock` with the same owner settles it.
   */
  readonly doubtful: boolean;
  /**
   * What is left of the lease, counted from `waitedMs` after the request was sent (ms); null: not
   * acquired, or the service does not say.
   */
  readonly leaseLeftMs: number | null;
  /** How long the request waited there (ms); null: the service does not know waiting. */
  readonly waitedMs: number | null;
  /** Place among those who wait, 1 = next; 0 = none. */
  readonly position: number;
  /** How many owners wait for the lock. */
  readonly waiters: number;
}

/** Answer of `tryExtend`. */
export interface LockExtension {
  readonly extended: boolean;
  /** Why not: nobody holds the lock, or another owner does. */
  readonly refusal: "not-held" | "other-owner" | null;
  readonly fencingToken: bigint;
  /** How many owners wait for the lock. */
  readonly waiters: number;
}

/** Answer of `unlock`. */
export interface UnlockAnswer {
  readonly unlocked: boolean;
  readonly refusal: "not-held" | "other-owner" | null;
  /** True when an earlier try of this call may have released it. */
  readonly doubtful: boolean;
}

/** Who holds a lock. */
export interface LockInfo {
  readonly owner: Uint8Array;
  /** The owner as text, or null when its bytes are not UTF-8. */
  readonly ownerText: string | null;
  readonly fencingToken: bigint;
  /** Estimated end of the lease, for information only. */
  readonly expires: Timestamp;
  /** What the holder had to say; null: nothing. */
  readonly note: Uint8Array | null;
  /** The note as text, or null when there is none or its bytes are not UTF-8. */
  readonly noteText: string | null;
  /** How many owners wait for the lock. */
  readonly waiters: number;
  /** The place of the owner that was asked about, 1 = next; 0 = none. */
  readonly position: number;
}

/** Options of `info`. */
export interface LockInfoOptions extends LockCallOptions {
  /** Whose place among those who wait is wanted. */
  readonly owner?: string | Uint8Array | undefined;
}

/** A lock in a list. */
export interface ListedLock {
  readonly resource: string;
  /** Null: nobody holds it. */
  readonly owner: Uint8Array | null;
  /** The owner as text, or null when its bytes are not UTF-8. */
  readonly ownerText: string | null;
  /** Of the last grant. */
  readonly fencingToken: bigint;
  readonly held: boolean;
  /** Estimated end of the lease, for information only. */
  readonly expires: Timestamp;
  readonly expiresInMs: number;
  readonly waiters: number;
  readonly note: Uint8Array | null;
  readonly noteText: string | null;
}

/** Options of `list`. */
export interface LockListOptions extends LockCallOptions {
  /** What the resources begin with (default: nothing, so all of them). */
  readonly prefix?: string | undefined;
  /** Leave out records that nobody holds (default false). */
  readonly heldOnly?: boolean | undefined;
  /** Items of one page (default 1000). */
  readonly limit?: number | undefined;
}

/** Options of `audit`. */
export interface LockAuditOptions extends CallOptions {
  readonly prefix?: string | undefined;
  readonly limit?: number | undefined;
}

/** A forced release, as it is kept. */
export interface LockAuditRecord {
  /** Ascends in each partition. */
  readonly auditId: number;
  readonly partitionId: number;
  readonly resource: string;
  readonly durability: Durability;
  /** Who held the lock, by which grant. */
  readonly owner: Uint8Array;
  readonly ownerText: string | null;
  readonly fencingToken: bigint;
  readonly stamp: Timestamp;
  /** Name of the token or certificate; `anonymous` where nobody shows one. */
  readonly actor: string;
  readonly reason: string;
  readonly requestId: string;
  /** The node that took the request in. */
  readonly nodeId: number;
  readonly waitersDropped: number;
}

/** What is released by force, and why. */
export interface ForceStep extends LockCallOptions {
  /** Of the grant that is ended; any other stays. */
  readonly fencingToken: bigint | number;
  /** 1 to 1024 bytes; it is kept. */
  readonly reason: string;
  /** Abort whoever waits, and leave the lock free (default false: the next one gets it). */
  readonly dropWaiters?: boolean | undefined;
}

/** Answer of `forceUnlock`. */
export interface ForcedRelease {
  readonly unlocked: boolean;
  /** Why not: nobody holds the lock, or by another grant. */
  readonly refusal: "not-held" | "other-grant" | null;
  readonly fencingToken: bigint;
  /** Who held it; null with a refusal. */
  readonly owner: Uint8Array | null;
  readonly ownerText: string | null;
  readonly auditId: number;
  /** True when an earlier try of this call may have released it. */
  readonly doubtful: boolean;
}
