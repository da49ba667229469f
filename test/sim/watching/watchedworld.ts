/**
 * What else goes on in a world of watches: in most seeds nothing, in some of them nodes join and leave,
 * or whoever was cut off for a while needs images.
 *
 * Pure. Invariant: drawn from a generator of its own, so that the rest of a plan stays as it is.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import { DEFAULT_SNAPSHOT_SETTINGS } from "../../../src/host/snapshots/snapshot-limits.js";
import type { FaultKind } from "../faults/kinds.js";
import { type MemberPlan, memberPlan } from "../members/memberplan.js";

export interface WatchedWorld {
  readonly members: MemberPlan | null;
  readonly host: Partial<HostSettings>;
  /** Instead of what the profile has, as far as it is given. */
  readonly others: {
    readonly segmentBytes?: number;
    readonly thinkMs?: number;
    readonly faults?: readonly FaultKind[];
    readonly faultEveryMs?: number;
  };
}

export const NOTHING_ELSE: WatchedWorld = { members: null, host: {}, others: {} };

/** Whoever is cut off goes on with its watches, and lacks what the others have dropped. */
const CUT_OFF: readonly FaultKind[] = [
  ...(["isolate", "isolate", "isolate", "partition", "strand-leader"] as const),
  ...(["pause", "kill-leader"] as const),
];

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

export function watchedWorld(prng: Prng): WatchedWorld {
  switch (prng.below(8)) {
    case 0:
      return withMembers(prng);
    case 1:
    case 2:
    case 3:
    case 4:
      return withImages(prng);
    default:
      return NOTHING_ELSE;
  }
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
