/**
 * What a planted bug of the whole node is: exact replacements in the compiled code, and the runs of
 * the simulator that are to notice.
 */
import type { PlanOverrides } from "../plan.js";

/** The floor of the tower that the bug is planted in. */
export type Floor = "disk" | "core" | "machine" | "control" | "host" | "operations";

/** One exact replacement in `dist/src/<file>.js`; `find` must be there exactly once. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  /** What is wrong, in words. */
  readonly name: string;
  readonly floor: Floor;
  /** Number of the pitfall that it is an example of; "" for none. */
  readonly pitfall: string;
  readonly edits: readonly Edit[];
  /** The profile whose seeds are run. */
  readonly profile: string;
  /** What is changed of the profile's plans; the fewer the better. */
  readonly overrides: PlanOverrides;
}

export function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}

/** A bug with all that is its own; the seeds are those of `profile`. */
export function plantedIn(floor: Floor) {
  return (
    pitfall: string,
    name: string,
    profile: string,
    edits: readonly Edit[],
    overrides: PlanOverrides = {},
  ): Mutation => ({ name, floor, pitfall, edits, profile, overrides });
}
