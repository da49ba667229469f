/** Planted bugs of watches again: the seeds of `watching` have to see them, too. */
import { type Mutation, plantedIn } from "../../sim/planted/mutation.js";
import { watchingBugs as bugsOfWatches } from "./watching.js";

const bug = plantedIn("host");

export const watchingBugs: readonly Mutation[] = bugsOfWatches.map(({ pitfall, name, edits }) =>
  bug(pitfall, name, "watching", edits),
);
