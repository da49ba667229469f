/**
 * What a planted bug of the core is: edits of its sources, and what must catch it.
 *
 * Invariant: a mutation is one idea; where an assertion of the core would stop it at once, that is part
 * of what is taken out, so that the outside judge is put to the test.
 */
import type { Bias } from "../unit/raft/explorer/swarm.js";
import type { checks } from "./checks.js";
import type { Planted } from "./edits.js";

export { edit } from "./edits.js";

export type Catcher =
  | { readonly by: "walk"; readonly bias: Bias; readonly maxSteps: number }
  | { readonly by: "explorer"; readonly plan: string; readonly maxStates: number }
  | { readonly by: "golden"; readonly scenario: string }
  | { readonly by: "check"; readonly check: keyof typeof checks };

export interface Mutation extends Planted {
  readonly pitfall: string;
  readonly catcher: Catcher;
}

export function byWalk(bias: Bias = {}, maxSteps = 600_000): Catcher {
  return { by: "walk", bias, maxSteps };
}

export function byExplorer(plan: string, maxStates = 60_000): Catcher {
  return { by: "explorer", plan, maxStates };
}

export function byGolden(scenario: string): Catcher {
  return { by: "golden", scenario };
}

/** Walks in which members come and go, followers fall behind, or leases are handed over. */
export const membership: Bias = {
  founders: 3,
  spares: 2,
  only: ["change", "crash", "cut", "drop"],
};
export const snapshots: Bias = {
  founders: 3,
  spares: 1,
  only: ["compact", "cut", "expire", "duplicate"],
};
export const leases: Bias = {
  founders: 3,
  spares: 0,
  leases: true,
  writesAtOnce: true,
  only: ["transfer"],
  more: [
    ["read", 100],
    ["transfer", 10],
  ],
};
