/**
 * What a seed decides about key ranges: who changes them and how often, by hand or by themselves, how
 * small they may be, and which faults are aimed at moves.
 *
 * Pure. Invariant: drawn from a generator of its own, so that the rest of a plan stays as it is.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { FaultKind, RangeKind } from "../faults/kinds.js";

/** When the nodes split and merge by themselves. */
export interface RangeThresholds {
  /** Live keys from which on a range is split; 0 = never. */
  readonly splitThreshold: number;
  /** Ranges with fewer are not split. */
  readonly splitMinSize: number;
  /** Neighbours with fewer together are merged; 0 = never. */
  readonly mergeMinSize: number;
  /** Pause between two looks at all ranges (ms). */
  readonly collectionEveryMs: number;
}

export interface RangePlan {
  readonly kinds: readonly RangeKind[];
  /** Mean time between two actions (ms). */
  readonly everyMs: number;
  /** Of the key spaces of the workload, those that are routed by ranges. */
  readonly spaces: number;
  /** A call waits so long at most (ms). */
  readonly callMs: number;
  /** Somebody checks while key spaces are unregistered that no key is missed. */
  readonly hasWitness: boolean;
  /** Chains of writes go over the ends of each key space, through every node. */
  readonly hasChains: boolean;
  /** Nodes split or merge by themselves. */
  readonly isAutomatic: boolean;
  readonly thresholds: RangeThresholds;
  /** Faults that wait for moves, on a schedule of their own, and the mean time between two (ms). */
  readonly aims: readonly FaultKind[];
  readonly aimEveryMs: number;
  /** A hand orders merges, ways home and ends of moves; mean time between two orders (ms), 0 = none. */
  readonly handEveryMs: number;
  /** Instead of people a load that swings around both thresholds. */
  readonly isSwinging: boolean;
  readonly host: Partial<HostSettings>;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

/** Splits several times: every other move needs one. */
const BY_HAND: readonly RangeKind[] = [
  ...(["split-space", "split-space", "split-space", "split-space", "split-space"] as const),
  ...(["split-space", "merge-spaces", "merge-spaces", "unregister-space"] as const),
  "register-space",
];
/** Where nodes do it by themselves: what only people do, and now and then a split. */
const BESIDE: readonly RangeKind[] = [
  ...(["register-space", "unregister-space", "split-space", "split-space"] as const),
];
/** What makes attempts fail comes oftener than what ends a process. */
const AIMS: readonly FaultKind[] = [
  ...(["strike-move", "strike-move", "strike-move", "part-move", "mute-meta"] as const),
  ...(["mute-side", "mute-side", "mute-side", "mute-side", "late-cut", "late-cut"] as const),
  ...(["deaf-side", "deaf-side", "late-copy", "give-up"] as const),
];
/** No look in the time of a world. */
const NEVER_MS = 86_400_000;

/** What leaves a replica of the source, and those who watch there, behind the target. */
const LATE: readonly FaultKind[] = [
  ...([
    "late-source",
    "late-source",
    "late-source",
    "strike-move",
    "give-up",
    "part-move",
  ] as const),
];

/** Nobody changes ranges but the nodes. */
export const SWINGING: RangePlan = {
  ...{ kinds: [], everyMs: NEVER_MS, spaces: 1, callMs: 10_000, hasWitness: false },
  hasChains: false,
  ...{ isAutomatic: true, isSwinging: true, aims: [], aimEveryMs: NEVER_MS },
  handEveryMs: 0,
  thresholds: { splitThreshold: 40, splitMinSize: 0, mergeMinSize: 10, collectionEveryMs: 5000 },
  host: { initialPartitions: 2 },
};

export function rangePlan(prng: Prng): RangePlan {
  const isAutomatic = prng.chance(2, 5);
  const mergeMinSize = pick(prng, [2, 4, 6]);
  return {
    kinds: isAutomatic ? BESIDE : BY_HAND,
    everyMs: isAutomatic ? pick(prng, [1000, 4000]) : pick(prng, [150, 400, 1200]),
    spaces: 1 + prng.below(3),
    callMs: pick(prng, [1000, 8000, 20_000]),
    hasWitness: prng.chance(2, 3),
    hasChains: false,
    isAutomatic,
    isSwinging: false,
    aims: prng.chance(3, 4) ? AIMS : [],
    aimEveryMs: pick(prng, [700, 1500, 4000]),
    thresholds: {
      splitThreshold: isAutomatic ? mergeMinSize * pick(prng, [4, 5]) : 0,
      splitMinSize: pick(prng, [0, 0, 2, 5]),
      mergeMinSize: isAutomatic ? mergeMinSize : pick(prng, [10, 40, 200]),
      collectionEveryMs: isAutomatic ? pick(prng, [500, 2000]) : NEVER_MS,
    },
    host: {
      initialPartitions: pick(prng, [1, 2, 3]),
      // Whoever was away needs snapshots, of groups with rows of moves too.
      compactEveryEntries: pick(prng, [10, 20, 100]),
      compactKeepEntries: pick(prng, [0, 5, 50]),
    },
    handEveryMs: pick(prng, [0, 400, 800, 2000]),
  };
}

/**
 * Whether views of a key space go over several nodes: its ranges are led by different ones, and
 * whoever reads it in parts would show it.
 */
export function spreadRanges(drawn: RangePlan, prng: Prng): RangePlan {
  const host = { ...drawn.host, leaderBalanceEveryMs: pick(prng, [0, 300, 2000]) };
  return { ...drawn, hasChains: prng.chance(1, 8), host };
}

/** Where something else is to come about between two changes. */
export function fewRangesPlan(prng: Prng, nodes: number): RangePlan {
  const drawn = rangePlan(prng);
  const aims = nodes === 1 || prng.chance(1, 2) ? [] : drawn.aims;
  return {
    ...{ ...drawn, aims, aimEveryMs: pick(prng, [3000, 6000]) },
    everyMs: pick(prng, [800, 2500]),
    handEveryMs: pick(prng, [0, 1000, 3000]),
  };
}

/** Short and dense: keys move while somebody watches them, and some replicas learn of it late. */
export function watchedRangesPlan(prng: Prng): RangePlan {
  const drawn = rangePlan(prng);
  return {
    ...{ ...drawn, kinds: BY_HAND, isAutomatic: false, hasWitness: false },
    ...{ aims: prng.chance(3, 4) ? LATE : [], aimEveryMs: pick(prng, [300, 800]) },
    ...{ everyMs: pick(prng, [150, 400]), handEveryMs: pick(prng, [200, 400, 800]) },
    thresholds: {
      ...{ splitThreshold: 0, splitMinSize: 0, mergeMinSize: pick(prng, [10, 40]) },
      collectionEveryMs: NEVER_MS,
    },
  };
}
