/**
 * The locks of a shell session: shown in the prompt, released at exit.
 *
 * Owns the list. Invariants: 1. One entry per (resource, durability), the last grant; beside it one
 * per owner whose request to lock has an unknown outcome, because it may hold the lock instead. 2.
 * The end of a lease is counted on the monotonic clock from before the request was sent: an entry
 * is never shown as held longer than it is, and leaves the list some time after that end.
 */
import type { Durability } from "../../client/mod.js";
import { cutColumns, visibleText } from "../terminal/text-width.js";

export interface HeldLock {
  readonly resource: string;
  readonly durability: Durability;
  readonly owner: string;
  /** null: nobody knows whether it was granted. */
  readonly fencingToken: string | null;
  /** performance.now() at which the lease may have ended. */
  readonly endsMs: number;
}

const SHOWN_MAX = 3;
/** So long after the end that was counted here a lease has ended at the service too (ms). */
const ENDED_MS = 10_000;
const NAME_COLUMNS = 16;

export class HeldLocks {
  private readonly locks = new Map<string, HeldLock>();

  private static key({ resource, durability, fencingToken, owner }: HeldLock): string {
    // The durability has no colon: no resource can be mistaken for another entry.
    return `${durability}:${fencingToken === null ? `doubt:${owner}:` : "grant:"}${resource}`;
  }

  put(lock: HeldLock): void {
    this.remove({ ...lock, fencingToken: null });
    this.locks.set(HeldLocks.key(lock), lock);
  }

  /** What the session holds or may hold of a lock; the grant first. */
  find(resource: string, durability: Durability): HeldLock[] {
    return this.all()
      .filter((lock) => lock.resource === resource && lock.durability === durability)
      .sort(
        (one, other) => Number(one.fencingToken === null) - Number(other.fencingToken === null),
      );
  }

  remove(lock: HeldLock): void {
    this.locks.delete(HeldLocks.key(lock));
  }

  all(): HeldLock[] {
    return [...this.locks.values()];
  }

  /** Forgets the locks whose leases have ended. */
  private forgetEnded(nowMs: number): void {
    for (const lock of this.all()) if (lock.endsMs + ENDED_MS <= nowMs) this.remove(lock);
  }

  /**
   * "svc> ", with locks "svc [printer f3, e:printer f7]> ", e: for ephemeral as in the commands; a
   * lease that may have ended has a "?" behind it, a lock that was perhaps never granted is
   * "printer ?".
   */
  prompt(nowMs: number): string {
    this.forgetEnded(nowMs);
    const all = this.all();
    if (all.length === 0) return "svc> ";
    const shown = all.slice(-SHOWN_MAX).map((lock) => {
      const short = cutColumns(visibleText(lock.resource), NAME_COLUMNS);
      const name = lock.durability === "ephemeral" ? `e:${short}` : short;
      if (lock.fencingToken === null) return `${name} ?`;
      return `${name} f${lock.fencingToken}${lock.endsMs <= nowMs ? "?" : ""}`;
    });
    const more = all.length > SHOWN_MAX ? ` +${all.length - SHOWN_MAX}` : "";
    return `svc [${shown.join(", ")}${more}]> `;
  }
}
