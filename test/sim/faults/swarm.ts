/**
 * Draws of a plan that make rare mixes likelier: few kinds of faults that strike often, long tails,
 * leaders left alone with their clients.
 *
 * Pure. Invariant: what is drawn here comes from generators of its own, so that the rest of a plan
 * stays what it was.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import { DEFAULT_SNAPSHOT_SETTINGS } from "../../../src/host/snapshots/snapshot-limits.js";
import type { FaultKind } from "./kinds.js";

/**
 * In every other seed only some of the kinds that were chosen: in a minute each of a few strikes
 * often, each of many hardly once.
 */
export function fewOf(kinds: readonly FaultKind[], prng: Prng): readonly FaultKind[] {
  if (prng.chance(1, 2)) return kinds;
  const wanted = 1 + prng.below(5);
  const left = [...kinds];
  while (left.length > wanted) left.splice(prng.below(left.length), 1);
  return left;
}

/** In half of the seeds snapshots come in many small pieces, between which the rows change. */
export function snapshotSettings(prng: Prng): Partial<HostSettings> {
  if (prng.chance(1, 2)) return {};
  const chunkBytes = [128, 1000][prng.below(2)] as number;
  const windowChunks = [1, 4][prng.below(2)] as number;
  return { snapshots: { ...DEFAULT_SNAPSHOT_SETTINGS, chunkBytes, windowChunks } };
}

/** In some seeds each command is an entry of its own and many are under way: tails are long then. */
export function tailSettings(prng: Prng): Partial<HostSettings> {
  return prng.chance(1, 4) ? { batchEntriesMax: 1, inFlightEntriesMax: 16 } : {};
}

/** In half of the seeds idle groups sleep sooner than they ship, so that many are woken. */
export function sleepSettings(prng: Prng): Partial<HostSettings> {
  const list = [200, 600, 1500, 1500] as const;
  return { quiesceAfterMs: list[prng.below(list.length)] as number };
}

/** What leaves leaders without followers. The first one several times: it is drawn so much oftener. */
export const STRANDING: readonly FaultKind[] = [
  ...Array.from({ length: 6 }, () => "strand-leader" as const),
  ...(["isolate", "partition", "kill-leader", "clog"] as const),
];
