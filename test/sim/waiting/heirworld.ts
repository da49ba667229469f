/**
 * Worlds of waiting in which locks have heirs: hot locks that nobody holds for long, clients that
 * stay with a node, ask again elsewhere without a word, release twice; leaders that are cut off in
 * the middle of handing over; and somebody who ends grants by force. In a fifth of them everybody
 * waits in turn and lets go in time, so that a leader which is cut off from all but its clients goes
 * on along its list until it finds that it does not lead.
 *
 * Pure. Invariant: drawn from a generator of its own, so that worlds without heirs are as they were.
 */
import type { Prng } from "../../../src/base/prng.js";
import { HEIRS_MAX } from "../../../src/base/limits.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { FaultKind } from "../faults/kinds.js";
import type { Plan } from "../plan/plan.js";
import type { WaitPlan } from "./waitplan.js";

/** What is drawn besides where locks have heirs. */
export interface HeirPlan {
  /** Of a hundred requests, those that go to the node at which their client is at home. */
  readonly homePercent: number;
  /** Of a hundred requests, those that go to a node that believes to lead the lock. */
  readonly gatherPercent: number;
  /** Of a hundred grants, those that are held for a while. */
  readonly holdPercent: number;
  /** How long all others are held (ms). */
  readonly keepMs: number;
  /** Nobody shares a place or asks where nobody leads, and all let go first where it was granted. */
  readonly isOrderly: boolean;
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
  readonly host: Partial<HostSettings>;
  /** Instead of what the profile has, as far as it is given. */
  readonly others: {
    readonly ticks?: number;
    readonly faults?: readonly FaultKind[];
    readonly faultEveryMs?: number;
    readonly network?: Plan["network"];
    readonly disk?: Plan["disk"];
  };
}

export const NO_HEIRS: HeirWorld = { waits: {}, host: {}, others: {} };

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
  const heirs: HeirPlan = {
    homePercent: 0,
    ...{ gatherPercent: 0, holdPercent: 0, keepMs: 0, isOrderly: false, twicePercent: 0 },
    ...{ vaguePercent: 0, desertPercent: 0, anonymousPercent: 0, forceMs: 0, cutMs: 0 },
  };
  const world: HeirWorld = {
    host: {},
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
        ...heirs,
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
  return prng.chance(1, 5) ? orderly(prng, world, heirs) : world;
}

/**
 * A list is long enough, and good for long enough (2 s), for all the time that a leader takes to find
 * out, two elections: each heir holds for its part of it, and none is gone or says anything else.
 */
function orderly(prng: Prng, world: HeirWorld, heirs: HeirPlan): HeirWorld {
  const electionMs = 500;
  const nobody = { cancelPercent: 0, closePercent: 0, newcomerPercent: 0, readerPercent: 2 };
  const calls = { forgetPercent: 0, freezePercent: 0, ephemeralPercent: 0, handOverMs: null };
  return {
    host: { heartbeatMs: 100, electionMs, initialPartitions: 1 },
    waits: {
      ...{ ...world.waits, ...nobody, ...calls },
      ...{ clients: HEIRS_MAX + 8, locks: 1, thinkMs: 20, waitsMs: [9000], leasesMs: [300] },
      heirs: {
        ...{ ...heirs, gatherPercent: 100, isOrderly: true, vaguePercent: 20, cutMs: 700 },
        keepMs: Math.ceil((2 * electionMs) / HEIRS_MAX),
      },
    },
    // Plainly handed on, it changes hands often enough to have heirs.
    others: {
      ...{ ticks: 9000, faults: ["kill-leader"], faultEveryMs: 6000 },
      network: { baseMs: pick(prng, [0.1, 0.5]), jitterMs: 1, slowPerMillion: 1000 },
      disk: { readMs: 0.1, writeMs: pick(prng, [0.3, 1]) },
    },
  };
}
