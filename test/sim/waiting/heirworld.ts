/**
 * Worlds of waiting in which locks have heirs: hot locks that nobody holds for long, clients that
 * stay with a node, ask again elsewhere without a word, release twice; leaders that are cut off in
 * the middle of handing over; and somebody who ends grants by force.
 *
 * Pure. Invariant: drawn from a generator of its own, so that worlds without heirs are as they were.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { FaultKind } from "../faults/kinds.js";
import type { WaitPlan } from "./waitplan.js";

/** What is drawn besides where locks have heirs. */
export interface HeirPlan {
  /** Of a hundred requests, those that go to the node at which their client is at home. */
  readonly homePercent: number;
  /** Of a hundred requests, those that go to a node that believes to lead the lock. */
  readonly gatherPercent: number;
  /** Of a hundred grants, those that are held for a while. */
  readonly holdPercent: number;
  /** Of a hundred releases, those that come twice; of changes, those that name no grant. */
  readonly twicePercent: number;
  readonly vaguePercent: number;
  /** Of a hundred waits, those whose client asks elsewhere, while the former wait goes on. */
  readonly desertPercent: number;
  /** Of a hundred acquires, those without a WaitId: they are never heirs. */
  readonly anonymousPercent: number;
  /** Mean time between two grants that are ended by force (ms); 0: none is. */
  readonly forceMs: number;
  /** Mean time between two cuts of a leader that is handing over (ms); 0: there are none. */
  readonly cutMs: number;
}

export interface HeirWorld {
  readonly waits: Partial<WaitPlan>;
  /** Instead of what the profile has, as far as it is given. */
  readonly others: {
    readonly ticks?: number;
    readonly faults?: readonly FaultKind[];
    readonly faultEveryMs?: number;
  };
}

export const NO_HEIRS: HeirWorld = { waits: {}, others: {} };

/** Who is asked goes, stands still, or is alone. */
const LEADERS_GO: readonly FaultKind[] = [
  ...(["kill-leader", "pause-leader", "strand-leader", "graceful-stop", "isolate"] as const),
  ...(["kill-leader", "pause-leader", "strand-leader", "crash-inside", "power-loss"] as const),
  ...(["partition", "partition-one-way", "half-open", "link-break", "lane-break", "clog"] as const),
  ...(["slow", "clock-rate", "clock-jump", "disk-slow", "disk-hung", "power-loss-all"] as const),
];

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

/** Of one seed of two; `isWanted`: of each. */
export function heirWorld(prng: Prng, isWanted: boolean): HeirWorld {
  const isDrawn = prng.chance(1, 2);
  if (!isDrawn && !isWanted) return NO_HEIRS;
  const faults = LEADERS_GO.filter(() => prng.chance(1, 3));
  return {
    waits: {
      clients: pick(prng, [8, 16, 30, 50]),
      locks: pick(prng, [1, 1, 2]),
      ephemeralPercent: pick(prng, [0, 0, 10]),
      thinkMs: pick(prng, [5, 20, 100]),
      leasesMs: pick(prng, [
        [300, 800, 2000],
        [200, 300],
        [1000, 4000],
      ]),
      waitsMs: pick(prng, [[1000, 4000], [300, 4000], [4000]]),
      cancelPercent: pick(prng, [0, 3, 10]),
      closePercent: pick(prng, [0, 3, 10]),
      newcomerPercent: pick(prng, [1, 5]),
      readerPercent: pick(prng, [3, 10]),
      workMs: pick(prng, [1, 5, 20, 60]),
      forgetPercent: pick(prng, [0, 1, 5]),
      freezePercent: pick(prng, [0, 2, 10]),
      handOverMs: pick(prng, [null, null, 700, 2000]),
      heirs: {
        homePercent: pick(prng, [100, 90, 50]),
        gatherPercent: pick(prng, [0, 95]),
        holdPercent: pick(prng, [0, 5, 20, 100]),
        twicePercent: pick(prng, [0, 5, 20]),
        vaguePercent: pick(prng, [0, 2, 20]),
        desertPercent: pick(prng, [0, 3, 10]),
        anonymousPercent: pick(prng, [0, 0, 5]),
        forceMs: pick(prng, [0, 0, 300, 1000]),
        cutMs: pick(prng, [0, 700, 1500]),
      },
    },
    others: {
      ticks: 6000,
      faults: faults.length > 0 ? faults : ["kill-leader"],
      faultEveryMs: pick(prng, [700, 1500, 4000]),
    },
  };
}
