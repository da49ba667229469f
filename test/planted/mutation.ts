/**
 * What a planted bug is: exact replacements in the compiled core, and what must catch it.
 *
 * Invariants: 1. Every `find` stands exactly once in its file. 2. A mutation is one idea; where an
 * assertion of the core would stop it at once, that is part of what is taken out, so that the outside
 * judge is put to the test.
 */
import type { Bias } from "../raft/explorer/swarm.js";
import type { checks } from "./checks.js";

export interface Edit {
  /** A file of dist/src/raft, without its ending. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export type Catcher =
  | { readonly by: "walk"; readonly bias: Bias; readonly maxSteps: number }
  | { readonly by: "explorer"; readonly plan: string; readonly maxStates: number }
  | { readonly by: "golden"; readonly scenario: string }
  | { readonly by: "check"; readonly check: keyof typeof checks };

export interface Mutation {
  readonly name: string;
  readonly pitfall: string;
  readonly edits: readonly Edit[];
  readonly catcher: Catcher;
}

export function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
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
