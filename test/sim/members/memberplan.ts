/**
 * What a seed decides about operators: who joins and leaves, how often, and how leaderships are
 * moved and nodes restarted in the meantime.
 *
 * Pure. Invariant: drawn from a generator of its own, so that the rest of a plan stays as it is.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import { OPERATOR_KINDS, type OperatorKind } from "../faults/kinds.js";

export interface MemberPlan {
  readonly kinds: readonly OperatorKind[];
  /** Mean time between two actions (ms). */
  readonly everyMs: number;
  /** Healthy voters that operators keep at least. */
  readonly least: number;
  /** Healthy members from which on nobody joins. */
  readonly most: number;
  /** Longest drain of a node that leaves (ms). */
  readonly drainMs: number;
  readonly host: Partial<HostSettings>;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

export function memberPlan(prng: Prng): MemberPlan {
  const all = Object.keys(OPERATOR_KINDS) as OperatorKind[];
  const kinds = all.filter((kind) => kind === "join" || prng.chance(2, 3));
  return {
    kinds,
    everyMs: pick(prng, [500, 2000, 6000]),
    least: pick(prng, [1, 2, 3]),
    most: pick(prng, [4, 6, 8]),
    drainMs: pick(prng, [2000, 10_000, 30_000]),
    host: {
      leaderBalanceEveryMs: pick(prng, [0, 300, 2000, 30_000]),
      // Tiny ones, so that whoever comes late needs a snapshot.
      compactEveryEntries: pick(prng, [10, 20, 100]),
      compactKeepEntries: pick(prng, [0, 5]),
    },
  };
}
