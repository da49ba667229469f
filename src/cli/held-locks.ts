/**
 * The locks of a shell session: shown in the prompt, released at exit.
 *
 * Owns the list. Invariants: 1. One entry per (resource, durability), the last grant. 2. The end of
 * a lease is counted on the monotonic clock from before the request was sent: an entry is never
 * shown as held longer than it is.
 */
import type { Durability } from "../client/mod.js";
import { cutColumns, visibleText } from "./text-width.js";

export interface HeldLock {
  readonly resource: string;
  readonly durability: Durability;
  readonly owner: string;
  readonly fencingToken: string;
  /** performance.now() at which the lease may have ended. */
  readonly endsMs: number;
}

const SHOWN_MAX = 3;
const NAME_COLUMNS = 16;

export class HeldLocks {
  private readonly locks = new Map<string, HeldLock>();

  private static key(resource: string, durability: Durability): string {
    return `${durability}:${resource}`;
  }

  put(lock: HeldLock): void {
    this.locks.set(HeldLocks.key(lock.resource, lock.durability), lock);
  }

  find(resource: string, durability: Durability): HeldLock | null {
    return this.locks.get(HeldLocks.key(resource, durability)) ?? null;
  }

  remove(lock: HeldLock): void {
    this.locks.delete(HeldLocks.key(lock.resource, lock.durability));
  }

  all(): HeldLock[] {
    return [...this.locks.values()];
  }

  /** "svc> ", with locks "svc [printer f3]> "; a lease that may have ended has a "?" behind it. */
  prompt(nowMs: number): string {
    const all = this.all();
    if (all.length === 0) return "svc> ";
    const shown = all.slice(-SHOWN_MAX).map((lock) => {
      const name = cutColumns(visibleText(lock.resource), NAME_COLUMNS);
      return `${name} f${lock.fencingToken}${lock.endsMs <= nowMs ? "?" : ""}`;
    });
    const more = all.length > SHOWN_MAX ? ` +${all.length - SHOWN_MAX}` : "";
    return `svc [${shown.join(", ")}${more}]> `;
  }
}
