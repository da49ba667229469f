/**
 * What a seed decides about where replicas are: how many, who moves them, who sets factors and loses
 * machines, and how the nodes that move them are set.
 *
 * Pure. Invariant: drawn from a generator of its own, so that the rest of a plan stays as it is.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { OperatorKind, PlacementKind } from "../faults/kinds.js";
import type { MemberPlan } from "./memberplan.js";

/** The hand that moves replicas at random. */
export interface HandPlan {
  /** Mean time between two orders (ms). */
  readonly everyMs: number;
  /** Replicas of a partition that orders leave at most. */
  readonly most: number;
  /** And at least. */
  readonly least: number;
}

export interface KeeperPlan {
  readonly kinds: readonly PlacementKind[];
  /** Mean time between two actions (ms). */
  readonly everyMs: number;
  /** Factors that are set; 0 = that of the cluster. */
  readonly factors: readonly number[];
}

export interface PlacerPlan {
  /** null: nobody moves replicas but the nodes. */
  readonly hand: HandPlan | null;
  /** null: nobody sets factors, or loses machines. */
  readonly keeper: KeeperPlan | null;
}

export interface PlacedPlan {
  readonly placer: PlacerPlan;
  readonly members: MemberPlan | null;
  readonly host: Partial<HostSettings>;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

/** Leaves several times: they are what drains. */
const OPERATORS: readonly OperatorKind[] = [
  ...(["leave", "leave", "leave", "join", "join", "rejoin"] as const),
  ...(["transfer", "transfer", "start-the-gone", "rolling-restart"] as const),
];

/** Three replicas of each partition, which nobody moves but the nodes, as they ship. */
export const SPREAD: PlacedPlan = {
  placer: { hand: null, keeper: null },
  members: null,
  host: { replicationFactor: 3, rebalancerEnabled: true },
};

export function placedPlan(prng: Prng): PlacedPlan {
  const replicationFactor = pick(prng, [0, 1, 2, 3, 3, 3, 4, 5]);
  // Where a partition may have two copies or one, no machine can be lost.
  const isSafe = replicationFactor > 2 && prng.chance(2, 3);
  const factors = isSafe ? [0, 0, 3, 3, 4, 5] : [0, 0, 1, 2, 3, 4, 5];
  const losses = ["lose-machine", "lose-machine", "remove-living"] as const;
  const kinds = ["set-factor", ...(isSafe ? losses : [])] as const;
  const keeper = { kinds, everyMs: pick(prng, [2000, 6000, 15_000]), factors };
  const most = Math.max(1, replicationFactor) + prng.below(2);
  const orders = { everyMs: pick(prng, [300, 1000, 3000]), most, least: isSafe ? 3 : 1 };
  const hand = prng.chance(1, 2) ? orders : null;
  const hasOperators = prng.chance(2, 3);
  const members: MemberPlan = {
    kinds: OPERATORS,
    everyMs: pick(prng, [4000, 10_000, 20_000]),
    least: 4,
    most: pick(prng, [6, 8, 10]),
    drainMs: pick(prng, [10_000, 40_000, 120_000]),
    host: {},
  };
  // The node that leads meta puts replicas where they belong.
  const allocator = {
    rebalancerEnabled: prng.chance(3, 4),
    placementPassEveryMs: pick(prng, [500, 2000]),
    deadMemberMs: pick(prng, [0, 3000, 10_000]),
    leaderBalanceEveryMs: pick(prng, [0, 300, 2000, 10_000]),
    initialPartitions: pick(prng, [8, 8, 8, 8, 12, 12, 16, 24, 64]),
  };
  const host = { replicationFactor, ...allocator };
  return { placer: { hand, keeper }, members: hasOperators ? members : null, host };
}
