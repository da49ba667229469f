/**
 * What else goes on in a world of watches: in some seeds nothing, in others nodes join and leave, whoever
 * was cut off for a while needs images, key ranges are split and merged, or partitions have replicas on
 * some nodes only, and these move.
 *
 * Pure. Invariant: drawn from a generator of its own, so that the rest of a plan stays as it is.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import { DEFAULT_SNAPSHOT_SETTINGS } from "../../../src/host/snapshots/snapshot-limits.js";
import type { FaultKind } from "../faults/kinds.js";
import { type MemberPlan, memberPlan } from "../members/memberplan.js";
import type { PlacerPlan } from "../members/placementplan.js";
import type { WatchPlan } from "./watchplan.js";
import { type RangePlan, watchedRangesPlan } from "../members/rangeplan.js";

export interface WatchedWorld {
  readonly members: MemberPlan | null;
  readonly ranges: RangePlan | null;
  readonly placer: PlacerPlan | null;
  readonly watches: Partial<WatchPlan>;
  readonly host: Partial<HostSettings>;
  /** Instead of what the profile has, as far as it is given. */
  readonly others: {
    readonly segmentBytes?: number;
    readonly ticks?: number;
    readonly nodes?: number;
    readonly keys?: number;
    readonly thinkMs?: number;
    readonly faults?: readonly FaultKind[];
    readonly faultEveryMs?: number;
  };
}

export const NOTHING_ELSE: WatchedWorld = {
  ...{ members: null, ranges: null, placer: null },
  ...{ watches: {}, host: {}, others: {} },
};

/** Whoever is cut off goes on with its watches, and lacks what the others have dropped. */
const CUT_OFF: readonly FaultKind[] = [
  ...(["isolate", "isolate", "isolate", "partition", "strand-leader"] as const),
  ...(["pause", "kill-leader"] as const),
];

/** What no disk is damaged by: a move, or a replica, may have the one copy that there is. */
const WHOLE_DISKS: readonly FaultKind[] = [
  ...(["kill", "kill-leader", "power-loss", "crash-inside", "graceful-stop", "pause"] as const),
  ...(["isolate", "partition", "link-break", "strand-leader", "away", "disk-slow"] as const),
];

/** Oftener than all others together. */
const BLACKOUTS: readonly FaultKind[] = Array.from({ length: 8 }, () => "power-loss-all");

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

const WORLDS = {
  nothing: () => NOTHING_ELSE,
  members: withMembers,
  images: withImages,
  ranges: withRanges,
  blackouts: withBlackouts,
  replicas: withReplicas,
} as const;
export type BesideWatches = keyof typeof WORLDS;

/** One seed of eight each; blackouts are in a profile of their own. */
const DRAWN: readonly BesideWatches[] = [
  ...(["members", "images", "images", "images", "images", "ranges", "replicas"] as const),
  "nothing",
];

/** `wanted`: instead of what is drawn. */
export function watchedWorld(prng: Prng, wanted: BesideWatches | null = null): WatchedWorld {
  const drawn = pick(prng, DRAWN);
  return WORLDS[wanted ?? drawn](prng);
}

function withMembers(prng: Prng): WatchedWorld {
  const members = { ...memberPlan(prng), everyMs: pick(prng, [300, 800]) };
  return { ...NOTHING_ELSE, members, host: members.host };
}

function withImages(prng: Prng): WatchedWorld {
  return {
    ...NOTHING_ELSE,
    host: {
      ...{ initialPartitions: pick(prng, [1, 1, 3]), compactEveryEntries: 10 },
      ...{ compactKeepEntries: pick(prng, [0, 5]), flushAgeMs: 500, flushRows: 200 },
      unflushedRowsMax: 1000,
      snapshots: { ...DEFAULT_SNAPSHOT_SETTINGS, chunkBytes: 4000, windowChunks: 4 },
    },
    others: {
      thinkMs: 20,
      faults: CUT_OFF,
      faultEveryMs: 1000,
      segmentBytes: 64 << 10,
    },
  };
}

/** Each kind of fault is on in half of the seeds. */
function someOf(prng: Prng): FaultKind[] {
  return WHOLE_DISKS.filter(() => prng.chance(1, 2));
}

function withRanges(prng: Prng): WatchedWorld {
  const ranges = watchedRangesPlan(prng);
  return {
    ...NOTHING_ELSE,
    ranges,
    host: ranges.host,
    others: { faults: someOf(prng), ticks: 12_000, keys: 12, segmentBytes: 1 << 20 },
  };
}

/**
 * All machines lose power while key ranges move: nodes come back with an old map and old rows, and
 * learn step by step of what they told.
 */
function withBlackouts(prng: Prng): WatchedWorld {
  const world = withRanges(prng);
  const faults = [...BLACKOUTS, ...(world.others.faults ?? [])];
  return {
    ...world,
    watches: { anewPercent: 0 },
    host: {
      ...world.host,
      initialPartitions: pick(prng, [1, 2]),
      // What a node has when it comes back is of some time ago, its map too.
      ...{ flushAgeMs: pick(prng, [1000, 3000]), flushRows: 2000, unflushedRowsMax: 10_000 },
    },
    others: {
      ...world.others,
      nodes: 3,
      faults,
      ticks: 20_000,
      faultEveryMs: pick(prng, [2000, 3000]),
    },
  };
}

/** Of five nodes two have no replica of a partition; a hand moves one after the other. */
function withReplicas(prng: Prng): WatchedWorld {
  const hand = { everyMs: pick(prng, [200, 500, 1500]), most: 4, least: 3 };
  return {
    ...NOTHING_ELSE,
    placer: { hand, keeper: null },
    // Whatever a stream watches has to be at one node.
    watches: { watchers: 12, watchesMax: 1 },
    host: {
      ...{ replicationFactor: 3, rebalancerEnabled: prng.chance(1, 2), placementPassEveryMs: 500 },
      leaderBalanceEveryMs: pick(prng, [0, 300, 2000]),
      initialPartitions: 4,
    },
    others: { faults: someOf(prng), nodes: 5 },
  };
}
