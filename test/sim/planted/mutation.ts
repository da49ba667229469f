/**
 * What a planted bug of the whole node is: edits of its sources, and the runs of the simulator that are
 * to notice.
 */
import type { Edit, Planted } from "../../planted/edits.js";
import type { PlanOverrides } from "../plan/plan.js";

export { edit } from "../../planted/edits.js";

/** The floor of the tower that the bug is planted in. */
export type Floor = "disk" | "core" | "machine" | "control" | "host" | "operations";

/** Its name says in words what is wrong. */
export interface Mutation extends Planted {
  readonly floor: Floor;
  /** Number of the pitfall that it is an example of; "" for none. */
  readonly pitfall: string;
  /** The profile whose seeds are run. */
  readonly profile: string;
  /** What is changed of the profile's plans; the fewer the better. */
  readonly overrides: PlanOverrides;
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
