/**
 * The tries that wait at a leader, by what each says of its acquire.
 *
 * Pure. Invariant: of tries of several acquires none is known to be back.
 */
import type { SeenQueue, SeenRequest } from "../../judge/checkers/waits/seen-queues.js";
import type { Told } from "./heir-tap.js";

/** Below 0: `one` is of an earlier try. */
export function attemptOf(
  named: ReadonlyMap<SeenRequest, Told>,
  one: SeenRequest,
  other: SeenRequest,
): number {
  const between = (named.get(one)?.attempt ?? 0n) - (named.get(other)?.attempt ?? 0n);
  return between < 0n ? -1 : Number(between > 0n);
}

/** A later try of that heir waits there, and no try of another acquire beside it, nor one of none. */
export function isBack(
  named: ReadonlyMap<SeenRequest, Told>,
  queue: SeenQueue,
  heir: Told,
): boolean {
  let isBack = false;
  for (const [{ place, isGone }, { waitId, attempt }] of named) {
    if (isGone || place.queue !== queue || place.owner !== heir.owner) continue;
    // Of who shares its place the leader does not know which acquire is back.
    if (waitId !== heir.waitId) return false;
    isBack ||= attempt > heir.attempt;
  }
  return isBack;
}
