/** Planted bugs of watches again: the seeds of `watching` have to see them, too. */
import { type Mutation, plantedIn } from "../../sim/planted/mutation.js";
import { watchingBugs as bugsOfWatches } from "./watching.js";

const bug = plantedIn("host");

/** What shows where keys move alone. */
const OF_MOVES: ReadonlySet<string> = new Set([
  "a source that is late goes on to tell of keys that its target adopted",
  "a target that is late tells of keys that it gave away since",
  "a partition goes on to tell of keys that another one has",
  "a barrier goes by a map that is old",
  "a barrier waits for a partition that is gone",
  "what a partition told is told again when its names are elsewhere",
  "keys that came with an image are compared by stamps of other partitions",
  "a map that gives keys to who has them already tells nobody",
  "a cursor that names a partition of before is not looked at there",
]);

/** What shows where nodes come back with an old map. */
const OF_BLACKOUTS: ReadonlySet<string> = new Set([
  "what the map adds while a watch comes to stand is not waited for",
  "the map of the first watch of a node is taken for the newest",
  "who compares while a key is frozen has come to the barrier",
]);

function profileOf(name: string): string {
  if (OF_BLACKOUTS.has(name)) return "watching-blackouts";
  return OF_MOVES.has(name) ? "watching-ranges" : "watching";
}

export const watchingBugs: readonly Mutation[] = bugsOfWatches.map(({ pitfall, name, edits }) =>
  bug(pitfall, name, profileOf(name), edits),
);
