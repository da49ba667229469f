/**
 * Grants that may have to be given back yet: their owner was told of them once, by an answer that
 * may have found nobody.
 *
 * Owns them, each for LOCK_PLACE_KEPT_MS. Invariants: 1. A grant that is taken from here was told
 * to one request only: whoever releases it ends nobody else's hold (P-182). 2. There are no more
 * than were granted within that time.
 */
import { equalBytes } from "../../base/bytes.js";
import { LOCK_PLACE_KEPT_MS } from "../../base/limits.js";

interface FreshGrant {
  readonly owner: Uint8Array;
  readonly token: bigint;
  readonly sinceMs: number;
}

export class FreshGrants {
  /** By lock, the oldest first. */
  private readonly grants = new Map<string, FreshGrant>();

  add(key: string, owner: Uint8Array, token: bigint, nowMs: number): void {
    this.grants.delete(key);
    for (const [first, { sinceMs }] of this.grants) {
      if (nowMs - sinceMs <= LOCK_PLACE_KEPT_MS) break;
      this.grants.delete(first);
    }
    this.grants.set(key, { owner, token, sinceMs: nowMs });
  }

  /** Another request of `owner` may be told that it holds the lock. */
  askedBy(key: string, owner: Uint8Array): void {
    const grant = this.grants.get(key);
    if (grant !== undefined && equalBytes(grant.owner, owner)) this.grants.delete(key);
  }

  /** Whether that grant may be given back; it may be once. */
  take(key: string, owner: Uint8Array, token: bigint, nowMs: number): boolean {
    const grant = this.grants.get(key);
    if (grant?.token !== token || !equalBytes(grant.owner, owner)) return false;
    this.grants.delete(key);
    return nowMs - grant.sinceMs <= LOCK_PLACE_KEPT_MS;
  }

  clear(): void {
    this.grants.clear();
  }
}
