/**
 * Watches the lock of a handle, so that a release by force ends the handle at once.
 *
 * Owns its watch. Invariants: 1. Only what is said of this grant, or of a later one, ends the
 * handle, and a whole state that has neither: it ended before the watch began. 2. A watch that
 * cannot go on says nothing: the lease is looked after as ever.
 */
import type { Watches } from "../watching/watches.js";
import type { WatchBatch } from "../watching/watch-shapes.js";
import type { LockHandle } from "./lock-handle.js";

const NOBODY = "is held by nobody";

function lossIn({ events, merged }: WatchBatch, token: bigint): string | null {
  for (const { type, fencingToken, forced } of events) {
    if (fencingToken > token) return "has another holder";
    // Of a state that was compared the newest is told, and of a lock without a row no token.
    if (type === "locked" || (fencingToken < token && !merged)) continue;
    return forced ? "was released by force" : NOBODY;
  }
  return null;
}

async function follow(handle: LockHandle, watches: Watches): Promise<void> {
  const { signal, resource, fencingToken } = handle;
  // A state that is told does not name what is held by nobody.
  let isInState = true;
  let isThere = false;
  for await (const batch of watches.lock(resource, { initial: true, signal })) {
    if (batch.reset) {
      isInState = true;
      isThere = false;
    }
    isThere ||= batch.events.some((event) => event.fencingToken === fencingToken);
    const isGone = isInState && batch.cursor !== null && !isThere;
    if (batch.cursor !== null) isInState = false;
    const why = lossIn(batch, fencingToken) ?? (isGone ? NOBODY : null);
    if (why === null) continue;
    handle.seenLost(why);
    return;
  }
}

/** Until the handle is released or lost. */
export function watchLossOf(handle: LockHandle, watches: Watches): void {
  follow(handle, watches).catch(() => undefined);
}
