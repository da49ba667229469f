/**
 * How far a restore replays the log of a backup.
 *
 * Pure. Invariant: a millisecond is restored whole or not at all, so that the end of one is covered
 * or refused and never cut in between; the mark of a cut has its last stamp (P-134).
 */
import type { Hlc } from "../../base/hlc.js";

/** No time is asked for: to the end of the chain. */
const REPLAY_ALL_MS = 0;

/**
 * Whether an entry is restored when the state at the end of the millisecond `targetMs` is asked
 * for; the first that is not is the end of the replay. `stamp`: null for an entry that has none,
 * which follows the one before it.
 */
export function isReplayed(stamp: Hlc | null, targetMs: number): boolean {
  return stamp === null || targetMs === REPLAY_ALL_MS || stamp.l <= targetMs;
}
