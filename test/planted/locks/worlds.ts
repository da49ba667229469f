/**
 * Planted bugs of heirs of locks again: the seeds of `waiting-heirs` have to see them, too. The edits
 * are those that the tests of `test/unit/` catch (beside this file), and, of those that the
 * searches plant into their own leader, the counterparts in the node.
 */
import type { Edit, Planted } from "../edits.js";
import { heirRowBugs } from "./heir-rows.js";
import { heirStepBugs } from "./heir-steps.js";
import { heirBugs as bugsOfSearches } from "./heirs.js";
import { edit, type Floor, type Mutation, plantedIn } from "../../sim/planted/mutation.js";

const HEIRS = "src/host/waiting/lock-heirs.ts";
const MEMORY = "src/host/waiting/succession.ts";
const GRANTS = "src/host/waiting/lock-grants.ts";

/** Bugs of the rules that only the searches plant. */
const OF_SEARCHES: ReadonlySet<string> = new Set([
  "who extends along an orphaned list is taken for the base, and those before it stay",
  "what an heir says without a token counts",
  "an heir that names no token is refused, maybe told as it was",
  "an heir has the note of the base",
]);

/** What the searches plant into their own leader. */
const OF_LEADERS: readonly Planted[] = [
  {
    name: "what was granted to nobody is handed on in memory",
    edits: [
      edit(
        GRANTS,
        '    this.release(queue, this.unlockOf(queue.resource, owner, queue, token, then), "entry");\n',
        "    const call = this.unlockOf(queue.resource, owner, queue, token, then);\n" +
          "    if (this.heirs.step(queue, owner, token, call)) return;\n" +
          '    this.release(queue, call, "entry");\n',
      ),
    ],
  },
  {
    name: "a step while a forced release is on its way",
    edits: [
      edit(
        HEIRS,
        '      case "force-unlock":\n        return succession.begin("other", null, null);\n',
        '      case "force-unlock":\n        return succession.begin("harmless", null, null);\n',
      ),
    ],
  },
  {
    name: "a step while a try of who is named is on its way",
    edits: [
      edit(
        MEMORY,
        "    return this.passages.length === 0;\n",
        '    return this.passages.every(({ kind }) => kind === "try");\n',
      ),
    ],
  },
  {
    name: "an heir that is tried is passed over",
    edits: [
      edit(
        HEIRS,
        "    const isGone = placeOf(queue, heir) === null && !succession.isTried(heir.owner);\n",
        "    const isGone = placeOf(queue, heir) === null;\n",
      ),
    ],
  },
  {
    name: "what is behind a release goes behind its repeat as well",
    edits: [
      edit(
        HEIRS,
        "    return !succession.isReleased(held.token, held.owner);\n",
        "    return true;\n",
      ),
    ],
  },
];

/** By the first source that is edited. */
function floorOf([first]: readonly Edit[]): Floor {
  return first?.file.startsWith("src/machine/") === true ? "machine" : "host";
}

function again(pitfall: string, { name, edits }: Planted): Mutation {
  const plant = plantedIn(floorOf(edits));
  return plant(pitfall, name, "waiting-heirs", edits);
}

export const heirBugs: readonly Mutation[] = [
  ...[...heirRowBugs, ...heirStepBugs].map((bug) => again(bug.pitfall, bug)),
  ...bugsOfSearches.filter(({ name }) => OF_SEARCHES.has(name)).map((bug) => again("P-068", bug)),
  ...OF_LEADERS.map((bug) => again("P-068", bug)),
];
