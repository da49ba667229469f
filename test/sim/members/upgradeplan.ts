/**
 * What a seed decides about upgrades: which two programs there are, how often nodes go from one to
 * the other and back, and when somebody finalizes.
 *
 * Level 2 is what tests say it is: extending leases of locks and keys. The program below knows
 * nothing of it, and the one above speaks a protocol more. Invariant: drawn from a generator of its
 * own, so that the rest of a plan stays as it is.
 */
import {
  PERMITS,
  PROGRAM,
  type Permits,
  type Program,
  permitsOf,
} from "../../../src/base/levels.js";
import type { Prng } from "../../../src/base/prng.js";
import { UPGRADE_KINDS, type UpgradeKind } from "../faults/kinds.js";

const { min, max } = PROGRAM.protocols;

export const OLD_PROGRAM: Program = {
  levels: { min: 1, max: 1 },
  protocols: { min, max },
  version: "1.0",
};
export const NEW_PROGRAM: Program = {
  levels: { min: 1, max: 2 },
  protocols: { min, max: max + 1 },
  version: "2.0",
};

const RAISED = { "kv-extend": 2, "try-extend": 2 };
export const RAISED_PERMITS: Permits = permitsOf(
  { ...PERMITS.commands, ...RAISED },
  { ...PERMITS.operations, ...RAISED },
);

export interface UpgradePlan {
  /** With repeats: weights. */
  readonly kinds: readonly UpgradeKind[];
  /** Mean time between two actions (ms). */
  readonly everyMs: number;
  /** Of a hundred nodes, so many begin with the new program. */
  readonly newPercent: number;
  readonly autoFinalizeMs: number | null;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

export function upgradePlan(prng: Prng): UpgradePlan {
  const all = Object.keys(UPGRADE_KINDS) as UpgradeKind[];
  const forward = Array.from({ length: 1 + prng.below(4) }, () => "roll-forward" as const);
  // Some never finalize before peace: there nodes go back and forth all the time.
  const kinds = all.filter((kind) => kind !== "finalize" || prng.chance(3, 4));
  return {
    kinds: [...kinds, ...forward],
    everyMs: pick(prng, [300, 1000, 3000]),
    newPercent: pick(prng, [0, 0, 30, 80, 100]),
    autoFinalizeMs: pick(prng, [null, null, 3000]),
  };
}
