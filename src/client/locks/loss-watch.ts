/**
 * Watches the lock of a handle, so that a release by force ends the handle at once.
 *
 * Owns its watch. Invariants: 1. Only what is said of this grant, or of a later one, ends the
 * handle. 2. A watch that cannot go on says nothing: the lease is looked after as ever.
 */
import type { Watches } from "../watching/watches.js";
import type { WatchBatch } from "../watching/watch-shapes.js";
import type { LockHandle } from "./lock-handle.js";

function lossIn({ events }: WatchBatch, token: bigint): string | null {
  for (const { type, fencingToken, forced } of events) {
    if (fencingToken > token) return "has another holder";
    if (fencingToken < token || type === "locked") continue;
    return forced ? "was released by force" : "is held by nobody";
  }
  return null;
}

async function follow(handle: LockHandle, watches: Watches): Promise<void> {
  const { signal, resource, fencingToken } = handle;
  for await (const batch of watches.lock(resource, { initial: true, signal })) {
    const why = lossIn(batch, fencingToken);
    if (why === null) continue;
    handle.seenLost(why);
    return;
  }
}

/** Until the handle is released or lost. */
export function watchLossOf(handle: LockHandle, watches: Watches): void {
  follow(handle, watches).catch(() => undefined);
}
